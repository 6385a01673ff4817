//! Time and memory that a level may take, who is told how far it got, and what is known when a limit is
//! reached.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use isolario_model::{Level, Limit, SearchParts, SearchProgress, Undecided};

use super::parts::Part;
use super::problem::Problem;
use crate::plan::Conclusion;
use crate::{CheckOptions, LevelProgress, Phase};

/// How large an argument may grow where memory has no limit.
const LARGEST_PROOF: u64 = 1 << 30;

/// The limits of one level.
pub(crate) struct Limits<'o> {
    began: Instant,
    pub(super) options: &'o CheckOptions,
    pub(super) level: Level,
    /// For work that is done in turns: the turn, and the first one that makes later ones needless.
    turn: Option<(usize, &'o AtomicUsize)>,
}

impl<'o> Limits<'o> {
    pub(crate) fn new(options: &'o CheckOptions, level: Level, began: Instant) -> Self {
        Limits { began, options, level, turn: None }
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

    /// The time that is left, if it has an end.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.options.timeout.map(|timeout| timeout.saturating_sub(self.began.elapsed()))
    }

    /// How many bytes the argument against an order may take.
    pub(crate) fn proof(&self) -> u64 {
        self.options.memory.map_or(LARGEST_PROOF, |memory| memory / 2)
    }

    /// Tells how far the level has come.
    pub(crate) fn tell(&self, phase: Phase, decided: u64, pairs: u64, conflicts: u64) {
        let level = self.level;
        self.options.watcher.report(&LevelProgress { level, phase, decided, pairs, conflicts });
    }
}

/// What is known of a level so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SoFar {
    /// How many pairs of versions of one key there are.
    pub(crate) pairs: u64,
    /// How many of them are in an order, if that is known.
    pub(crate) decided: Option<u64>,
    /// The parts that can be solved independently of each other, if they are known.
    pub(crate) parts: Option<SearchParts>,
    /// How many conflicts the search came to, if it began.
    pub(crate) conflicts: Option<u64>,
}

impl SoFar {
    /// Takes note of the parts, and of those that are unsolved.
    pub(crate) fn count(
        &mut self,
        problem: &Problem,
        parts: &[Part],
        is_unsolved: impl Fn(usize) -> bool,
    ) {
        let unsolved = (0..parts.len()).filter(|part| is_unsolved(*part));
        let sizes: Vec<usize> = unsolved.map(|part| parts[part].txns(problem)).collect();
        self.parts = Some(SearchParts {
            total: parts.len() as u64,
            unsolved: sizes.len() as u64,
            largest: sizes.into_iter().max().unwrap_or(0) as u64,
        });
    }

    /// The conclusion if a limit is reached now.
    pub(crate) fn undecided(self, limit: Limit) -> Conclusion {
        let SoFar { pairs, decided, parts, conflicts } = self;
        let progress = SearchProgress::Writes { pairs, decided, parts, conflicts };
        Conclusion::Unknown(Undecided::new(limit).with_progress(progress))
    }
}
