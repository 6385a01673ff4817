//! Numbers in use, in little room where they come one after the other: a writer that streams must
//! not remember every transaction.

use std::ops::Range;

use rustc_hash::FxHashSet;

/// A set of numbers. A run of consecutive ones, from the first one on, is kept as its two ends.
#[derive(Debug)]
pub(crate) struct NumberSet {
    run: Range<u64>,
    others: FxHashSet<u64>,
}

impl Default for NumberSet {
    fn default() -> Self {
        NumberSet { run: 0..0, others: FxHashSet::default() }
    }
}

impl NumberSet {
    /// Adds a number; says whether it is new.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        // The end of a run lies behind it, so the largest number is never part of one.
        if number == u64::MAX {
            return self.others.insert(number);
        }
        if self.run.is_empty() && self.others.is_empty() {
            self.run = number..number;
        }
        if self.run.contains(&number) {
            return false;
        }
        if number != self.run.end {
            return self.others.insert(number);
        }
        self.run.end += 1;
        while self.run.end < u64::MAX && self.others.remove(&self.run.end) {
            self.run.end += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn consecutive_numbers_take_no_room() {
        let mut set = NumberSet::default();
        assert!((1..10_000).all(|number| set.insert(number)));
        assert!((1..10_000).all(|number| !set.insert(number)));
        assert!(set.others.is_empty());
    }

    #[test]
    fn numbers_out_of_order_take_room_until_the_gap_is_filled() {
        let mut set = NumberSet::default();
        assert!([5, 8, 7].into_iter().all(|number| set.insert(number)));
        assert_eq!(set.others.len(), 2);
        assert!(set.insert(6));
        assert!(set.others.is_empty());
        assert!([5, 6, 7, 8].into_iter().all(|number| !set.insert(number)));
    }

    proptest! {
        #[test]
        fn it_is_a_set(numbers in prop::collection::vec(
            prop_oneof![0u64..12, (u64::MAX - 3)..=u64::MAX],
            0..40,
        )) {
            let (mut set, mut expected) = (NumberSet::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(set.insert(number), expected.insert(number));
            }
        }
    }
}
