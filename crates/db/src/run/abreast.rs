//! Sessions that stay abreast, so that they work on the same keys.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a session waits for slower ones. One of these may wait for a lock, or for a server that is
/// down.
const PATIENCE: Duration = Duration::from_millis(20);
/// The position of a session that is not waited for.
const NOT_WAITED_FOR: u64 = u64::MAX;

/// The positions of all sessions, none of which gets far ahead of the others.
///
/// A session that does not move within the limit is not waited for until it moves again.
pub(super) struct Abreast {
    /// How far a session may be ahead of the slowest one.
    lead: u64,
    positions: Mutex<Vec<u64>>,
    moved: Condvar,
}

impl Abreast {
    pub(super) fn new(lead: u64, sessions: u32) -> Abreast {
        let positions = Mutex::new(vec![0; sessions as usize]);
        Abreast { lead, positions, moved: Condvar::new() }
    }

    /// Waits until no session is too far behind one that is about to begin at this position.
    pub(super) fn wait(&self, session: u32, position: u64) {
        self.wait_for(session, position, PATIENCE);
    }

    fn wait_for(&self, session: u32, position: u64, limit: Duration) {
        let slowest = position.saturating_sub(self.lead);
        let positions = self.move_to(session, position);
        let is_ahead = |positions: &mut Vec<u64>| positions.iter().any(|other| *other < slowest);
        let waited = self.moved.wait_timeout_while(positions, limit, is_ahead);
        let (mut positions, _) = waited.unwrap_or_else(PoisonError::into_inner);
        for other in positions.iter_mut().filter(|other| **other < slowest) {
            *other = NOT_WAITED_FOR;
        }
    }

    /// A session has ended.
    pub(super) fn leave(&self, session: u32) {
        drop(self.move_to(session, NOT_WAITED_FOR));
    }

    fn move_to(&self, session: u32, position: u64) -> MutexGuard<'_, Vec<u64>> {
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = positions.get_mut(session as usize) {
            *own = position;
        }
        self.moved.notify_all();
        positions
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn no_session_gets_further_ahead_than_it_may() {
        let abreast = Abreast::new(2, 3);
        let reached = [const { AtomicU64::new(0) }; 3];
        thread::scope(|scope| {
            for session in 0..3 {
                let (abreast, reached) = (&abreast, &reached);
                scope.spawn(move || {
                    for position in 0..200 {
                        abreast.wait_for(session, position, LONG);
                        reached[session as usize].store(position, Ordering::SeqCst);
                        for other in reached {
                            // A session is there before it says so.
                            assert!(other.load(Ordering::SeqCst) + 3 >= position);
                        }
                    }
                    abreast.leave(session);
                });
            }
        });
    }

    #[test]
    fn a_session_that_does_not_move_is_waited_for_once() {
        let abreast = Abreast::new(1, 2);
        abreast.wait_for(0, 5, Duration::from_millis(1));
        abreast.wait_for(0, 6, LONG);
        // It moves again, and is waited for again.
        abreast.move_to(1, 1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| abreast.wait_for(0, 7, LONG));
            abreast.wait_for(1, 6, LONG);
            waiting.join().unwrap();
        });
    }
}
