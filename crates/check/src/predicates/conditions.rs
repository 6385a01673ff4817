//! What the predicate operations of a transaction say about the version of a row that they met.
//!
//! At the levels that are decided here, a transaction meets one version of a row until it writes the
//! row itself. A predicate read that does not return the row says that this version does not satisfy
//! the predicate. A predicate write that writes the row says that it does, and one that does not write
//! it says that it does not.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyId, Op, OpId, Predicate, RowRef,
    RowView, TxnId, ValueRef,
};

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

/// That the version of a row which a transaction met satisfies the predicate of an operation, or not.
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

/// All that a transaction says about the version of a row that it met without being told which.
pub(super) fn conditions(history: &History, txn: TxnId, key: KeyId) -> Vec<Condition<'_>> {
    let mut conditions = Vec::new();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::Write { key: written, .. } | Op::Delete { key: written } if written == key => break,
            Op::PredicateRead { predicate, rows: Some(rows) }
                if rows.iter().all(|row| row.key != key) =>
            {
                conditions.push(Condition { op, predicate, matches: false });
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                let matches = rows.iter().any(|row| row.key == key);
                conditions.push(Condition { op, predicate, matches });
                if matches {
                    break;
                }
            }
            // It may have written the row.
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
    }
    conditions
}

/// What a transaction knows of a row.
#[derive(Clone, Copy)]
struct Known<'h> {
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
    let mut own: BTreeMap<KeyId, Known<'_>> = BTreeMap::new();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::Write { key, value } => {
                own.insert(key, Known { value: history.value(value), by: op });
            }
            Op::Delete { key } => {
                own.insert(key, Known { value: ValueRef::Nil, by: op });
            }
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                for row in rows {
                    let value = history.value(row.value);
                    if !matches(history, op, predicate, row.key, value)? {
                        found.push(of_row(AnomalyKind::ResultMismatch, op, row.key, None));
                    }
                }
                found.extend(
                    twice(rows).map(|key| of_row(AnomalyKind::ResultMismatch, op, key, None)),
                );
                // What a row was told to hold is compared with other reads of it as a read by key is.
                let says = |key| (!rows.iter().any(|row| row.key == key)).then_some(false);
                compare(history, (op, predicate), &own, &seen, says, &mut found)?;
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                let says = |key| Some(rows.iter().any(|row| row.key == key));
                compare(history, (op, predicate), &own, &seen, says, &mut found)?;
                for row in rows {
                    own.insert(row.key, Known { value: history.value(row.value), by: op });
                }
            }
            // Nobody knows what it wrote, so nothing can be said of what comes after it.
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
    }
    Ok(found)
}

/// The rows that a result has twice. Rows of one key that differ are found as reads of it.
fn twice(rows: &[RowView]) -> impl Iterator<Item = KeyId> {
    let is_repeated = |at: &usize| rows[..*at].contains(&rows[*at]);
    (0..rows.len()).filter(is_repeated).map(|at| rows[at].key)
}

/// Compares what an operation says about rows, whether or not they match, with what the transaction
/// knows of them.
fn compare(
    history: &History,
    (op, predicate): (OpId, &Predicate),
    own: &BTreeMap<KeyId, Known<'_>>,
    seen: &BTreeMap<KeyId, Known<'_>>,
    says: impl Fn(KeyId) -> Option<bool>,
    found: &mut Vec<Anomaly>,
) -> Result<(), Inapplicable> {
    for (key, known) in own {
        let Some(said) = says(*key) else { continue };
        if matches(history, op, predicate, *key, known.value)? != said {
            found.push(of_row(AnomalyKind::NotMyOwnWrite, op, *key, Some(known.by)));
        }
    }
    for (key, known) in seen.iter().filter(|(key, _)| !own.contains_key(key)) {
        let Some(said) = says(*key) else { continue };
        if matches(history, op, predicate, *key, known.value)? != said {
            let (first, second) = (op.min(known.by), op.max(known.by));
            let evidence = Evidence::Reads { key: *key, first, second, edges: Vec::new() };
            found.push(Anomaly::new(AnomalyKind::Phantom, evidence));
        }
    }
    Ok(())
}

/// That what an operation says about a row is wrong.
fn of_row(kind: AnomalyKind, read: OpId, key: KeyId, instead: Option<OpId>) -> Anomaly {
    Anomaly::new(kind, Evidence::Row { key, read, saw: None, instead })
}

/// That no version of a row agrees with what a transaction says about it. That may be due to one
/// operation. Else each is explained by a version, and the transaction met several: two operations
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
    let pairs = conditions.iter().enumerate().flat_map(|(at, one)| {
        let later = conditions[at + 1..].iter();
        later.map(move |other| [*one, *other])
    });
    let mut shown = [conditions[0], conditions[conditions.len() - 1]];
    for pair in pairs {
        if !agrees(&pair)? {
            shown = pair;
            break;
        }
    }
    let [first, second] = shown.map(|condition| condition.op);
    let evidence = Evidence::Reads { key, first, second, edges: Vec::new() };
    Ok(Anomaly::new(AnomalyKind::PredicateManyPreceders, evidence))
}

/// What a transaction saw of rows before it wrote them.
fn seen(history: &History, txn: TxnId) -> BTreeMap<KeyId, Known<'_>> {
    let mut written: BTreeSet<KeyId> = BTreeSet::new();
    let mut seen = BTreeMap::new();
    for op in history.txn_ops(txn) {
        match history.op(op) {
            Op::Read { key, value: Some(value) } if !written.contains(&key) => {
                seen.entry(key).or_insert(Known { value: history.value(value), by: op });
            }
            Op::PredicateRead { rows: Some(rows), .. } => {
                for row in rows.iter().filter(|row| !written.contains(&row.key)) {
                    let known = Known { value: history.value(row.value), by: op };
                    seen.entry(row.key).or_insert(known);
                }
            }
            Op::Write { key, .. } | Op::Delete { key } => {
                written.insert(key);
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                written.extend(rows.iter().map(|row| row.key));
            }
            Op::PredicateWrite { rows: None, .. } => break,
            _ => {}
        }
    }
    seen
}
