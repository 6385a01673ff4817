//! A batch of transactions in the order they arrived: what a sink collects before the whole
//! history is known.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::column::Column;
use crate::lists::Lists;
use crate::op::{Op, OpInput, OpKind, OpNotes, Outcome, Stamp, TxnEnd, TxnStart, VersionRef};
use crate::sink::{Meta, SinkError, TxnSink};
use crate::value::{NameTable, ValueId, ValueRef, ValueTable};
use crate::{History, KeyId, VersionId};

/// The most rows of one kind a history can number.
pub(crate) const MAX_ROWS: usize = u32::MAX as usize - 1;

/// A conditional write, whose columns word is its position among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditional {
    /// The expected value; none for an insert.
    pub(crate) expected: Option<ValueId>,
    pub(crate) new: ValueId,
    pub(crate) applied: Option<bool>,
    pub(crate) seen: Option<ValueId>,
}

/// A predicate operation, whose columns word is its position among them.
#[derive(Clone, Debug)]
pub(crate) struct Relational {
    /// The function of an aggregate; empty otherwise.
    pub(crate) function: Box<str>,
    pub(crate) predicate: Box<str>,
    pub(crate) rows: Option<Box<[(KeyId, ValueId)]>>,
    pub(crate) result: Option<ValueId>,
}

/// The operations of a batch or of a history, one array per field.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpColumns {
    pub(crate) kinds: Vec<OpKind>,
    pub(crate) keys: Vec<KeyId>,
    /// The value's word; the word of a list; or a position in `conditionals` or `relational`.
    pub(crate) words: Vec<u64>,
    pub(crate) versions: Column<VersionId>,
    pub(crate) conditionals: Vec<Conditional>,
    pub(crate) relational: Vec<Relational>,
    pub(crate) lists: Lists,
    pub(crate) version_names: IndexSet<VersionRef, FxBuildHasher>,
    /// Statements, by operation, in order.
    pub(crate) sql: Vec<(u32, Box<str>)>,
}

/// Texts about a transaction that few have.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxnTexts {
    pub(crate) snapshot: Option<Box<str>>,
    pub(crate) error: Option<Box<str>>,
}

/// The transactions of a batch or of a history, one array per field.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxnColumns {
    pub(crate) sessions: Vec<u32>,
    /// One past the last operation of each.
    pub(crate) op_ends: Vec<u32>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) names: Column<ValueId>,
    pub(crate) lines: Column<u64>,
    pub(crate) starts: Column<i64>,
    pub(crate) finishes: Column<i64>,
    pub(crate) db_starts: Column<Stamp>,
    pub(crate) db_commits: Column<Stamp>,
    /// Texts, by transaction, in order.
    pub(crate) texts: Vec<(u32, TxnTexts)>,
}

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
        batch.ops.words.reserve(ops);
        batch.txns.sessions.reserve(txns);
        batch.txns.op_ends.reserve(txns);
        batch.txns.outcomes.reserve(txns);
        batch
    }

    /// How many transactions it holds.
    pub fn len(&self) -> usize {
        self.txns.sessions.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Groups what arrived by session and makes a history of it.
    pub fn build(self) -> Result<History, SinkError> {
        History::from_batches(vec![self], crate::Pieces::Whole)
    }

    /// The value word and kind of an operation, putting into the side tables what does not fit.
    #[inline]
    fn encode(&mut self, key: KeyId, op: &OpInput<'_>) -> (OpKind, u64) {
        match *op {
            Op::Read { value: Some(value), .. } => (OpKind::Read, self.values.intern(value).word()),
            Op::Write { value, .. } => (OpKind::Write, self.values.intern(value).word()),
            Op::Append { element, .. } => (OpKind::Append, self.values.intern(element).word()),
            Op::Read { value: None, .. } => (OpKind::ReadUnobserved, 0),
            Op::ReadList { elements: None, .. } => (OpKind::ReadListUnobserved, 0),
            Op::Delete { .. } => (OpKind::Delete, self.values.intern(ValueRef::Nil).word()),
            Op::ReadList { elements: Some(elements), .. } => {
                self.scratch.clear();
                self.scratch.extend(elements.iter().map(|e| self.values.intern(*e)));
                (OpKind::ReadList, self.ops.lists.insert(key.0, &self.scratch).word())
            }
            Op::InsertIfAbsent { value, applied, seen, .. } => {
                (OpKind::InsertIfAbsent, self.conditional(None, value, applied, seen))
            }
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                (OpKind::CompareAndSet, self.conditional(Some(expected), new, applied, seen))
            }
            Op::PredicateRead { predicate, rows } => {
                (OpKind::PredicateRead, self.relational("", predicate, rows, None))
            }
            Op::PredicateWrite { predicate, rows } => {
                (OpKind::PredicateWrite, self.relational("", predicate, rows, None))
            }
            Op::Aggregate { function, predicate, result } => {
                (OpKind::Aggregate, self.relational(function, predicate, None, result))
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
        self.ops.conditionals.push(Conditional { expected, new, applied, seen });
        self.ops.conditionals.len() as u64 - 1
    }

    fn relational(
        &mut self,
        function: &str,
        predicate: &str,
        rows: Option<&[(ValueRef<'_>, ValueRef<'_>)]>,
        result: Option<ValueRef<'_>>,
    ) -> u64 {
        let (keys, values) = (&mut self.keys, &mut self.values);
        let rows = rows.map(|rows| {
            rows.iter().map(|(k, v)| (KeyId(keys.intern(*k)), values.intern(*v))).collect()
        });
        let result = result.map(|v| values.intern(v));
        let (function, predicate) = (function.into(), predicate.into());
        self.ops.relational.push(Relational { function, predicate, rows, result });
        self.ops.relational.len() as u64 - 1
    }

    fn note(&mut self, op: usize, notes: &OpNotes<'_>) {
        if let Some(version) = notes.version {
            let id = VersionId::at(self.ops.version_names.insert_full(version).0);
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
        self.txns.op_ends.push(self.ops.kinds.len() as u32);
        self.txns.outcomes.push(Outcome::Unknown);
        let name = start.id.map(|id| self.values.intern(id));
        self.txns.names.set(txn, name);
        self.txns.lines.set(txn, start.line);
        Ok(())
    }

    #[inline]
    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        let row = self.ops.kinds.len();
        if row >= MAX_ROWS {
            return Err(SinkError::TooLarge { what: "operations", limit: MAX_ROWS as u64 });
        }
        let key = op.key().map_or(KeyId::NONE, |key| KeyId(self.keys.intern(key)));
        let (kind, word) = self.encode(key, op);
        self.ops.kinds.push(kind);
        self.ops.keys.push(key);
        self.ops.words.push(word);
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
        self.txns.op_ends[txn] = self.ops.kinds.len() as u32;
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
