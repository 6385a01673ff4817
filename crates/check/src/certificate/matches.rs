//! Which versions satisfy which predicates.
//!
//! To evaluate a condition on a row costs much more than to compare two numbers, and almost all
//! versions of almost all rows lie outside of what a condition asks for. So the columns that conditions
//! bound are copied once into arrays, one number per version, and a version outside of the bounds is
//! known not to match without being looked at. The bounds are those outside of which no row can match.

use isolario_model::{History, KeyId, PredicateId, RowRef, ValueRef};
use isolario_predicate::{Columns, EvalError, Expr, Operand};
use rustc_hash::FxHashMap;

use super::chains::{Chains, Version};

/// Evaluates the predicates of a history.
pub(super) struct Matches<'h> {
    history: &'h History,
    /// Per predicate, where it is looked for.
    plans: Vec<Plan>,
    /// The rows of each table, and at the end all rows; those that are never there left out.
    tables: Vec<Vec<KeyId>>,
    columns: Vec<Column>,
}

struct Plan {
    table: usize,
    range: Option<Range>,
}

/// A column, and the whole numbers that it may have.
#[derive(Clone, Copy)]
struct Range {
    column: usize,
    low: i64,
    high: i64,
}

/// A column of every version.
struct Column {
    numbers: Vec<i64>,
    /// Per version, what its number means.
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The row is not there.
    Absent,
    Number,
    /// Anything else: the condition has to be evaluated.
    Other,
}

impl<'h> Matches<'h> {
    pub(super) fn new(history: &'h History, chains: &Chains<'h>) -> Self {
        let mut tables: Vec<Vec<KeyId>> = Vec::new();
        let mut ids: FxHashMap<&str, usize> = FxHashMap::default();
        let mut all: Vec<KeyId> = Vec::new();
        let is_ever_there =
            |key: &KeyId| chains.of(*key).any(|v| chains.value(v) != Some(ValueRef::Nil));
        if history.has_predicates() {
            all.extend((0..history.key_count()).map(KeyId::at).filter(is_ever_there));
        }
        for key in &all {
            let table = RowRef { key: history.key_name(*key), value: ValueRef::Nil }.table();
            let id = *ids.entry(table).or_insert_with(|| {
                tables.push(Vec::new());
                tables.len() - 1
            });
            tables[id].push(*key);
        }
        let everything = tables.len();
        tables.push(all);
        let nothing = tables.len();
        tables.push(Vec::new());
        let mut matches = Matches { history, plans: Vec::new(), tables, columns: Vec::new() };
        let mut names: Vec<&str> = Vec::new();
        for predicate in history.predicates() {
            // A row whose key does not name a table may be of any.
            let table = match predicate.table() {
                Some(name) if !ids.contains_key("") => *ids.get(name).unwrap_or(&nothing),
                _ => everything,
            };
            let range = predicate.condition().and_then(Expr::bounded_column);
            let range = range.map(|(name, low, high)| {
                let column = names.iter().position(|known| *known == name);
                let column = column.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                Range { column, low, high }
            });
            matches.plans.push(Plan { table, range });
        }
        matches.columns = names.iter().map(|name| Column::new(chains, name)).collect();
        matches
    }

    /// The rows that a predicate is about and that are there at some time.
    pub(super) fn rows(&self, predicate: PredicateId) -> &[KeyId] {
        &self.tables[self.plans[predicate.index()].table]
    }

    /// Whether a version satisfies a predicate, by the rules of every dialect.
    #[inline]
    pub(super) fn is(
        &self,
        chains: &Chains<'h>,
        predicate: PredicateId,
        version: Version,
    ) -> Result<bool, EvalError> {
        if let Some(Range { column, low, high }) = self.plans[predicate.index()].range {
            let Column { numbers, cells } = &self.columns[column];
            let number = numbers[version as usize];
            match cells[version as usize] {
                Cell::Absent => return Ok(false),
                Cell::Number if number < low || number > high => return Ok(false),
                _ => {}
            }
        }
        let row = chains.row(version).ok_or(EvalError::Unparsed)?;
        self.is_row(predicate, row)
    }

    /// Whether a row satisfies a predicate.
    pub(super) fn is_row(&self, id: PredicateId, row: RowRef<'_>) -> Result<bool, EvalError> {
        row.matches_everywhere(self.history.predicate(id))
    }

    /// Whether a version changes what a predicate matches: it satisfies it and the one before does
    /// not, or the other way round.
    #[inline]
    pub(super) fn is_changed_by(
        &self,
        chains: &Chains<'h>,
        predicate: PredicateId,
        version: Version,
    ) -> Result<bool, EvalError> {
        let is = self.is(chains, predicate, version)?;
        Ok(is != self.is(chains, predicate, version - 1)?)
    }
}

impl Column {
    fn new(chains: &Chains<'_>, name: &str) -> Column {
        let (mut numbers, mut cells) = (Vec::new(), Vec::new());
        for version in 0..chains.len() {
            let (number, cell) = match chains.row(version) {
                Some(RowRef { value: ValueRef::Nil, .. }) => (0, Cell::Absent),
                Some(row) => match row.column(name) {
                    Some(Operand::Int(number)) => (number, Cell::Number),
                    _ => (0, Cell::Other),
                },
                None => (0, Cell::Other),
            };
            numbers.push(number);
            cells.push(cell);
        }
        Column { numbers, cells }
    }
}
