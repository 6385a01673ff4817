//! An argument about a part of a history, as one about the whole.

use isolario_model::{Anomaly, Edge, Evidence, History, KeyId, OpId, Reason, TxnId, VersionOrder};

use crate::resolved::writes;

/// What is said of a part, in terms of the whole.
pub(crate) struct Whole<'a> {
    pub(crate) history: &'a History,
    pub(crate) part: &'a History,
    /// Per operation of the part, that of the whole.
    pub(crate) ops: &'a [OpId],
}

impl Whole<'_> {
    pub(crate) fn anomaly(&self, anomaly: &Anomaly) -> Option<Anomaly> {
        let evidence = match &anomaly.evidence {
            Evidence::Read { read, saw, instead } => Evidence::Read {
                read: self.op(*read)?,
                saw: self.maybe(*saw)?,
                instead: self.maybe(*instead)?,
            },
            Evidence::Reads { first, second, edges, .. } => Evidence::Reads {
                key: self.history.op_keys()[self.op(*first)?.index()],
                first: self.op(*first)?,
                second: self.op(*second)?,
                edges: self.edges(edges)?,
            },
            Evidence::Cycle { edges } => Evidence::Cycle { edges: self.edges(edges)? },
            Evidence::Cases { cycles } => {
                let cycles: Option<Vec<Vec<Edge>>> =
                    cycles.iter().map(|cycle| self.edges(cycle)).collect();
                Evidence::Cases { cycles: cycles? }
            }
            _ => return None,
        };
        let mut told = anomaly.clone();
        told.evidence = evidence;
        Some(told)
    }

    pub(crate) fn op(&self, op: OpId) -> Option<OpId> {
        self.ops.get(op.index()).copied()
    }

    pub(crate) fn maybe(&self, op: Option<OpId>) -> Option<Option<OpId>> {
        op.map_or(Some(None), |op| self.op(op).map(Some))
    }

    fn txn(&self, txn: TxnId) -> Option<TxnId> {
        if txn.is_init() {
            return Some(txn);
        }
        let first = self.part.txn_ops(txn).next()?;
        Some(self.history.op_txn(self.op(first)?))
    }

    /// The key of an operation of the part, in the whole.
    fn key(&self, op: OpId) -> Option<KeyId> {
        Some(self.history.op_keys()[self.op(op)?.index()])
    }

    fn edges(&self, edges: &[Edge]) -> Option<Vec<Edge>> {
        edges.iter().map(|edge| self.edge(edge)).collect()
    }

    fn edge(&self, edge: &Edge) -> Option<Edge> {
        let reason = match &edge.reason {
            Reason::Initial => Reason::Initial,
            Reason::Session => Reason::Session,
            Reason::RealTime { finish, start } => {
                Reason::RealTime { finish: *finish, start: *start }
            }
            Reason::Read { read, write, .. } => Reason::Read {
                key: self.key(*read)?,
                read: self.op(*read)?,
                write: self.maybe(*write)?,
            },
            Reason::Overwrite { key, known } => {
                let is_write = |op: &OpId| {
                    self.part.op_keys()[op.index()] == *key
                        && writes(self.part.op_kinds()[op.index()])
                };
                let write = self.part.txn_ops(edge.to).find(is_write)?;
                Reason::Overwrite { key: self.key(write)?, known: self.known(known)? }
            }
            Reason::AntiDependency { read, writer, known, .. } => Reason::AntiDependency {
                key: self.key(*read)?,
                read: self.op(*read)?,
                writer: self.txn(*writer)?,
                known: self.known(known)?,
            },
            Reason::Visible { rule, reader, read, path, .. } => Reason::Visible {
                rule: *rule,
                key: self.key(*read)?,
                reader: self.txn(*reader)?,
                read: self.op(*read)?,
                path: self.edges(path)?,
            },
            Reason::Refuted { cycle } => Reason::Refuted { cycle: self.edges(cycle)? },
            _ => return None,
        };
        Some(Edge { from: self.txn(edge.from)?, to: self.txn(edge.to)?, reason })
    }

    fn known(&self, known: &VersionOrder) -> Option<VersionOrder> {
        Some(match known {
            VersionOrder::Initial => VersionOrder::Initial,
            VersionOrder::Assumed => VersionOrder::Assumed,
            VersionOrder::ReadModifyWrite { read } => {
                VersionOrder::ReadModifyWrite { read: self.op(*read)? }
            }
            VersionOrder::List { read } => VersionOrder::List { read: self.op(*read)? },
            VersionOrder::Guaranteed { by, first, second } => VersionOrder::Guaranteed {
                by: *by,
                first: self.op(*first)?,
                second: self.op(*second)?,
            },
            VersionOrder::AppendedLater { read } => {
                VersionOrder::AppendedLater { read: self.op(*read)? }
            }
            VersionOrder::Refuted { cycle } => VersionOrder::Refuted { cycle: self.edges(cycle)? },
            VersionOrder::Path { edges } => VersionOrder::Path { edges: self.edges(edges)? },
            _ => return None,
        })
    }
}
