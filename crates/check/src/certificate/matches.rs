//! Which versions satisfy which predicates.
//!
//! To evaluate a condition on a row costs much more than to compare two numbers, and almost all
//! versions of almost all rows lie outside of what a condition asks for. So the columns that conditions
//! bound are copied once into arrays, one number per version, and a version outside of the bounds does
//! not match, without evaluation. The bounds are those outside of which no row can match.

use isolario_model::{History, KeyId, PredicateId, RowRef, ValueRef};
use isolario_predicate::EvalError;

use super::chains::{Version, VersionChains};
use crate::rows::{ColumnBounds, RowSearch, whole_number};

/// Evaluates the predicates of a history.
pub(super) struct PredicateMatches<'h> {
    history: &'h History,
    /// Among all rows that are ever there.
    search: RowSearch<'h>,
    columns: Vec<VersionColumn>,
}

/// A column of every version.
struct VersionColumn {
    numbers: Vec<i64>,
    /// Per version, what its number means.
    cells: Vec<ColumnCell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnCell {
    /// The row is not there.
    Absent,
    Number,
    /// Anything else: the condition has to be evaluated.
    Other,
}

impl<'h> PredicateMatches<'h> {
    pub(super) fn new(history: &'h History, chains: &VersionChains<'h>) -> Self {
        let is_ever_there =
            |key: &KeyId| chains.of(*key).any(|v| chains.value(v) != Some(ValueRef::Nil));
        let keys = (0..history.key_count()).map(KeyId::at);
        let search = RowSearch::new(history, keys.filter(is_ever_there));
        let columns = search.columns.iter().map(|name| VersionColumn::new(chains, name));
        PredicateMatches { history, columns: columns.collect(), search }
    }

    /// The rows that a predicate may match and that are there at some time.
    pub(super) fn rows(&self, predicate: PredicateId) -> &[KeyId] {
        self.search.rows(predicate)
    }

    /// Whether a version satisfies a predicate, by the rules of every dialect.
    #[inline]
    pub(super) fn is(
        &self,
        chains: &VersionChains<'h>,
        predicate: PredicateId,
        version: Version,
    ) -> Result<bool, EvalError> {
        if let Some(ColumnBounds { column, low, high }) = self.search.plan(predicate).bounds {
            let VersionColumn { numbers, cells } = &self.columns[column];
            let number = numbers[version as usize];
            match cells[version as usize] {
                ColumnCell::Absent => return Ok(false),
                ColumnCell::Number if number < low || number > high => return Ok(false),
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
        chains: &VersionChains<'h>,
        predicate: PredicateId,
        version: Version,
    ) -> Result<bool, EvalError> {
        let is = self.is(chains, predicate, version)?;
        Ok(is != self.is(chains, predicate, version - 1)?)
    }
}

impl VersionColumn {
    fn new(chains: &VersionChains<'_>, name: &str) -> VersionColumn {
        let cell = |version| match chains.row(version) {
            Some(RowRef { value: ValueRef::Nil, .. }) => (0, ColumnCell::Absent),
            row => match row.and_then(|row| whole_number(row, name)) {
                Some(number) => (number, ColumnCell::Number),
                None => (0, ColumnCell::Other),
            },
        };
        let (numbers, cells) = (0..chains.len()).map(cell).unzip();
        VersionColumn { numbers, cells }
    }
}
