//! What an anomaly is, in a sentence.

use isolario_model::{Anomaly, AnomalyKind, Evidence, KeyId, Level, Op, OpId};

use super::consequence::consequence;
use super::cycle;
use super::observed::saw;
use crate::names::{Names, counted, listed};

/// What happened, in one sentence.
pub fn summary(names: Names<'_>, anomaly: &Anomaly) -> String {
    match &anomaly.evidence {
        Evidence::Read { read, saw, instead } => {
            bad_read(names, anomaly.kind, *read, *saw, *instead)
        }
        Evidence::Reads { key, first, second, .. } => {
            two_reads(names, anomaly.kind, *key, *first, *second)
        }
        Evidence::Cycle { edges } => cycle::summary(names, anomaly.kind, edges),
        Evidence::Cases { cycles } => format!(
            "every way to order the writes leads to a circle ({} in all)",
            counted(cycles.len() as u64, "case")
        ),
        Evidence::Operations { key, ops } => format!(
            "no order explains what {} on {} returned, given when they ran",
            counted(ops.len() as u64, "operation"),
            names.key(*key)
        ),
        _ => meaning(anomaly.kind),
    }
}

/// What happened and why it is wrong, in two sentences as people write them.
pub(crate) fn happened(names: Names<'_>, anomaly: &Anomaly) -> String {
    let summary = summary(names, anomaly);
    // A summary mostly begins with the name of a transaction, which stays as the user wrote it.
    let is_word = |word: &str| ["the", "every", "a", "two", "no", "what"].contains(&word);
    let first = match summary.split(' ').next() {
        Some(word) if is_word(word) => capitalised(&summary),
        _ => summary,
    };
    format!("{first}. {}.", capitalised(&consequence(names, anomaly)))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The names others have for it, most telling first. Spellings of one name count as one.
pub fn other_names(kind: AnomalyKind) -> Vec<String> {
    let names = kind.names();
    let spelt_alike = |a: &str, b: &str| letters(a).eq(letters(b));
    let mut others: Vec<String> = kind.pattern().into_iter().collect();
    for name in [names.adya, names.elle, names.isorel].into_iter().flatten() {
        let known = others.iter().map(String::as_str).chain([names.name]);
        if !known.into_iter().any(|known| spelt_alike(known, name)) {
            others.push(name.to_owned());
        }
    }
    others
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase())
}

/// The levels it rules out, in words.
pub fn rules_out(kind: AnomalyKind) -> String {
    // It depends on the level which orders are possible.
    if kind == AnomalyKind::OrderContradiction {
        return "rules out the level that was asked for, given what is stated".to_owned();
    }
    if kind == AnomalyKind::NoOrderPossible {
        return "rules out the level that was asked for".to_owned();
    }
    let weakest = kind.names().forbidden_by;
    let mut levels: Vec<String> = weakest.iter().map(|level| level.name().to_owned()).collect();
    if Level::all().any(|level| kind.forbidden_at(level) && !weakest.contains(&level)) {
        levels.push("all stronger levels".to_owned());
    }
    format!("rules out {}", listed(&levels))
}

/// The table's general sentence, for evidence that has no better one.
fn meaning(kind: AnomalyKind) -> String {
    let meaning = kind.names().meaning.trim_end_matches('.');
    let mut letters = meaning.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn bad_read(
    names: Names<'_>,
    kind: AnomalyKind,
    read: OpId,
    saw_write: Option<OpId>,
    instead: Option<OpId>,
) -> String {
    let seen = match names.history().op(read).key() {
        Some(key) => saw(names, read, key),
        None => format!("got {}", names.op(read)),
    };
    let seen = format!("{} {seen}", names.txn_of(read));
    let writer = saw_write.map(|op| names.txn_of(op));
    let from = writer.as_ref().map_or(String::new(), |writer| format!(" from {writer}"));
    let writer = writer.unwrap_or_else(|| "its writer".to_owned());
    let other = instead.map_or("another value".to_owned(), |op| names.version(op));
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
        AnomalyKind::NonRepeatableRead => format!("{both}, without writing it in between"),
        AnomalyKind::NonMonotonicRead => format!("{both}, which is older"),
        AnomalyKind::IncompatibleOrder => format!("{both}: neither list continues the other"),
        _ => format!("{both}: {}", meaning(kind)),
    }
}
