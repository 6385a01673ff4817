//! Time and memory that a level may take, and who is told how far it got.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Options;

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Time(Duration),
    Memory(u64),
    /// Somebody asked to end.
    Stop,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Time(timeout) => {
                write!(f, "the time limit of {} s was reached", timeout.as_secs_f64())
            }
            Limit::Memory(bytes) => write!(f, "the memory limit of {bytes} bytes was reached"),
            Limit::Stop => f.write_str("the check was interrupted"),
        }
    }
}

/// The limits of one level.
pub(crate) struct Limits<'o> {
    began: Instant,
    options: &'o Options,
    /// What was built before the search, in bytes.
    pub(crate) base: u64,
}

impl<'o> Limits<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Limits { began: Instant::now(), options, base: 0 }
    }

    /// Whether a limit is reached, with so many bytes beyond the base.
    pub(crate) fn reached(&self, bytes: u64) -> Option<Limit> {
        if self.options.stop.is_asked() {
            return Some(Limit::Stop);
        }
        if let Some(timeout) = self.options.timeout.filter(|t| self.began.elapsed() >= *t) {
            return Some(Limit::Time(timeout));
        }
        let memory = self.options.memory.filter(|memory| self.base + bytes > *memory);
        memory.map(Limit::Memory)
    }
}
