//! Workloads that aim at an anomaly: its shape, again and again, by sessions that share their keys.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::mini::MiniOp::{self, R, W};
use crate::shape::WorkloadError;

/// An anomaly that mini-transactions are to bring about.
///
/// Sessions work in groups of as many as the anomaly takes, each group on two keys of its own, and
/// every session plays one part all the time. A pause after the first operation makes the
/// transactions of a group overlap: by then each has its snapshot, or its first lock. Since a group
/// never does anything else, nobody has to wait for the others at the start.
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

/// How long the pause is: longer than a statement takes, and short enough for many transactions per
/// second.
const PAUSE: Duration = Duration::from_micros(500);

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
        self.shapes().len() as u32
    }

    /// How many keys so many sessions work on.
    pub fn keys(self, sessions: u32) -> u32 {
        2 * sessions.div_ceil(self.parts())
    }

    /// What each session of a group asks for.
    fn shapes(self) -> &'static [&'static [MiniOp]] {
        match self {
            Aim::NonRepeatableRead => &[&[R(0), R(0)], &[R(0), W(0)]],
            Aim::ReadSkew => &[&[R(0), R(1)], &[R(0), R(1), W(0), W(1)]],
            Aim::CausalityViolation => &[&[R(0), W(0)], &[R(0), R(1), W(1)], &[R(0), R(1)]],
            Aim::LongFork => &[&[R(0), W(0)], &[R(0), W(0)], &[R(0), R(1)], &[R(0), R(1)]],
            Aim::LostUpdate => &[&[R(0), W(0)], &[R(0), W(0)]],
            Aim::WriteSkew => &[&[R(0), R(1), W(0)], &[R(0), R(1), W(0)]],
        }
    }

    /// What a session asks for, and of which two keys. Of two sessions with the same part, the second
    /// has the keys the other way round.
    pub(crate) fn part(self, session: u32) -> (&'static [MiniOp], [u64; 2]) {
        let shapes = self.shapes();
        let (group, number) = (session / self.parts(), (session % self.parts()) as usize);
        let (first, second) = (u64::from(group) * 2, u64::from(group) * 2 + 1);
        let is_second =
            self != Aim::LostUpdate && number > 0 && shapes[number] == shapes[number - 1];
        let keys = if is_second { [second, first] } else { [first, second] };
        (shapes[number], keys)
    }

    /// How long a transaction pauses after its first operation.
    pub fn pause(self) -> Duration {
        PAUSE
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
            for shape in aim.shapes() {
                for (at, step) in shape.iter().enumerate() {
                    if let W(key) = step {
                        assert!(shape[..at].contains(&R(*key)), "{aim}: {shape:?}");
                    }
                }
            }
        }
    }
}
