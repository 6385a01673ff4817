//! Levels by an order that the database promises: every order of events that it leaves open is tried, with
//! every choice of what is not known.

use std::collections::BTreeMap;

use isolario_model::{History, Initial, Level, Op, OpId, Outcome, PromisedOrder, TxnId, Value};

use crate::points::{Search, has_starts};
use crate::{Answer, Options};

/// Whether a history satisfies a level in the order that is promised, or in one of those that the
/// promise leaves open. Transactions of unknown outcome committed if they have a place, and each conditional
/// write of unknown effect may have taken effect or not. Takes histories that begin with nothing, of rows and
/// registers.
///
/// Satisfied if no other transactions are needed, and violated if none help. In between, one of unknown outcome
/// that the promise left out makes the difference, and the answer is not known.
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
    let of = |outcome, has_place: bool| -> Vec<TxnId> {
        let is_it = |txn: &TxnId| {
            let is_placed = order.points(*txn).is_some();
            history.outcome(*txn) == outcome && (is_placed == has_place)
        };
        history.txns().filter(is_it).collect()
    };
    let mut certain = of(Outcome::Committed, true);
    certain.extend(of(Outcome::Committed, false));
    certain.extend(of(Outcome::Unknown, true));
    let left_out = of(Outcome::Unknown, false);
    let satisfies = |chosen: u32| {
        let is_chosen = |(at, _): &(usize, &TxnId)| chosen >> at & 1 == 1;
        let chosen = left_out.iter().enumerate().filter(is_chosen).map(|(_, txn)| *txn);
        let mut txns: Vec<TxnId> = certain.iter().copied().chain(chosen).collect();
        txns.sort_unstable();
        let open = open_effects(history, &txns);
        (0..1u32 << open.len()).any(|effects| {
            let effect = |(at, op): (usize, &OpId)| (*op, effects >> at & 1 == 1);
            let effects: BTreeMap<OpId, bool> = open.iter().enumerate().map(effect).collect();
            let (promised, by_incarnation, txns) = (Some(order), false, txns.clone());
            let search = Search {
                history,
                level,
                options,
                promised,
                has_starts,
                by_incarnation,
                txns,
                effects,
            };
            search.answer() == Answer::Satisfied
        })
    };
    match satisfies(0) {
        true => Answer::Satisfied,
        false if (1..1u32 << left_out.len()).any(satisfies) => Answer::Unsupported,
        false => Answer::Violated,
    }
}

/// The conditional writes of transactions whose effect is unknown.
fn open_effects(history: &History, txns: &[TxnId]) -> Vec<OpId> {
    let is_open = |op: &OpId| {
        matches!(
            history.op(*op),
            Op::InsertIfAbsent { applied: None, .. } | Op::CompareAndSet { applied: None, .. }
        )
    };
    txns.iter().flat_map(|txn| history.txn_ops(*txn)).filter(is_open).collect()
}
