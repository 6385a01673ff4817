//! Which rows may satisfy a predicate, by the numbers in a column that it bounds.
//!
//! Outside of the bounds, no row satisfies the predicate. What is in the column and is no whole number
//! is not ordered here: such rows may always satisfy it, as far as this index says.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{History, KeyId, Predicate, RowRef, ValueRef};
use isolario_predicate::{Columns, Operand};

/// The rows that are there, by each column that some predicate of the history bounds.
#[derive(Default)]
pub(super) struct Index<'h> {
    columns: BTreeMap<&'h str, Column>,
}

#[derive(Default)]
struct Column {
    numbers: BTreeSet<(i64, KeyId)>,
    others: BTreeSet<KeyId>,
}

impl<'h> Index<'h> {
    /// The index of a history without any rows.
    pub(super) fn new(history: &'h History) -> Self {
        let conditions = history.predicates().filter_map(Predicate::condition);
        let columns = conditions.filter_map(|condition| condition.bounded_column());
        Index { columns: columns.map(|(name, ..)| (name, Column::default())).collect() }
    }

    /// Whether there is nothing to look up.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Takes note of what a row holds that held something else.
    pub(super) fn moved(&mut self, key: KeyId, before: RowRef<'_>, after: RowRef<'_>) {
        for (name, column) in &mut self.columns {
            if let Some(number) = number(before, name) {
                column.numbers.remove(&(number, key));
            }
            column.others.remove(&key);
            match number(after, name) {
                Some(number) => {
                    column.numbers.insert((number, key));
                }
                None if after.value != ValueRef::Nil => {
                    column.others.insert(key);
                }
                None => {}
            }
        }
    }

    /// The rows that may satisfy a predicate, in the order of their keys; none where any may.
    pub(super) fn may_match(&self, predicate: &Predicate) -> Option<Vec<KeyId>> {
        let (name, low, high) = predicate.condition()?.bounded_column()?;
        let column = self.columns.get(name)?;
        if low > high {
            return Some(column.others.iter().copied().collect());
        }
        let within = column.numbers.range((low, KeyId(0))..=(high, KeyId(u32::MAX)));
        let mut keys: Vec<KeyId> =
            within.map(|(_, key)| *key).chain(column.others.iter().copied()).collect();
        keys.sort_unstable();
        Some(keys)
    }
}

/// The whole number in a column of a row that is there.
fn number(row: RowRef<'_>, column: &str) -> Option<i64> {
    match row.column(column) {
        Some(Operand::Int(number)) if row.value != ValueRef::Nil => Some(number),
        _ => None,
    }
}
