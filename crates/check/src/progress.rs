//! How far a level has come that may take long.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use isolario_model::Level;

/// What is being done to decide a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A guess at the order of commits is mended.
    Guessing,
    /// What follows without trying anything is worked out.
    Settling,
    /// Alternatives are tried.
    Searching,
}

impl Phase {
    /// What is being done, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Guessing => "guessing",
            Phase::Settling => "settling",
            Phase::Searching => "searching",
        }
    }
}

/// A glance at a level that is being decided by search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelProgress {
    /// The level.
    pub level: Level,
    /// What is being done.
    pub phase: Phase,
    /// How many pairs of writes are in an order, as far as this phase has looked at them.
    pub decided: u64,
    /// How many pairs of writes this phase knows of.
    pub pairs: u64,
    /// How many times alternatives contradicted each other.
    pub conflicts: u64,
}

/// Unwinding across it does no harm: it is given a copy of a few numbers.
type Tell = dyn Fn(&LevelProgress) + Send + Sync + UnwindSafe + RefUnwindSafe;

/// Who is told now and then, and from several threads, how far a level has come that needs search.
#[derive(Clone, Default)]
pub struct Watcher(Option<Arc<Tell>>);

impl Watcher {
    /// Calls a function.
    pub fn new(
        tell: impl Fn(&LevelProgress) + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
    ) -> Self {
        Watcher(Some(Arc::new(tell)))
    }

    pub(crate) fn report(&self, progress: &LevelProgress) {
        if let Some(tell) = &self.0 {
            tell(progress);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.0.is_some()).finish()
    }
}
