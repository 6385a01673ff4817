//! Lists are registers that hold the last element, and an order of their versions.

use isolario_check::{CheckOptions, check};
use isolario_model::{
    History, KeyId, Level, Op, Outcome, StatedOrder, TxnId, ValueId, Verdict, VerdictKind,
};
use isolario_oracle::random::Case;
use isolario_oracle::volume;

use crate::support::hinting;

/// Who appended an element.
fn appender(history: &History, key: KeyId, element: ValueId) -> Option<TxnId> {
    let append = Op::Append { key, element };
    history.txns().find(|txn| history.txn_ops(*txn).any(|op| history.op(op) == append))
}

/// The writers that the longest read of a list shows, its reader left out.
fn shown(history: &History, key: KeyId) -> Vec<TxnId> {
    let mut longest: Vec<TxnId> = Vec::new();
    for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
        for op in history.txn_ops(txn) {
            if let Op::ReadList { key: of, elements: Some(elements) } = history.op(op)
                && of == key
            {
                let writers = elements.iter().filter_map(|e| appender(history, key, *e));
                let others: Vec<TxnId> = writers.filter(|writer| *writer != txn).collect();
                longest = if others.len() > longest.len() { others } else { longest };
            }
        }
    }
    longest
}

/// What lists show of the order of their versions: that of their elements, and that all others come
/// later.
fn orders(history: &History) -> Vec<StatedOrder> {
    let mut orders = Vec::new();
    for key in (0..history.key_count()).map(KeyId::at) {
        let shown = shown(history, key);
        let Some(last) = shown.last().copied() else { continue };
        let hidden = history.txns().filter(|txn| !shown.contains(txn));
        let chains = hidden.map(|txn| vec![last, txn]).chain([shown.clone()]);
        orders.extend(chains.map(|writers| StatedOrder { key, writers, at: 1 }));
    }
    orders
}

/// Whether a transaction reads a list that it has appended to. What it shows beside that is not in its
/// last element.
fn reads_own(history: &History, txn: TxnId) -> bool {
    let ops: Vec<_> = history.txn_ops(txn).map(|op| history.op(op)).collect();
    let appended_before = |at: usize, key: KeyId| {
        ops[..at].iter().any(|op| matches!(op, Op::Append { key: of, .. } if *of == key))
    };
    ops.iter().enumerate().any(|(at, op)| match op {
        Op::ReadList { key, .. } => appended_before(at, *key),
        _ => false,
    })
}

/// Whether lists are wrong by themselves or contradict each other: their last elements do not show it.
fn has_wrong_list(history: &History) -> bool {
    let answers = check(history, &[Level::AdyaReadCommitted], &CheckOptions::default());
    match &answers[0].verdict {
        Verdict::Violated(found) => found.anomalies.iter().any(|a| a.evidence.edges().is_empty()),
        _ => false,
    }
}

#[test]
fn weak_levels_of_lists_are_those_of_their_last_elements_in_the_order_that_lists_show() {
    let kind = |history: &History, level: Level, options: &CheckOptions| {
        check(history, &[level], options)[0].verdict.kind()
    };
    let (mut satisfied, mut violated) = (0, 0);
    for case in Case::first(volume() / 4) {
        let lists = case.list_draft().history().unwrap();
        let is_unknown = |txn: TxnId| lists.outcome(txn) == Outcome::Unknown;
        let reads_own = |txn: TxnId| reads_own(&lists, txn);
        if lists.txns().any(|txn| is_unknown(txn) || reads_own(txn)) || has_wrong_list(&lists) {
            continue;
        }
        let registers = case.list_draft().last_elements().history().unwrap();
        let plain = CheckOptions::default();
        let with_orders = hinting(&plain, orders(&lists), true);
        for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
            let answers = (kind(&lists, level, &plain), kind(&registers, level, &with_orders));
            match answers {
                (VerdictKind::NotApplicable, _) | (_, VerdictKind::NotApplicable) => continue,
                (VerdictKind::Satisfied, _) => satisfied += 1,
                _ => violated += 1,
            }
            assert_eq!(answers.0, answers.1, "{level}\n{}", case.list_draft());
        }
    }
    assert!(satisfied > 100 && violated > 100, "{satisfied} {violated}");
}
