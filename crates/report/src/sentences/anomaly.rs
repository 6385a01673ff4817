//! What an anomaly is, in a sentence.

use isolario_model::{Anomaly, AnomalyKind, Evidence, KeyId, Op, OpId};

use super::consequence::consequence;
use super::counting;
use super::cycle;
use super::naming::meaning;
use super::observed::{left, own_writes_between, saw};
use super::{lost, promised, supposed};
use crate::names::{Names, counted};

/// What happened, in one sentence.
pub fn summary(names: Names<'_>, anomaly: &Anomaly) -> String {
    match &anomaly.evidence {
        Evidence::Read { read, saw, instead } => {
            let key = names.history().op(*read).key();
            bad_read(names, anomaly.kind, key, *read, [*saw, *instead])
        }
        Evidence::Row { key, read, saw, instead } => {
            bad_read(names, anomaly.kind, Some(*key), *read, [*saw, *instead])
        }
        Evidence::Reads { key, first, second, .. } => {
            two_reads(names, anomaly.kind, *key, *first, *second)
        }
        Evidence::Cycle { edges } => cycle::summary(names, anomaly.kind, edges),
        Evidence::Cases { cycles } if anomaly.kind == AnomalyKind::CyclicCo => {
            let first = cycles.iter().flatten().next();
            format!(
                "{} read what its own session wrote only later, whichever of {} it saw",
                first.map(|edge| names.txn(edge.from)).unwrap_or_default(),
                counted(cycles.len() as u64, "write")
            )
        }
        Evidence::Cases { cycles } if cycles.len() == 1 => {
            cycle::summary(names, anomaly.kind, &cycles[0])
        }
        Evidence::Cases { cycles } => {
            counting::summary(names, anomaly).unwrap_or_else(|| supposed::summary(cycles))
        }
        Evidence::Operations { key, ops } => format!(
            "no order explains what {} on {} returned, given when they ran",
            counted(ops.len() as u64, "operation"),
            names.key(*key)
        ),
        Evidence::Unexpected { op, expected, result } => {
            let where_from = match anomaly.kind {
                AnomalyKind::ResultMismatch => "among the versions that it met",
                _ => "in the promised order",
            };
            promised::unexpected(names, *op, expected, result.as_ref(), where_from)
        }
        Evidence::Concurrent { key, first, second } => format!(
            "{} and {} both wrote {} while both ran, by the timestamps of the database",
            names.txn_of(*first),
            names.txn_of(*second),
            names.key(*key)
        ),
        Evidence::Lost { key, write, found, .. } => lost::summary(names, *key, *write, *found),
        _ => meaning(anomaly.kind),
    }
}

/// What happened and why it is wrong, in two sentences as people write them.
pub(crate) fn happened(names: Names<'_>, anomaly: &Anomaly) -> String {
    let summary = summary(names, anomaly);
    // A summary mostly begins with the name of a transaction, which stays as the user wrote it.
    let is_word =
        |word: &str| ["the", "every", "a", "two", "no", "what", "whichever"].contains(&word);
    let first = match summary.split(' ').next() {
        Some(word) if is_word(word) => capitalised(&summary),
        _ => summary,
    };
    format!("{first}. {}.", capitalised(&consequence(names, anomaly)))
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Whether a result has several rows of a key.
fn is_twice(names: Names<'_>, read: OpId, key: Option<KeyId>) -> bool {
    let Op::PredicateRead { rows: Some(rows), .. } = names.history().op(read) else { return false };
    rows.iter().filter(|row| Some(row.key) == key).count() > 1
}

fn bad_read(
    names: Names<'_>,
    kind: AnomalyKind,
    key: Option<KeyId>,
    read: OpId,
    [saw_write, instead]: [Option<OpId>; 2],
) -> String {
    let seen = match key {
        Some(key) => saw(names, read, key),
        None => format!("got {}", names.op(read)),
    };
    let seen = format!("{} {seen}", names.txn_of(read));
    let writer = saw_write.map(|op| names.txn_of(op));
    let from = writer.as_ref().map_or(String::new(), |writer| format!(" from {writer}"));
    let writer = writer.unwrap_or_else(|| "its writer".to_owned());
    let other = match (instead, key) {
        (Some(op), Some(key)) => left(names, op, key),
        (Some(op), None) => names.version(op),
        (None, _) => "another value".to_owned(),
    };
    let row = key.map_or("the row".to_owned(), |key| names.key(key));
    match kind {
        AnomalyKind::ThinAirRead if is_list(names, read) => {
            format!("{seen}, with an element that nobody appended")
        }
        AnomalyKind::ThinAirRead => format!("{seen}, which nobody wrote"),
        AnomalyKind::AbortedRead => format!("{seen}{from}, which aborted"),
        AnomalyKind::FutureRead => format!("{seen}, which it wrote itself only later"),
        AnomalyKind::NotMyOwnWrite => {
            format!("{seen}{from} although it had itself written {other} before")
        }
        AnomalyKind::ResultMismatch if is_twice(names, read, key) => {
            format!("{seen}, and the same row once more")
        }
        AnomalyKind::ResultMismatch => format!("{seen}, a condition that it does not satisfy"),
        AnomalyKind::UnexplainedResult => {
            let is_told = key.is_some_and(|key| names.history().row_of(read, key).is_some());
            let versions = if is_told { "no" } else { "every" };
            format!("{seen}, and {versions} version of {row} satisfies that")
        }
        AnomalyKind::NotMyLastWrite => {
            format!("{seen}, its own write, although it had overwritten that with {other} before")
        }
        AnomalyKind::IntermediateRead => {
            format!("{seen}{from}, although {writer} overwrote it with {other} before it committed")
        }
        AnomalyKind::DuplicateElements => {
            format!("{seen}, with an element that stands there twice")
        }
        AnomalyKind::DirtyUpdate => format!("{seen}{from}, which aborted, and built on it"),
        _ => format!("{seen}{from}: {}", meaning(kind)),
    }
}

fn is_list(names: Names<'_>, read: OpId) -> bool {
    matches!(names.history().op(read), Op::ReadList { .. })
}

fn two_reads(names: Names<'_>, kind: AnomalyKind, key: KeyId, first: OpId, second: OpId) -> String {
    let (reader, other) = (names.txn_of(first), names.txn_of(second));
    let earlier = format!("{reader} {}", saw(names, first, key));
    let later = saw(names, second, key);
    let both = if reader == other {
        format!("{earlier} and then {later}")
    } else {
        format!("{earlier}, and {other} {later}")
    };
    match kind {
        AnomalyKind::NonRepeatableRead => {
            match own_writes_between(names.history(), first, second).last() {
                None => format!("{both}, without writing it in between"),
                Some(own) => format!(
                    "{both}, a difference that its own {} in between does not explain",
                    names.op(own)
                ),
            }
        }
        AnomalyKind::Phantom => format!("{both}, without writing it in between"),
        AnomalyKind::PredicateManyPreceders => {
            format!("{both}, and no version of {} explains both", names.key(key))
        }
        AnomalyKind::NonMonotonicRead => format!("{both}, which is older"),
        AnomalyKind::ThinAirRead => format!("{both}, and nobody wrote the one or the other"),
        AnomalyKind::IncompatibleOrder => format!("{both}: neither list continues the other"),
        _ => format!("{both}: {}", meaning(kind)),
    }
}
