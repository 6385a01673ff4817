//! A whole history: what the clients saw, grouped by session, in columns.

use std::ops::Range;
use std::sync::Arc;

use isolario_predicate::{MatchesOracle, Predicate};
use rayon::prelude::*;

use crate::columns::{OpColumns, TxnColumns, TxnTexts};
use crate::lists::ListRef;
use crate::op::{
    Op, OpInput, OpKind, OpNotes, OpView, Outcome, PredicateRow, RowInput, RowView, Stamp, TxnEnd,
    TxnStart, VersionRef,
};
use crate::sink::{Clock, Initial, Meta, SinkError, TxnSink};
use crate::table::{NameTable, ValueId, ValueTable};
use crate::value::{Value, ValueRef};
use crate::{KeyId, OpId, PredicateId, SessionId, TxnId, VersionId};

/// What was observed: sessions of transactions of operations.
///
/// Transactions of a session are contiguous and in session order; operations of a transaction are
/// contiguous and in program order. Names are those the user gave.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) meta: Meta,
    pub(crate) ops: OpColumns,
    pub(crate) txns: TxnColumns,
    /// One past the last transaction of each session.
    pub(crate) session_ends: Vec<u32>,
    pub(crate) keys: NameTable,
    pub(crate) sessions: NameTable,
    pub(crate) values: ValueTable,
}

/// Sizes.
impl History {
    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.session_ends.len()
    }

    /// How many transactions there are, of any outcome.
    pub fn txn_count(&self) -> usize {
        self.txns.sessions.len()
    }

    /// How many operations there are, in transactions of any outcome.
    pub fn op_count(&self) -> usize {
        self.ops.kinds.len()
    }

    /// How many keys there are.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }
}

/// Walking.
impl History {
    /// All sessions.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = SessionId> + use<> {
        (0..self.session_count()).map(SessionId::at)
    }

    /// All transactions, session by session.
    pub fn txns(&self) -> impl ExactSizeIterator<Item = TxnId> + use<> {
        (0..self.txn_count()).map(TxnId::at)
    }

    /// The transactions of a session, in session order.
    pub fn session_txns(
        &self,
        session: SessionId,
    ) -> impl ExactSizeIterator<Item = TxnId> + DoubleEndedIterator + use<> {
        span(&self.session_ends, session.index()).map(TxnId::at)
    }

    /// The operations of a transaction, in program order; none for [`TxnId::INIT`].
    #[inline]
    pub fn txn_ops(
        &self,
        txn: TxnId,
    ) -> impl ExactSizeIterator<Item = OpId> + DoubleEndedIterator + use<> {
        self.op_range(txn).map(OpId::at)
    }

    /// As [`History::txn_ops`], as a range of the columns.
    #[inline]
    pub fn op_range(&self, txn: TxnId) -> Range<usize> {
        if txn.is_init() { 0..0 } else { span(&self.txns.op_ends, txn.index()) }
    }

    /// The transaction of an operation. Takes a binary search.
    pub fn op_txn(&self, op: OpId) -> TxnId {
        TxnId::at(self.txns.op_ends.partition_point(|end| *end <= op.0))
    }
}

fn span(ends: &[u32], index: usize) -> Range<usize> {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    start as usize..ends[index] as usize
}

/// Operations.
impl History {
    /// The operation, with ids for names.
    pub fn op(&self, op: OpId) -> OpView<'_> {
        let at = op.index();
        let (key, word) = (self.ops.keys[at], self.ops.encoded[at]);
        let value = ValueId::from_bits(word);
        match self.ops.kinds[at] {
            OpKind::Read => Op::Read { key, value: Some(value) },
            OpKind::ReadUnobserved => Op::Read { key, value: None },
            OpKind::Write => Op::Write { key, value },
            OpKind::Delete => Op::Delete { key },
            OpKind::Append => Op::Append { key, element: value },
            OpKind::ReadList => {
                let list = ListRef::from_bits(word);
                Op::ReadList { key, elements: Some(self.ops.lists.get(key.0, list)) }
            }
            OpKind::ReadListUnobserved => Op::ReadList { key, elements: None },
            OpKind::InsertIfAbsent | OpKind::CompareAndSet => {
                let c = self.ops.conditionals[word as usize];
                let (new, applied, seen) = (c.new, c.applied, c.seen);
                match c.expected {
                    Some(expected) => Op::CompareAndSet { key, expected, new, applied, seen },
                    None => Op::InsertIfAbsent { key, value: new, applied, seen },
                }
            }
            OpKind::PredicateRead => {
                let (predicate, rows) = self.ops.predicates.row_op(word);
                Op::PredicateRead { predicate: self.predicate(predicate), rows }
            }
            OpKind::PredicateWrite => {
                let (predicate, rows) = self.ops.predicates.row_op(word);
                Op::PredicateWrite { predicate: self.predicate(predicate), rows }
            }
            OpKind::Aggregate => {
                let (predicate, function, result) = self.ops.predicates.aggregate(word);
                Op::Aggregate { function, predicate: self.predicate(predicate), result }
            }
        }
    }

    /// The kind of every operation.
    pub fn op_kinds(&self) -> &[OpKind] {
        &self.ops.kinds
    }

    /// The key of every operation; [`KeyId::NONE`] for predicate operations.
    pub fn op_keys(&self) -> &[KeyId] {
        &self.ops.keys
    }

    /// What identifies the version an operation read or wrote: the named version where the format
    /// names it, else the value. Comparable between operations on one key. For operations that
    /// carry a value: reads, writes, deletes, appends.
    #[inline]
    pub fn encoded_version(&self, op: OpId) -> u64 {
        match self.ops.versions.get(op.index()) {
            Some(version) => encode_named_version(version),
            None => self.ops.encoded[op.index()],
        }
    }

    /// What [`History::encoded_version`] is for reads that saw the initial version, where one word
    /// says so. None where no operation carries it, or where the format has another rule.
    pub fn encoded_initial_version(&self) -> Option<u64> {
        match &self.meta.initial {
            Initial::Value(value) | Initial::UnlessWritten(value) => {
                self.values.find(value.as_ref()).map(ValueId::to_bits)
            }
            Initial::Marked => {
                let index = self.ops.version_names.get_index_of(&VersionRef::Initial)?;
                Some(encode_named_version(VersionId::at(index)))
            }
            Initial::Unwritten | Initial::None => None,
        }
    }

    /// Whether the format names versions apart from values.
    pub fn names_versions(&self) -> bool {
        !self.ops.version_names.is_empty()
    }

    /// The value words of all operations: where no versions are named, the same as
    /// [`History::encoded_version`] for each.
    pub fn encoded_values(&self) -> &[u64] {
        &self.ops.encoded
    }

    /// The name of the version an operation read or wrote, where the format gives one.
    pub fn op_version(&self, op: OpId) -> Option<VersionRef> {
        let id = self.ops.versions.get(op.index())?;
        self.ops.version_names.get_index(id.index()).copied()
    }

    /// The id of the named version of an operation.
    pub fn op_version_id(&self, op: OpId) -> Option<VersionId> {
        self.ops.versions.get(op.index())
    }

    /// The statement an operation came from.
    pub fn op_sql(&self, op: OpId) -> Option<&str> {
        let at = self.ops.sql.binary_search_by_key(&op.0, |(op, _)| *op).ok()?;
        Some(&self.ops.sql[at].1)
    }

    /// The predicate of an operation that has one.
    pub fn op_predicate(&self, op: OpId) -> Option<PredicateId> {
        let (predicates, word) = (&self.ops.predicates, self.ops.encoded[op.index()]);
        match self.ops.kinds[op.index()] {
            OpKind::PredicateRead | OpKind::PredicateWrite => Some(predicates.row_op(word).0),
            OpKind::Aggregate => Some(predicates.aggregate(word).0),
            _ => None,
        }
    }

    /// The predicate of an id.
    pub fn predicate(&self, id: PredicateId) -> &Predicate {
        self.ops.predicates.predicate(id)
    }

    /// All predicates, in the order of their ids.
    pub fn predicates(&self) -> impl ExactSizeIterator<Item = &Predicate> {
        self.ops.predicates.predicates()
    }

    /// Lets somebody else say which rows satisfy the predicates that the language of predicates has no
    /// form for: a database, say. `ask` is given the text of each, and gives none where nobody knows.
    #[must_use]
    pub fn with_matches(mut self, ask: impl Fn(&str) -> Option<Arc<dyn MatchesOracle>>) -> History {
        self.ops.predicates.ask(ask);
        self
    }

    /// As [`History::encoded_version`], for a row of a predicate operation.
    pub fn encoded_row_version(&self, row: &RowView) -> u64 {
        match row.version {
            VersionId::NONE => row.value.to_bits(),
            version => encode_named_version(version),
        }
    }

    /// The name of the version of a row, where the format gives one.
    pub fn row_version(&self, row: &RowView) -> Option<VersionRef> {
        self.ops.version_names.get_index(row.version.index()).copied()
    }

    /// The longest list a key was seen to hold, as far as reads agree.
    pub fn list_pool(&self, key: KeyId) -> &[ValueId] {
        self.ops.lists.pool(key.0)
    }
}

/// Odd, and beyond any index of a value table: no value has this word.
const fn encode_named_version(version: VersionId) -> u64 {
    1 << 63 | (version.0 as u64) << 1 | 1
}

/// Transactions.
impl History {
    /// The session of a transaction.
    #[inline]
    pub fn session_of(&self, txn: TxnId) -> SessionId {
        SessionId(self.txns.sessions[txn.index()])
    }

    /// How a transaction ended. `init` committed.
    #[inline]
    pub fn outcome(&self, txn: TxnId) -> Outcome {
        if txn.is_init() { Outcome::Committed } else { self.txns.outcomes[txn.index()] }
    }

    /// When the client began it.
    pub fn start(&self, txn: TxnId) -> Option<i64> {
        self.txns.starts.get(txn.index())
    }

    /// When the client knew its end.
    pub fn finish(&self, txn: TxnId) -> Option<i64> {
        self.txns.finishes.get(txn.index())
    }

    /// Whether any transaction has a time.
    pub fn has_times(&self) -> bool {
        !self.txns.starts.is_empty() || !self.txns.finishes.is_empty()
    }

    /// The database's own timestamp of its snapshot.
    pub fn db_start(&self, txn: TxnId) -> Option<Stamp> {
        self.txns.db_starts.get(txn.index())
    }

    /// The database's own timestamp or position of its commit.
    pub fn db_commit(&self, txn: TxnId) -> Option<Stamp> {
        self.txns.db_commits.get(txn.index())
    }

    /// The line of the file it begins on.
    pub fn line(&self, txn: TxnId) -> Option<u64> {
        if txn.is_init() { None } else { self.txns.lines.get(txn.index()) }
    }

    /// The snapshot it read, as the database describes it.
    pub fn snapshot(&self, txn: TxnId) -> Option<&str> {
        self.texts(txn)?.snapshot.as_deref()
    }

    /// The error that ended it.
    pub fn error(&self, txn: TxnId) -> Option<&str> {
        self.texts(txn)?.error.as_deref()
    }

    fn texts(&self, txn: TxnId) -> Option<&TxnTexts> {
        let at = self.txns.texts.binary_search_by_key(&txn.0, |(txn, _)| *txn).ok()?;
        Some(&self.txns.texts[at].1)
    }

    /// The user's own name of a transaction, if it has one.
    pub fn txn_name(&self, txn: TxnId) -> Option<ValueRef<'_>> {
        if txn.is_init() {
            return None;
        }
        self.txns.names.get(txn.index()).map(|name| self.values.get(name))
    }

    /// What to call a transaction: the user's name for it, else its position; `init` for the
    /// initial one.
    pub fn txn_label(&self, txn: TxnId) -> String {
        match self.txn_name(txn) {
            _ if txn.is_init() => "init".to_owned(),
            Some(ValueRef::Text(name)) => name.to_owned(),
            Some(name) => name.to_string(),
            None => format!("#{}", txn.0),
        }
    }
}

/// Names.
impl History {
    /// What holds for the history as a whole.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The initial state.
    pub fn initial(&self) -> &Initial {
        &self.meta.initial
    }

    /// What the times mean.
    pub fn clock(&self) -> Clock {
        self.meta.clock
    }

    /// The user's name of a key.
    pub fn key_name(&self, key: KeyId) -> ValueRef<'_> {
        self.keys.get(key.0)
    }

    /// The key of a name.
    pub fn find_key(&self, name: ValueRef<'_>) -> Option<KeyId> {
        self.keys.find(name).map(KeyId)
    }

    /// The user's name of a session.
    pub fn session_name(&self, session: SessionId) -> ValueRef<'_> {
        self.sessions.get(session.0)
    }

    /// The value of a word.
    pub fn value(&self, id: ValueId) -> ValueRef<'_> {
        self.values.get(id)
    }

    /// The word of a value, if any operation carries it.
    pub fn find_value(&self, value: ValueRef<'_>) -> Option<ValueId> {
        self.values.find(value)
    }
}

/// Telling it otherwise.
impl History {
    /// The word of a value, which is added if no operation carries it.
    pub fn intern_value(&mut self, value: ValueRef<'_>) -> ValueId {
        self.values.intern(value)
    }

    /// Tells another outcome of a transaction: whoever leaves one out for a while tells it as aborted, if
    /// nobody read from it.
    pub fn set_outcome(&mut self, txn: TxnId, outcome: Outcome) {
        self.txns.outcomes[txn.index()] = outcome;
    }

    /// Tells what reads of registers saw in other words. Whoever leaves out the beginning of a history
    /// tells the versions by then as initial ones.
    pub fn map_reads(&mut self, told: impl Fn(KeyId, ValueId) -> ValueId + Sync) {
        let OpColumns { kinds, keys, encoded: words, .. } = &mut self.ops;
        let ops = kinds.par_iter().zip(&keys[..]).zip(&mut words[..]);
        ops.with_min_len(OPS_PER_TASK).for_each(|((kind, key), word)| {
            if *kind == OpKind::Read {
                *word = told(*key, ValueId::from_bits(*word)).to_bits();
            }
        });
    }
}

/// How many operations one task changes.
const OPS_PER_TASK: usize = 1 << 16;

/// Passing on.
impl History {
    /// Writes the history into a sink, session by session.
    pub fn replay(&self, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        sink.meta(&self.meta)?;
        self.txns().try_for_each(|txn| self.replay_txn(txn, sink))
    }

    /// Writes one transaction into a sink.
    pub fn replay_txn(&self, txn: TxnId, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        sink.begin(&TxnStart {
            session: self.session_name(self.session_of(txn)),
            id: self.txn_name(txn),
            line: self.line(txn),
        })?;
        for op in self.txn_ops(txn) {
            let notes = OpNotes { version: self.op_version(op), sql: self.op_sql(op) };
            self.with_op_input(op, |input| sink.op_with(input, &notes))?;
        }
        sink.end(&self.txn_end(txn))
    }

    /// How a transaction ended and what else is known of it, as sinks take it.
    pub fn txn_end(&self, txn: TxnId) -> TxnEnd<'_> {
        TxnEnd {
            outcome: self.outcome(txn),
            start: self.start(txn),
            finish: self.finish(txn),
            db_start: self.db_start(txn),
            db_commit: self.db_commit(txn),
            snapshot: self.snapshot(txn),
            error: self.error(txn),
        }
    }

    /// Hands over an operation with the user's own names.
    pub fn with_op_input<R>(&self, op: OpId, take: impl FnOnce(&OpInput<'_>) -> R) -> R {
        let name = |key| self.key_name(key);
        let value = |id| self.value(id);
        let rows =
            |rows: &[RowView]| -> Vec<_> { rows.iter().map(|row| self.row_input(row)).collect() };
        match self.op(op) {
            Op::Read { key, value: v } => take(&Op::Read { key: name(key), value: v.map(value) }),
            Op::Write { key, value: v } => take(&Op::Write { key: name(key), value: value(v) }),
            Op::Delete { key } => take(&Op::Delete { key: name(key) }),
            Op::Append { key, element } => {
                take(&Op::Append { key: name(key), element: value(element) })
            }
            Op::ReadList { key, elements } => {
                let elements: Option<Vec<_>> =
                    elements.map(|e| e.iter().map(|v| value(*v)).collect());
                take(&Op::ReadList { key: name(key), elements: elements.as_deref() })
            }
            Op::InsertIfAbsent { key, value: v, applied, seen } => take(&Op::InsertIfAbsent {
                key: name(key),
                value: value(v),
                applied,
                seen: seen.map(value),
            }),
            Op::CompareAndSet { key, expected, new, applied, seen } => take(&Op::CompareAndSet {
                key: name(key),
                expected: value(expected),
                new: value(new),
                applied,
                seen: seen.map(value),
            }),
            Op::PredicateRead { predicate, rows: r } => {
                take(&Op::PredicateRead { predicate, rows: r.map(rows).as_deref() })
            }
            Op::PredicateWrite { predicate, rows: r } => {
                take(&Op::PredicateWrite { predicate, rows: r.map(rows).as_deref() })
            }
            Op::Aggregate { function, predicate, result } => {
                take(&Op::Aggregate { function, predicate, result: result.map(value) })
            }
        }
    }

    /// A row of a predicate operation with the user's own names.
    pub fn row_input(&self, row: &RowView) -> RowInput<'_> {
        PredicateRow {
            key: self.key_name(row.key),
            value: self.value(row.value),
            version: self.row_version(row),
        }
    }

    /// The initial value of registers as an owned value, where the format states one.
    pub fn initial_value(&self) -> Option<&Value> {
        match &self.meta.initial {
            Initial::Value(value) | Initial::UnlessWritten(value) => Some(value),
            Initial::Unwritten | Initial::Marked | Initial::None => None,
        }
    }
}

/// Two histories are equal when every sink would be told the same about both.
impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.meta == other.meta
            && self.session_ends == other.session_ends
            && self.txn_count() == other.txn_count()
            && self.sessions.iter().eq(other.sessions.iter())
            && self.txns().all(|txn| self.same_txn(other, txn))
    }
}

impl History {
    fn same_txn(&self, other: &Self, txn: TxnId) -> bool {
        self.op_range(txn) == other.op_range(txn)
            && self.txn_name(txn) == other.txn_name(txn)
            && self.line(txn) == other.line(txn)
            && self.txn_end(txn) == other.txn_end(txn)
            && self.txn_ops(txn).all(|op| {
                self.op_version(op) == other.op_version(op)
                    && self.op_sql(op) == other.op_sql(op)
                    && self.with_op_input(op, |a| other.with_op_input(op, |b| a == b))
            })
    }
}
