//! Choices made by the pinned random generator.

use isolario_workload::{Chance, Rng};

/// A stream of choices.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Rng);

impl Dice {
    /// The stream of a seed and a path of numbers.
    pub(crate) fn new(seed: u64, path: &[u64]) -> Dice {
        Dice(Rng::derive(seed, path))
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Whether something happens that happens so many times out of a hundred.
    pub(crate) fn percent(&mut self, share: u32) -> bool {
        self.0.happens(Chance::new(f64::from(share) / 100.0))
    }

    /// One of the items. There must be at least one: callers whose list may be empty check that first.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A position, each as likely as its weight; the last one if all weights are 0.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        let mut left = self.0.below(total);
        for (position, weight) in weights.iter().enumerate() {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) if total > 0 => left = rest,
                _ if total > 0 => return position,
                _ => {}
            }
        }
        weights.len().saturating_sub(1)
    }
}
