//! How a level is decided: a list of attempts, each of which decides the level or passes.
//!
//! The list follows from the kinds of operation in the history, its size and what is stated about it, before
//! any read is resolved ([`attempts`]). Whether the level applies at all is decided first ([`applies`]), and
//! verdicts are made last ([`conclusion`]).

mod applies;
mod attempts;
mod conclusion;
mod lowered;
mod unstated;

use std::cell::OnceCell;

use isolario_model::{Attempt, Level, LevelResult};

use crate::Checker;
use crate::conditionals;
use crate::predicates::{self, Deleters};

pub(crate) use applies::unwidenable;
pub(crate) use conclusion::Conclusion;
pub(crate) use lowered::LoweredHistory;

/// How a checker goes about a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    view: HistoryView,
    attempts: Vec<Attempt>,
}

impl Plan {
    /// The history as the attempts see it.
    pub fn view(&self) -> HistoryView {
        self.view
    }

    /// The attempts, in order. None where the level does not apply to the history.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }
}

/// A history as the attempts at a level see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryView {
    /// As it was recorded.
    Recorded,
    /// Without the order of sessions.
    Sessionless,
    /// Conditional writes as reads and writes of registers.
    Registers,
    /// Results of predicates, and rows that come back after a delete, as reads and writes of single rows.
    SingleRows,
}

impl Checker<'_> {
    /// How a level is decided. Takes little time: no read is resolved.
    pub fn plan(&self, level: Level) -> Plan {
        let view = self.view(level);
        let attempts = match self.inapplicable(level, view) {
            Some(_) => Vec::new(),
            None if view == HistoryView::Sessionless => {
                self.attempts(Level::ParallelSnapshotIsolation, view)
            }
            None => self.attempts(level, view),
        };
        Plan { view, attempts }
    }

    pub(crate) fn decide_all(&self, levels: &[Level]) -> Vec<LevelResult> {
        if self.history.has_predicates() && !self.is_stated() {
            return predicates::check(self.history, levels, &self.options);
        }
        if self.has_conditionals() && !self.is_stated() {
            return conditionals::check(self, levels);
        }
        if self.is_stated() || !self.history.may_reuse_rows() {
            return levels.iter().map(|level| self.decide(*level)).collect();
        }
        let by_row = |level: &&Level| predicates::is_by_row(**level);
        let by_row: Vec<Level> = levels.iter().filter(by_row).copied().collect();
        let mut of_rows = if by_row.is_empty() {
            Vec::new()
        } else {
            predicates::check(self.history, &by_row, &self.options)
        };
        let deleters = Deleters::new(self.history);
        let mut decide = |level: &Level| {
            if let Some(at) = of_rows.iter().position(|result| result.level == *level) {
                return of_rows.swap_remove(at);
            }
            let mut result = self.decide(*level);
            deleters.claim_no_more(&mut result);
            result
        };
        levels.iter().map(&mut decide).collect()
    }

    /// Decides a level of a history of single rows, or by a certificate or a promised order.
    pub(crate) fn decide(&self, level: Level) -> LevelResult {
        if self.options.stop.is_asked() {
            return Conclusion::not_begun().result(level, Attempt::Nothing);
        }
        let view = self.view_of_sessions(level);
        if let Some(reason) = self.inapplicable(level, view) {
            return Conclusion::Inapplicable(reason).result(level, Attempt::Nothing);
        }
        if view == HistoryView::Sessionless {
            let result = self.sessionless().decide(Level::ParallelSnapshotIsolation);
            return LevelResult { level, ..result };
        }
        let (began, mut last, mut is_open) = (OnceCell::new(), Attempt::Nothing, false);
        for attempt in self.attempts(level, view) {
            if is_open && attempt != Attempt::Suppositions {
                continue;
            }
            last = attempt;
            match self.attempt(attempt, level, &began) {
                Conclusion::Pass => {}
                Conclusion::Open => is_open = true,
                conclusion => return conclusion.result(level, attempt),
            }
        }
        Conclusion::Pass.result(level, last)
    }

    fn view(&self, level: Level) -> HistoryView {
        if self.is_stated() || level.needs().single_operations {
            return self.view_of_sessions(level);
        }
        if self.history.has_predicates() {
            return HistoryView::SingleRows;
        }
        if self.has_conditionals() {
            return HistoryView::Registers;
        }
        if self.history.may_reuse_rows() && predicates::is_by_row(level) {
            return HistoryView::SingleRows;
        }
        self.view_of_sessions(level)
    }

    /// The view where no operation has to be lowered.
    fn view_of_sessions(&self, level: Level) -> HistoryView {
        let is_sessionless = level == Level::ConsistentView && self.options.session_order;
        if is_sessionless && !self.is_stated() {
            HistoryView::Sessionless
        } else {
            HistoryView::Recorded
        }
    }

    /// Whether conditional writes have to be taken as reads and writes. Next to predicates, they are not.
    fn has_conditionals(&self) -> bool {
        self.history.has_conditionals() && !self.history.has_predicates()
    }
}
