//! Ending a run early, from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::Control;
use isolario_check::StopFlag;
use isolario_model::StopReason;

/// Ends a run early, from another thread or from a signal handler's. Clones end the same run.
///
/// What was recorded by then is complete, and is checked.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    interrupted: bool,
    control: Arc<Control>,
    stop: StopFlag,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// It has not begun, or is over.
    #[default]
    Idle,
    /// The database is opened and made ready. Interrupted here, the run leaves nothing behind.
    Opening,
    /// The workload runs. Interrupted here, the run checks what was recorded.
    Driving,
    /// The history is read and checked. Interrupted here, the run reports what is decided.
    Checking,
    /// What was found is written down, which is not interrupted.
    Writing,
}

impl Handle {
    /// A handle of a run that is yet to begin.
    pub fn new() -> Handle {
        Handle::default()
    }

    /// Ends the stage that the run is in, and tells which one that is.
    pub fn interrupt(&self) -> Stage {
        let mut state = self.state();
        state.interrupted = true;
        match state.stage {
            Stage::Driving => state.control.stop(StopReason::Interrupted, None),
            Stage::Checking => state.stop.ask(),
            Stage::Idle | Stage::Opening | Stage::Writing => {}
        }
        state.stage
    }

    /// Whether somebody interrupted a run of this handle.
    pub fn is_interrupted(&self) -> bool {
        self.state().interrupted
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.state().stage = stage;
    }

    /// The workload begins, unless it was interrupted before.
    pub(super) fn begin_driving(&self) -> Option<Arc<Control>> {
        let mut state = self.state();
        if state.interrupted {
            return None;
        }
        state.stage = Stage::Driving;
        state.control = Arc::default();
        Some(Arc::clone(&state.control))
    }

    /// The check begins: another interruption ends it.
    pub(super) fn begin_checking(&self) -> StopFlag {
        let mut state = self.state();
        state.stage = Stage::Checking;
        state.stop = StopFlag::default();
        state.stop.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
