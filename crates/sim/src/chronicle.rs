//! What the store knows and no client does: the true orders.

use isolario_model::{SinkError, Stamp};
use isolario_workload::{Chance, Rng};

/// Hears the true orders while a history is generated. Planted anomalies are not part of them: no
/// store ran them.
pub trait Chronicle {
    /// A commit made the next version of a key: the value of a register, or the element of a list.
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError>;

    /// A transaction, by its number in the history, has this place in the true commit order.
    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError>;
}

/// Nobody listens.
pub(crate) struct Unheard;

impl Chronicle for Unheard {
    fn version(&mut self, _: u64, _: i64) -> Result<(), SinkError> {
        Ok(())
    }

    fn committed(&mut self, _: u64, _: Stamp) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Passes on a share of the versions, chosen at random, and all commits.
pub struct Thinned<'c> {
    chronicle: &'c mut dyn Chronicle,
    share: Chance,
    rng: Rng,
}

impl<'c> Thinned<'c> {
    /// The same share and seed leave the same versions.
    pub fn new(chronicle: &'c mut dyn Chronicle, share: f64, seed: u64) -> Self {
        // The scheduler has the one number 0, and plans have two.
        Thinned { chronicle, share: Chance::new(share), rng: Rng::derive(seed, &[1]) }
    }
}

impl Chronicle for Thinned<'_> {
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError> {
        if self.rng.happens(self.share) { self.chronicle.version(key, value) } else { Ok(()) }
    }

    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError> {
        self.chronicle.committed(txn, place)
    }
}
