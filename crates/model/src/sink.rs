//! The transaction sink: the one interface that readers, generators and recorders write into.

use crate::op::{OpInput, OpNotes, TxnEnd, TxnStart};
use crate::value::Value;

/// What `init` wrote to registers. Lists always begin empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Initial {
    /// Every register holds this value at first.
    Value(Value),
    /// As [`Initial::Value`], but only for keys on which no client writes the value: where one
    /// does, a read of it refers to the client's write.
    UnlessWritten(Value),
    /// A value that nobody wrote is an initial value.
    Unwritten,
    /// The format marks the reads that saw the initial version.
    Marked,
    /// There is no initial state: a read of a value nobody wrote came out of thin air.
    None,
}

/// What the times of a history mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// Nanoseconds on one monotonic clock.
    Nanoseconds,
    /// Only the order of events: durations mean nothing.
    EventOrder,
}

/// What holds for a history as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The initial state.
    pub initial: Initial,
    /// The clock of the transactions' times, where they have any.
    pub clock: Clock,
}

impl Default for Meta {
    fn default() -> Self {
        Meta { initial: Initial::Value(Value::Nil), clock: Clock::Nanoseconds }
    }
}

/// Why a sink did not take what it was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// An operation or an end came without a beginning, or a beginning inside a transaction.
    #[error("{0}")]
    Sequence(&'static str),
    /// The target cannot express this; nothing is dropped silently.
    #[error("the {format} format cannot express {what}")]
    Inexpressible {
        /// The format.
        format: &'static str,
        /// What it lacks.
        what: String,
    },
    /// More than the 32-bit ids of a history can number.
    #[error("more than {limit} {what}: split the history")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// The same transaction in two sessions.
    #[error("transaction {txn} belongs to session {first} and to session {second}")]
    TwoSessions {
        /// The transaction's own name.
        txn: Value,
        /// The session it was first seen in.
        first: Value,
        /// The session it was then seen in.
        second: Value,
    },
    /// The target could not be written.
    #[error("cannot write: {0}")]
    Io(#[from] std::io::Error),
}

/// Takes transactions one after the other, in the order they finished or in any order that keeps
/// each session's own.
///
/// A transaction is `begin`, its operations, `end`. Whatever a sink cannot hold it refuses with
/// [`SinkError::Inexpressible`].
pub trait TxnSink {
    /// States what holds for the whole history. Called at most once, before any transaction.
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError>;

    /// Begins a transaction.
    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError>;

    /// Adds an operation, with what else is known of it.
    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError>;

    /// Adds an operation.
    fn op(&mut self, op: &OpInput<'_>) -> Result<(), SinkError> {
        self.op_with(op, &OpNotes::default())
    }

    /// Ends the transaction.
    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError>;
}
