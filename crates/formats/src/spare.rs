//! Memory that is used again.

use std::sync::{Mutex, PoisonError};

/// Things that threads borrow and give back: there are as many as are used at the same time. To fetch fresh
/// memory for each piece of work, or for each that a thread takes over from another, can cost more than the work.
#[derive(Default)]
pub(crate) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// Lends one, as whoever had it left it.
    pub(crate) fn lend<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut lent = self.things().pop().unwrap_or_default();
        let made = work(&mut lent);
        self.things().push(lent);
        made
    }

    fn things(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
