//! Plans: what a transaction is going to ask for.

use std::time::Duration;

use crate::application::KeyNames;
use crate::table::TableOp;

/// Where a transaction stands: which session runs it, as its how-manieth, and at which attempt.
///
/// Attempts of one transaction touch the same keys, so that what was refused is tried again; they
/// write other values, so that no value is written twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptedTxn {
    /// The session.
    pub session: u32,
    /// The position within the session, from 0.
    pub position: u64,
    /// The attempt, from 0.
    pub attempt: u32,
}

impl AttemptedTxn {
    /// The first attempt at a position.
    pub fn first(session: u32, position: u64) -> AttemptedTxn {
        AttemptedTxn { session, position, attempt: 0 }
    }
}

/// An operation to ask for.
///
/// Open to matching on purpose: whoever executes plans must know what to do with each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedOp {
    /// Read a register.
    Read {
        /// What to read.
        key: u64,
    },
    /// Write a register.
    Write {
        /// What to write to.
        key: u64,
        /// What to write.
        value: i64,
    },
    /// Read a list.
    ReadList {
        /// What to read.
        key: u64,
    },
    /// Append to a list.
    Append {
        /// The list.
        key: u64,
        /// The new last element.
        element: i64,
    },
    /// Write where nothing is there.
    InsertIfAbsent {
        /// What to write to.
        key: u64,
        /// What to write.
        value: i64,
    },
    /// Write where a certain value is there: the last one the client knows of.
    CompareAndSet {
        /// What to write to.
        key: u64,
        /// What to write.
        new: i64,
    },
    /// Read or write rows of a table.
    Table(TableOp),
}

impl PlannedOp {
    /// Whether it may change the database.
    pub fn writes(&self) -> bool {
        match self {
            PlannedOp::Read { .. } | PlannedOp::ReadList { .. } => false,
            PlannedOp::Table(op) => op.writes(),
            _ => true,
        }
    }

    /// The operation itself, or a read of its key or rows in place of a change: what to ask of a
    /// node that takes no writes.
    #[must_use]
    pub fn without_writing(self) -> PlannedOp {
        match self {
            PlannedOp::Read { key }
            | PlannedOp::Write { key, .. }
            | PlannedOp::InsertIfAbsent { key, .. }
            | PlannedOp::CompareAndSet { key, .. } => PlannedOp::Read { key },
            PlannedOp::ReadList { key } | PlannedOp::Append { key, .. } => {
                PlannedOp::ReadList { key }
            }
            PlannedOp::Table(op) => PlannedOp::Table(op.without_writing()),
        }
    }

    /// Whether it changes whatever rows satisfy a predicate.
    pub fn writes_by_predicate(&self) -> bool {
        matches!(self, PlannedOp::Table(TableOp::RangeUpdate { .. } | TableOp::Delete { .. }))
    }

    /// The key it touches; none for rows of a table.
    pub fn key(&self) -> Option<u64> {
        match *self {
            PlannedOp::Read { key }
            | PlannedOp::Write { key, .. }
            | PlannedOp::ReadList { key }
            | PlannedOp::Append { key, .. }
            | PlannedOp::InsertIfAbsent { key, .. }
            | PlannedOp::CompareAndSet { key, .. } => Some(key),
            PlannedOp::Table(_) => None,
        }
    }
}

/// How a session's transactions keep step with those of others, so that they overlap.
///
/// The sessions of a group begin their transactions together. Each then meets the others once more,
/// before an operation of its own choice. Nobody is waited for in vain: who has ended is not, and who is late
/// is only for a moment. What is asked for stays the same whether they meet or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// The group; one session alone waits for nobody.
    pub group: u32,
    /// Before which operation, counted from 0.
    pub before: usize,
    /// How long to pause then.
    pub pause: Duration,
}

/// A source of plans.
///
/// The same place gets the same plan whenever it asks, so that a run can be repeated from its seed
/// whatever the timing was. Values written to one key should differ between places.
pub trait Generator {
    /// Adds the operations of one transaction to an empty plan: at least one.
    fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>);

    /// What the transaction is called, if it has a name. Names are needed where a database's own
    /// log has to be understood: it tells versions, and these tell who wrote them.
    fn name(&self, place: AttemptedTxn) -> Option<i64> {
        let _ = place;
        None
    }

    /// What keys are called in the history; without names, by their numbers.
    fn key_names(&self) -> Option<KeyNames> {
        None
    }

    /// Where the transactions of a session meet those of others; `None` where they do not.
    fn rendezvous(&self, session: u32) -> Option<Rendezvous> {
        let _ = session;
        None
    }

    /// Whether a transaction is slow: after its first read, the runner lets other transactions commit before
    /// it goes on, so that it sees an old state of the database when many newer ones have come and gone.
    fn is_slow(&self, txn: AttemptedTxn) -> bool {
        let _ = txn;
        false
    }

    /// The number of positions that a session may be ahead of the slowest one; `None` if sessions do
    /// not wait for each other.
    fn max_lead(&self) -> Option<u64> {
        None
    }

    /// The number of keys that transactions before this position can touch, counted from 0; `None` if
    /// keys do not change while the run goes on.
    fn keys(&self, positions: u64) -> Option<u64> {
        let _ = positions;
        None
    }

    /// The smallest key that transactions from this position on can touch: keys below it may be
    /// forgotten once every session is there.
    fn first_key(&self, position: u64) -> u64 {
        let _ = position;
        0
    }
}
