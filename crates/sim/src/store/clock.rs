//! Sets of commits, as the length of a beginning of each log.

/// The most replicas, and logs, a store has. Enough for every anomaly, and few enough to copy clocks
/// around.
pub(super) const REPLICAS: usize = 4;

/// A set of commits: of each log, those up to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Clock(pub(super) [u64; REPLICAS]);

/// Which commit: its log, and its number there, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dot {
    pub(super) log: usize,
    pub(super) number: u64,
}

impl Clock {
    /// Whether a commit is in the set.
    #[inline]
    pub(super) fn contains(&self, dot: Dot) -> bool {
        dot.number <= self.0[dot.log]
    }

    /// Whether all of another set is in this one.
    pub(super) fn covers(&self, other: &Clock) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, others)| mine >= others)
    }

    /// Adds another set.
    pub(super) fn join(&mut self, other: &Clock) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, others)| *mine = (*mine).max(*others));
    }

    /// Keeps what is in another set, too.
    pub(super) fn meet(&mut self, other: &Clock) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, others)| *mine = (*mine).min(*others));
    }

    /// Adds a commit and all before it in its log.
    pub(super) fn add(&mut self, dot: Dot) {
        self.0[dot.log] = self.0[dot.log].max(dot.number);
    }
}
