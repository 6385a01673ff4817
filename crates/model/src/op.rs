//! Operations, and what is known of a transaction beside them.

use isolario_predicate::{Aggregate, Predicate};

use crate::value::ValueRef;
use crate::{KeyId, OpId, TxnId, ValueId, VersionId};

/// One operation of a transaction.
///
/// The same type serves on the way in, with borrowed names ([`OpInput`]), and on the way out, with
/// dense ids ([`OpView`]): for keys, values and the versions of rows.
///
/// Rows need no operations of their own where one is read or written by its key: the key is a
/// [tuple](crate::TupleRef) with a table, and the value one without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op<'a, K, V, W> {
    /// A read of a register. Without a value it is *unobserved*: the client never got the answer.
    Read {
        /// What was read.
        key: K,
        /// What came back.
        value: Option<V>,
    },
    /// A write of a register.
    Write {
        /// What was written to.
        key: K,
        /// The new value.
        value: V,
    },
    /// A delete: a write of *absent*.
    Delete {
        /// What was deleted.
        key: K,
    },
    /// An append to a list.
    Append {
        /// The list.
        key: K,
        /// The new last element.
        element: V,
    },
    /// A read of a whole list. Without elements it is unobserved.
    ReadList {
        /// The list.
        key: K,
        /// What came back.
        elements: Option<&'a [V]>,
    },
    /// A write that takes effect only where nothing is there.
    InsertIfAbsent {
        /// What was written to.
        key: K,
        /// The new value.
        value: V,
        /// Whether it took effect, if the client knows.
        applied: Option<bool>,
        /// The value a failed one found, if the database returned it.
        seen: Option<V>,
    },
    /// A write that takes effect only where the expected value is there.
    CompareAndSet {
        /// What was written to.
        key: K,
        /// The value it asked for.
        expected: V,
        /// The new value.
        new: V,
        /// Whether it took effect, if the client knows.
        applied: Option<bool>,
        /// The value a failed one found, if the database returned it.
        seen: Option<V>,
    },
    /// A read of all rows that satisfy a predicate. Without rows it is unobserved.
    PredicateRead {
        /// Which rows were asked for.
        predicate: &'a Predicate,
        /// The rows that came back.
        rows: Option<&'a [PredicateRow<K, V, W>]>,
    },
    /// A write to all rows that satisfy a predicate.
    PredicateWrite {
        /// Which rows were to be written.
        predicate: &'a Predicate,
        /// The rows that were written, with their new values; *nil* for deleted ones. Without rows
        /// the client does not know which.
        rows: Option<&'a [PredicateRow<K, V, W>]>,
    },
    /// A function over all rows that satisfy a predicate.
    Aggregate {
        /// The function.
        function: &'a Aggregate,
        /// Which rows it is taken over.
        predicate: &'a Predicate,
        /// What came back; without one it is unobserved.
        result: Option<V>,
    },
}

/// A row that a predicate operation read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateRow<K, V, W> {
    /// What the row is called by: its table and primary key.
    pub key: K,
    /// What it held, or holds from now on.
    pub value: V,
    /// Which version that is, where the format says so apart from the value.
    pub version: W,
}

/// A row with the user's own names.
pub type RowInput<'a> = PredicateRow<ValueRef<'a>, ValueRef<'a>, Option<VersionRef>>;

/// A row of a [`History`](crate::History). Its version is [`VersionId::NONE`] where its value says
/// which one it is.
pub type RowView = PredicateRow<KeyId, ValueId, VersionId>;

impl<'a> RowInput<'a> {
    /// A row whose version is known by its value.
    pub fn new(key: impl Into<ValueRef<'a>>, value: impl Into<ValueRef<'a>>) -> RowInput<'a> {
        PredicateRow { key: key.into(), value: value.into(), version: None }
    }
}

/// An operation with the user's own names.
pub type OpInput<'a> = Op<'a, ValueRef<'a>, ValueRef<'a>, Option<VersionRef>>;

/// An operation of a [`History`](crate::History).
pub type OpView<'h> = Op<'h, KeyId, ValueId, VersionId>;

impl<K: Copy, V: Copy, W: Copy> Op<'_, K, V, W> {
    /// The one key the operation touches; none for predicate operations.
    pub fn key(&self) -> Option<K> {
        match *self {
            Op::Read { key, .. }
            | Op::Write { key, .. }
            | Op::Delete { key }
            | Op::Append { key, .. }
            | Op::ReadList { key, .. }
            | Op::InsertIfAbsent { key, .. }
            | Op::CompareAndSet { key, .. } => Some(key),
            Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. } => None,
        }
    }
}

/// The kinds of operation, as the columns store them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum OpKind {
    /// [`Op::Read`] with a value.
    Read,
    /// [`Op::Read`] without one.
    ReadUnobserved,
    /// [`Op::Write`].
    Write,
    /// [`Op::Delete`].
    Delete,
    /// [`Op::Append`].
    Append,
    /// [`Op::ReadList`] with elements.
    ReadList,
    /// [`Op::ReadList`] without.
    ReadListUnobserved,
    /// [`Op::InsertIfAbsent`].
    InsertIfAbsent,
    /// [`Op::CompareAndSet`].
    CompareAndSet,
    /// [`Op::PredicateRead`].
    PredicateRead,
    /// [`Op::PredicateWrite`].
    PredicateWrite,
    /// [`Op::Aggregate`].
    Aggregate,
}

/// How a transaction ended, as far as its client can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The database said that it committed.
    Committed,
    /// It certainly did not commit.
    Aborted,
    /// The client cannot tell: the connection was lost during commit, or time ran out.
    Unknown,
}

/// A moment of the database's own clock: physical and logical part, or a commit position and zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    /// The physical part, or the position.
    pub physical: u64,
    /// The logical part.
    pub logical: u64,
}

/// Which version an operation read or wrote, where the format says so apart from the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionRef {
    /// The version that was there before anyone wrote.
    Initial,
    /// A write named by its transaction and its own number.
    ByWriter {
        /// The writing transaction, in the format's own numbers.
        txn: u64,
        /// The write.
        write: u64,
    },
    /// A write named by its own number and value alone; not necessarily one write.
    ByWrite {
        /// The write.
        write: u64,
        /// Its value.
        value: u64,
    },
}

/// Facts about one operation that most formats do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpNotes<'a> {
    /// The version it read or wrote.
    pub version: Option<VersionRef>,
    /// The statement it came from.
    pub sql: Option<&'a str>,
}

/// Whose transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnStart<'a> {
    /// The session, by the user's own name.
    pub session: ValueRef<'a>,
    /// The transaction, by the user's own name. Without one it is called by its position.
    pub id: Option<ValueRef<'a>>,
    /// The line of the file it begins on, counted from 1.
    pub line: Option<u64>,
}

/// How it ended, and what else is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnEnd<'a> {
    /// How it ended.
    pub outcome: Outcome,
    /// When the client began it, on the history's clock.
    pub start: Option<i64>,
    /// When the client knew its end, on the history's clock.
    pub finish: Option<i64>,
    /// The database's own timestamp of its snapshot.
    pub db_start: Option<Stamp>,
    /// The database's own timestamp or position of its commit.
    pub db_commit: Option<Stamp>,
    /// The snapshot it read, as the database describes it.
    pub snapshot: Option<&'a str>,
    /// The error that ended it.
    pub error: Option<&'a str>,
}

impl TxnEnd<'_> {
    /// An end of which only the outcome is known.
    pub const fn new(outcome: Outcome) -> Self {
        TxnEnd {
            outcome,
            start: None,
            finish: None,
            db_start: None,
            db_commit: None,
            snapshot: None,
            error: None,
        }
    }
}

/// Versions of one key in the order in which they were written, as far as the database or the user
/// states it: neighbours are not necessarily successive versions, and any may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedOrder {
    /// The key.
    pub key: KeyId,
    /// Who wrote the versions, earlier ones first. Those that did not commit do not count.
    pub writers: Vec<TxnId>,
    /// The line or position of the statement.
    pub at: u64,
}

/// The versions that a predicate operation met, as far as the database or the user states them: of
/// every row one, whether it matched or not. A row that the transaction itself wrote before is met
/// as it left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedSet {
    /// The operation.
    pub op: OpId,
    /// The versions.
    pub versions: VersionSet,
    /// The line or position of the statement.
    pub at: u64,
}

/// A version of every row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionSet {
    /// Of each row, the last version whose writer has a commit timestamp that is not after this.
    Snapshot(Stamp),
    /// Of these rows, the version of this writer; of all others, the initial one.
    Writers(Vec<(KeyId, TxnId)>),
}
