//! Evidence about one history in terms of another one that contains it, under other ids.

use std::convert::Infallible;
use std::sync::Arc;

use crate::edge::{Edge, EvaluatedVersion, Reason, VersionOrder};
use crate::items::ItemView;
use crate::verdict::{
    Anomaly, Evidence, ExpectedVersion, Findings, Inapplicable, LevelResult, ReadSource, Verdict,
    Witness,
};
use crate::{History, KeyId, OpId, TxnId};

/// The ids that the operations, transactions and keys of one history have in another one. `E` is the error
/// for an id that the other history does not have.
pub trait IdMap<E> {
    /// The operation in the other history.
    fn op(&self, op: OpId) -> Result<OpId, E>;

    /// The transaction in the other history; `init` is `init` in all of them.
    fn txn(&self, txn: TxnId) -> Result<TxnId, E>;

    /// The key in the other history.
    fn key(&self, key: KeyId) -> Result<KeyId, E>;

    /// The row that an operation is about, where the operation has several in the other history.
    fn row(&self, _: OpId) -> Option<KeyId> {
        None
    }
}

impl Anomaly {
    /// The anomaly in terms of another history.
    pub fn map<E>(&self, ids: &impl IdMap<E>) -> Result<Anomaly, E> {
        Ok(Anomaly {
            kind: self.kind,
            evidence: self.evidence.map(ids)?,
            rules_out: self.rules_out,
        })
    }
}

impl Evidence {
    /// The evidence in terms of another history.
    pub fn map<E>(&self, ids: &impl IdMap<E>) -> Result<Evidence, E> {
        let op = |op: &OpId| ids.op(*op);
        let maybe = |op: &Option<OpId>| op.map(|op| ids.op(op)).transpose();
        Ok(match self {
            Evidence::Read { read, saw, instead } => {
                let (row, saw, instead) = (ids.row(*read), maybe(saw)?, maybe(instead)?);
                let read = op(read)?;
                match row {
                    Some(key) => Evidence::Row { key: ids.key(key)?, read, saw, instead },
                    None => Evidence::Read { read, saw, instead },
                }
            }
            Evidence::Row { key, read, saw, instead } => Evidence::Row {
                key: ids.key(*key)?,
                read: op(read)?,
                saw: maybe(saw)?,
                instead: maybe(instead)?,
            },
            Evidence::Reads { key, first, second, edges } => Evidence::Reads {
                key: ids.key(*key)?,
                first: op(first)?,
                second: op(second)?,
                edges: map_edges(edges, ids)?,
            },
            Evidence::Cycle { edges } => Evidence::Cycle { edges: map_edges(edges, ids)? },
            Evidence::Cases { cycles } => {
                let cycles = cycles.iter().map(|cycle| map_edges(cycle, ids));
                Evidence::Cases { cycles: cycles.collect::<Result<_, _>>()? }
            }
            Evidence::Operations { key, ops } => Evidence::Operations {
                key: ids.key(*key)?,
                ops: ops.iter().map(op).collect::<Result<_, _>>()?,
            },
            Evidence::Unexpected { op: unexpected, expected, result } => {
                let version = |version: &ExpectedVersion| {
                    let (key, write) = (ids.key(version.key)?, maybe(&version.write)?);
                    Ok(ExpectedVersion { key, write })
                };
                Evidence::Unexpected {
                    op: op(unexpected)?,
                    expected: expected.iter().map(version).collect::<Result<_, _>>()?,
                    result: result.clone(),
                }
            }
            Evidence::Concurrent { key, first, second } => {
                Evidence::Concurrent { key: ids.key(*key)?, first: op(first)?, second: op(second)? }
            }
            Evidence::Lost { key, write, down, found } => Evidence::Lost {
                key: ids.key(*key)?,
                write: op(write)?,
                down: *down,
                found: op(found)?,
            },
        })
    }
}

fn map_edges<E>(edges: &[Edge], ids: &impl IdMap<E>) -> Result<Vec<Edge>, E> {
    edges.iter().map(|edge| edge.map(ids)).collect()
}

impl Edge {
    fn map<E>(&self, ids: &impl IdMap<E>) -> Result<Edge, E> {
        let reason = self.reason.map(ids)?;
        Ok(Edge { from: ids.txn(self.from)?, to: ids.txn(self.to)?, reason })
    }
}

impl Reason {
    fn map<E>(&self, ids: &impl IdMap<E>) -> Result<Reason, E> {
        let op = |op: &OpId| ids.op(*op);
        Ok(match self {
            Reason::Initial | Reason::Session | Reason::RealTime { .. } | Reason::Stated { .. } => {
                self.clone()
            }
            Reason::Read { key, read, write } => Reason::Read {
                key: ids.key(*key)?,
                read: op(read)?,
                write: write.as_ref().map(op).transpose()?,
            },
            Reason::Overwrite { key, known } => {
                Reason::Overwrite { key: ids.key(*key)?, known: known.map(ids)? }
            }
            Reason::AntiDependency { key, read, writer, known } => Reason::AntiDependency {
                key: ids.key(*key)?,
                read: op(read)?,
                writer: ids.txn(*writer)?,
                known: known.map(ids)?,
            },
            Reason::Visible { rule, key, reader, read, path } => Reason::Visible {
                rule: *rule,
                key: ids.key(*key)?,
                reader: ids.txn(*reader)?,
                read: op(read)?,
                path: map_edges(path, ids)?,
            },
            Reason::PredicateAntiDependency { read, key, write, evaluated } => {
                let version = |version: &EvaluatedVersion| {
                    let (writer, known) = (ids.txn(version.writer)?, version.known.map(ids)?);
                    Ok(EvaluatedVersion { writer, known })
                };
                Reason::PredicateAntiDependency {
                    read: op(read)?,
                    key: ids.key(*key)?,
                    write: op(write)?,
                    evaluated: evaluated.as_ref().map(version).transpose()?,
                }
            }
            Reason::PredicateRead { read, key, write } => {
                Reason::PredicateRead { read: op(read)?, key: ids.key(*key)?, write: op(write)? }
            }
            Reason::StartDependency { op: reader, snapshot } => {
                Reason::StartDependency { op: op(reader)?, snapshot: *snapshot }
            }
            Reason::Refuted { cycle } => Reason::Refuted { cycle: map_edges(cycle, ids)? },
        })
    }
}

impl VersionOrder {
    fn map<E>(&self, ids: &impl IdMap<E>) -> Result<VersionOrder, E> {
        use VersionOrder as V;
        Ok(match self {
            V::Initial | V::Stated { .. } | V::Assumed => self.clone(),
            V::ReadModifyWrite { read } => V::ReadModifyWrite { read: ids.op(*read)? },
            V::List { read } => V::List { read: ids.op(*read)? },
            V::AppendedLater { read } => V::AppendedLater { read: ids.op(*read)? },
            V::Guaranteed { by, first, second } => {
                V::Guaranteed { by: *by, first: ids.op(*first)?, second: ids.op(*second)? }
            }
            V::Refuted { cycle } => V::Refuted { cycle: map_edges(cycle, ids)? },
            V::Path { edges } => V::Path { edges: map_edges(edges, ids)? },
        })
    }
}

impl Inapplicable {
    /// The reason in terms of another history.
    pub fn map<E>(self, ids: &impl IdMap<E>) -> Result<Inapplicable, E> {
        use Inapplicable as I;
        Ok(match self {
            I::AmbiguousRead { read, first, second, total } => I::AmbiguousRead {
                read: ids.op(read)?,
                first: first.map(|op| ids.op(op)).transpose()?,
                second: ids.op(second)?,
                total,
            },
            I::Operation { op } => I::Operation { op: ids.op(op)? },
            I::NoVersionSet { op, total } => I::NoVersionSet { op: ids.op(op)?, total },
            I::OpenConditional { op } => I::OpenConditional { op: ids.op(op)? },
            I::Predicate { op } => I::Predicate { op: ids.op(op)? },
            I::UnreturnedRows { op } => I::UnreturnedRows { op: ids.op(op)? },
            I::RowTwice { op } => I::RowTwice { op: ids.op(op)? },
            I::BareAggregate { op } => I::BareAggregate { op: ids.op(op)? },
            I::SeveralOperations { txn } => I::SeveralOperations { txn: ids.txn(txn)? },
            I::NotInPromisedOrder { txn } => I::NotInPromisedOrder { txn: ids.txn(txn)? },
            I::TiedInPromisedOrder { first, second } => {
                I::TiedInPromisedOrder { first: ids.txn(first)?, second: ids.txn(second)? }
            }
            I::OpenVersionOrder { key } => I::OpenVersionOrder { key: ids.key(key)? },
            I::NoTimes
            | I::NoVersionOrder
            | I::NoChecker
            | I::CyclicDependencies
            | I::SkewOfEventOrder
            | I::NotByPromisedOrder
            | I::NotByCertificate => self,
        })
    }
}

impl ItemView {
    /// The result about the view as one about the history that it is a view of.
    pub fn result_of(&self, original: &History, result: LevelResult) -> LevelResult {
        let ids = Origins { view: self, original };
        let verdict = match result.verdict {
            Verdict::Satisfied(Witness::Linearization(ops)) => {
                let ops = ops.into_iter().map(|op| self.origin(op)).collect();
                Verdict::Satisfied(Witness::Linearization(ops))
            }
            Verdict::Satisfied(Witness::Chosen { order, sources }) => {
                let source =
                    |source: &ReadSource| ReadSource { read: self.origin(source.read), ..*source };
                let sources = sources.iter().map(source).collect();
                Verdict::Satisfied(Witness::Chosen { order, sources })
            }
            Verdict::Violated(findings) => {
                let anomaly = |anomaly: &Arc<Anomaly>| Arc::new(self.anomaly_of(original, anomaly));
                let anomalies = findings.anomalies.iter().map(anomaly).collect();
                Verdict::Violated(Findings { anomalies, ..findings })
            }
            Verdict::NotApplicable(reason) => {
                let Ok(reason) = reason.map(&ids);
                Verdict::NotApplicable(reason)
            }
            verdict @ (Verdict::Satisfied(_) | Verdict::Undecided(_)) => verdict,
        };
        LevelResult { verdict, ..result }
    }

    /// An anomaly of the view as one of the history that it is a view of.
    pub fn anomaly_of(&self, original: &History, anomaly: &Anomaly) -> Anomaly {
        let Ok(anomaly) = anomaly.map(&Origins { view: self, original });
        anomaly
    }
}

/// From a view to the history that it is a view of, which has the same transactions and keys.
struct Origins<'a> {
    view: &'a ItemView,
    original: &'a History,
}

impl IdMap<Infallible> for Origins<'_> {
    fn op(&self, op: OpId) -> Result<OpId, Infallible> {
        Ok(self.view.origin(op))
    }

    fn txn(&self, txn: TxnId) -> Result<TxnId, Infallible> {
        Ok(txn)
    }

    fn key(&self, key: KeyId) -> Result<KeyId, Infallible> {
        Ok(key)
    }

    fn row(&self, op: OpId) -> Option<KeyId> {
        let has_one_key = self.original.op(self.view.origin(op)).key().is_some();
        (!has_one_key).then(|| self.view.history().op_keys()[op.index()])
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
