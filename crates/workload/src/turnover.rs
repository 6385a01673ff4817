//! Keys that begin absent, and that new ones keep replacing.

use crate::shape::{Kind, Workload};

/// Writes that a key gets, on average, before a new one takes its place. A row that is inserted is
/// soon updated, and few transactions pass between the two.
const WRITES_PER_KEY: f64 = 4.0;

/// The keys behind the slots that operations are drawn from.
///
/// Some slots keep their key, which exists before the run. Each of the others has a key that begins
/// absent, and a new one every `period` positions; one slot after the other gets
/// its new key, so that there is always one that was just made. Keys that exist have the smallest
/// numbers, and new ones the following.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turnover {
    slots: u64,
    /// Number of slots whose keys begin absent.
    absent: u64,
    /// The first key that begins absent.
    first: u64,
    /// Positions of each session for which a key is used.
    period: u64,
}

impl Turnover {
    pub(crate) fn of(workload: &Workload, sessions: u32) -> Turnover {
        let (slots, standing) = (u64::from(workload.keys), u64::from(workload.standing_keys()));
        Turnover {
            slots,
            absent: slots - standing,
            first: standing,
            period: positions(workload, sessions, WRITES_PER_KEY),
        }
    }

    /// With keys that begin absent from this one on, if it leaves room for those that exist.
    pub(crate) fn starting_at(self, first: u64) -> Turnover {
        Turnover { first: self.first.max(first), ..self }
    }

    /// The key of a slot at a position of any session.
    pub(crate) fn key(self, slot: u64, position: u64) -> u64 {
        // The absent ones among the slots before this one, which alternate evenly.
        let before = |slot: u64| (slot * self.absent).div_ceil(self.slots);
        let number = before(slot);
        if number == before(slot + 1) {
            return slot - number;
        }
        let generation = (position + number * self.period / self.absent) / self.period;
        self.first + generation * self.absent + number
    }

    /// The first key that comes into use after a position of any session, if new ones do: the one that
    /// follows in the slot which is the next to get a new key.
    pub(crate) fn next_key(self, position: u64) -> Option<u64> {
        if self.absent == 0 {
            return None;
        }
        // The last of the slots that get their next key within this period: slots with larger numbers have theirs already.
        let left = self.period - position % self.period;
        let number = (left * self.absent).div_ceil(self.period) - 1;
        let generation = (position + number * self.period / self.absent) / self.period + 1;
        Some(self.first + generation * self.absent + number)
    }

    /// The number of keys that transactions before this position of any session have.
    pub(crate) fn keys(self, positions: u64) -> u64 {
        let last = |slot| self.key(slot, positions.saturating_sub(1)) + 1;
        (0..self.slots).map(last).max().unwrap_or_default()
    }
}

/// The number of positions of every session after which each key has been written this often, on
/// average.
pub(crate) fn positions(workload: &Workload, sessions: u32, writes_per_key: f64) -> u64 {
    let writes = match workload.kind {
        Kind::Mini => 1.0,
        _ => f64::from(workload.ops),
    } * (1.0 - workload.read_ratio);
    // Without writes, keys may last for ever.
    let period = f64::from(workload.keys) * writes_per_key / (f64::from(sessions) * writes);
    (period as u64).clamp(1, u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn turnover(keys: u32, absent_ratio: f64) -> Turnover {
        Turnover::of(&Workload { keys, absent_ratio, ..Workload::default() }, 4)
    }

    #[test]
    fn half_of_the_slots_keep_their_key() {
        let turnover = turnover(10, 0.5);
        let keys = |position| (0..10).map(|slot| turnover.key(slot, position)).collect::<Vec<_>>();
        assert_eq!(keys(0), [5, 0, 6, 1, 7, 2, 8, 3, 9, 4]);
        let late = keys(10 * turnover.period);
        assert_eq!(late, [55, 0, 56, 1, 57, 2, 58, 3, 59, 4]);
        assert_eq!(turnover.keys(10 * turnover.period + 1), 60);
        // In between, one after the other has its new key.
        let new = |position| keys(position).iter().filter(|key| **key >= 10).count();
        let counts: BTreeSet<usize> = (0..=turnover.period).map(new).collect();
        assert_eq!(counts, (0..=5).collect());
    }

    #[test]
    fn the_next_key_comes_soonest() {
        for (keys, ratio) in [(1, 1.0), (2, 0.5), (7, 0.3), (10, 0.5), (13, 0.9), (100, 1.0)] {
            let turnover = turnover(keys, ratio);
            let in_use = |position| {
                (0..u64::from(keys))
                    .map(|slot| turnover.key(slot, position))
                    .collect::<BTreeSet<_>>()
            };
            for position in 0..200 {
                let next = turnover.next_key(position).unwrap();
                let now = in_use(position);
                assert!(!now.contains(&next), "{keys} {ratio} {position}");
                let changed = (position + 1..).map(in_use).find(|later| *later != now).unwrap();
                assert!(changed.contains(&next), "{keys} {ratio} {position}");
            }
        }
        assert_eq!(turnover(10, 0.0).next_key(5), None);
    }

    #[test]
    fn no_two_slots_share_a_key() {
        for (keys, ratio) in [(1, 1.0), (1, 0.4), (2, 0.5), (7, 0.3), (10, 1.0), (13, 0.9)] {
            let turnover = turnover(keys, ratio);
            let mut owners = std::collections::BTreeMap::new();
            for position in 0..500 {
                for slot in 0..u64::from(keys) {
                    let key = turnover.key(slot, position);
                    assert_eq!(*owners.entry(key).or_insert(slot), slot, "{keys} {ratio} {key}");
                    assert!(key < turnover.keys(position + 1));
                }
            }
        }
    }

    #[test]
    fn without_absent_keys_slots_are_keys() {
        let turnover = turnover(10, 0.0);
        assert!((0..10).all(|slot| turnover.key(slot, 1 << 40) == slot));
        assert_eq!(turnover.keys(1 << 40), 10);
    }

    #[test]
    fn new_keys_leave_room_for_others() {
        let turnover = turnover(4, 0.5).starting_at(20);
        assert_eq!((0..4).map(|slot| turnover.key(slot, 0)).collect::<Vec<_>>(), [20, 0, 21, 1]);
    }
}
