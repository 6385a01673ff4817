//! Predicate dependencies as the Emme paper finds them (Algorithm 3): every version of every row is
//! compared with every predicate, and each one that changes what the predicate matches is an edge.

use isolario::check::CheckOptions;
use isolario::model::{History, ItemView, KeyId, Op, OpId, RowRef, TxnId, ValueId, ValueRef};
use isolario_bench::Failure;

/// How many edges there are.
pub fn edges(history: &History, options: &CheckOptions) -> Result<usize, Failure> {
    let chains = chains(history, options)?;
    let mut edges = 0;
    for txn in history.txns() {
        for op in history.txn_ops(txn) {
            let predicate = match history.op(op) {
                Op::PredicateRead { predicate, .. }
                | Op::PredicateWrite { predicate, .. }
                | Op::Aggregate { predicate, .. } => predicate,
                _ => continue,
            };
            for (key, versions) in (0..).map(KeyId).zip(&chains) {
                let mut did_match = false;
                for (writer, value) in versions {
                    let row = RowRef { key: history.key_name(key), value: history.value(*value) };
                    let does = row.matches_everywhere(predicate)?;
                    edges += usize::from(does != did_match && *writer != txn);
                    did_match = does;
                }
            }
        }
    }
    Ok(edges)
}

/// Per row, who wrote its versions, and what they hold.
fn chains(
    history: &History,
    options: &CheckOptions,
) -> Result<Vec<Vec<(TxnId, ValueId)>>, Failure> {
    let view = ItemView::new(history)?;
    let items = view.history();
    let mut chains: Vec<Vec<(TxnId, ValueId)>> = vec![Vec::new(); history.key_count()];
    for order in &options.version_order {
        let chain = &mut chains[order.key.index()];
        for writer in &order.writers {
            let is_last = chain.last().is_some_and(|(last, _)| last == writer);
            let value = items.txn_ops(*writer).rev().find_map(|op| written(items, op, order.key));
            match value {
                Some(value) if !is_last => chain.push((*writer, value)),
                _ => {}
            }
        }
    }
    Ok(chains)
}

/// What an operation wrote to a row.
fn written(items: &History, op: OpId, row: KeyId) -> Option<ValueId> {
    match items.op(op) {
        Op::Write { key, value } if key == row => Some(value),
        Op::Delete { key } if key == row => items.find_value(ValueRef::Nil),
        _ => None,
    }
}
