//! Evidence about predicate operations as evidence about single rows.

use std::collections::BTreeMap;

use isolario_model::{
    Edge, Evidence, History, Inapplicable, ItemView, KeyId, Op, OpId, OpKind, ReadSource, Reason,
    TxnId, VersionOrder,
};

use crate::Refusal;

/// The rows that evidence speaks of as met by operations that do not tell them, by operation. Of each,
/// whether the first operation that says something about the row must be named, or any.
pub(super) fn met_rows(
    history: &History,
    evidence: &Evidence,
) -> Result<Vec<(OpId, KeyId, bool)>, Refusal> {
    let mut reads: Vec<(OpId, KeyId)> = Vec::new();
    let mut by_predicates: Vec<(OpId, KeyId)> = Vec::new();
    match evidence {
        Evidence::Reads { key, first, second, .. } => {
            reads.extend([(*first, *key), (*second, *key)]);
        }
        Evidence::Row { key, read, .. } => reads.push((*read, *key)),
        _ => {}
    }
    let mut waiting: Vec<&[Edge]> = match evidence {
        Evidence::Cases { cycles } => cycles.iter().map(Vec::as_slice).collect(),
        other => vec![other.edges()],
    };
    while let Some(edges) = waiting.pop() {
        for Edge { reason, .. } in edges {
            waiting.push(reason.support());
            match reason {
                Reason::Read { key, read, .. } | Reason::Visible { key, read, .. } => {
                    reads.push((*read, *key));
                }
                Reason::AntiDependency { key, read, known, .. } => {
                    reads.push((*read, *key));
                    reads.extend(read_of(known).map(|read| (read, *key)));
                }
                Reason::Overwrite { key, known } => {
                    reads.extend(read_of(known).map(|read| (read, *key)));
                }
                Reason::PredicateAntiDependency { key, read, met, .. } => {
                    by_predicates.push((*read, *key));
                    let known = met.as_ref().and_then(|met| read_of(&met.known));
                    reads.extend(known.map(|read| (read, *key)));
                }
                Reason::PredicateRead { key, read, .. } => by_predicates.push((*read, *key)),
                _ => {}
            }
        }
    }
    let is_known = |(op, key): &(OpId, KeyId)| {
        op.index() < history.op_count() && key.index() < history.key_count()
    };
    if let Some((op, _)) = reads.iter().chain(&by_predicates).find(|read| !is_known(read)) {
        return Err(Refusal::NoSuchOp(*op));
    }
    reads.retain(|(op, key)| is_met(history, *op, *key));
    let reads = reads.into_iter().map(|(op, key)| (op, key, true));
    Ok(reads.chain(by_predicates.into_iter().map(|(op, key)| (op, key, false))).collect())
}

/// Whether an operation does not tell the version of a row that it met.
pub(super) fn is_met(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::PredicateRead { rows, .. } => {
            !rows.unwrap_or_default().iter().any(|row| row.key == key)
        }
        Op::PredicateWrite { .. } => true,
        _ => false,
    }
}

fn read_of(known: &VersionOrder) -> Option<OpId> {
    match known {
        VersionOrder::ReadModifyWrite { read } => Some(*read),
        _ => None,
    }
}

/// Tells evidence of the view of a history.
pub(crate) struct Forward<'a> {
    pub(crate) history: &'a History,
    pub(crate) view: &'a ItemView,
    /// The first operation of a transaction that says something about a row which it met.
    pub(crate) met: &'a BTreeMap<(TxnId, KeyId), OpId>,
}

impl Forward<'_> {
    /// The read or the write of a row that an operation has become.
    fn item(&self, op: OpId, key: KeyId, is_read: bool) -> Result<OpId, Refusal> {
        if op.index() >= self.history.op_count() {
            return Err(Refusal::NoSuchOp(op));
        }
        let items = self.view.history();
        let is_such =
            |kind: OpKind| matches!(kind, OpKind::Read | OpKind::ReadUnobserved) == is_read;
        let mut of_op = self.view.items(op);
        let found = of_op.find(|item| {
            items.op_keys()[item.index()] == key && is_such(items.op_kinds()[item.index()])
        });
        found.ok_or(Refusal::Unsupported("an operation that has nothing to do with the row"))
    }

    fn read(&self, op: OpId, key: KeyId) -> Result<OpId, Refusal> {
        self.item(op, key, true)
    }

    /// The read that a row has become which an operation met.
    fn met(&self, op: OpId, key: KeyId) -> Result<OpId, Refusal> {
        let txn = self.history.op_txn(op);
        let first = self.met.get(&(txn, key)).and_then(|first| self.view.met(*first, key));
        first.ok_or(Refusal::Unsupported("an operation that has nothing to do with the row"))
    }

    fn write(&self, op: Option<OpId>, key: KeyId) -> Result<Option<OpId>, Refusal> {
        op.map(|op| self.item(op, key, false)).transpose()
    }

    /// What is said of the reads of conditional writes and others.
    pub(crate) fn sources(&self, sources: &[ReadSource]) -> Result<Vec<ReadSource>, Refusal> {
        let told = |source: &ReadSource| -> Result<ReadSource, Refusal> {
            Ok(ReadSource { read: self.read(source.read, self.key(source.read)?)?, ..*source })
        };
        sources.iter().map(told).collect()
    }

    /// Why a level does not apply, where that is because of a read.
    pub(crate) fn inapplicable(&self, reason: &Inapplicable) -> Result<Inapplicable, Refusal> {
        Ok(match *reason {
            Inapplicable::AmbiguousRead { read, first, second, total } => {
                let key = self.key(read)?;
                Inapplicable::AmbiguousRead {
                    read: self.read(read, key)?,
                    first: self.write(first, key)?,
                    second: self.item(second, key, false)?,
                    total,
                }
            }
            _ => reason.clone(),
        })
    }

    /// The key of an operation that has one.
    fn key(&self, op: OpId) -> Result<KeyId, Refusal> {
        let known = self.history.op_keys().get(op.index()).copied();
        known.ok_or(Refusal::NoSuchOp(op))
    }

    pub(crate) fn evidence(&self, evidence: &Evidence) -> Result<Evidence, Refusal> {
        Ok(match evidence {
            Evidence::Read { read, saw, instead } => {
                self.bad_read(self.key(*read)?, *read, *saw, *instead)?
            }
            Evidence::Row { key, read, saw, instead } => {
                self.bad_read(*key, *read, *saw, *instead)?
            }
            Evidence::Reads { key, first, second, edges } => Evidence::Reads {
                key: *key,
                first: self.read(*first, *key)?,
                second: self.read(*second, *key)?,
                edges: self.edges(edges)?,
            },
            Evidence::Cycle { edges } => Evidence::Cycle { edges: self.edges(edges)? },
            Evidence::Cases { cycles } => {
                let cycles: Result<_, _> = cycles.iter().map(|cycle| self.edges(cycle)).collect();
                Evidence::Cases { cycles: cycles? }
            }
            _ => return Err(Refusal::Unsupported("evidence of this kind")),
        })
    }

    fn bad_read(
        &self,
        key: KeyId,
        read: OpId,
        saw: Option<OpId>,
        instead: Option<OpId>,
    ) -> Result<Evidence, Refusal> {
        Ok(Evidence::Read {
            read: self.read(read, key)?,
            saw: self.write(saw, key)?,
            instead: self.write(instead, key)?,
        })
    }

    fn edges(&self, edges: &[Edge]) -> Result<Vec<Edge>, Refusal> {
        let told = |edge: &Edge| -> Result<Edge, Refusal> {
            Ok(Edge { reason: self.reason(edge)?, ..edge.clone() })
        };
        edges.iter().map(told).collect()
    }

    fn reason(&self, Edge { from, to, reason }: &Edge) -> Result<Reason, Refusal> {
        Ok(match reason {
            Reason::Initial | Reason::Session | Reason::RealTime { .. } | Reason::Stated { .. } => {
                reason.clone()
            }
            Reason::Read { key, read, write } => Reason::Read {
                key: *key,
                read: self.read(*read, *key)?,
                write: self.write(*write, *key)?,
            },
            Reason::Overwrite { key, known } => {
                Reason::Overwrite { key: *key, known: self.known(*key, (*from, *to), known)? }
            }
            Reason::AntiDependency { key, read, writer, known } => Reason::AntiDependency {
                key: *key,
                read: self.read(*read, *key)?,
                writer: *writer,
                known: self.known(*key, (*writer, *to), known)?,
            },
            Reason::Visible { rule, key, reader, read, path } => Reason::Visible {
                rule: *rule,
                key: *key,
                reader: *reader,
                read: self.read(*read, *key)?,
                path: self.edges(path)?,
            },
            Reason::Refuted { cycle } => Reason::Refuted { cycle: self.edges(cycle)? },
            Reason::PredicateAntiDependency { read, key, met: Some(met), .. } => {
                Reason::AntiDependency {
                    key: *key,
                    read: self.met(*read, *key)?,
                    writer: met.writer,
                    known: self.known(*key, (met.writer, *to), &met.known)?,
                }
            }
            Reason::PredicateRead { read, key, write } => Reason::Read {
                key: *key,
                read: self.met(*read, *key)?,
                write: self.write(Some(*write), *key)?,
            },
            _ => return Err(Refusal::Unsupported("an edge for this reason")),
        })
    }

    /// How it is known that one transaction's version of a key comes before another's.
    fn known(
        &self,
        key: KeyId,
        (before, after): (TxnId, TxnId),
        known: &VersionOrder,
    ) -> Result<VersionOrder, Refusal> {
        // Whoever wrote a version accessed it by writing it.
        let access = |op: OpId, writer: TxnId| {
            let exists = op.index() < self.history.op_count();
            self.item(op, key, !exists || self.history.op_txn(op) != writer)
        };
        Ok(match known {
            VersionOrder::Initial | VersionOrder::Assumed | VersionOrder::Stated { .. } => {
                known.clone()
            }
            VersionOrder::Guaranteed { by, first, second } => VersionOrder::Guaranteed {
                by: *by,
                first: access(*first, before)?,
                second: access(*second, after)?,
            },
            VersionOrder::ReadModifyWrite { read } => {
                VersionOrder::ReadModifyWrite { read: self.read(*read, key)? }
            }
            VersionOrder::Refuted { cycle } => VersionOrder::Refuted { cycle: self.edges(cycle)? },
            VersionOrder::Path { edges } => VersionOrder::Path { edges: self.edges(edges)? },
            _ => return Err(Refusal::Unsupported("an order of versions known in this way")),
        })
    }
}
