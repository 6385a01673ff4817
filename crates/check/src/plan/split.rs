//! How a history splits, and what was made of that.

use isolario_model::{Engine, Level, LevelResult, VerdictKind};

use super::Checker;
use crate::windows::{self, Segmentation};

/// How much was looked at, at a time, to decide a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionScope {
    /// An order that the history suggests was mended window by window until it gave all that the level
    /// demands.
    Segments,
    /// A window of such an order, whose transactions have no order whatever the others do.
    Segment,
    /// Everything at once.
    Whole(WholeReason),
}

/// Why everything was looked at, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WholeReason {
    /// Something is wrong, and is looked for everywhere.
    Violated,
    /// What the level demands denies too much of the order that the history suggests.
    Denied,
    /// The order that was mended does not agree with real time.
    RealTime,
    /// There is no order of whole transactions: their starts are apart from their commits.
    NoSerialOrder,
    /// Writes follow no read of their key, so that the order of versions is searched for, and windows of
    /// the order that the history suggests were too wide for that.
    Search,
    /// No order has to be found.
    NoOrder,
}

impl Checker<'_> {
    /// How the history splits into windows: parts that are not in order by themselves, and in one of
    /// which every cycle lies. None where it has operations other than those on registers and lists.
    pub fn segmentation(&self) -> Option<Segmentation> {
        self.engines().ok().map(|engines| windows::measure(&engines.resolved))
    }

    /// How a level was decided, given its answer.
    pub fn decision_scope(&self, result: &LevelResult) -> DecisionScope {
        let (level, in_time) = (result.level, result.level.shape().real_time);
        match (result.verdict.kind(), result.engine) {
            (VerdictKind::Satisfied, _) if self.by_serial_order(level).is_some() => {
                DecisionScope::Segments
            }
            (kind, Engine::Strong { .. })
                if self.engines().is_ok_and(|engines| engines.searched_by_windows(level)) =>
            {
                match kind {
                    VerdictKind::Violated => DecisionScope::Segment,
                    _ => DecisionScope::Segments,
                }
            }
            (VerdictKind::Violated, _) => DecisionScope::Whole(WholeReason::Violated),
            (_, Engine::Strong { .. }) => DecisionScope::Whole(WholeReason::Search),
            (VerdictKind::Satisfied, Engine::Weak) if level != Level::CutIsolation => {
                let engines = self.engines().ok();
                match engines.is_some_and(|engines| engines.weak.is_by_windows(level)) {
                    true => DecisionScope::Segments,
                    false => DecisionScope::Whole(WholeReason::Denied),
                }
            }
            (VerdictKind::Satisfied, Engine::Mini) => {
                let mini = self.engines().ok().and_then(|engines| self.mini(engines).ok());
                match mini.and_then(|mini| mini.is_by_windows(in_time)) {
                    Some(true) => DecisionScope::Segments,
                    Some(false) => DecisionScope::Whole(WholeReason::RealTime),
                    None => DecisionScope::Whole(WholeReason::NoSerialOrder),
                }
            }
            _ => DecisionScope::Whole(WholeReason::NoOrder),
        }
    }
}
