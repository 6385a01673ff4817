//! Levels by an order that the database promises: every order of events that it leaves open is tried.

use isolario_model::{History, Initial, Level, Outcome, PromisedOrder, TxnId, Value};

use crate::points::{Search, has_starts};
use crate::{Answer, Options};

/// Whether a history satisfies a level in the order that is promised, or in one of those that the
/// promise leaves open. Transactions of unknown outcome committed if they have a place. Takes
/// histories that begin with nothing, of rows and registers.
pub fn satisfies_promised(
    history: &History,
    level: Level,
    options: Options,
    order: &PromisedOrder,
) -> Answer {
    let Some(has_starts) = has_starts(level) else { return Answer::Unsupported };
    if *history.initial() != Initial::Value(Value::Nil) {
        return Answer::Unsupported;
    }
    let takes_part = |txn: &TxnId| match history.outcome(*txn) {
        Outcome::Committed => true,
        Outcome::Aborted => false,
        Outcome::Unknown => order.place(*txn).is_some(),
    };
    let txns: Vec<TxnId> = history.txns().filter(takes_part).collect();
    let promised = Some(order);
    let search =
        Search { history, level, options, promised, has_starts, by_incarnation: false, txns };
    search.answer()
}
