//! Serializability: the order is run, one transaction after the other.

use isolario_model::{Level, TxnId};

use crate::Refusal;
use crate::order::Order;
use crate::store::Store;

/// Every read must return what the store holds at its turn.
pub(crate) fn verify(order: &Order<'_, '_>, level: Level) -> Result<(), Refusal> {
    let mut store = Store::new(order.facts);
    order.txns.iter().try_for_each(|txn| store.run(*txn))?;
    order.agrees_with_statements()?;
    if level == Level::StrictSerializable { respects_real_time(order) } else { Ok(()) }
}

/// Whoever finished before another started comes first. It is enough to compare each with the one
/// before it that started last.
fn respects_real_time(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let mut latest: Option<(i128, TxnId)> = None;
    for txn in order.txns {
        latest = latest.max(order.facts.earliest_start(*txn).map(|start| (start, *txn)));
        order.facts.nothing_started_after(*txn, latest)?;
    }
    Ok(())
}
