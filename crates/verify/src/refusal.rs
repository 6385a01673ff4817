//! Why a verdict is refused.

use std::fmt;

use isolario_model::{AnomalyKind, History, KeyId, Level, OpId, TxnId};

/// What is wrong with a verdict. Transactions and operations are named by their ids in the
/// history, since the evidence may name some that do not exist; [`Refusal::describe`] has the
/// user's own names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Evidence of a kind that cannot be re-checked yet.
    Unsupported(&'static str),
    /// The history has operations that cannot be re-checked yet.
    UnsupportedOperation(OpId),
    /// The level needs another kind of witness.
    WrongWitness(Level),
    /// There is no such transaction.
    NoSuchTxn(TxnId),
    /// There is no such operation.
    NoSuchOp(OpId),
    /// The order leaves out a committed transaction.
    Missing(TxnId),
    /// The order has a transaction twice.
    Repeated(TxnId),
    /// A transaction commits before it starts.
    NotStarted(TxnId),
    /// Two transactions that write one key overlap.
    Conflict {
        /// The key.
        key: KeyId,
        /// Who started first.
        first: TxnId,
        /// Who started before that one committed.
        second: TxnId,
    },
    /// The evidence relies on a transaction that did not commit, or need not have.
    NotCommitted(TxnId),
    /// The order contradicts session order, a read, or real time.
    OutOfOrder {
        /// The one that must come first.
        first: TxnId,
        /// The one that must follow.
        second: TxnId,
        /// Why.
        why: &'static str,
    },
    /// The order does not explain a read.
    Unexplained {
        /// The read.
        read: OpId,
        /// What is wrong.
        why: &'static str,
    },
    /// A read misses a write that is visible to its transaction and newer in the order.
    Missed {
        /// Who read.
        reader: TxnId,
        /// The read.
        read: OpId,
    },
    /// Two reads of one key disagree.
    Disagree {
        /// The earlier read.
        first: OpId,
        /// The later one.
        second: OpId,
    },
    /// A read may have seen either of several writes.
    Ambiguous(OpId),
    /// A violation without an anomaly.
    NoAnomaly,
    /// There are more anomalies than there are said to be.
    Miscounted {
        /// How many it shows.
        shown: u64,
        /// How many it counts.
        total: u64,
    },
    /// The anomaly is allowed at the level.
    Allowed {
        /// The anomaly.
        kind: AnomalyKind,
        /// The level.
        level: Level,
    },
    /// The evidence shows something else than the anomaly it is said to show.
    WrongKind {
        /// The anomaly.
        kind: AnomalyKind,
        /// What is wrong.
        why: &'static str,
    },
    /// The history does not bear out an edge.
    WrongEdge {
        /// Where it begins.
        from: TxnId,
        /// Where it ends.
        to: TxnId,
        /// What is wrong.
        why: &'static str,
    },
    /// A cycle without edges.
    NoEdges,
    /// The edges do not follow each other.
    Disconnected {
        /// Where an edge ended.
        from: TxnId,
        /// Where the next one begins.
        to: TxnId,
    },
    /// The reason why a level does not apply does not hold.
    Applicable(&'static str),
}

impl Refusal {
    /// The refusal in the user's own names.
    pub fn describe(&self, history: &History) -> String {
        self.sentence(&OwnNames(history))
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let (txn, op) = (|id: &TxnId| names.txn(*id), |id: &OpId| names.op(*id));
        match self {
            Refusal::Unsupported(what) => format!("{what} cannot be verified"),
            Refusal::UnsupportedOperation(id) => {
                format!("{} is of a kind that cannot be verified", op(id))
            }
            Refusal::WrongWitness(level) => {
                format!("this kind of witness does not show {level}")
            }
            Refusal::NoSuchTxn(id) => format!("the history has no {}", txn(id)),
            Refusal::NoSuchOp(id) => format!("the history has no {}", op(id)),
            Refusal::Missing(id) => format!("{} committed and is missing from the order", txn(id)),
            Refusal::Repeated(id) => format!("{} is in the order twice", txn(id)),
            Refusal::NotStarted(id) => format!("{} commits before it starts", txn(id)),
            Refusal::Conflict { key, first, second } => format!(
                "{} and {} overlap, and both write {}",
                txn(first),
                txn(second),
                names.key(*key)
            ),
            Refusal::NotCommitted(id) => format!("nothing shows that {} committed", txn(id)),
            Refusal::OutOfOrder { first, second, why } => {
                format!("{} must come before {} in the order: {why}", txn(first), txn(second))
            }
            Refusal::Unexplained { read, why } => {
                format!("the order does not explain {}: {why}", op(read))
            }
            Refusal::Missed { reader, read } => format!(
                "{} misses a write that is visible to {} and newer in the order",
                op(read),
                txn(reader)
            ),
            Refusal::Disagree { first, second } => {
                format!("two reads of one key disagree: {} and {}", op(first), op(second))
            }
            Refusal::Ambiguous(read) => format!("{} may have seen several writes", op(read)),
            Refusal::NoAnomaly => "the verdict shows no anomaly".to_owned(),
            Refusal::Miscounted { shown, total } => {
                format!("the verdict shows {shown} anomalies and counts {total}")
            }
            Refusal::Allowed { kind, level } => format!("{level} does not forbid {kind}"),
            Refusal::WrongKind { kind, why } => {
                format!("the evidence does not show {kind}: {why}")
            }
            Refusal::WrongEdge { from, to, why } => {
                format!("the edge from {} to {} is not justified: {why}", txn(from), txn(to))
            }
            Refusal::NoEdges => "a cycle has no edges".to_owned(),
            Refusal::Disconnected { from, to } => {
                format!("no edge leads from {} to {}", txn(from), txn(to))
            }
            Refusal::Applicable(why) => {
                format!("the reason why the level does not apply does not hold: {why}")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(&Ids))
    }
}

impl std::error::Error for Refusal {}

/// What transactions and operations are called in a sentence.
trait Names {
    fn txn(&self, txn: TxnId) -> String;
    fn op(&self, op: OpId) -> String;
    fn key(&self, key: KeyId) -> String;
}

/// By id.
struct Ids;

impl Names for Ids {
    fn txn(&self, txn: TxnId) -> String {
        format!("transaction {txn:?}")
    }

    fn op(&self, op: OpId) -> String {
        format!("operation {op:?}")
    }

    fn key(&self, key: KeyId) -> String {
        format!("key {key:?}")
    }
}

/// As the user calls them, where they exist.
struct OwnNames<'h>(&'h History);

impl Names for OwnNames<'_> {
    fn txn(&self, txn: TxnId) -> String {
        if txn.is_init() {
            return "the initial state".to_owned();
        }
        if txn.index() >= self.0.txn_count() {
            return Ids.txn(txn);
        }
        format!("transaction {}", self.0.txn_label(txn))
    }

    fn op(&self, op: OpId) -> String {
        let Some(key) = self.0.op_keys().get(op.index()) else { return Ids.op(op) };
        let txn = self.0.op_txn(op);
        let index = op.index() - self.0.op_range(txn).start;
        let on = if *key == KeyId::NONE {
            String::new()
        } else {
            format!(" on {}", self.0.key_name(*key))
        };
        format!("operation {index}{on} of {}", self.txn(txn))
    }

    fn key(&self, key: KeyId) -> String {
        format!("key {}", self.0.key_name(key))
    }
}
