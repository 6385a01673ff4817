//! Time and memory that a level may take, and who is told how far it got.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use isolario_model::{Level, Limit};

use crate::{Options, Phase, Progress};

/// How large an argument may grow where memory has no limit.
const LARGEST_PROOF: u64 = 1 << 30;

/// The limits of one level.
pub(crate) struct Limits<'o> {
    began: Instant,
    options: &'o Options,
    level: Level,
    /// For work that is done in turns: the turn, and the first one that makes later ones needless.
    turn: Option<(usize, &'o AtomicUsize)>,
}

impl<'o> Limits<'o> {
    pub(crate) fn new(options: &'o Options, level: Level) -> Self {
        Limits { began: Instant::now(), options, level, turn: None }
    }

    /// The same limits for one of several turns, which is over once `last` is an earlier one.
    pub(crate) fn for_turn<'s>(&'s self, turn: usize, last: &'s AtomicUsize) -> Limits<'s> {
        Limits { turn: Some((turn, last)), ..*self }
    }

    /// Whether a limit is reached, with so many bytes in use.
    pub(crate) fn reached(&self, bytes: u64) -> Option<Limit> {
        let is_over = self.turn.is_some_and(|(turn, last)| last.load(Ordering::Relaxed) < turn);
        if is_over || self.options.stop.is_asked() {
            return Some(Limit::Interrupted);
        }
        if let Some(timeout) = self.options.timeout.filter(|t| self.began.elapsed() >= *t) {
            return Some(Limit::Time(timeout));
        }
        self.options.memory.filter(|memory| bytes > *memory).map(Limit::Memory)
    }

    /// How many bytes the argument against an order may take.
    pub(crate) fn proof(&self) -> u64 {
        self.options.memory.map_or(LARGEST_PROOF, |memory| memory / 2)
    }

    /// Tells how far the level has come.
    pub(crate) fn tell(&self, phase: Phase, decided: u64, pairs: u64, conflicts: u64) {
        let level = self.level;
        self.options.watcher.tell(&Progress { level, phase, decided, pairs, conflicts });
    }
}
