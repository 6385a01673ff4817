//! The attempts at a level, and what each of them does.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolario_model::{
    AnomalyKind, Attempt, Findings, Inapplicable, KeyId, Level, LevelNodes, Limit, OpFamily,
    OpKind, PromisedOrder, TxnId, Witness,
};

use super::{Conclusion, HistoryView};
use crate::certificate::Certificate;
use crate::checker::Engines;
use crate::minimal::minimal;
use crate::resolved::{Resolved, first_outside};
use crate::strong::Steps;
use crate::versions::Uncommitted;
use crate::weak::Weak;
use crate::weak::chosen::OpenLevel;
use crate::{CheckOptions, Checker, lin, replay, strong};

const REGISTERS: &[OpFamily] = &[OpFamily::Registers];

impl<'h> Checker<'h> {
    /// The attempts at a level that applies to the history, in order.
    pub(super) fn attempts(&self, level: Level, view: HistoryView) -> Vec<Attempt> {
        use Attempt as A;
        if self.options.promised_order.is_some() {
            return vec![A::PromisedOrder];
        }
        if self.is_certified() && crate::certificate::decides(level) {
            return vec![A::Certificate];
        }
        if level.shape().nodes == LevelNodes::PerOperation {
            return vec![A::Linearization];
        }
        let by_row = view == HistoryView::SingleRows;
        let mut attempts = Vec::new();
        if Level::by_order().contains(&level) && (by_row || self.may_replay()) {
            attempts.push(A::Replay);
        }
        attempts.extend_from_slice(match level {
            Level::ReadUncommitted | Level::StrongReadUncommitted => &[A::Versions],
            Level::StrongAdyaReadCommitted => &[A::Versions, A::Suppositions],
            Level::CutIsolation => &[A::Reads],
            Level::AdyaReadCommitted => &[A::Reads, A::Suppositions],
            _ if Level::Causal.implies(level) => &[A::Order, A::Rule, A::Suppositions],
            _ if level.needs().version_order => &[A::Reads, A::Versions],
            _ => &[A::Reads, A::Versions, A::Segments, A::Search],
        });
        if by_row && self.history.has_predicates() && replay::moments(level, true).is_ok() {
            attempts.push(A::Rows);
        }
        attempts
    }

    /// Makes an attempt at a level. The time that segments and the search may take together counts from the
    /// first of them on.
    pub(super) fn attempt(
        &self,
        attempt: Attempt,
        level: Level,
        began: &OnceCell<Instant>,
    ) -> Conclusion {
        let options = &self.options;
        match attempt {
            Attempt::PromisedOrder => return self.by_promise(level),
            Attempt::Certificate => return self.by_certificate(level),
            Attempt::Linearization => return lin::check(self.history, options),
            Attempt::Replay => {
                let check =
                    |serial: &crate::serial::Serial| serial.check(self.history, level, options);
                return self.serial().map_or(Conclusion::Pass, check);
            }
            _ => {}
        }
        let Some(engines) = self.engines() else { return Conclusion::Pass };
        let weak = &engines.weak;
        let is_weak = Level::Causal.implies(level);
        let began = || *began.get_or_init(Instant::now);
        match attempt {
            Attempt::Reads if level == Level::CutIsolation => self.cut_isolation(engines),
            Attempt::Reads if is_weak => self.sure_of_rows(weak.by_reads()),
            Attempt::Reads => self.wrong_by_reads(engines, level),
            Attempt::Order => self.sure_of_rows(weak.by_order(level)),
            Attempt::Rule => self.sure_of_rows(weak.by_rule(level)),
            Attempt::Versions => match level {
                Level::ReadUncommitted | Level::StrongReadUncommitted => {
                    Uncommitted::new(&engines.resolved, options).check(level)
                }
                Level::StrongAdyaReadCommitted => self.sure_of_rows(weak.check(level)),
                _ => self.by_versions(engines, level),
            },
            Attempt::Segments if self.is_open_order(level) && !self.may_choose(engines) => {
                Conclusion::Pass
            }
            Attempt::Segments => {
                let found = strong::by_segments(&engines.resolved, level, options, began());
                self.by_name(engines, level, found)
            }
            Attempt::Search if self.is_open_order(level) && !self.may_choose(engines) => {
                Conclusion::limit(Limit::NotSearched)
            }
            Attempt::Search => {
                let found = strong::search(&engines.resolved, level, options, began(), Steps::ALL);
                self.by_name(engines, level, found)
            }
            Attempt::Suppositions => self.by_suppositions(engines, level),
            // The view of single rows is made, and its rounds are gone through, around the attempts at the view.
            _ => Conclusion::Pass,
        }
    }

    fn by_certificate(&self, level: Level) -> Conclusion {
        let new = || Certificate::new(self.history, &self.options);
        match self.certificate.get_or_init(new) {
            Ok(certificate) => certificate.check(level),
            Err(reason) => Conclusion::Inapplicable(reason.clone()),
        }
    }

    fn by_promise(&self, level: Level) -> Conclusion {
        let Some(order) = &self.options.promised_order else { return Conclusion::Pass };
        if order.is_by_stamps() && replay::is_by_versions(level) {
            self.by_promised_versions(order, level)
        } else {
            replay::check(self.history, order, level, &self.options)
        }
    }

    /// Decides a level by the order of versions that follows from commit timestamps.
    fn by_promised_versions(&self, order: &PromisedOrder, level: Level) -> Conclusion {
        match order.version_orders(self.history) {
            Err((first, second)) => Inapplicable::TiedInPromisedOrder { first, second }.into(),
            Ok(orders) => {
                let options = self.options.clone().with_version_order(orders);
                let options = CheckOptions { promised_order: None, ..options };
                let checker = Checker::new(self.history, options.with_trusted_version_order(true));
                let result = checker.decide_all(&[level]).pop();
                result.map_or_else(Conclusion::not_begun, |result| result.verdict.into())
            }
        }
    }

    /// Open where a level holds only as long as it does not count which version of a row was matched.
    fn sure_of_rows(&self, conclusion: Conclusion) -> Conclusion {
        if conclusion.holds() && !self.met.is_empty() { Conclusion::Open } else { conclusion }
    }

    /// Rows that were matched do not count unless they are read again: what was matched may have been an
    /// aborted write, and nothing follows from that.
    fn cut_isolation(&self, engines: &Engines<'h>) -> Conclusion {
        let Some(reason) = self.refusal_of_matched() else { return engines.weak.cut_isolation() };
        let resolved = Resolved::with_matched(self.history, &[], &self.options);
        let conclusion = Weak::new(Arc::new(resolved)).cut_isolation();
        if conclusion.holds() && self.is_matched_again() { reason.into() } else { conclusion }
    }

    /// Why a level is not decided that only a matched row keeps from being so.
    fn refusal_of_matched(&self) -> Option<Inapplicable> {
        self.met.first().map(|(op, _)| Inapplicable::OpenConditional { op: *op })
    }

    /// Whether a transaction reads a key of which it matched an unknown version.
    fn is_matched_again(&self) -> bool {
        let history = self.history;
        self.met.iter().any(|(met, _)| {
            let mut others = history.txn_ops(history.op_txn(*met)).filter(|op| op != met);
            others.any(|op| {
                use OpKind::{Read, ReadUnobserved};
                history.op_keys()[op.index()] == history.op_keys()[met.index()]
                    && matches!(history.op_kinds()[op.index()], Read | ReadUnobserved)
            })
        })
    }

    /// Decides a level at which reads may have seen several writes, by what is known where nothing is open.
    fn by_suppositions(&self, engines: &Engines<'h>, level: Level) -> Conclusion {
        let choices = &engines.resolved.dependencies.reads.choices;
        let Some(reason) = choices.refusal.clone().or_else(|| self.refusal_of_matched()) else {
            return Conclusion::Pass;
        };
        let can_choose = self.may_choose(engines) && engines.open_lists().is_empty();
        let Some(open) = choices.open.as_ref().filter(|_| can_choose) else {
            return reason.into();
        };
        let check = |resolved: &Arc<Resolved<'h>>| Weak::new(Arc::clone(resolved)).check(level);
        let stronger = |time| match level {
            Level::StrongAdyaReadCommitted => None,
            _ => self.stronger(engines, time),
        };
        let options = &self.options;
        let question = OpenLevel { level, options, check: &check, stronger: &stronger };
        let found = question.decide(&engines.resolved, open);
        self.in_fewer_words(level, found)
    }

    /// What shows that the history satisfies a stronger level than the weak ones, if that is found
    /// within some time for each. An order of everything says what all reads saw.
    fn stronger(&self, engines: &Engines<'h>, time: Duration) -> Option<Witness> {
        let search = |level| {
            let options = CheckOptions { timeout: Some(time), ..self.options.clone() };
            match strong::check(&engines.resolved, level, &options) {
                Conclusion::Holds(witness) => Some(witness),
                _ => None,
            }
        };
        let mut levels = [Level::Serializable, Level::Prefix].into_iter();
        let search = || if self.has_lists() { None } else { levels.find_map(search) };
        engines.stronger.get_or_init(search).clone()
    }

    /// Wrong reads refute a strong level whatever the rest.
    fn wrong_by_reads(&self, engines: &Engines<'h>, level: Level) -> Conclusion {
        let ordered = engines.ordered(&self.options);
        let by_versions = ordered.is_over_versions(level);
        let mut anomalies = engines.weak.wrong_reads();
        if !anomalies.is_empty() || !by_versions || !self.is_serial(engines) {
            anomalies.extend_from_slice(engines.weak.base_cycles());
        }
        if anomalies.is_empty() {
            return Conclusion::Pass;
        }
        let mut lost = ordered.lost(level);
        // Where a delete may lie between the two, they wrote different rows.
        if !by_versions && self.may_come_back(level) {
            lost.retain(|anomaly| {
                let key = anomaly.evidence.edges().iter().find_map(|edge| edge.reason.key());
                key.is_some_and(|key| !self.is_deleted(key))
            });
        }
        anomalies.extend(lost);
        Conclusion::refuted(anomalies)
    }

    /// A history of registers is decided in linear time if every write in it follows a read. Lists show
    /// the order of versions, but for what no read returned.
    fn by_versions(&self, engines: &Engines<'h>, level: Level) -> Conclusion {
        let needs_order = level.needs().version_order;
        if needs_order && let Some(reason) = self.refusal_of_matched() {
            return reason.into();
        }
        if self.is_open_order(level) {
            return if needs_order && self.may_choose(engines) {
                Inapplicable::NoChecker.into()
            } else {
                Conclusion::Pass
            };
        }
        let ordered = engines.ordered(&self.options);
        let by_versions = ordered.is_over_versions(level);
        if let Some(reason) = &engines.resolved.dependencies.reads.choices.refusal {
            return if !by_versions && self.may_choose(engines) {
                Conclusion::Pass
            } else {
                reason.clone().into()
            };
        }
        let conclusion = ordered.check(level);
        if by_versions { self.in_fewer_words(level, conclusion) } else { conclusion }
    }

    /// Whether it is open which rows the versions of a key belong to, or which of them were matched.
    fn is_open_order(&self, level: Level) -> bool {
        !self.met.is_empty() || self.may_come_back(level)
    }

    /// Whether reads that may have seen several writes can be left to the search. Not where a stated
    /// order is part of the question and it is open whether a writer that it names committed, nor where
    /// the order of versions depends on what reads saw.
    fn may_choose(&self, engines: &Engines<'h>) -> bool {
        let Some(open) = &engines.resolved.dependencies.reads.choices.open else { return false };
        let may_lack = |writer: &TxnId| open.maybe.binary_search(writer).is_ok();
        let stated = self.options.version_order.iter().filter(|_| self.options.trusts_orders());
        !self.options.assume.order_versions()
            && !stated.flat_map(|order| &order.writers).any(may_lack)
    }

    /// Whether right reads and what is known of versions agree with some serial order. Then session order,
    /// reads and versions have no cycle, and none has to be searched for.
    fn is_serial(&self, engines: &Engines<'h>) -> bool {
        engines.resolved.dependencies.reads.choices.refusal.is_none()
            && engines.weak.wrong_versions().is_empty()
            && engines.ordered(&self.options).is_serial()
    }

    /// Whether rows that come back after a delete make a difference to a level.
    fn may_come_back(&self, level: Level) -> bool {
        self.options.by_incarnation
            && level.shape().exclusive_writers
            && self.history.may_reuse_rows()
    }

    fn has_lists(&self) -> bool {
        first_outside(self.history, REGISTERS).is_some()
    }

    /// Whether a key names a row that a transaction leaves deleted.
    fn is_deleted(&self, key: KeyId) -> bool {
        let mut txns = self.history.txns();
        self.history.is_row(key)
            && txns.any(|txn| self.history.rows_left(txn).contains(&(key, false)))
    }

    /// Where the argument of a search has no name, a weaker level may say in fewer words what is wrong; else
    /// an argument about fewer transactions may.
    fn by_name(&self, engines: &Engines<'h>, level: Level, found: Conclusion) -> Conclusion {
        if let Conclusion::Refuted(findings) = &found
            && has_no_name(findings)
            && let Conclusion::Refuted(findings) = engines.weak.check(Level::Causal)
        {
            return Conclusion::Refuted(Findings { exact: false, ..findings });
        }
        self.in_fewer_words(level, found)
    }

    /// The same conclusion with arguments about fewer transactions and operations, where arguments take
    /// more than what clients saw. What predicates or conditional writes may have matched, and what is
    /// supposed to have committed, is not part of a history: nothing can be left out there.
    fn in_fewer_words(&self, level: Level, found: Conclusion) -> Conclusion {
        let fewer = match &found {
            Conclusion::Refuted(findings)
                if self.met.is_empty() && self.options.committed.is_empty() =>
            {
                minimal(self.history, level, &self.options, findings)
            }
            _ => None,
        };
        fewer.map_or(found, Conclusion::Refuted)
    }
}

/// Whether nothing but an argument without a name refutes a level.
fn has_no_name(findings: &Findings) -> bool {
    findings.anomalies.iter().all(|anomaly| anomaly.kind == AnomalyKind::NoOrderPossible)
}
