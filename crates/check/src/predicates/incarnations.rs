//! Rows of one key that come one after the other: deleted, and inserted anew.

use isolario_model::{
    History, Inapplicable, KeyId, Level, Op, OpId, Outcome, Point, TxnId, ValueRef, Witness,
};

/// Why a level is not decided, where a result has two rows of one key. Were both of them taken for versions of
/// one row, one would seem to be read after it was overwritten, which the levels below serializability allow.
pub(super) fn both_in_a_result(history: &History, level: Level) -> Option<Inapplicable> {
    if matches!(level, Level::Serializable | Level::StrictSerializable) {
        return None;
    }
    let counts = |op: OpId| history.outcome(history.op_txn(op)) != Outcome::Aborted;
    let op = history.repeated_rows().map(|(op, _)| op).find(|op| counts(*op))?;
    Some(Inapplicable::RowTwice { op })
}

/// Whether somebody overwrites what another one wrote while it ran. To insert a row that another one
/// deleted is no overwrite: it is a new row of the same name.
pub(super) fn clash(history: &History, witness: &Witness) -> bool {
    let Witness::Points(points) = witness else { return false };
    let mut starts = vec![0; history.txn_count()];
    // Per key, when it was written last, and whether it is there since then.
    let mut last: Vec<Option<(usize, bool)>> = vec![None; history.key_count()];
    points.iter().enumerate().any(|(at, point)| match *point {
        Point::Start(txn) => {
            starts[txn.index()] = at;
            false
        }
        Point::Commit(txn) => {
            let mut clashes = false;
            for (key, is_there) in last_versions(history, txn) {
                let before = last[key.index()].replace((at, is_there));
                clashes |= before
                    .is_some_and(|(written, is_there)| is_there && written > starts[txn.index()]);
            }
            clashes
        }
    })
}

/// The rows that a transaction wrote, each once, and whether they are there when it has committed.
fn last_versions(history: &History, txn: TxnId) -> Vec<(KeyId, bool)> {
    let mut written: Vec<(KeyId, bool)> = Vec::new();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::Write { key, .. } => written.push((key, true)),
            Op::Delete { key } => written.push((key, false)),
            Op::PredicateWrite { rows: Some(rows), .. } => {
                let is_there = |value| history.value(value) != ValueRef::Nil;
                written.extend(rows.iter().map(|row| (row.key, is_there(row.value))));
            }
            _ => {}
        }
    }
    // The last write of a key comes first.
    written.reverse();
    written.sort_by_key(|(key, _)| *key);
    written.dedup_by_key(|(key, _)| *key);
    written
}
