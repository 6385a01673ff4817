//! Counting without keeping everything.

/// How many examples a tally keeps.
const EXAMPLES: usize = 10;

/// A count, and the first few of what was counted.
///
/// *First* is by the items' own order, not by the order they came in, so that tallies of parts
/// can be merged in any order: the result is the same for any number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally<T> {
    pub(crate) count: usize,
    /// At most [`EXAMPLES`], in order.
    pub(crate) first: Vec<T>,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Tally { count: 0, first: Vec::new() }
    }
}

impl<T: Ord> Tally<T> {
    /// Counts an item.
    pub(crate) fn add(&mut self, item: T) {
        self.count += 1;
        self.keep(item);
    }

    /// The tally of what each item stands for. `to` keeps the order.
    pub(crate) fn map<U: Ord>(self, to: impl FnMut(T) -> U) -> Tally<U> {
        Tally { count: self.count, first: self.first.into_iter().map(to).collect() }
    }

    /// Adds what another tally counted.
    pub(crate) fn merge(mut self, other: Tally<T>) -> Tally<T> {
        self.count += other.count;
        other.first.into_iter().for_each(|item| self.keep(item));
        self
    }

    fn keep(&mut self, item: T) {
        if self.first.len() == EXAMPLES {
            if self.first.last().is_some_and(|last| *last <= item) {
                return;
            }
            self.first.pop();
        }
        let at = self.first.partition_point(|kept| *kept < item);
        self.first.insert(at, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_kept_however_the_items_are_split() {
        let items: Vec<u32> = (0..100).map(|i| i * 37 % 101).collect();
        let tally = |items: &[u32]| {
            let mut tally = Tally::default();
            items.iter().for_each(|i| tally.add(*i));
            tally
        };
        let whole = tally(&items);
        assert_eq!(whole.count, 100);
        let mut sorted = items.clone();
        sorted.sort_unstable();
        assert_eq!(whole.first, sorted[..EXAMPLES]);
        for cut in [0, 1, 50, 99, 100] {
            let (head, tail) = items.split_at(cut);
            assert_eq!(tally(tail).merge(tally(head)), whole);
        }
    }
}
