//! A check that is asked to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolario_model::{Engine, Level, LevelResult, Limit, Undecided, Verdict};

/// Asks a check to end early, from another thread: what is decided by then stays decided, and the
/// rest is undecided. Clones ask the same check.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The answer about something whose turn did not come.
pub(crate) fn unlooked() -> Verdict {
    Verdict::Undecided(Undecided::new(Limit::NotBegun))
}

/// The answer about a level whose turn did not come.
pub(crate) fn unlooked_level(level: Level) -> LevelResult {
    let engine = match level {
        Level::Linearizable => Engine::Lin,
        level if Level::Causal.implies(level) => Engine::Weak,
        _ => Engine::Mini,
    };
    LevelResult { level, engine, verdict: unlooked() }
}
