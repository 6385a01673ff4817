//! What the predicate operations of a transaction say about the version of a row that they observed.
//!
//! At the levels that are decided here, a transaction observes one version of a row until it writes the
//! row itself. A predicate read that does not return the row says that this version does not satisfy
//! the predicate. A predicate write that writes the row says that it does, and one that does not write
//! it says that it does not.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyId, Op, OpId, Predicate, RowRef,
    RowView, TxnId, ValueId, ValueRef,
};

use crate::rows::{WrittenRow, written_rows};

/// Whether a row satisfies the predicate of an operation, where that can be said.
pub(super) fn matches(
    history: &History,
    op: OpId,
    predicate: &Predicate,
    key: KeyId,
    value: ValueRef<'_>,
) -> Result<bool, Inapplicable> {
    let row = RowRef { key: history.key_name(key), value };
    row.matches_everywhere(predicate).map_err(|_| Inapplicable::Predicate { op })
}

/// A predicate that the version of a row which a transaction observed satisfies, or does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'h> {
    pub(super) op: OpId,
    pub(super) predicate: &'h Predicate,
    pub(super) matches: bool,
}

impl Condition<'_> {
    /// Whether a version of the row is as the operation says.
    pub(super) fn agrees(
        &self,
        history: &History,
        key: KeyId,
        value: ValueRef<'_>,
    ) -> Result<bool, Inapplicable> {
        Ok(matches(history, self.op, self.predicate, key, value)? == self.matches)
    }
}

/// All that a transaction says about the version of a row that it matched or excluded, as long as it has
/// not written the row.
pub(super) fn conditions(history: &History, txn: TxnId, key: KeyId) -> Vec<Condition<'_>> {
    let mut conditions = Vec::new();
    for op in history.txn_ops(txn) {
        let writes = written_rows(history, op).any(|row| row.key == key);
        match history.op(op) {
            Op::PredicateRead { predicate, rows: Some(rows) }
                if rows.iter().all(|row| row.key != key) =>
            {
                conditions.push(Condition { op, predicate, matches: false });
            }
            Op::PredicateWrite { predicate, rows: Some(_) } => {
                conditions.push(Condition { op, predicate, matches: writes });
            }
            // It may have written the row.
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
        if writes {
            break;
        }
    }
    conditions
}

/// The value of a row as its transaction knows it, and the operation that says so.
#[derive(Clone, Copy)]
struct KnownValue<'h> {
    value: ValueRef<'h>,
    by: OpId,
}

/// The results of a transaction that contradict what it wrote or saw itself, whatever the order.
pub(super) fn contradictions(history: &History, txn: TxnId) -> Result<Vec<Anomaly>, Inapplicable> {
    let mut found = Vec::new();
    if !history.txn_ops(txn).any(|op| history.op_predicate(op).is_some()) {
        return Ok(found);
    }
    let seen = seen(history, txn);
    let mut own: BTreeMap<KeyId, KnownValue<'_>> = BTreeMap::new();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let wrong = |row: &RowView| of_row(AnomalyKind::ResultMismatch, op, row.key, None);
                for row in rows {
                    let value = history.value(row.value);
                    if !matches(history, op, predicate, row.key, value)? {
                        found.push(wrong(row));
                    }
                }
                // Rows of one key that differ are found as reads of it.
                let is_repeated = |(at, row): &(usize, &RowView)| rows[..*at].contains(*row);
                let repeated = rows.iter().enumerate().filter(is_repeated);
                found.extend(repeated.map(|(_, row)| wrong(row)));
                // The value of a returned row is compared with other reads of it as a read by key is.
                let says = |key| (!rows.iter().any(|row| row.key == key)).then_some(false);
                compare(history, (op, predicate), &own, &seen, says, &mut found)?;
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                let says = |key| Some(rows.iter().any(|row| row.key == key));
                compare(history, (op, predicate), &own, &seen, says, &mut found)?;
            }
            // It is unknown what it wrote, so nothing can be said of what comes after it.
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
        let known = |row: WrittenRow| KnownValue { value: history.value(row.value), by: op };
        own.extend(written_rows(history, op).map(|row| (row.key, known(row))));
    }
    Ok(found)
}

/// Compares what an operation says about rows, whether or not they match, with what the transaction
/// knows of them: what it wrote, and of other rows what it saw.
fn compare(
    history: &History,
    (op, predicate): (OpId, &Predicate),
    own: &BTreeMap<KeyId, KnownValue<'_>>,
    seen: &BTreeMap<KeyId, KnownValue<'_>>,
    says: impl Fn(KeyId) -> Option<bool>,
    found: &mut Vec<Anomaly>,
) -> Result<(), Inapplicable> {
    let seen = seen.iter().filter(|(key, _)| !own.contains_key(key));
    for (key, known) in own.iter().chain(seen) {
        let Some(said) = says(*key) else { continue };
        if matches(history, op, predicate, *key, known.value)? == said {
            continue;
        }
        found.push(if own.contains_key(key) {
            of_row(AnomalyKind::NotMyOwnWrite, op, *key, Some(known.by))
        } else {
            of_reads(AnomalyKind::Phantom, *key, op.min(known.by), op.max(known.by))
        });
    }
    Ok(())
}

/// What an operation says about a row is wrong.
fn of_row(kind: AnomalyKind, read: OpId, key: KeyId, instead: Option<OpId>) -> Anomaly {
    Anomaly::new(kind, Evidence::Row { key, read, saw: None, instead })
}

/// What two operations of a transaction say about a row contradicts each other.
fn of_reads(kind: AnomalyKind, key: KeyId, first: OpId, second: OpId) -> Anomaly {
    Anomaly::new(kind, Evidence::Reads { key, first, second, edges: Vec::new() })
}

/// The anomaly that no version of a row agrees with what a transaction says about it. That may be due to
/// one operation. Otherwise a version explains each, and the transaction observed several: two operations
/// show that, or all of them, of which the first and the last are named.
pub(super) fn unexplained(
    conditions: &[Condition<'_>],
    key: KeyId,
    agrees: impl Fn(&[Condition<'_>]) -> Result<bool, Inapplicable>,
) -> Result<Anomaly, Inapplicable> {
    for condition in conditions {
        if !agrees(&[*condition])? {
            return Ok(of_row(AnomalyKind::UnexplainedResult, condition.op, key, None));
        }
    }
    let mut shown = [conditions[0], conditions[conditions.len() - 1]];
    'pairs: for (at, one) in conditions.iter().enumerate() {
        for other in &conditions[at + 1..] {
            if !agrees(&[*one, *other])? {
                shown = [*one, *other];
                break 'pairs;
            }
        }
    }
    let [first, second] = shown.map(|condition| condition.op);
    Ok(of_reads(AnomalyKind::PredicateManyPreceders, key, first, second))
}

/// What a transaction saw of rows before it wrote them.
fn seen(history: &History, txn: TxnId) -> BTreeMap<KeyId, KnownValue<'_>> {
    let mut written: BTreeSet<KeyId> = BTreeSet::new();
    let mut seen = BTreeMap::new();
    for op in history.txn_ops(txn) {
        let mut see = |key: KeyId, value: ValueId| {
            if !written.contains(&key) {
                seen.entry(key).or_insert(KnownValue { value: history.value(value), by: op });
            }
        };
        match history.op(op) {
            Op::Read { key, value: Some(value) } => see(key, value),
            Op::PredicateRead { rows: Some(rows), .. } => {
                rows.iter().for_each(|row| see(row.key, row.value));
            }
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
        written.extend(written_rows(history, op).map(|row| row.key));
    }
    seen
}
