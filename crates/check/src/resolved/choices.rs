//! What observations leave open.
//!
//! A read of a value that several transactions wrote may have seen either of them. The levels do
//! not guess: unless something else is wrong already, such a history is refused, and the refusal
//! names a read with two of its candidates. Whoever lowers choices to the explicit ones of the
//! solver (`strong::polygraph`) begins with the list of these reads.

use isolario_model::{History, Inapplicable, Op, OpId, TxnId};

use super::reads::{same_append, write_seen};

/// A read of a version that several wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmbiguousRead {
    pub(crate) read: OpId,
    /// Two of those who wrote it; the first may be `init`.
    pub(crate) first: TxnId,
    pub(crate) second: TxnId,
}

/// The choices of a history.
pub(crate) struct Choices {
    /// Why levels cannot be decided without making them, if there are any.
    pub(crate) refusal: Option<Inapplicable>,
}

impl Choices {
    /// From the ambiguous reads of kept transactions, by operation.
    pub(super) fn new(history: &History, ambiguous: &[AmbiguousRead]) -> Self {
        Choices { refusal: refusal(history, ambiguous) }
    }
}

fn refusal(history: &History, ambiguous: &[AmbiguousRead]) -> Option<Inapplicable> {
    let AmbiguousRead { read, first, second } = *ambiguous.first()?;
    let (first, second) = match history.op(read) {
        Op::ReadList { key, elements } => {
            let (first, second) = same_append(history, key, elements?, first, second)?;
            (Some(first), second)
        }
        _ => (write_seen(history, read, first), write_seen(history, read, second)?),
    };
    Some(Inapplicable::AmbiguousRead { read, first, second, total: ambiguous.len() as u64 })
}
