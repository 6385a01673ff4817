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
    for Edge { reason, .. } in all_edges(evidence) {
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
            Reason::PredicateAntiDependency { key, read, evaluated: met, .. } => {
                by_predicates.push((*read, *key));
                let known = met.as_ref().and_then(|met| read_of(&met.known));
                reads.extend(known.map(|read| (read, *key)));
            }
            Reason::PredicateRead { key, read, .. } => by_predicates.push((*read, *key)),
            _ => {}
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

/// The edges of evidence, with all that they rest on.
pub(super) fn all_edges(evidence: &Evidence) -> Vec<&Edge> {
    let mut waiting: Vec<&[Edge]> = match evidence {
        Evidence::Cases { cycles } => cycles.iter().map(Vec::as_slice).collect(),
        other => vec![other.edges()],
    };
    let mut all = Vec::new();
    while let Some(edges) = waiting.pop() {
        all.extend(edges);
        waiting.extend(edges.iter().map(|edge| edge.reason.support()));
    }
    all
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
    /// The reads or the writes of a row that an operation has become, at least one: a result may have two
    /// rows of one key.
    fn items(&self, op: OpId, key: KeyId, is_read: bool) -> Result<Vec<OpId>, Refusal> {
        if op.index() >= self.history.op_count() {
            return Err(Refusal::NoSuchOp(op));
        }
        let items = self.view.history();
        let is_such = |item: &OpId| {
            let kind = items.op_kinds()[item.index()];
            use OpKind::{Read, ReadList, ReadListUnobserved, ReadUnobserved};
            let reads = matches!(kind, Read | ReadUnobserved | ReadList | ReadListUnobserved);
            items.op_keys()[item.index()] == key && reads == is_read
        };
        let found: Vec<OpId> = self.view.items(op).filter(is_such).collect();
        match found.is_empty() {
            true => Err(Refusal::Unsupported("an operation that has nothing to do with the row")),
            false => Ok(found),
        }
    }

    /// The first of them.
    fn item(&self, op: OpId, key: KeyId, is_read: bool) -> Result<OpId, Refusal> {
        self.items(op, key, is_read).map(|items| items[0])
    }

    fn read(&self, op: OpId, key: KeyId) -> Result<OpId, Refusal> {
        self.item(op, key, true)
    }

    /// The read of a version, where an operation has become reads of several; none is the initial one, or one
    /// that no transaction wrote.
    fn read_of(&self, op: OpId, key: KeyId, version: Option<OpId>) -> Result<OpId, Refusal> {
        let items = self.view.history();
        let word = version
            .map_or(items.encoded_initial_version(), |write| Some(items.encoded_version(write)));
        let reads = self.items(op, key, true)?;
        if let [only] = reads[..] {
            return Ok(only);
        }
        let of_version = reads.iter().find(|read| Some(items.encoded_version(**read)) == word);
        let is_written = |read: OpId| {
            let mut others = (0..items.op_count()).map(OpId::at);
            others.any(|other| {
                items.op_keys()[other.index()] == key
                    && matches!(items.op_kinds()[other.index()], OpKind::Write | OpKind::Delete)
                    && items.encoded_version(other) == items.encoded_version(read)
            })
        };
        let of_none = || reads.iter().find(|read| version.is_none() && !is_written(**read));
        Ok(*of_version.or_else(of_none).unwrap_or(&reads[0]))
    }

    /// The read of what a transaction left behind; may be `init`.
    fn read_from(&self, op: OpId, key: KeyId, writer: TxnId) -> Result<OpId, Refusal> {
        let items = self.view.history();
        let is_write = |item: &OpId| {
            let kind = items.op_kinds()[item.index()];
            items.op_keys()[item.index()] == key && matches!(kind, OpKind::Write | OpKind::Delete)
        };
        let exists = writer.index() < items.txn_count();
        let left = exists.then(|| items.txn_ops(writer).rfind(is_write)).flatten();
        self.read_of(op, key, left)
    }

    /// Pairs of reads of different versions, or one of the same version if there are no others.
    fn pairs(&self, key: KeyId, first: OpId, second: OpId) -> Result<Vec<(OpId, OpId)>, Refusal> {
        let items = self.view.history();
        let (one, other) = (self.items(first, key, true)?, self.items(second, key, true)?);
        let pairs = one.iter().flat_map(|one| other.iter().map(move |other| (*one, *other)));
        let differ = |(one, other): &(OpId, OpId)| {
            one < other && items.encoded_version(*one) != items.encoded_version(*other)
        };
        let different: Vec<(OpId, OpId)> = pairs.filter(differ).collect();
        Ok(if different.is_empty() { vec![(one[0], other[0])] } else { different })
    }

    /// The read that a row has become which an operation met.
    fn met(&self, op: OpId, key: KeyId) -> Result<OpId, Refusal> {
        let txn = self.history.op_txn(op);
        let first =
            self.met.get(&(txn, key)).and_then(|first| self.view.read_of_matched(*first, key));
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
            Evidence::Reads { .. } => self.each_evidence(evidence)?.swap_remove(0),
            Evidence::Cycle { edges } => Evidence::Cycle { edges: self.edges(edges)? },
            Evidence::Cases { cycles } => {
                let cycles: Result<_, _> = cycles.iter().map(|cycle| self.edges(cycle)).collect();
                Evidence::Cases { cycles: cycles? }
            }
            _ => return Err(Refusal::Unsupported("evidence of this kind")),
        })
    }

    /// All that evidence may mean, at least one: a result with several rows of one key is several reads of
    /// it.
    pub(crate) fn each_evidence(&self, evidence: &Evidence) -> Result<Vec<Evidence>, Refusal> {
        let Evidence::Reads { key, first, second, edges } = evidence else {
            return Ok(vec![self.evidence(evidence)?]);
        };
        let (key, edges) = (*key, self.edges(edges)?);
        let of_pair =
            |(first, second)| Evidence::Reads { key, first, second, edges: edges.clone() };
        Ok(self.pairs(key, *first, *second)?.into_iter().map(of_pair).collect())
    }

    fn bad_read(
        &self,
        key: KeyId,
        read: OpId,
        saw: Option<OpId>,
        instead: Option<OpId>,
    ) -> Result<Evidence, Refusal> {
        let saw = self.write(saw, key)?;
        let read = self.read_of(read, key, saw)?;
        Ok(Evidence::Read { read, saw, instead: self.write(instead, key)? })
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
            Reason::Read { key, read, write } => {
                let write = self.write(*write, *key)?;
                Reason::Read { key: *key, read: self.read_of(*read, *key, write)?, write }
            }
            Reason::Overwrite { key, known } => {
                Reason::Overwrite { key: *key, known: self.known(*key, (*from, *to), known)? }
            }
            Reason::AntiDependency { key, read, writer, known } => Reason::AntiDependency {
                key: *key,
                read: self.read_from(*read, *key, *writer)?,
                writer: *writer,
                known: self.known(*key, (*writer, *to), known)?,
            },
            Reason::Visible { rule, key, reader, read, path } => Reason::Visible {
                rule: *rule,
                key: *key,
                reader: *reader,
                read: self.read_from(*read, *key, *to)?,
                path: self.edges(path)?,
            },
            Reason::Refuted { cycle } => Reason::Refuted { cycle: self.edges(cycle)? },
            Reason::PredicateAntiDependency { read, key, evaluated: Some(met), .. } => {
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
                VersionOrder::ReadModifyWrite { read: self.read_from(*read, key, before)? }
            }
            VersionOrder::List { read } => VersionOrder::List { read: self.read(*read, key)? },
            VersionOrder::AppendedLater { read } => {
                VersionOrder::AppendedLater { read: self.read(*read, key)? }
            }
            VersionOrder::Refuted { cycle } => VersionOrder::Refuted { cycle: self.edges(cycle)? },
            VersionOrder::Path { edges } => VersionOrder::Path { edges: self.edges(edges)? },
            _ => return Err(Refusal::Unsupported("an order of versions known in this way")),
        })
    }
}
