//! What is wrong with the order of a history that is not in memory: transactions are named by their positions,
//! until those that matter were looked up.

use isolario_model::{History, KeyId, Level, OpId, Outcome, TxnId};

use crate::facts::is_write;
use crate::{Refusal, times};

/// Why one transaction comes before another.
pub(super) const SESSION_ORDER: &str = "session order";
pub(super) const REAL_TIME: &str = times::REAL_TIME;

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Witness,
    /// A committed transaction is not in the order, or only its start is.
    Missing(u64),
    /// It is in the order and cannot be there: it was there before, or it aborted.
    NotThere(u64),
    NotStarted(u64),
    Conflict {
        first: u64,
        second: u64,
    },
    OutOfOrder {
        first: u64,
        second: u64,
        why: &'static str,
    },
    /// The read by its index in its transaction.
    Unexplained {
        reader: u64,
        index: u32,
        why: &'static str,
    },
    Missed {
        reader: u64,
        index: u32,
    },
}

impl Wrong {
    /// The positions of those that it is about.
    pub(crate) fn named(&self) -> Vec<u64> {
        use Wrong::{
            Conflict, Missed, Missing, NotStarted, NotThere, OutOfOrder, Unexplained, Witness,
        };
        match self {
            Witness => Vec::new(),
            Missing(txn) | NotThere(txn) | NotStarted(txn) => vec![*txn],
            Conflict { first, second } | OutOfOrder { first, second, .. } => vec![*first, *second],
            Unexplained { reader, .. } | Missed { reader, .. } => vec![*reader],
        }
    }

    /// The same of a part of the history; none if it does not have those whom it is about.
    pub(crate) fn told_of(
        &self,
        part: &History,
        level: Level,
        txn: impl Fn(u64) -> Option<TxnId>,
    ) -> Option<Refusal> {
        let op = |reader: u64, index: u32| -> Option<OpId> {
            part.txn_ops(txn(reader)?).nth(index as usize)
        };
        Some(match *self {
            Wrong::Witness => Refusal::WrongWitness(level),
            Wrong::Missing(missing) => Refusal::Missing(txn(missing)?),
            Wrong::NotThere(other) => match part.outcome(txn(other)?) {
                Outcome::Aborted => Refusal::NotCommitted(txn(other)?),
                _ => Refusal::Repeated(txn(other)?),
            },
            Wrong::NotStarted(other) => Refusal::NotStarted(txn(other)?),
            Wrong::Conflict { first, second } => {
                let (first, second) = (txn(first)?, txn(second)?);
                let key = written_by_both(part, first, second)?;
                Refusal::Conflict { key, first, second }
            }
            Wrong::OutOfOrder { first, second, why } => {
                Refusal::OutOfOrder { first: txn(first)?, second: txn(second)?, why }
            }
            Wrong::Unexplained { reader, index, why } => {
                Refusal::Unexplained { read: op(reader, index)?, why }
            }
            Wrong::Missed { reader, index } => {
                Refusal::Missed { reader: txn(reader)?, read: op(reader, index)? }
            }
        })
    }
}

fn written_by_both(part: &History, first: TxnId, second: TxnId) -> Option<KeyId> {
    let written = |txn| part.txn_ops(txn).filter(|op| is_write(part, *op));
    let key = |op: OpId| part.op_keys()[op.index()];
    written(second).map(key).find(|shared| written(first).any(|op| key(op) == *shared))
}
