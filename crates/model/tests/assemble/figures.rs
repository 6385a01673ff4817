//! Figures and remarks counted the slow way.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{History, Outcome, Share, Stats, Value, VersionRef};

use crate::arrivals::{TestNotes, TestOp, TestRow, TestTxn};

/// Checks what `Stats` and `validate` count against the transactions themselves.
pub fn check_figures(arrivals: &[TestTxn], history: &History) {
    let stats = Stats::of(history);
    let by_version = count_writes(arrivals);
    let once = by_version.values().filter(|count| **count == 1).count();
    let whole = by_version.values().sum();
    assert_eq!(stats.uniqueness.unique_writes, Share { part: once, whole });
    // That a key is deleted time and again is no oddity.
    let is_repeated = |((_, version), count): &(&(Value, Version), &usize)| {
        **count > 1 && *version != Version::Value(Value::Nil)
    };
    let repeated = by_version.iter().filter(is_repeated).count();
    assert_eq!(stats.uniqueness.duplicated, repeated);
    assert_eq!(found(history, "duplicate-value"), repeated);

    let (transactions, writes) = count_read_modify_writes(arrivals);
    assert_eq!(stats.read_modify_write.transactions, transactions);
    assert_eq!(stats.read_modify_write.writes, writes);

    let concurrency = stats.concurrency.map(|c| (c.max, c.measured.part));
    assert_eq!(concurrency, count_overlaps(arrivals));
    assert_eq!(found(history, "two-sessions"), count_two_sessions(arrivals));
}

fn found(history: &History, name: &str) -> usize {
    history.validate().iter().find(|remark| remark.name() == name).map_or(0, |f| f.count)
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Named(VersionRef),
    Value(Value),
}

enum Effect {
    Saw(Value),
    Wrote(Value, Version),
}

fn effects(op: &TestOp, notes: &TestNotes) -> Vec<Effect> {
    let version = |value: &Value| match notes.version {
        Some(version) => Version::Named(version),
        None => Version::Value(value.clone()),
    };
    let saw = |key: &Value| Effect::Saw(key.clone());
    let wrote = |key: &Value, value: &Value| Effect::Wrote(key.clone(), version(value));
    match op {
        TestOp::Read(key, Some(_)) | TestOp::ReadList(key, Some(_)) => vec![saw(key)],
        TestOp::Write(key, value) | TestOp::Append(key, value) => vec![wrote(key, value)],
        TestOp::Delete(key) => vec![wrote(key, &Value::Nil)],
        TestOp::Insert(key, new, applied, seen) | TestOp::Cas(key, _, new, applied, seen) => {
            match (applied, seen) {
                (Some(true), _) | (None, Some(_)) => vec![saw(key), wrote(key, new)],
                (None, None) => vec![wrote(key, new)],
                (Some(false), Some(_)) => vec![saw(key)],
                (Some(false), None) => vec![],
            }
        }
        TestOp::PredicateRead(_, rows) => rows.iter().flatten().map(|row| saw(&row.key)).collect(),
        TestOp::PredicateWrite(_, rows) => {
            let wrote = |row: &TestRow| {
                let by_value = || Version::Value(row.value.clone());
                Effect::Wrote(row.key.clone(), row.version.map_or_else(by_value, Version::Named))
            };
            rows.iter().flatten().map(wrote).collect()
        }
        TestOp::Read(_, None) | TestOp::ReadList(_, None) | TestOp::Aggregate(..) => vec![],
    }
}

fn count_writes(arrivals: &[TestTxn]) -> BTreeMap<(Value, Version), usize> {
    let mut counts = BTreeMap::new();
    for (op, notes) in arrivals.iter().flat_map(|txn| &txn.ops) {
        for effect in effects(op, notes) {
            if let Effect::Wrote(key, version) = effect {
                *counts.entry((key, version)).or_default() += 1;
            }
        }
    }
    counts
}

fn count_read_modify_writes(arrivals: &[TestTxn]) -> (Share, Share) {
    let (mut transactions, mut writes) = (Share::default(), Share::default());
    for txn in arrivals.iter().filter(|txn| txn.outcome == Outcome::Committed) {
        let mut seen = BTreeSet::new();
        let mut after_read = Vec::new();
        for effect in txn.ops.iter().flat_map(|(op, notes)| effects(op, notes)) {
            match effect {
                Effect::Saw(key) => drop(seen.insert(key)),
                Effect::Wrote(key, _) => after_read.push(seen.contains(&key)),
            }
        }
        writes.whole += after_read.len();
        writes.part += after_read.iter().filter(|good| **good).count();
        if !after_read.is_empty() {
            transactions.whole += 1;
            transactions.part += usize::from(after_read.iter().all(|good| *good));
        }
    }
    (transactions, writes)
}

/// The most intervals around any start, and how many intervals there are.
fn count_overlaps(arrivals: &[TestTxn]) -> Option<(usize, usize)> {
    let interval = |txn: &TestTxn| match txn.times {
        [Some(start), Some(finish)] if start <= finish => Some((start, finish)),
        _ => None,
    };
    let intervals: Vec<_> = arrivals.iter().filter_map(interval).collect();
    let around = |time: i64| intervals.iter().filter(|(s, f)| *s <= time && time <= *f).count();
    let most = intervals.iter().map(|(start, _)| around(*start)).max()?;
    Some((most, intervals.len()))
}

fn count_two_sessions(arrivals: &[TestTxn]) -> usize {
    let mut sessions: BTreeMap<&Value, BTreeSet<&Value>> = BTreeMap::new();
    for txn in arrivals {
        if let Some(name) = &txn.id {
            sessions.entry(name).or_default().insert(&txn.session);
        }
    }
    sessions.values().filter(|sessions| sessions.len() > 1).count()
}
