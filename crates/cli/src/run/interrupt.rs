//! Ctrl-C: once to end a run and check it, twice to leave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use isolario::db::Control;
use isolario::model::StopReason;

use crate::exit::leave;
use crate::failure::Failure;

/// Listens for Ctrl-C, and for the request to terminate.
pub(super) struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    happened: AtomicBool,
    /// The run that is going on.
    control: Mutex<Option<Arc<Control>>>,
}

impl Interrupt {
    pub(super) fn listen() -> Result<Interrupt, Failure> {
        let shared = Arc::new(Shared::default());
        let heard = Arc::clone(&shared);
        let listening = ctrlc::set_handler(move || {
            let again = heard.happened.swap(true, Ordering::Relaxed);
            match &*heard.control.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(control) if !again => control.stop(StopReason::Interrupted, None),
                // Nothing to end, or not soon enough for whoever waits.
                _ => leave(),
            }
        });
        listening.map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Interrupt { shared })
    }

    /// Whether it happened.
    pub(super) fn happened(&self) -> bool {
        self.shared.happened.load(Ordering::Relaxed)
    }

    /// A run that Ctrl-C ends.
    pub(super) fn control(&self) -> Arc<Control> {
        let control = Arc::new(Control::new());
        let mut current = self.shared.control.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::clone(&control));
        control
    }

    /// The run is over: from now on, Ctrl-C leaves.
    pub(super) fn release(&self) {
        *self.shared.control.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
