//! A commit that is missing after the server has been down.

use isolario_model::{Clock, History, KeyId, Op, OpId, ValueId, ValueRef};

use super::times::{began, duration};
use crate::names::Names;

/// The write, and what was found instead.
pub(super) fn summary(names: Names<'_>, key: KeyId, write: OpId, found: OpId) -> String {
    let history = names.history();
    let (writer, reader, x) = (names.txn_of(write), names.txn_of(found), names.key(key));
    if let Op::Append { element, .. } = history.op(write) {
        let element = names.value(element);
        return format!("{writer} appended {element} to {x}, and {reader} does not find it");
    }
    let wrote = format!("{writer} wrote {}", names.version(write));
    let Some(old) = seen(history, found) else { return format!("{wrote}, which is gone") };
    let is_first_read = |op: &OpId| history.op(*op).key() == Some(key);
    let before = history.txn_ops(history.op_txn(write)).find(is_first_read);
    let is_over = before.and_then(|op| seen(history, op)) == Some(old);
    let (found, ending) = match history.value(old) {
        ValueRef::Nil => ("nothing".to_owned(), ""),
        _ => (names.value(old), ", which is older"),
    };
    match is_over {
        true => format!("{wrote} over {found}, and {reader} finds {found} again"),
        false => format!("{wrote}, and {reader} finds {found}{ending}"),
    }
}

/// What an operation found in a register.
fn seen(history: &History, op: OpId) -> Option<ValueId> {
    match history.op(op) {
        Op::Read { value, .. } => value,
        Op::CompareAndSet { expected, applied: Some(true), .. } => Some(expected),
        Op::InsertIfAbsent { applied: Some(true), .. } => history.find_value(ValueRef::Nil),
        Op::CompareAndSet { seen, .. } | Op::InsertIfAbsent { seen, .. } => seen,
        _ => None,
    }
}

/// Why nothing excuses it: the acknowledgement came before the server ended, and the read after it was
/// back.
pub(super) fn consequence(names: Names<'_>, write: OpId, down: [i64; 2], found: OpId) -> String {
    let (writer, reader) = (names.txn_of(write), names.txn_of(found));
    let down = down_in_words(names.history(), down);
    format!(
        "the server {down}: {writer} had been acknowledged before, and {reader} began after that; no \
         isolation level excuses it"
    )
}

/// When the server was down: `was down from 1.2 s to 1.9 s`.
pub(crate) fn down_in_words(history: &History, [from, to]: [i64; 2]) -> String {
    match history.clock() {
        Clock::Nanoseconds => {
            let began = began(history);
            let at = |time: i64| duration(time.saturating_sub(began));
            format!("was down from {} to {}", at(from), at(to))
        }
        _ => format!("was down from event {from} to event {to}"),
    }
}

/// When the client was told that the transaction of a write had committed.
pub(crate) fn acknowledged(history: &History, write: OpId) -> Option<String> {
    let at = history.finish(history.op_txn(write))?;
    Some(match history.clock() {
        Clock::Nanoseconds => {
            format!("acknowledged at {}", duration(at.saturating_sub(began(history))))
        }
        _ => format!("acknowledged at event {at}"),
    })
}

/// Which durability was asked for, in a sentence without a full stop.
pub(crate) fn asked_for(durability: &str) -> String {
    match durability {
        "" => "The run could not ask the server which durability it was set to".to_owned(),
        durability => format!("Durability that the server was set to: {durability}"),
    }
}
