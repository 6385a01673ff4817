//! What the manifest counts, counted in the history.

use isolario::formats::ParsedHistory;
use isolario::model::{History, Outcome, TxnId};

use crate::manifest::Row;

/// Every column of counts in which the history and the manifest differ.
pub fn differences(row: Row<'_>, loaded: &ParsedHistory) -> Vec<String> {
    let differs =
        |(column, found): &(&str, u64)| row.count(column).is_some_and(|stated| stated != *found);
    counted(loaded)
        .into_iter()
        .filter(differs)
        .map(|(column, found)| {
            format!("{column}: the manifest says {}, the history has {found}", row.text(column))
        })
        .collect()
}

/// Keys are those of all transactions; operations, those of committed ones.
fn counted(loaded: &ParsedHistory) -> [(&'static str, u64); 7] {
    let history = &loaded.history;
    let txns = |outcome| txns_of(history, outcome).count() as u64;
    let ops = txns_of(history, Outcome::Committed).map(|txn| history.txn_ops(txn).len() as u64);
    let failed = loaded.ignored.iter().filter(|ignored| ignored.what == "failed events");
    [
        ("sessions", history.session_count() as u64),
        ("txns", txns(Outcome::Committed)),
        ("ops", ops.sum()),
        ("aborted_txns", txns(Outcome::Aborted)),
        ("info_txns", txns(Outcome::Unknown)),
        ("failed_ops", failed.map(|ignored| ignored.count).sum()),
        ("keys", history.key_count() as u64),
    ]
}

fn txns_of(history: &History, outcome: Outcome) -> impl Iterator<Item = TxnId> {
    history.txns().filter(move |txn| history.outcome(*txn) == outcome)
}
