//! Stopping a run, from inside and from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolario_model::{StopCause, StopReason};

/// Stops a run. The first reason counts.
///
/// Sessions end the transaction they are in and begin no other one.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    reason: Mutex<Option<(StopReason, Option<StopCause>)>>,
}

/// Nobody waits longer than this before looking whether the run was stopped.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

impl Control {
    /// A run that goes on.
    pub fn new() -> Control {
        Control::default()
    }

    /// Stops the run; without a cause where that was the plan.
    pub fn stop(&self, reason: StopReason, cause: Option<StopCause>) {
        self.reason().get_or_insert((reason, cause));
        self.stopped.store(true, Ordering::Release);
    }

    /// Whether the run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Why the run was stopped; because it was done, if nobody stopped it.
    pub fn why(&self) -> (StopReason, Option<StopCause>) {
        self.reason().clone().unwrap_or((StopReason::Done, None))
    }

    /// Waits until a moment, or until the run is stopped.
    pub(super) fn sleep_until(&self, moment: Instant) {
        while !self.is_stopped() {
            match moment.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => return,
                Some(left) => std::thread::sleep(left.min(GLANCE)),
            }
        }
    }

    fn reason(&self) -> std::sync::MutexGuard<'_, Option<(StopReason, Option<StopCause>)>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts() {
        let control = Control::new();
        assert_eq!((control.is_stopped(), control.why()), (false, (StopReason::Done, None)));
        let gone = StopCause { message: Some("gone".to_owned()), ..StopCause::default() };
        control.stop(StopReason::Database, Some(gone.clone()));
        control.stop(StopReason::Interrupted, None);
        assert!(control.is_stopped());
        assert_eq!(control.why(), (StopReason::Database, Some(gone)));
    }

    #[test]
    fn nobody_sleeps_through_the_end() {
        let control = Control::new();
        control.stop(StopReason::Done, None);
        control.sleep_until(Instant::now() + Duration::from_secs(3600));
    }
}
