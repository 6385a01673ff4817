//! Histories of lists that say of transactions what histories of registers say: their twins.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{Initial, Outcome, Value};

use super::Rng;
use crate::{Draft, DraftOp};

/// What a register held when it held a value, as a list: the value is the last element.
type Held = BTreeMap<(String, Value), Vec<Value>>;

/// A history of registers as one of lists, where every write follows a read of its key: a write appends
/// to what was read. None where a write follows none, or where what was read has no beginning.
pub fn append_twin(draft: &Draft) -> Option<Draft> {
    let mut held = Held::new();
    let mut twin = with_lists(draft, &mut held);
    // Who read from whom is in no particular order: as many rounds as there are transactions do.
    draft.txns.iter().for_each(|_| twin = with_lists(draft, &mut held));
    twin.filter(|_| begins_with_nil(draft))
}

fn begins_with_nil(draft: &Draft) -> bool {
    draft.initial == Initial::Value(Value::Nil)
}

/// The twin, as far as it is known what registers held; adds to that.
fn with_lists(draft: &Draft, held: &mut Held) -> Option<Draft> {
    let mut twin = draft.clone();
    let mut complete = true;
    for txn in &mut twin.txns {
        // Per key, what the transaction would append to.
        let mut present: BTreeMap<String, Option<Vec<Value>>> = BTreeMap::new();
        let mut written = BTreeSet::new();
        for op in &mut txn.ops {
            *op = match op.clone() {
                DraftOp::Read(key, value) => {
                    let list = value.as_ref().and_then(|value| match value {
                        Value::Nil => Some(Vec::new()),
                        _ => held.get(&(key.clone(), value.clone())).cloned(),
                    });
                    complete &= value.is_none() || list.is_some();
                    if !written.contains(&key) {
                        present.insert(key.clone(), list.clone());
                    }
                    DraftOp::ReadList(key, list)
                }
                DraftOp::Write(key, value) => {
                    written.insert(key.clone());
                    let before = present.get(&key).cloned().flatten();
                    complete &= before.is_some();
                    if let Some(mut list) = before {
                        list.push(value.clone());
                        held.insert((key.clone(), value.clone()), list.clone());
                        present.insert(key.clone(), Some(list));
                    }
                    DraftOp::Append(key, value)
                }
                _ => return None,
            };
        }
    }
    complete.then_some(twin)
}

/// A history of registers as one of lists for some order of the versions of each key: a read shows all
/// that was written up to what it read. The lists say more than the registers did, so that whatever
/// explains them explains the registers.
///
/// None where a value was written twice, or by an aborted transaction, or where somebody reads a key that
/// its own transaction has written.
pub fn append_twin_in_some_order(draft: &Draft, seed: u64) -> Option<Draft> {
    let orders = some_order(draft, &mut Rng::new(seed))?;
    let mut twin = draft.clone();
    for txn in &mut twin.txns {
        let mut written = BTreeSet::new();
        for op in &mut txn.ops {
            *op = match op.clone() {
                DraftOp::Read(key, _) if written.contains(&key) => return None,
                DraftOp::Read(key, None) => DraftOp::ReadList(key, None),
                DraftOp::Read(key, Some(Value::Nil)) => DraftOp::ReadList(key, Some(Vec::new())),
                DraftOp::Read(key, Some(value)) => {
                    let all = orders.get(&key)?;
                    let last = all.iter().position(|element| *element == value)?;
                    DraftOp::ReadList(key, Some(all[..=last].to_vec()))
                }
                DraftOp::Write(key, value) => {
                    written.insert(key.clone());
                    DraftOp::Append(key, value)
                }
                _ => return None,
            };
        }
    }
    begins_with_nil(draft).then_some(twin)
}

/// Per key, what was written, transaction by transaction in some order.
fn some_order(draft: &Draft, rng: &mut Rng) -> Option<BTreeMap<String, Vec<Value>>> {
    let mut txns: Vec<_> =
        draft.txns.iter().filter(|txn| txn.outcome != Outcome::Aborted).collect();
    // Mostly as they are written down, so that many of the twins make sense.
    for at in 1..txns.len() {
        if rng.percent(20) {
            txns.swap(at, rng.below(at + 1));
        }
    }
    let mut orders: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for op in txns.iter().flat_map(|txn| &txn.ops) {
        if let DraftOp::Write(key, value) = op {
            let elements = orders.entry(key.clone()).or_default();
            if elements.contains(value) {
                return None;
            }
            elements.push(value.clone());
        }
    }
    Some(orders)
}
