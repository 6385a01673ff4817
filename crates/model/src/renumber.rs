//! Evidence about one history in terms of another that has the same transactions and keys.

use crate::edge::{Edge, Reason, VersionOrder};
use crate::items::ItemView;
use crate::verdict::{
    Anomaly, Evidence, Findings, Inapplicable, LevelResult, ReadSource, Verdict, Witness,
};
use crate::{History, OpId};
use std::sync::Arc;

impl ItemView {
    /// What was decided about the view, told of the history that it is a view of.
    pub fn result_of(&self, original: &History, result: LevelResult) -> LevelResult {
        let renumber = Renumber { view: self, original };
        LevelResult { verdict: renumber.verdict(result.verdict), ..result }
    }

    /// An anomaly of the view, told of the history that it is a view of.
    pub fn anomaly_of(&self, original: &History, anomaly: &Anomaly) -> Anomaly {
        Renumber { view: self, original }.anomaly(anomaly)
    }
}

struct Renumber<'a> {
    view: &'a ItemView,
    original: &'a History,
}

impl Renumber<'_> {
    fn op(&self, op: OpId) -> OpId {
        self.view.origin(op)
    }

    fn maybe(&self, op: Option<OpId>) -> Option<OpId> {
        op.map(|op| self.op(op))
    }

    fn verdict(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Satisfied(Witness::Linearization(ops)) => {
                let ops = ops.into_iter().map(|op| self.op(op)).collect();
                Verdict::Satisfied(Witness::Linearization(ops))
            }
            Verdict::Satisfied(Witness::Chosen { order, sources }) => {
                let told =
                    |source: &ReadSource| ReadSource { read: self.op(source.read), ..*source };
                let sources = sources.iter().map(told).collect();
                Verdict::Satisfied(Witness::Chosen { order, sources })
            }
            Verdict::Violated(findings) => {
                let told = |anomaly: &Arc<Anomaly>| Arc::new(self.anomaly(anomaly));
                let anomalies = findings.anomalies.iter().map(told).collect();
                Verdict::Violated(Findings { anomalies, ..findings })
            }
            Verdict::NotApplicable(reason) => Verdict::NotApplicable(self.inapplicable(reason)),
            verdict @ (Verdict::Satisfied(_) | Verdict::Undecided(_)) => verdict,
        }
    }

    fn inapplicable(&self, reason: Inapplicable) -> Inapplicable {
        match reason {
            Inapplicable::AmbiguousRead { read, first, second, total } => {
                let (read, first, second) = (self.op(read), self.maybe(first), self.op(second));
                Inapplicable::AmbiguousRead { read, first, second, total }
            }
            Inapplicable::Operation { op } => Inapplicable::Operation { op: self.op(op) },
            Inapplicable::NoVersionSet { op, total } => {
                Inapplicable::NoVersionSet { op: self.op(op), total }
            }
            Inapplicable::OpenConditional { op } => {
                Inapplicable::OpenConditional { op: self.op(op) }
            }
            Inapplicable::Predicate { op } => Inapplicable::Predicate { op: self.op(op) },
            Inapplicable::UnreturnedRows { op } => Inapplicable::UnreturnedRows { op: self.op(op) },
            Inapplicable::RowTwice { op } => Inapplicable::RowTwice { op: self.op(op) },
            Inapplicable::BareAggregate { op } => Inapplicable::BareAggregate { op: self.op(op) },
            reason => reason,
        }
    }

    fn anomaly(&self, anomaly: &Anomaly) -> Anomaly {
        Anomaly { evidence: self.evidence(&anomaly.evidence), ..anomaly.clone() }
    }

    fn evidence(&self, evidence: &Evidence) -> Evidence {
        match evidence {
            Evidence::Read { read, saw, instead } => {
                let key = self.view.history().op_keys()[read.index()];
                let (read, saw, instead) = (self.op(*read), self.maybe(*saw), self.maybe(*instead));
                // The operation alone does not say which of its rows it is.
                match self.original.op(read).key() {
                    Some(_) => Evidence::Read { read, saw, instead },
                    None => Evidence::Row { key, read, saw, instead },
                }
            }
            Evidence::Reads { key, first, second, edges } => Evidence::Reads {
                key: *key,
                first: self.op(*first),
                second: self.op(*second),
                edges: self.edges(edges),
            },
            Evidence::Cycle { edges } => Evidence::Cycle { edges: self.edges(edges) },
            Evidence::Cases { cycles } => {
                Evidence::Cases { cycles: cycles.iter().map(|cycle| self.edges(cycle)).collect() }
            }
            Evidence::Operations { key, ops } => {
                Evidence::Operations { key: *key, ops: ops.iter().map(|op| self.op(*op)).collect() }
            }
            Evidence::Concurrent { key, first, second } => {
                Evidence::Concurrent { key: *key, first: self.op(*first), second: self.op(*second) }
            }
            // These are about whole operations, and so never about a view.
            Evidence::Row { .. } | Evidence::Unexpected { .. } | Evidence::Lost { .. } => {
                evidence.clone()
            }
        }
    }

    fn edges(&self, edges: &[Edge]) -> Vec<Edge> {
        let told = |edge: &Edge| Edge { reason: self.reason(&edge.reason), ..edge.clone() };
        edges.iter().map(told).collect()
    }

    fn reason(&self, reason: &Reason) -> Reason {
        let op = |op: OpId| self.op(op);
        match reason {
            Reason::Read { key, read, write } => {
                Reason::Read { key: *key, read: op(*read), write: self.maybe(*write) }
            }
            Reason::Overwrite { key, known } => {
                Reason::Overwrite { key: *key, known: self.known(known) }
            }
            Reason::AntiDependency { key, read, writer, known } => Reason::AntiDependency {
                key: *key,
                read: op(*read),
                writer: *writer,
                known: self.known(known),
            },
            Reason::Visible { rule, key, reader, read, path } => Reason::Visible {
                rule: *rule,
                key: *key,
                reader: *reader,
                read: op(*read),
                path: self.edges(path),
            },
            Reason::Refuted { cycle } => Reason::Refuted { cycle: self.edges(cycle) },
            Reason::StartDependency { op: reader, snapshot } => {
                Reason::StartDependency { op: op(*reader), snapshot: *snapshot }
            }
            // The rest names no operation, or is about predicates and so never about a view.
            Reason::Initial
            | Reason::Session
            | Reason::RealTime { .. }
            | Reason::Stated { .. }
            | Reason::PredicateRead { .. }
            | Reason::PredicateAntiDependency { .. } => reason.clone(),
        }
    }

    fn known(&self, known: &VersionOrder) -> VersionOrder {
        match known {
            VersionOrder::ReadModifyWrite { read } => {
                VersionOrder::ReadModifyWrite { read: self.op(*read) }
            }
            VersionOrder::List { read } => VersionOrder::List { read: self.op(*read) },
            VersionOrder::AppendedLater { read } => {
                VersionOrder::AppendedLater { read: self.op(*read) }
            }
            VersionOrder::Guaranteed { by, first, second } => VersionOrder::Guaranteed {
                by: *by,
                first: self.op(*first),
                second: self.op(*second),
            },
            VersionOrder::Refuted { cycle } => VersionOrder::Refuted { cycle: self.edges(cycle) },
            VersionOrder::Path { edges } => VersionOrder::Path { edges: self.edges(edges) },
            VersionOrder::Initial | VersionOrder::Stated { .. } | VersionOrder::Assumed => {
                known.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{history, select, txn, write};
    use crate::{AnomalyKind, Attempt, Findings, KeyId, Level, RowInput, TxnId};

    #[test]
    fn evidence_names_the_operations_of_the_original() {
        let rows = [RowInput::new(1, 10), RowInput::new(2, 20)];
        let original = history(&[txn(&[write(9, 9), select(Some(&rows))]), txn(&[write(2, 20)])]);
        let view = ItemView::new(&original).unwrap();
        let row = |item, saw| Evidence::Read { read: OpId(item), saw, instead: None };
        let key = KeyId(2);
        let read = Reason::Read { key, read: OpId(2), write: Some(OpId(3)) };
        let known = VersionOrder::ReadModifyWrite { read: OpId(2) };
        let over = Reason::Overwrite { key, known };
        let edge = |reason| Edge { from: TxnId(0), to: TxnId(1), reason };
        let cycle = Evidence::Cycle { edges: vec![edge(read), edge(over)] };
        let anomalies = [row(2, Some(OpId(3))), row(0, None), cycle]
            .map(|evidence| Anomaly::new(AnomalyKind::ThinAirRead, evidence));
        let result = LevelResult {
            level: Level::Serializable,
            decided_by: Attempt::Search,
            verdict: Verdict::Violated(Findings::new(anomalies.to_vec(), true)),
        };
        let told = view.result_of(&original, result);
        let evidence: Vec<_> =
            told.verdict.anomalies().iter().map(|anomaly| anomaly.evidence.clone()).collect();
        let saw = Some(OpId(2));
        assert_eq!(evidence[0], Evidence::Row { key, read: OpId(1), saw, instead: None });
        assert_eq!(evidence[1], row(0, None));
        let reasons: Vec<_> = evidence[2].edges().iter().map(|edge| &edge.reason).collect();
        assert_eq!(*reasons[0], Reason::Read { key, read: OpId(1), write: Some(OpId(2)) });
        let known = VersionOrder::ReadModifyWrite { read: OpId(1) };
        assert_eq!(*reasons[1], Reason::Overwrite { key, known });
    }
}
