//! Workloads that aim at an anomaly: its shape, again and again, by sessions that share their keys.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::mini::MiniOp::{self, R, W};
use crate::plan::Rendezvous;
use crate::shape::WorkloadError;

/// An anomaly that mini-transactions are to bring about.
///
/// Sessions work in groups of as many as the anomaly takes, each group on two keys of its own, and
/// every session plays one part all the time. The transactions of a group begin together, and meet once
/// more on their way: whoever writes waits until the others have read. Chance needs many transactions for
/// such an interleaving; this way most rounds have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aim {
    /// One reads a key twice, another one writes it.
    NonRepeatableRead,
    /// One reads two keys that another one writes.
    ReadSkew,
    /// One writes a key, another one follows it with a second key, a third one reads both.
    CausalityViolation,
    /// Two write a key each, two others read both, in opposite orders.
    LongFork,
    /// Two read a key and write it.
    LostUpdate,
    /// Two read the same two keys, and each writes one of them.
    WriteSkew,
}

/// What a session of a group does.
struct Part {
    /// What it asks for.
    shape: &'static [MiniOp],
    /// The operation before which it meets the others.
    meets_before: usize,
    /// How many others it lets go first after that, one after the other.
    lets_go: u32,
}

/// Others have to read before this one writes.
const fn writer(shape: &'static [MiniOp], meets_before: usize) -> Part {
    Part { shape, meets_before, lets_go: 0 }
}

/// Reads once before others write, and once more after they have committed.
const fn reader(shape: &'static [MiniOp], lets_go: u32) -> Part {
    Part { shape, meets_before: 1, lets_go }
}

/// How long it takes to write and to commit: longer than a few statements, and short enough for many
/// transactions per second.
const A_COMMIT: Duration = Duration::from_micros(800);

impl Aim {
    /// Every aim.
    pub const ALL: [Aim; 6] = [
        Aim::NonRepeatableRead,
        Aim::ReadSkew,
        Aim::CausalityViolation,
        Aim::LongFork,
        Aim::LostUpdate,
        Aim::WriteSkew,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Aim::NonRepeatableRead => "non-repeatable-read",
            Aim::ReadSkew => "read-skew",
            Aim::CausalityViolation => "causality-violation",
            Aim::LongFork => "long-fork",
            Aim::LostUpdate => "lost-update",
            Aim::WriteSkew => "write-skew",
        }
    }

    /// How many sessions it takes.
    pub fn parts(self) -> u32 {
        self.group().len() as u32
    }

    /// How many keys so many sessions work on.
    pub fn keys(self, sessions: u32) -> u32 {
        2 * sessions.div_ceil(self.parts())
    }

    /// What each session of a group does.
    fn group(self) -> &'static [Part] {
        const UPDATE: Part = writer(&[R(0), W(0)], 1);
        const SKEWED: Part = writer(&[R(0), R(1), W(0)], 2);
        const READ_BOTH: Part = reader(&[R(0), R(1)], 1);
        match self {
            Aim::NonRepeatableRead => {
                const { &[reader(&[R(0), R(0)], 1), writer(&[R(0), W(0)], 1)] }
            }
            Aim::ReadSkew => const { &[READ_BOTH, writer(&[R(0), R(1), W(0), W(1)], 2)] },
            // The second one sees what the first one wrote, since it begins to read after the meeting.
            Aim::CausalityViolation => {
                const FOLLOW: Part =
                    Part { shape: &[R(0), R(1), W(1)], meets_before: 0, lets_go: 1 };
                const { &[UPDATE, FOLLOW, reader(&[R(0), R(1)], 3)] }
            }
            Aim::LongFork => const { &[UPDATE, UPDATE, READ_BOTH, READ_BOTH] },
            Aim::LostUpdate => const { &[UPDATE, UPDATE] },
            Aim::WriteSkew => const { &[SKEWED, SKEWED] },
        }
    }

    /// What a session asks for, and of which two keys. Of two sessions with the same part, the second
    /// has the keys the other way round.
    pub(crate) fn part(self, session: u32) -> (&'static [MiniOp], [u64; 2]) {
        let shape = |number: usize| self.group()[number].shape;
        let (group, number) = (session / self.parts(), (session % self.parts()) as usize);
        let (first, second) = (u64::from(group) * 2, u64::from(group) * 2 + 1);
        let is_second = self != Aim::LostUpdate && number > 0 && shape(number) == shape(number - 1);
        let keys = if is_second { [second, first] } else { [first, second] };
        (shape(number), keys)
    }

    /// Where the transactions of a session meet those of its group.
    pub fn rendezvous(self, session: u32) -> Rendezvous {
        let part = &self.group()[(session % self.parts()) as usize];
        let (group, before) = (session / self.parts(), part.meets_before);
        Rendezvous { group, before, pause: A_COMMIT * part.lets_go }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// In any case, with hyphens or without.
impl FromStr for Aim {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let plain = |name: &str| name.replace('-', "").to_ascii_lowercase();
        let found = Aim::ALL.into_iter().find(|aim| plain(aim.name()) == plain(name));
        found.ok_or_else(|| WorkloadError::Aim { found: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_spelt() {
        for aim in Aim::ALL {
            assert_eq!(aim.to_string().parse(), Ok(aim));
        }
        assert_eq!("WriteSkew".parse(), Ok(Aim::WriteSkew));
        let message = "chaos".parse::<Aim>().unwrap_err().to_string();
        assert!(message.starts_with("there is no aim \"chaos\": expected non-repeatable-read"));
    }

    #[test]
    fn sessions_of_a_group_share_two_keys_and_groups_share_none() {
        assert_eq!(Aim::WriteSkew.part(0), (&[R(0), R(1), W(0)][..], [0, 1]));
        assert_eq!(Aim::WriteSkew.part(1), (&[R(0), R(1), W(0)][..], [1, 0]));
        assert_eq!(Aim::LostUpdate.part(1), (&[R(0), W(0)][..], [0, 1]));
        assert_eq!(Aim::LongFork.part(6), (&[R(0), R(1)][..], [2, 3]));
        assert_eq!(Aim::LongFork.part(7), (&[R(0), R(1)][..], [3, 2]));
        assert_eq!((Aim::LongFork.keys(8), Aim::CausalityViolation.keys(8)), (4, 6));
    }

    #[test]
    fn every_part_is_a_mini_transaction() {
        for aim in Aim::ALL {
            for Part { shape, meets_before, .. } in aim.group() {
                for (at, step) in shape.iter().enumerate() {
                    if let W(key) = step {
                        assert!(shape[..at].contains(&R(*key)), "{aim}: {shape:?}");
                        assert!(at >= *meets_before, "{aim}: {shape:?} writes too early");
                    }
                }
            }
        }
    }
}
