//! The rows that satisfy a predicate now.
//!
//! A predicate that bounds a column from both sides, or from one, is answered by an index on that
//! column: only the rows within the bounds are evaluated. The bounds are those outside of which no
//! row can match, so nothing is missed.

use std::collections::BTreeSet;

use isolario_model::{History, KeyId, PredicateId, RowRef, ValueRef};
use isolario_predicate::EvalError;

use crate::resolved::InitialContent;
use crate::rows::{RowSearch, SearchPlan, whole_number};

/// The rows of all tables, and indexes on their columns.
pub(super) struct IndexedRows<'h> {
    history: &'h History,
    search: RowSearch<'h>,
    /// Per key, its table.
    table_of: Vec<usize>,
    /// Per table, the indexes on its columns.
    indexes: Vec<Vec<Index<'h>>>,
    /// Whether there are any.
    pub(super) has_indexes: bool,
}

/// An index on a column of a table.
struct Index<'h> {
    column: usize,
    name: &'h str,
    /// The rows with a whole number in the column.
    numbers: BTreeSet<(i64, KeyId)>,
    /// The rows with anything else there.
    others: BTreeSet<KeyId>,
}

impl<'h> IndexedRows<'h> {
    pub(super) fn new(history: &'h History, initial: impl Fn(KeyId) -> InitialContent<'h>) -> Self {
        let search = RowSearch::new(history, (0..history.key_count()).map(KeyId::at));
        let mut indexes: Vec<Vec<Index<'h>>> = Vec::new();
        indexes.resize_with(search.tables().len(), Vec::new);
        for SearchPlan { table, bounds } in &search.plans {
            if let Some((bounds, indexes)) = bounds.zip(indexes.get_mut(*table))
                && indexes.iter().all(|index| index.column != bounds.column)
            {
                let (column, name) = (bounds.column, search.columns[bounds.column]);
                let (numbers, others) = (BTreeSet::new(), BTreeSet::new());
                indexes.push(Index { column, name, numbers, others });
            }
        }
        let mut table_of = vec![0; history.key_count()];
        for (table, rows) in search.tables().iter().enumerate() {
            for key in rows {
                table_of[key.index()] = table;
                for index in &mut indexes[table] {
                    if let InitialContent::Value(value) = initial(*key) {
                        let row = RowRef { key: history.key_name(*key), value };
                        index.add(*key, row);
                    }
                }
            }
        }
        let has_indexes = indexes.iter().any(|of_table| !of_table.is_empty());
        IndexedRows { history, search, table_of, indexes, has_indexes }
    }

    /// The key holds another value now.
    pub(super) fn update(&mut self, key: KeyId, from: ValueRef<'h>, to: ValueRef<'h>) {
        let name = self.history.key_name(key);
        for index in &mut self.indexes[self.table_of[key.index()]] {
            index.remove(key, RowRef { key: name, value: from });
            index.add(key, RowRef { key: name, value: to });
        }
    }

    /// The rows that a predicate is about, whether they satisfy it or not.
    pub(super) fn of(&self, id: PredicateId) -> impl Iterator<Item = KeyId> {
        let row = |key| RowRef { key: self.history.key_name(key), value: ValueRef::Bool(true) };
        let is_of = move |key: &KeyId| row(*key).is_of(self.history.predicate(id));
        self.search.rows(id).iter().copied().filter(is_of)
    }

    /// The rows that satisfy a predicate, in the order of their keys, given what they hold.
    pub(super) fn matching(
        &self,
        id: PredicateId,
        value: impl Fn(KeyId) -> ValueRef<'h>,
    ) -> Result<Vec<KeyId>, EvalError> {
        let predicate = self.history.predicate(id);
        let mut matching = Vec::new();
        let mut evaluate = |key: KeyId| -> Result<(), EvalError> {
            let row = RowRef { key: self.history.key_name(key), value: value(key) };
            if row.matches_everywhere(predicate)? {
                matching.push(key);
            }
            Ok(())
        };
        let SearchPlan { table, bounds } = self.search.plan(id);
        let by_index = bounds.and_then(|bounds| {
            let mut indexes = self.indexes.get(table)?.iter();
            Some((bounds, indexes.find(|index| index.column == bounds.column)?))
        });
        match by_index {
            None => self.search.rows(id).iter().copied().try_for_each(evaluate)?,
            Some((bounds, Index { numbers, others, .. })) => {
                if bounds.low <= bounds.high {
                    let within = (bounds.low, KeyId(0))..=(bounds.high, KeyId::NONE);
                    numbers.range(within).map(|(_, key)| *key).try_for_each(&mut evaluate)?;
                }
                others.iter().copied().try_for_each(evaluate)?;
                matching.sort_unstable();
            }
        }
        Ok(matching)
    }
}

impl Index<'_> {
    fn add(&mut self, key: KeyId, row: RowRef<'_>) {
        if row.value == ValueRef::Nil {
            return;
        }
        match whole_number(row, self.name) {
            Some(number) => self.numbers.insert((number, key)),
            None => self.others.insert(key),
        };
    }

    fn remove(&mut self, key: KeyId, row: RowRef<'_>) {
        match whole_number(row, self.name) {
            Some(number) => self.numbers.remove(&(number, key)),
            None => self.others.remove(&key),
        };
    }
}
