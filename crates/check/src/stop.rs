//! A check that is asked to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a check to end early, from another thread: what is decided by then stays decided, and the
/// rest is undecided. Clones ask the same check.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
