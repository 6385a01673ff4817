//! What an operation returned, and what it had to return in the order that the database promises, or by
//! the versions that it met.

use isolario_model::{ExpectedVersion, Op, OpId, RowView, Value};

use super::observed::{asked, origin};
use crate::names::{Names, counted};

/// How many rows a sentence names.
const NAMED: usize = 3;

pub(super) fn unexpected(
    names: Names<'_>,
    op: OpId,
    expected: &[ExpectedVersion],
    result: Option<&Value>,
    where_from: &str,
) -> String {
    let txn = names.txn_of(op);
    match (names.history().op(op), result) {
        (Op::Aggregate { result: Some(got), .. }, Some(due)) => format!(
            "{txn} {} and got {}; {where_from} it is {}",
            asked(names, op),
            names.value(got),
            due.as_ref()
        ),
        (Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. }, _) => {
            let told: Vec<String> = expected
                .iter()
                .take(NAMED)
                .map(|version| of_row(names, rows.unwrap_or_default(), *version))
                .collect();
            let more = match expected.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {} more", counted(more as u64, "row")),
            };
            format!("{txn} {}: {where_from}, {}{more}", asked(names, op), told.join("; "))
        }
        _ => {
            let there = expected.first().map(|version| there(names, *version));
            let there = there.unwrap_or_else(|| "something else was there".to_owned());
            format!("{txn} {}, but {where_from} {there}", saw_one(names, op))
        }
    }
}

fn saw_one(names: Names<'_>, op: OpId) -> String {
    match names.history().op(op) {
        Op::InsertIfAbsent { .. } | Op::CompareAndSet { .. } => format!("did {}", names.op(op)),
        _ => format!("read {}", names.version(op)),
    }
}

/// What the key held: `T2's x=2 was there`.
fn there(names: Names<'_>, ExpectedVersion { key, write }: ExpectedVersion) -> String {
    match write {
        None => format!("{} held its initial value then", names.key(key)),
        Some(write) => {
            let writer = names.txn_of(write);
            match names.history().op(write) {
                Op::Delete { .. } => format!("{writer} had deleted {} by then", names.key(key)),
                Op::Append { element, .. } => format!(
                    "{writer} had just appended {} to {}",
                    names.value(element),
                    names.key(key)
                ),
                Op::PredicateWrite { .. } => {
                    format!("{} was as {writer} had updated it", names.key(key))
                }
                _ => format!("{} was there, {}", names.version(write), origin_of(names, write)),
            }
        }
    }
}

fn origin_of(names: Names<'_>, write: OpId) -> String {
    origin(names, names.history().op_txn(write), Some(write))
}

/// How a row of a result differs from what was there.
fn of_row(names: Names<'_>, rows: &[RowView], version: ExpectedVersion) -> String {
    let there = there(names, version);
    match rows.iter().find(|row| row.key == version.key) {
        None => format!("{} is missing from the result: {there}", names.key(version.key)),
        Some(row) => format!(
            "{} is in the result as {}, although {there}",
            names.key(version.key),
            names.value(row.value)
        ),
    }
}
