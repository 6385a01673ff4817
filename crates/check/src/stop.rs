//! A check that is asked to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolario_model::{Engine, Level, LevelResult, Limit, Undecided, Verdict};

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

/// The answer about something whose turn did not come.
pub(crate) fn unlooked() -> Verdict {
    Verdict::Undecided(Undecided::new(Limit::NotBegun))
}

/// Who would have decided a level first.
pub(crate) fn engine_of(level: Level) -> Engine {
    match level {
        Level::Linearizable => Engine::Lin,
        Level::StrongAdyaReadCommitted => Engine::Versions,
        _ if level.needs().version_order => Engine::Versions,
        _ if Level::Causal.implies(level) => Engine::Weak,
        _ => Engine::Mini,
    }
}

/// The answer about a level whose turn did not come.
pub(crate) fn unlooked_level(level: Level) -> LevelResult {
    LevelResult { level, engine: engine_of(level), verdict: unlooked() }
}
