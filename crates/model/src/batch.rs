//! A batch of transactions in the order they arrived: what a sink collects before the whole
//! history is known.

use crate::columns::{ConditionalOp, MAX_ROWS, OpColumns, TxnColumns, TxnTexts};
use crate::op::{Op, OpInput, OpKind, OpNotes, Outcome, TxnEnd, TxnStart, VersionRef};
use crate::sink::{Meta, SinkError, TxnSink};
use crate::table::{NameTable, ValueId, ValueTable};
use crate::value::ValueRef;
use crate::{History, KeyId, PredicateRow, RowInput, VersionId};

/// Transactions in the order they arrived, in columns with name tables of their own.
///
/// A batch is the [`TxnSink`] that keeps everything. [`Batch::build`] makes a [`History`] of one;
/// readers that parse a file in parallel fill several and join them with
/// [`History::from_batches`].
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) meta: Meta,
    pub(crate) ops: OpColumns,
    pub(crate) txns: TxnColumns,
    pub(crate) keys: NameTable,
    pub(crate) sessions: NameTable,
    pub(crate) values: ValueTable,
    /// Whether the last transaction has begun and not ended.
    pub(crate) open: bool,
    /// How many operations were added in advance, and belong to no transaction yet.
    pub(crate) unclaimed: usize,
    /// Reused by list reads, so that they allocate nothing.
    scratch: Vec<ValueId>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for this many transactions and operations.
    pub fn with_capacity(txns: usize, ops: usize) -> Self {
        let mut batch = Self::default();
        batch.ops.kinds.reserve(ops);
        batch.ops.keys.reserve(ops);
        batch.ops.encoded.reserve(ops);
        batch.txns.sessions.reserve(txns);
        batch.txns.op_ends.reserve(txns);
        batch.txns.outcomes.reserve(txns);
        batch
    }

    /// Makes room for this many values that are not small integers, which have so many columns together.
    pub fn reserve_values(&mut self, values: usize, columns: usize) {
        self.values.reserve(values, columns);
    }

    /// How many transactions it holds.
    pub fn len(&self) -> usize {
        self.txns.sessions.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many operations its transactions have.
    pub fn op_count(&self) -> usize {
        self.ops.kinds.len()
    }

    /// When each transaction finished, as far as that is known, in the order in which they arrived.
    pub fn finishes(&self) -> impl ExactSizeIterator<Item = Option<i64>> {
        let is_bad = |txn: usize| self.txns.contradictory_times_in(txn).is_some();
        (0..self.len()).map(move |txn| self.txns.finishes.get(txn).filter(|_| !is_bad(txn)))
    }

    /// Groups what arrived by session and makes a history of it.
    pub fn build(self) -> Result<History, SinkError> {
        History::from_batches(vec![self], crate::BatchEntries::Whole)
    }

    /// The value word and kind of an operation, putting into the side tables what does not fit.
    #[inline]
    fn encode(&mut self, key: KeyId, op: &OpInput<'_>) -> (OpKind, u64) {
        match *op {
            Op::Read { value: Some(value), .. } => {
                (OpKind::Read, self.values.intern(value).to_bits())
            }
            Op::Write { value, .. } => (OpKind::Write, self.values.intern(value).to_bits()),
            Op::Append { element, .. } => (OpKind::Append, self.values.intern(element).to_bits()),
            Op::Read { value: None, .. } => (OpKind::ReadUnobserved, 0),
            Op::ReadList { elements: None, .. } => (OpKind::ReadListUnobserved, 0),
            Op::Delete { .. } => (OpKind::Delete, self.values.intern(ValueRef::Nil).to_bits()),
            Op::ReadList { elements: Some(elements), .. } => {
                self.scratch.clear();
                self.scratch.extend(elements.iter().map(|e| self.values.intern(*e)));
                (OpKind::ReadList, self.ops.lists.insert(key.0, &self.scratch).to_bits())
            }
            Op::InsertIfAbsent { value, applied, seen, .. } => {
                (OpKind::InsertIfAbsent, self.conditional(None, value, applied, seen))
            }
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                (OpKind::CompareAndSet, self.conditional(Some(expected), new, applied, seen))
            }
            Op::PredicateRead { predicate, rows } => {
                self.push_rows(rows);
                (OpKind::PredicateRead, self.ops.predicates.push_row_op(predicate, rows.is_some()))
            }
            Op::PredicateWrite { predicate, rows } => {
                self.push_rows(rows);
                (OpKind::PredicateWrite, self.ops.predicates.push_row_op(predicate, rows.is_some()))
            }
            Op::Aggregate { function, predicate, result } => {
                let result = result.map(|value| self.values.intern(value));
                (OpKind::Aggregate, self.ops.predicates.push_aggregate(predicate, function, result))
            }
        }
    }

    fn conditional(
        &mut self,
        expected: Option<ValueRef<'_>>,
        new: ValueRef<'_>,
        applied: Option<bool>,
        seen: Option<ValueRef<'_>>,
    ) -> u64 {
        let mut intern = |v| self.values.intern(v);
        let (expected, new, seen) = (expected.map(&mut intern), intern(new), seen.map(intern));
        self.ops.conditionals.push(ConditionalOp { expected, new, applied, seen });
        self.ops.conditionals.len() as u64 - 1
    }

    /// Adds rows for the predicate operation that is being encoded.
    fn push_rows(&mut self, rows: Option<&[RowInput<'_>]>) {
        for row in rows.unwrap_or_default() {
            let key = KeyId(self.keys.intern(row.key));
            let value = self.values.intern(row.value);
            let version = row.version.map_or(VersionId::NONE, |name| self.version_id(name));
            self.ops.predicates.push_row(PredicateRow { key, value, version });
        }
    }

    fn version_id(&mut self, name: VersionRef) -> VersionId {
        VersionId::at(self.ops.version_names.insert_full(name).0)
    }

    fn note(&mut self, op: usize, notes: &OpNotes<'_>) {
        if let Some(version) = notes.version {
            let id = self.version_id(version);
            self.ops.versions.set(op, Some(id));
        }
        if let Some(sql) = notes.sql {
            self.ops.sql.push((op as u32, sql.into()));
        }
    }
}

impl TxnSink for Batch {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.meta = meta.clone();
        Ok(())
    }

    #[inline]
    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        if self.open {
            return Err(SinkError::Sequence("a transaction begins inside another one"));
        }
        let txn = self.len();
        if txn >= MAX_ROWS {
            return Err(SinkError::TooLarge { what: "transactions", limit: MAX_ROWS as u64 });
        }
        self.open = true;
        self.txns.sessions.push(self.sessions.intern(start.session));
        self.txns.op_ends.push(self.claimed());
        self.txns.outcomes.push(Outcome::Unknown);
        let name = start.id.map(|id| self.values.intern(id));
        self.txns.names.set(txn, name);
        self.txns.lines.set(txn, start.line);
        Ok(())
    }

    #[inline]
    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.require_open()?;
        let row = self.ops.kinds.len();
        if row >= MAX_ROWS {
            return Err(SinkError::TooLarge { what: "operations", limit: MAX_ROWS as u64 });
        }
        let key = op.key().map_or(KeyId::NONE, |key| KeyId(self.keys.intern(key)));
        let (kind, word) = self.encode(key, op);
        self.ops.kinds.push(kind);
        self.ops.keys.push(key);
        self.ops.encoded.push(word);
        if *notes != OpNotes::default() {
            self.note(row, notes);
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        }
        self.open = false;
        let txn = self.len() - 1;
        self.txns.op_ends[txn] = self.claimed();
        self.txns.outcomes[txn] = end.outcome;
        self.txns.starts.set(txn, end.start);
        self.txns.finishes.set(txn, end.finish);
        self.txns.db_starts.set(txn, end.db_start);
        self.txns.db_commits.set(txn, end.db_commit);
        if end.snapshot.is_some() || end.error.is_some() {
            let texts = TxnTexts {
                snapshot: end.snapshot.map(Into::into),
                error: end.error.map(Into::into),
            };
            self.txns.texts.push((txn as u32, texts));
        }
        Ok(())
    }
}

/// A short cut for readers whose files number names themselves. Looking up the key of every
/// operation is most of the cost of filling a batch. A file with a dictionary needs one look-up per
/// entry: it interns its dictionary once and then adds operations by the ids it got.
impl Batch {
    /// The id of a key in this batch, for [`Batch::ops_by_id`].
    pub fn key_id(&mut self, name: ValueRef<'_>) -> KeyId {
        KeyId(self.keys.intern(name))
    }

    /// The id of a value in this batch, for [`Batch::ops_by_id`].
    #[inline]
    pub fn value_id(&mut self, value: ValueRef<'_>) -> ValueId {
        self.values.intern(value)
    }

    /// Adds reads, writes and appends, one row of each column per operation, by the ids this batch
    /// gave to their keys and values. The same as [`TxnSink::op`](crate::TxnSink::op) for each,
    /// without the look-ups. Either all are added or none.
    #[inline]
    pub fn ops_by_id(
        &mut self,
        kinds: &[OpKind],
        keys: &[KeyId],
        values: &[ValueId],
    ) -> Result<(), SinkError> {
        self.require_open()?;
        self.require_known(kinds, keys, values)?;
        self.ops.kinds.extend_from_slice(kinds);
        self.ops.keys.extend_from_slice(keys);
        self.ops.encoded.extend(values.iter().map(|value| value.to_bits()));
        Ok(())
    }

    /// Takes all operations of a batch that has none, as [`Batch::ops_by_id`] would, before the
    /// transactions they belong to: each of these then claims as many as it has. What a reader has in
    /// columns already need not be copied then.
    pub fn ops_in_advance(
        &mut self,
        kinds: Vec<OpKind>,
        keys: Vec<KeyId>,
        values: Vec<ValueId>,
    ) -> Result<(), SinkError> {
        if self.open || !self.ops.kinds.is_empty() {
            return Err(SinkError::Sequence("operations in advance of a batch that has some"));
        }
        self.require_known(&kinds, &keys, &values)?;
        self.unclaimed = kinds.len();
        self.ops.kinds = kinds;
        self.ops.keys = keys;
        self.ops.encoded = values.into_iter().map(ValueId::to_bits).collect();
        Ok(())
    }

    /// Makes the next few operations that were added in advance part of the open transaction.
    #[inline]
    pub fn claim_ops(&mut self, count: usize) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        let left = self.unclaimed.checked_sub(count);
        self.unclaimed = left.ok_or(SinkError::Sequence("more operations than there are"))?;
        Ok(())
    }

    /// How many operations belong to transactions.
    #[inline]
    fn claimed(&self) -> u32 {
        (self.ops.kinds.len() - self.unclaimed) as u32
    }

    /// Single operations go into an open transaction, and not after some that nobody has claimed.
    #[inline]
    fn require_open(&self) -> Result<(), SinkError> {
        match self.unclaimed {
            _ if !self.open => Err(SinkError::Sequence("an operation outside of a transaction")),
            0 => Ok(()),
            _ => Err(SinkError::Sequence("an operation after some in advance")),
        }
    }

    /// Whether operations by id are reads, writes and appends of what this batch knows.
    #[inline]
    fn require_known(
        &self,
        kinds: &[OpKind],
        keys: &[KeyId],
        values: &[ValueId],
    ) -> Result<(), SinkError> {
        if kinds.len() != keys.len() || kinds.len() != values.len() {
            return Err(SinkError::Sequence("columns of operations of different lengths"));
        }
        if !kinds.iter().all(|k| matches!(k, OpKind::Read | OpKind::Write | OpKind::Append)) {
            return Err(SinkError::Sequence("an operation by id that is no read, write or append"));
        }
        let (key_count, value_count) = (self.keys.len(), self.values.interned().len());
        let known = |v: &ValueId| v.table_index().is_none_or(|index| index < value_count);
        if !keys.iter().all(|key| key.index() < key_count) || !values.iter().all(known) {
            return Err(SinkError::Sequence("an id that its batch never gave"));
        }
        if self.ops.kinds.len() + kinds.len() > MAX_ROWS {
            return Err(SinkError::TooLarge { what: "operations", limit: MAX_ROWS as u64 });
        }
        Ok(())
    }

    /// Adds a list read by the id of its key. The list is told by how many elements it shares with
    /// the longest list that this batch has of the key, all others so far being prefixes of that
    /// one, and by the ids of those it adds. One that diverges from the longest one shares nothing.
    #[inline]
    pub fn list_by_id(
        &mut self,
        key: KeyId,
        shared: usize,
        fresh: &[ValueId],
    ) -> Result<(), SinkError> {
        self.require_open()?;
        let value_count = self.values.interned().len();
        let known = |v: &ValueId| v.table_index().is_none_or(|index| index < value_count);
        if key.index() >= self.keys.len() || !fresh.iter().all(known) {
            return Err(SinkError::Sequence("an id that its batch never gave"));
        }
        if self.ops.kinds.len() >= MAX_ROWS {
            return Err(SinkError::TooLarge { what: "operations", limit: MAX_ROWS as u64 });
        }
        let Some(list) = self.ops.lists.insert_shared(key.0, shared, fresh) else {
            return Err(SinkError::Sequence("a list that shares elements nobody read"));
        };
        self.ops.kinds.push(OpKind::ReadList);
        self.ops.keys.push(key);
        self.ops.encoded.push(list.to_bits());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Outcome, TxnEnd, TxnSink, TxnStart};

    fn begin(batch: &mut Batch) {
        batch.begin(&TxnStart { session: ValueRef::Int(0), id: None, line: None }).unwrap();
    }

    #[test]
    fn operations_by_id_are_those_by_name() {
        let (x, nil) = (ValueRef::Text("x"), ValueRef::Nil);
        let mut by_id = Batch::new();
        begin(&mut by_id);
        let (key, value) = (by_id.key_id(x), by_id.value_id(nil));
        let kinds = [OpKind::Read, OpKind::Write, OpKind::Append];
        by_id.ops_by_id(&kinds, &[key; 3], &[value; 3]).unwrap();
        by_id.end(&TxnEnd::new(Outcome::Committed)).unwrap();

        let mut by_name = Batch::new();
        begin(&mut by_name);
        by_name.op(&Op::Read { key: x, value: Some(nil) }).unwrap();
        by_name.op(&Op::Write { key: x, value: nil }).unwrap();
        by_name.op(&Op::Append { key: x, element: nil }).unwrap();
        by_name.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        assert_eq!(by_id.build().unwrap(), by_name.build().unwrap());
    }

    #[test]
    fn operations_in_advance_are_claimed_by_transactions_in_order() {
        let (x, one) = (ValueRef::Text("x"), ValueRef::Int(1));
        let mut batch = Batch::new();
        let (key, value) = (batch.key_id(x), batch.value_id(one));
        let kinds = vec![OpKind::Write, OpKind::Read, OpKind::Read];
        batch.ops_in_advance(kinds, vec![key; 3], vec![value; 3]).unwrap();
        assert!(batch.claim_ops(1).is_err());
        begin(&mut batch);
        assert!(batch.op(&Op::Write { key: x, value: one }).is_err());
        assert!(batch.claim_ops(4).is_err());
        batch.claim_ops(1).unwrap();
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        assert!(batch.clone().build().is_err());
        begin(&mut batch);
        batch.claim_ops(2).unwrap();
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();

        let mut one_by_one = Batch::new();
        begin(&mut one_by_one);
        one_by_one.op(&Op::Write { key: x, value: one }).unwrap();
        one_by_one.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        begin(&mut one_by_one);
        for _ in 0..2 {
            one_by_one.op(&Op::Read { key: x, value: Some(one) }).unwrap();
        }
        one_by_one.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        assert!(one_by_one.ops_in_advance(Vec::new(), Vec::new(), Vec::new()).is_err());
        assert_eq!(batch.build().unwrap(), one_by_one.build().unwrap());
    }

    #[test]
    fn lists_by_id_are_those_by_name() {
        let (x, [one, two]) = (ValueRef::Text("x"), [ValueRef::Int(1), ValueRef::Text("two")]);
        let mut by_id = Batch::new();
        let (key, ids) = (by_id.key_id(x), [by_id.value_id(one), by_id.value_id(two)]);
        assert!(by_id.list_by_id(key, 0, &ids).is_err());
        begin(&mut by_id);
        for (shared, fresh) in [(0, &ids[..1]), (1, &ids[1..]), (1, &[]), (0, &ids[1..])] {
            by_id.list_by_id(key, shared, fresh).unwrap();
        }
        assert!(by_id.list_by_id(key, 3, &[]).is_err());
        assert!(by_id.list_by_id(KeyId(1), 0, &[]).is_err());
        by_id.end(&TxnEnd::new(Outcome::Committed)).unwrap();

        let mut by_name = Batch::new();
        begin(&mut by_name);
        for elements in [&[one][..], &[one, two], &[one], &[two]] {
            by_name.op(&Op::ReadList { key: x, elements: Some(elements) }).unwrap();
        }
        by_name.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        assert_eq!(by_id.build().unwrap(), by_name.build().unwrap());
    }

    #[test]
    fn foreign_ids_other_kinds_and_no_transaction_are_refused() {
        let mut other = Batch::new();
        let foreign = other.value_id(ValueRef::Text("foreign"));
        let mut batch = Batch::new();
        let (key, value) = (batch.key_id(ValueRef::Int(1)), batch.value_id(ValueRef::Int(1)));
        let mut add = |kind, key, value| batch.ops_by_id(&[kind], &[key], &[value]);
        assert!(add(OpKind::Write, key, value).is_err());
        begin(&mut batch);
        let mut add = |kind, key, value| batch.ops_by_id(&[kind], &[key], &[value]);
        assert!(add(OpKind::Write, KeyId(1), value).is_err());
        assert!(add(OpKind::Write, key, foreign).is_err());
        assert!(add(OpKind::Delete, key, value).is_err());
        assert!(add(OpKind::Write, key, value).is_ok());
        assert!(batch.ops_by_id(&[OpKind::Write], &[key], &[]).is_err());
        assert_eq!(batch.ops.kinds.len(), 1);
    }
}
