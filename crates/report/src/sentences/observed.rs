//! What a transaction saw and did, as the part of a sentence that follows its name.

use isolario_model::{Expr, History, KeyId, Op, OpId, Predicate, RowRef, TxnId, ValueRef};

use crate::names::{Names, listed, shorten};

/// What an operation saw of a key: `read x=1`.
pub(super) fn saw(names: Names<'_>, op: OpId, key: KeyId) -> String {
    let x = names.key(key);
    match names.history().op(op) {
        Op::Read { value: None, .. } | Op::ReadList { elements: None, .. } => {
            format!("asked for {x} and got no answer")
        }
        Op::CompareAndSet { expected, applied: Some(true), .. } => {
            format!("found {x}={} ({})", names.value(expected), names.op(op))
        }
        Op::InsertIfAbsent { applied: Some(true), .. } => {
            format!("found no {x} ({})", names.op(op))
        }
        Op::CompareAndSet { seen: Some(seen), .. }
        | Op::InsertIfAbsent { seen: Some(seen), .. } => {
            format!("found {x}={}", names.value(seen))
        }
        Op::CompareAndSet { expected, .. } => {
            format!("did not find {x}={}", names.value(expected))
        }
        Op::InsertIfAbsent { .. } => format!("found {x} to be there already"),
        Op::PredicateRead { predicate, rows } => {
            let row = rows.unwrap_or_default().iter().find(|row| row.key == key);
            let matching = names.matching(predicate);
            match row {
                Some(row) => format!("got {x}={} {matching}", names.value(row.value)),
                None => format!("did not get {x} {matching}"),
            }
        }
        Op::PredicateWrite { predicate, rows } => {
            let is_there = rows.unwrap_or_default().iter().any(|row| row.key == key);
            let did = if is_there { "updated" } else { "did not update" };
            format!("{did} {x} {}", names.matching(predicate))
        }
        Op::Aggregate { .. } => asked(names, op),
        _ => format!("read {}", names.version(op)),
    }
}

/// Whether an operation met a row or a register without telling which version of it.
pub(super) fn is_met(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::CompareAndSet { applied, seen, .. } | Op::InsertIfAbsent { applied, seen, .. } => {
            applied != Some(true) && seen.is_none()
        }
        Op::PredicateRead { .. } => history.row_of(op, key).is_none(),
        Op::PredicateWrite { .. } => true,
        _ => false,
    }
}

/// Which version an operation met: `x as T1 left it`.
pub(super) fn met(names: Names<'_>, key: KeyId, writer: TxnId) -> String {
    match writer.is_init() {
        true => format!("{} as it was at first", names.key(key)),
        false => format!("{} as {} left it", names.key(key), names.txn(writer)),
    }
}

/// What a predicate operation asked: `selected v > 0`.
pub(super) fn asked(names: Names<'_>, op: OpId) -> String {
    match names.history().op(op) {
        Op::PredicateRead { predicate, .. } => {
            format!("selected the rows {}", names.matching(predicate))
        }
        Op::Aggregate { function, predicate, .. } => {
            format!("took {function} of the rows {}", names.matching(predicate))
        }
        Op::PredicateWrite { predicate, .. } => {
            format!("updated the rows {}", names.matching(predicate))
        }
        _ => format!("read {}", names.version(op)),
    }
}

/// What an operation asked, in backticks: the condition of a predicate, the whole of a conditional write.
pub(super) fn condition(names: Names<'_>, op: OpId) -> String {
    let history = names.history();
    match history.op_predicate(op).map(|predicate| history.predicate(predicate)) {
        Some(predicate) => match predicate.condition() {
            Some(condition) => format!("`{condition}`"),
            None => format!("`{predicate}`"),
        },
        None => match history.op(op) {
            Op::CompareAndSet { .. } | Op::InsertIfAbsent { .. } => format!("`{}`", names.op(op)),
            _ => "read".to_owned(),
        },
    }
}

/// A change of a row, as a predicate sees it.
pub(super) struct Change {
    /// Whether the row satisfies the predicate afterwards, as far as that can be told.
    pub(super) matches: bool,
    pub(super) deed: &'static str,
    /// What the row holds then, in the columns that the predicate speaks of: ` with a=1`.
    pub(super) with: String,
}

/// What an operation did to a row, as the predicate of another one sees it.
pub(super) fn change(names: Names<'_>, read: OpId, key: KeyId, write: OpId) -> Change {
    let history = names.history();
    let (value, deed) = match history.op(write) {
        Op::Write { value, .. } => (history.value(value), "wrote"),
        Op::PredicateWrite { .. } => {
            let row = history.row_of(write, key);
            (row.map_or(ValueRef::Nil, |row| history.value(row.value)), "updated")
        }
        _ => (ValueRef::Nil, "deleted"),
    };
    let deed = if value == ValueRef::Nil { "deleted" } else { deed };
    let row = RowRef { key: history.key_name(key), value };
    let predicate = history.op_predicate(read).map(|predicate| history.predicate(predicate));
    let matches = predicate.and_then(|predicate| row.matches_everywhere(predicate).ok());
    let matches = matches.unwrap_or(value != ValueRef::Nil);
    Change { matches, deed, with: predicate.map_or(String::new(), |asked| with(asked, value)) }
}

/// What a row holds in the columns that a predicate speaks of.
fn with(predicate: &Predicate, value: ValueRef<'_>) -> String {
    let columns = predicate.condition().into_iter().flat_map(Expr::columns);
    let mut held: Vec<String> = Vec::new();
    for name in columns {
        let of_column = match value {
            ValueRef::Tuple(tuple) => tuple.get(name),
            ValueRef::Nil => None,
            value => (name == "value").then_some(value),
        };
        let text = of_column.map(|value| format!("{name}={}", shorten(&value.to_string())));
        held.extend(text.filter(|text| !held.contains(text)));
    }
    if held.is_empty() { String::new() } else { format!(" with {}", listed(&held)) }
}

/// What a write did: `wrote x=1`.
pub(super) fn wrote(names: Names<'_>, op: OpId) -> String {
    match names.history().op(op) {
        Op::Delete { key } => format!("deleted {}", names.key(key)),
        Op::Append { key, element } => {
            format!("appended {} to {}", names.value(element), names.key(key))
        }
        Op::PredicateWrite { .. } => asked(names, op),
        _ => format!("wrote {}", names.version(op)),
    }
}

/// What a write did to one row: `updated x to 1`.
fn wrote_row(names: Names<'_>, op: OpId, key: KeyId) -> String {
    match names.history().row_of(op, key) {
        Some(row) if names.history().value(row.value) == ValueRef::Nil => {
            format!("deleted {}", names.key(key))
        }
        Some(row) => format!("updated {} to {}", names.key(key), names.value(row.value)),
        None => wrote(names, op),
    }
}

/// What a write left of a key: `x=1`.
pub(super) fn left(names: Names<'_>, op: OpId, key: KeyId) -> String {
    match names.history().row_of(op, key) {
        Some(row) => format!("{}={}", names.key(key), names.value(row.value)),
        None => names.version(op),
    }
}

/// What a transaction did to a key, in the end: `wrote x=1`.
pub(super) fn deed(names: Names<'_>, txn: TxnId, key: KeyId) -> String {
    match last_write(names.history(), txn, key) {
        Some(op) => wrote_row(names, op, key),
        None => format!("wrote {}", names.key(key)),
    }
}

/// Who a version came from, as a clause about it: `which T1 wrote`.
pub(super) fn origin(names: Names<'_>, writer: TxnId, write: Option<OpId>) -> String {
    let Some(write) = write else { return "the initial value".to_owned() };
    let writer = names.txn(writer);
    match names.history().op(write) {
        Op::Delete { key } => format!("since {writer} had deleted {}", names.key(key)),
        Op::Append { element, .. } => {
            format!("to which {writer} had appended {}", names.value(element))
        }
        _ => format!("which {writer} wrote"),
    }
}

/// What became of a version, as a clause about it: `which T2 overwrote with x=2`.
pub(super) fn fate(names: Names<'_>, writer: TxnId, key: KeyId) -> String {
    let write = last_write(names.history(), writer, key);
    let writer = names.txn(writer);
    match write.map(|op| (op, names.history().op(op))) {
        None => format!("which {writer} overwrote"),
        Some((_, Op::Delete { .. })) => format!("which {writer} deleted"),
        Some((_, Op::Append { element, .. })) => {
            format!("to which {writer} then appended {}", names.value(element))
        }
        Some((op, _)) => format!("which {writer} overwrote with {}", left(names, op, key)),
    }
}

/// The last write of a transaction to a key: the version that others may see.
pub(crate) fn last_write(history: &History, txn: TxnId, key: KeyId) -> Option<OpId> {
    history.txn_ops(txn).rev().find(|op| writes(history, *op, key))
}

/// What a transaction itself wrote to a key between two of its reads of the key.
pub(crate) fn own_writes_between(
    history: &History,
    first: OpId,
    second: OpId,
) -> impl Iterator<Item = OpId> {
    let key = history.op(first).key();
    let ops = history.txn_ops(history.op_txn(first));
    ops.filter(move |op| first < *op && *op < second)
        .filter(move |op| key.is_some_and(|key| writes(history, *op, key)))
}

fn writes(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::Write { key: written, .. }
        | Op::Delete { key: written }
        | Op::Append { key: written, .. } => written == key,
        Op::InsertIfAbsent { key: written, applied, .. }
        | Op::CompareAndSet { key: written, applied, .. } => {
            written == key && applied != Some(false)
        }
        Op::PredicateWrite { rows, .. } => {
            rows.unwrap_or_default().iter().any(|row| row.key == key)
        }
        _ => false,
    }
}
