//! Whether a level applies to a history, before anything else is done.

use isolario_model::{Clock, History, Inapplicable, KeyAssumption, Level, LevelNodes, OpFamily};

use super::HistoryView;
use crate::certificate;
use crate::resolved::{RESOLVED, first_outside};
use crate::{CheckOptions, Checker, is_decided_by_promise};

impl Checker<'_> {
    /// Why a level does not apply to the history; none where it has to be tried.
    pub(super) fn inapplicable(&self, level: Level, view: HistoryView) -> Option<Inapplicable> {
        if let Some(order) = &self.options.promised_order {
            let is_decided = is_decided_by_promise(level, order.is_by_stamps());
            let reason = || (!is_decided).then_some(Inapplicable::NotByPromisedOrder);
            return self.lacks_times(level).or_else(reason);
        }
        if self.is_certified() {
            if certificate::decides(level) {
                return self.lacks_times(level);
            }
            if self.history.has_predicates() {
                return Some(Inapplicable::NotByCertificate);
            }
        }
        // Linearizability is about operations of more kinds, and finds out by itself.
        let is_lowered = matches!(view, HistoryView::Registers | HistoryView::SingleRows);
        if is_lowered || level.shape().nodes == LevelNodes::PerOperation {
            return None;
        }
        let needed = level.needs().operations;
        let operation = |families| {
            first_outside(self.history, families).map(|op| Inapplicable::Operation { op })
        };
        if let Some(reason) = operation(RESOLVED) {
            return Some(reason);
        }
        if !level.is_decided() {
            return Some(Inapplicable::NoChecker);
        }
        if !RESOLVED.iter().all(|family| needed.contains(family))
            && let Some(reason) = operation(needed)
        {
            return Some(reason);
        }
        self.lacks_times(level)
    }

    /// What a level in real time needs and the history does not have. Where keys are assumed to be
    /// linearizable, they are so in real time, whatever the level.
    fn lacks_times(&self, level: Level) -> Option<Inapplicable> {
        let assumes_times = self.options.assume.contains(KeyAssumption::LinearizableKeys)
            && level.shape().nodes != LevelNodes::None;
        if !level.needs().times && !assumes_times {
            return None;
        }
        if !self.history.has_times() {
            return Some(Inapplicable::NoTimes);
        }
        unwidenable(self.history, &self.options)
    }

    /// Whether the database states an order of transactions or of all that predicates matched.
    pub(super) fn is_stated(&self) -> bool {
        self.options.promised_order.is_some() || self.is_certified()
    }

    /// Whether the order of versions is part of the question, and there are predicates, so that it
    /// takes the versions that they matched as well, or rows that may come back.
    pub(super) fn is_certified(&self) -> bool {
        let CheckOptions { trust_version_order, version_order, version_sets, .. } = &self.options;
        let is_stated = !version_order.is_empty() || !version_sets.is_empty();
        let history = self.history;
        let has_rows =
            || history.may_reuse_rows() && first_outside(history, &[OpFamily::Registers]).is_none();
        *trust_version_order && is_stated && (history.has_predicates() || has_rows())
    }
}

/// Clocks may differ, but not the order of events.
pub(crate) fn unwidenable(history: &History, options: &CheckOptions) -> Option<Inapplicable> {
    let by_events = history.clock() == Clock::EventOrder;
    (by_events && options.clock_skew > 0).then_some(Inapplicable::SkewOfEventOrder)
}
