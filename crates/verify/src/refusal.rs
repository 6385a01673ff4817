//! Why a verdict is refused.

use isolario_model::{AnomalyKind, Level, OpId, TxnId};

/// What is wrong with a verdict. Transactions and operations are named by their ids in the
/// history: the evidence may name some that do not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Evidence of a kind that cannot be re-checked yet.
    #[error("{0} cannot be verified")]
    Unsupported(&'static str),
    /// The history has operations that cannot be re-checked yet.
    #[error("operation {0:?} is of a kind that cannot be verified")]
    UnsupportedOperation(OpId),
    /// The level needs another kind of witness.
    #[error("this kind of witness does not show {0}")]
    WrongWitness(Level),
    /// There is no such transaction.
    #[error("the history has no transaction {0:?}")]
    NoSuchTxn(TxnId),
    /// There is no such operation.
    #[error("the history has no operation {0:?}")]
    NoSuchOp(OpId),
    /// The order leaves out a committed transaction.
    #[error("committed transaction {0:?} is missing from the order")]
    Missing(TxnId),
    /// The order has a transaction twice.
    #[error("transaction {0:?} is in the order twice")]
    Repeated(TxnId),
    /// The evidence relies on a transaction that did not commit, or need not have.
    #[error("nothing shows that transaction {0:?} committed")]
    NotCommitted(TxnId),
    /// The order contradicts session order, a read, or real time.
    #[error("{first:?} must come before {second:?} in the order: {why}")]
    OutOfOrder {
        /// The one that must come first.
        first: TxnId,
        /// The one that must follow.
        second: TxnId,
        /// Why.
        why: &'static str,
    },
    /// The order does not explain a read.
    #[error("the order does not explain read {read:?}: {why}")]
    Unexplained {
        /// The read.
        read: OpId,
        /// What is wrong.
        why: &'static str,
    },
    /// A read misses a write that is visible to its transaction and newer in the order.
    #[error("read {read:?} misses a write that is visible to {reader:?} and newer in the order")]
    Missed {
        /// Who read.
        reader: TxnId,
        /// The read.
        read: OpId,
    },
    /// Two reads of one key disagree.
    #[error("reads {first:?} and {second:?} of one key disagree")]
    Disagree {
        /// The earlier read.
        first: OpId,
        /// The later one.
        second: OpId,
    },
    /// A read may have seen either of several writes.
    #[error("read {0:?} is ambiguous")]
    Ambiguous(OpId),
    /// A violation without an anomaly.
    #[error("the verdict shows no anomaly")]
    NoAnomaly,
    /// There are more anomalies than there are said to be.
    #[error("the verdict shows {shown} anomalies and counts {total}")]
    Miscounted {
        /// How many it shows.
        shown: u64,
        /// How many it counts.
        total: u64,
    },
    /// The anomaly is allowed at the level.
    #[error("{level} does not forbid {kind}")]
    Allowed {
        /// The anomaly.
        kind: AnomalyKind,
        /// The level.
        level: Level,
    },
    /// The evidence shows something else than the anomaly it is said to show.
    #[error("the evidence does not show {kind}: {why}")]
    WrongKind {
        /// The anomaly.
        kind: AnomalyKind,
        /// What is wrong.
        why: &'static str,
    },
    /// The history does not bear out an edge.
    #[error("the edge from {from:?} to {to:?} is not justified: {why}")]
    WrongEdge {
        /// Where it begins.
        from: TxnId,
        /// Where it ends.
        to: TxnId,
        /// What is wrong.
        why: &'static str,
    },
    /// The edges do not follow each other.
    #[error("no edge leads from {from:?} to {to:?}")]
    Disconnected {
        /// Where an edge ended.
        from: TxnId,
        /// Where the next one begins.
        to: TxnId,
    },
    /// The reason why a level does not apply does not hold.
    #[error("the reason why the level does not apply does not hold: {0}")]
    Applicable(&'static str),
}
