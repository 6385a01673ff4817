//! Which rows satisfy a predicate.
//!
//! A predicate that bounds a column from both sides, or from one, is answered by an index on that
//! column: only the rows within the bounds are evaluated. The bounds are those outside of which no
//! row can match, so nothing is missed.

use std::collections::BTreeSet;

use isolario_model::{History, KeyId, Predicate, PredicateId, RowRef, ValueRef};
use isolario_predicate::{Columns, EvalError, Expr, Operand};
use rustc_hash::FxHashMap;

use crate::resolved::InitialContent;

/// The rows of all tables, and indexes on their columns.
pub(super) struct Rows<'h> {
    history: &'h History,
    /// Per table, its rows in the order of their keys.
    tables: Vec<Vec<KeyId>>,
    table_ids: FxHashMap<&'h str, usize>,
    /// Per key, its table.
    table_of: Vec<usize>,
    indexes: Vec<Index>,
    /// Per table, the indexes on its columns.
    indexes_of: Vec<Vec<usize>>,
    /// Per predicate, how it is answered.
    plans: Vec<Plan>,
}

/// An index on a column of a table.
struct Index {
    table: usize,
    column: Box<str>,
    /// The rows with a whole number in the column.
    numbers: BTreeSet<(i64, KeyId)>,
    /// The rows with anything else there.
    others: BTreeSet<KeyId>,
}

/// Where the rows are looked for that satisfy a predicate.
enum Plan {
    /// Among all keys: the predicate does not say in which table, or keys do not.
    Everywhere,
    /// Nowhere: there is no such table.
    Nowhere,
    Table(usize),
    Range {
        index: usize,
        low: i64,
        high: i64,
    },
}

impl<'h> Rows<'h> {
    pub(super) fn new(history: &'h History, initial: impl Fn(KeyId) -> InitialContent<'h>) -> Self {
        let mut rows = Rows {
            history,
            tables: Vec::new(),
            table_ids: FxHashMap::default(),
            table_of: Vec::with_capacity(history.key_count()),
            indexes: Vec::new(),
            indexes_of: Vec::new(),
            plans: Vec::new(),
        };
        if history.predicates().len() == 0 {
            return rows;
        }
        for key in (0..history.key_count()).map(KeyId::at) {
            let table = rows.table_id(table_name(history, key));
            rows.table_of.push(table);
            rows.tables[table].push(key);
        }
        rows.indexes_of.resize_with(rows.tables.len(), Vec::new);
        rows.plans = history.predicates().map(|predicate| rows.plan(predicate)).collect();
        for index in 0..rows.indexes.len() {
            for key in rows.tables[rows.indexes[index].table].clone() {
                if let InitialContent::Value(value) = initial(key) {
                    rows.indexes[index].add(key, RowRef { key: history.key_name(key), value });
                }
            }
        }
        rows
    }

    fn table_id(&mut self, name: &'h str) -> usize {
        let tables = &mut self.tables;
        *self.table_ids.entry(name).or_insert_with(|| {
            tables.push(Vec::new());
            tables.len() - 1
        })
    }

    fn plan(&mut self, predicate: &Predicate) -> Plan {
        let Some(name) = predicate.table() else { return Plan::Everywhere };
        if self.table_ids.contains_key("") {
            return Plan::Everywhere;
        }
        let Some(table) = self.table_ids.get(name).copied() else { return Plan::Nowhere };
        let range = predicate.condition().and_then(Expr::bounded_column);
        match range {
            Some((column, low, high)) => {
                Plan::Range { index: self.index_on(table, column), low, high }
            }
            None => Plan::Table(table),
        }
    }

    fn index_on(&mut self, table: usize, column: &str) -> usize {
        let of_table = &mut self.indexes_of[table];
        if let Some(index) = of_table.iter().find(|at| *self.indexes[**at].column == *column) {
            return *index;
        }
        of_table.push(self.indexes.len());
        self.indexes.push(Index {
            table,
            column: column.into(),
            numbers: BTreeSet::new(),
            others: BTreeSet::new(),
        });
        self.indexes.len() - 1
    }

    /// Whether somebody has to know what keys hold.
    pub(super) fn has_indexes(&self) -> bool {
        !self.indexes.is_empty()
    }

    /// The key holds another value now.
    pub(super) fn update(&mut self, key: KeyId, from: ValueRef<'h>, to: ValueRef<'h>) {
        let Some(table) = self.table_of.get(key.index()) else { return };
        let name = self.history.key_name(key);
        for index in &self.indexes_of[*table] {
            let index = &mut self.indexes[*index];
            index.remove(key, RowRef { key: name, value: from });
            index.add(key, RowRef { key: name, value: to });
        }
    }

    /// The rows that a predicate is about, whether they satisfy it or not.
    pub(super) fn of(&self, predicate: &Predicate) -> impl Iterator<Item = KeyId> {
        let keys = (0..self.history.key_count()).map(KeyId::at);
        let row = |key| RowRef { key: self.history.key_name(key), value: ValueRef::Bool(true) };
        keys.filter(move |key| row(*key).is_of(predicate))
    }

    /// The rows that satisfy a predicate, in the order of their keys, given what they hold.
    pub(super) fn matching(
        &self,
        id: PredicateId,
        predicate: &Predicate,
        value: impl Fn(KeyId) -> ValueRef<'h>,
    ) -> Result<Vec<KeyId>, EvalError> {
        let mut matching = Vec::new();
        let mut look_at = |key: KeyId| -> Result<(), EvalError> {
            let row = RowRef { key: self.history.key_name(key), value: value(key) };
            if row.matches_everywhere(predicate)? {
                matching.push(key);
            }
            Ok(())
        };
        match self.plans[id.index()] {
            Plan::Nowhere => {}
            Plan::Everywhere => {
                (0..self.history.key_count()).map(KeyId::at).try_for_each(look_at)?;
            }
            Plan::Table(table) => self.tables[table].iter().copied().try_for_each(look_at)?,
            Plan::Range { index, low, high } => {
                let Index { numbers, others, .. } = &self.indexes[index];
                if low <= high {
                    let within = numbers.range((low, KeyId(0))..=(high, KeyId::NONE));
                    within.map(|(_, key)| *key).try_for_each(&mut look_at)?;
                }
                others.iter().copied().try_for_each(look_at)?;
                matching.sort_unstable();
            }
        }
        Ok(matching)
    }
}

impl Index {
    fn add(&mut self, key: KeyId, row: RowRef<'_>) {
        if row.value == ValueRef::Nil {
            return;
        }
        match self.number(row) {
            Some(number) => self.numbers.insert((number, key)),
            None => self.others.insert(key),
        };
    }

    fn remove(&mut self, key: KeyId, row: RowRef<'_>) {
        match self.number(row) {
            Some(number) => self.numbers.remove(&(number, key)),
            None => self.others.remove(&key),
        };
    }

    fn number(&self, row: RowRef<'_>) -> Option<i64> {
        match row.column(&self.column) {
            Some(Operand::Int(number)) => Some(number),
            _ => None,
        }
    }
}

fn table_name(history: &History, key: KeyId) -> &str {
    RowRef { key: history.key_name(key), value: ValueRef::Nil }.table()
}
