//! Serializability: the order is run, one transaction after the other, on a store of registers.

use isolario_model::{Level, OpKind, TxnId};

use crate::Refusal;
use crate::order::Order;

/// Every read must return what the store holds. Since only values matter here, it is no trouble if
/// several writes wrote the same one.
pub(crate) fn verify(order: &Order<'_, '_>, level: Level) -> Result<(), Refusal> {
    let (facts, history) = (order.facts, order.facts.history);
    let mut store: Vec<Option<u64>> = vec![None; history.key_count()];
    for op in order.txns.iter().flat_map(|txn| history.txn_ops(*txn)) {
        if is_list(history.op_kinds()[op.index()]) {
            return Err(Refusal::UnsupportedOperation(op));
        }
        let key = facts.key(op).index();
        if facts.is_write(op) {
            store[key] = Some(history.version_word(op));
        } else if facts.is_read(op) {
            let explained = match store[key] {
                Some(word) => word == history.version_word(op),
                None => facts.may_be_initial(op),
            };
            if !explained {
                let why = "something else was there at its turn";
                return Err(Refusal::Unexplained { read: op, why });
            }
        }
    }
    if level == Level::StrictSerializable { respects_real_time(order) } else { Ok(()) }
}

/// The store holds no lists.
fn is_list(kind: OpKind) -> bool {
    matches!(kind, OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved)
}

/// Whoever finished before another started comes first. It is enough to compare each with the one
/// before it that started last.
fn respects_real_time(order: &Order<'_, '_>) -> Result<(), Refusal> {
    let mut latest: Option<(i128, TxnId)> = None;
    for txn in order.txns {
        if let (Some(finish), Some((start, second))) = (order.facts.latest_finish(*txn), latest)
            && finish < start
        {
            return Err(Refusal::OutOfOrder { first: *txn, second, why: "real time" });
        }
        latest = latest.max(order.facts.earliest_start(*txn).map(|start| (start, *txn)));
    }
    Ok(())
}
