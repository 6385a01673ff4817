//! What can still be told of predicates when versions of rows are gone.
//!
//! An operation by predicate says something about every row of its table: it met a version that
//! satisfies the predicate, or one that does not. If that version is gone, it meets an earlier one
//! that is kept. So it stays only if no version that is kept would have made a difference, or if it
//! cannot have met one that is gone.

use std::collections::BTreeMap;

use super::OmittedVersions;
use crate::op::{Op, RowView};
use crate::row::RowRef;
use crate::value::ValueRef;
use crate::{History, KeyId, OpId, Predicate, TxnId};

/// The versions of rows that are gone and those that are kept.
#[derive(Default)]
pub(super) struct PartRows<'h> {
    of_keys: BTreeMap<KeyId, PartVersions<'h>>,
    /// The keys that nothing speaks of any more. There are no rows but those of keys that occur.
    vanished: Vec<KeyId>,
    initial: Option<ValueRef<'h>>,
}

#[derive(Default)]
struct PartVersions<'h> {
    gone: Vec<ValueRef<'h>>,
    kept: Vec<ValueRef<'h>>,
    /// Who wrote the kept ones; in the order of the history.
    writers: Vec<TxnId>,
}

impl<'h> PartRows<'h> {
    /// The rows of which something is gone. None where there are no predicates.
    pub(super) fn new(history: &'h History, kept: &[bool]) -> Self {
        let mut rows = PartRows::default();
        if !history.has_predicates() {
            return rows;
        }
        for txn in history.txns() {
            for op in history.txn_ops(txn) {
                let is_kept = kept[op.index()];
                for_each_write(history, op, |key, value| {
                    let versions = rows.of_keys.entry(key).or_default();
                    match is_kept {
                        true => {
                            versions.kept.push(value);
                            versions.writers.push(txn);
                        }
                        false => versions.gone.push(value),
                    }
                });
            }
        }
        rows.of_keys.retain(|_, versions| !versions.gone.is_empty());
        rows.vanished = vanished(history, kept);
        let initial = history.initial_value().map_or(ValueRef::Nil, |value| value.as_ref());
        rows.initial = Some(initial);
        for versions in rows.of_keys.values_mut() {
            versions.kept.push(initial);
            versions.writers.dedup();
        }
        rows
    }

    /// Whether what an operation says about rows cannot be told without what is gone.
    pub(super) fn rests_on(&self, history: &History, op: OpId, gone: &OmittedVersions) -> bool {
        match history.op(op) {
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let is_gone = |row: &RowView| {
                    gone.versions.contains(&(row.key, history.encoded_row_version(row)))
                };
                // A row that it returned was met in the version that it tells.
                let is_told = |key| rows.iter().any(|row: &RowView| row.key == key);
                let mut others = self.of_keys.iter().filter(|(key, _)| !is_told(**key));
                rows.iter().any(is_gone)
                    || others.any(|(key, v)| v.may_differ(history, predicate, *key, false))
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                let is_told = |key| rows.iter().any(|row: &RowView| row.key == key);
                self.of_keys.iter().any(|(key, versions)| {
                    versions.may_differ(history, predicate, *key, is_told(*key))
                        || is_told(*key) && versions.have_met()
                })
            }
            Op::Aggregate { predicate, result: Some(_), .. } => {
                let counts = |key: KeyId, value: &ValueRef<'_>| {
                    matches(history, predicate, key, *value) != Some(false)
                };
                let at_first = |key: &KeyId| self.initial.is_some_and(|value| counts(*key, &value));
                self.vanished.iter().any(at_first)
                    || self.of_keys.iter().any(|(key, versions)| {
                        versions.gone.iter().chain(&versions.kept).any(|value| counts(*key, value))
                    })
            }
            Op::Write { key, .. } | Op::Delete { key } => {
                self.of_keys.get(&key).is_some_and(PartVersions::have_met)
            }
            _ => false,
        }
    }
}

impl PartVersions<'_> {
    /// Whether an operation may have met a version that is gone, and may meet one instead that it would
    /// have treated differently. `met` says whether what it met satisfies the predicate.
    fn may_differ(&self, history: &History, predicate: &Predicate, key: KeyId, met: bool) -> bool {
        let fits = |value: &ValueRef<'_>| matches(history, predicate, key, *value);
        self.gone.iter().any(|value| fits(value) != Some(!met))
            && self.kept.iter().any(|value| fits(value) != Some(met))
    }

    /// Whether two writers of the row may exclude each other now that did not: a row that was deleted
    /// between them is another one when it comes back.
    fn have_met(&self) -> bool {
        self.writers.len() > 1 && self.gone.contains(&ValueRef::Nil)
    }
}

/// The keys that occur in a history, and not in what is kept of it.
fn vanished(history: &History, kept: &[bool]) -> Vec<KeyId> {
    let mut occurs = vec![false; history.key_count()];
    let ops = history.txns().flat_map(|txn| history.txn_ops(txn));
    for op in ops.filter(|op| kept[op.index()]) {
        let rows = match history.op(op) {
            Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. } => rows,
            _ => None,
        };
        let rows = rows.unwrap_or_default().iter().map(|row| row.key);
        for key in history.op(op).key().into_iter().chain(rows) {
            occurs[key.index()] = true;
        }
    }
    (0..history.key_count()).map(KeyId::at).filter(|key| !occurs[key.index()]).collect()
}

/// Whether a version of a row satisfies a predicate, where that can be said.
fn matches(
    history: &History,
    predicate: &Predicate,
    key: KeyId,
    value: ValueRef<'_>,
) -> Option<bool> {
    RowRef { key: history.key_name(key), value }.matches_everywhere(predicate).ok()
}

/// The rows that an operation wrote, or may have written, with what they hold from then on.
fn for_each_write<'h>(history: &'h History, op: OpId, mut write: impl FnMut(KeyId, ValueRef<'h>)) {
    match history.op(op) {
        Op::Write { key, value } => write(key, history.value(value)),
        Op::Delete { key } => write(key, ValueRef::Nil),
        Op::InsertIfAbsent { key, value: new, applied, .. }
        | Op::CompareAndSet { key, new, applied, .. }
            if applied != Some(false) =>
        {
            write(key, history.value(new));
        }
        Op::PredicateWrite { rows: Some(rows), .. } => {
            rows.iter().for_each(|row| write(row.key, history.value(row.value)));
        }
        _ => {}
    }
}
