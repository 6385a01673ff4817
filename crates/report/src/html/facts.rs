//! What is known of a transaction beside its operations.

use isolario_model::{History, Stamp, TxnId};

use crate::printable::printable;

/// Names of facts, and the facts: the error that ended it, what the database itself says.
pub(super) fn facts(history: &History, txn: TxnId) -> Vec<(&'static str, String)> {
    let stamp = |stamp: Option<Stamp>| {
        stamp.map(|stamp| match stamp.logical {
            0 => stamp.physical.to_string(),
            logical => format!("{}.{logical}", stamp.physical),
        })
    };
    let text = |text: Option<&str>| text.map(|text| printable(text).into_owned());
    let all = [
        ("error", text(history.error(txn))),
        ("began, by the database", stamp(history.db_start(txn))),
        ("committed, by the database", stamp(history.db_commit(txn))),
        ("snapshot", text(history.snapshot(txn))),
    ];
    all.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}
