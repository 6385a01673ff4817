//! Time and memory that a level may take, and who is told how far it got.

use std::time::{Duration, Instant};

use crate::Options;

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Time(Duration),
    Memory(u64),
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
        if let Some(timeout) = self.options.timeout.filter(|t| self.began.elapsed() >= *t) {
            return Some(Limit::Time(timeout));
        }
        let memory = self.options.memory.filter(|memory| self.base + bytes > *memory);
        memory.map(Limit::Memory)
    }
}
