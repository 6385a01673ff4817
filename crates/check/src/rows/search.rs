//! Where to look for the rows that a predicate matches.
//!
//! A predicate that names a table is about the rows of that table. One that bounds a column matches no
//! row whose column holds a whole number outside of the bounds; any other content of the column has to
//! be evaluated.

use isolario_model::{History, KeyId, PredicateId, RowRef, ValueRef};
use isolario_predicate::{Columns, Expr, Operand};
use rustc_hash::FxHashMap;

/// The rows of each table, and where each predicate is searched for.
pub(crate) struct RowSearch<'h> {
    /// Per table, its rows in the order of their keys; then all rows, and then none.
    tables: Vec<Vec<KeyId>>,
    /// The names of bounded columns.
    pub(crate) columns: Vec<&'h str>,
    /// Per predicate.
    pub(crate) plans: Vec<SearchPlan>,
}

#[derive(Clone, Copy)]
pub(crate) struct SearchPlan {
    pub(crate) table: usize,
    pub(crate) bounds: Option<ColumnBounds>,
}

/// A column, and the whole numbers that a row may have there.
#[derive(Clone, Copy)]
pub(crate) struct ColumnBounds {
    pub(crate) column: usize,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl<'h> RowSearch<'h> {
    /// Plans the search for each predicate among these rows.
    pub(crate) fn new(history: &'h History, keys: impl Iterator<Item = KeyId>) -> Self {
        let all: Vec<KeyId> = keys.filter(|_| history.has_predicates()).collect();
        let mut tables: Vec<Vec<KeyId>> = Vec::new();
        let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
        for key in &all {
            let row = RowRef { key: history.key_name(*key), value: ValueRef::Nil };
            let number = *numbers.entry(row.table()).or_insert(tables.len());
            if number == tables.len() {
                tables.push(Vec::new());
            }
            tables[number].push(*key);
        }
        let all_rows = tables.len();
        tables.extend([all, Vec::new()]);
        let mut columns: Vec<&str> = Vec::new();
        let plan = |predicate: &'h isolario_model::Predicate| {
            // A row whose key does not name a table may be of any.
            let table = match predicate.table() {
                Some(name) if !numbers.contains_key("") => {
                    numbers.get(name).copied().unwrap_or(all_rows + 1)
                }
                _ => all_rows,
            };
            let bounds = predicate.condition().and_then(Expr::bounded_column);
            let bounds = bounds.map(|(name, low, high)| {
                let known = columns.iter().position(|column| *column == name);
                let column = known.unwrap_or_else(|| {
                    columns.push(name);
                    columns.len() - 1
                });
                ColumnBounds { column, low, high }
            });
            SearchPlan { table, bounds }
        };
        let plans = history.predicates().map(plan).collect();
        RowSearch { tables, columns, plans }
    }

    pub(crate) fn plan(&self, predicate: PredicateId) -> SearchPlan {
        self.plans[predicate.index()]
    }

    /// The rows of each table.
    pub(crate) fn tables(&self) -> &[Vec<KeyId>] {
        &self.tables[..self.tables.len() - 2]
    }

    /// The rows that a predicate may match, and perhaps some of other tables.
    #[inline]
    pub(crate) fn rows(&self, predicate: PredicateId) -> &[KeyId] {
        &self.tables[self.plans[predicate.index()].table]
    }
}

/// The whole number in a column of a row, if there is one.
pub(crate) fn whole_number(row: RowRef<'_>, column: &str) -> Option<i64> {
    match row.column(column) {
        Some(Operand::Int(number)) => Some(number),
        _ => None,
    }
}
