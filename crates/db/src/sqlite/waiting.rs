//! Who waits for the write lock. SQLite does not tell, but it runs in our own process.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::is_busy;
use crate::database::LockView;
use crate::error::DbError;
use crate::locked::locked;

/// Those who wait, by the numbers of their connections.
#[derive(Default)]
pub(super) struct Queue {
    connections: AtomicU64,
    waiting: Mutex<BTreeSet<u64>>,
}

impl Queue {
    /// A place for a new connection, which waits for at most so long.
    pub(super) fn place(self: &Arc<Queue>, patience: Duration) -> Place {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        Place { queue: Arc::clone(self), id, patience }
    }
}

/// Looks at the queue.
pub(super) struct View(pub(super) Arc<Queue>);

impl LockView for View {
    fn is_waiting(&mut self, connection: u64) -> Result<bool, DbError> {
        Ok(locked(&self.0.waiting).contains(&connection))
    }
}

pub(super) struct Place {
    queue: Arc<Queue>,
    pub(super) id: u64,
    patience: Duration,
}

impl Place {
    /// Tries something again for as long as somebody else holds the write lock. SQLite's own waiting
    /// begins with whole milliseconds, many times what a transaction takes: sessions would hardly
    /// ever meet.
    pub(super) fn wait<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            match attempt() {
                Err(error) if is_busy(&error) && begun.elapsed() < self.patience => {
                    locked(&self.queue.waiting).insert(self.id);
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(1));
                }
                done => {
                    locked(&self.queue.waiting).remove(&self.id);
                    return done;
                }
            }
        }
    }
}
