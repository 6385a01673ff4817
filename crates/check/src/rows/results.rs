//! The result of an operation compared with the rows that it must return.

use isolario_model::{
    Aggregate, Evidence, ExpectedVersion, History, KeyId, Op, OpId, RowRef, RowView, Value,
    ValueId, ValueRef,
};
use isolario_predicate::{Dialect, EvalError};

/// Number of rows that evidence names at most.
const NAMED_ROWS: usize = 10;

/// What each row holds for an operation.
pub(crate) trait Contents<'h> {
    fn history(&self) -> &'h History;

    /// The value of a row; nil if the row is absent, or if nothing is known of it.
    fn value(&self, key: KeyId) -> ValueRef<'h>;

    /// The write of that value; none for the initial one.
    fn write(&self, key: KeyId) -> Option<OpId>;

    /// Whether a read that returned this encoded value returned what the row holds.
    fn shows(&self, key: KeyId, encoded: u64) -> bool;

    fn row(&self, key: KeyId) -> RowRef<'h> {
        RowRef { key: self.history().key_name(key), value: self.value(key) }
    }

    fn version(&self, key: KeyId) -> ExpectedVersion {
        ExpectedVersion { key, write: self.write(key) }
    }

    /// Compares the rows that an operation returned or wrote with those that match its predicate, both in
    /// the order of their keys. Rows that were written must be the right ones; rows that were returned
    /// must also show what they hold.
    fn compare_rows(&self, op: OpId, rows: &[&RowView], matching: &[KeyId]) -> Option<Evidence> {
        let is_write = matches!(self.history().op(op), Op::PredicateWrite { .. });
        let is_right = |row: &RowView| {
            is_write || self.shows(row.key, self.history().encoded_row_version(row))
        };
        let mut expected = Vec::new();
        let mut matching = matching.iter().copied().peekable();
        for of_key in rows.chunk_by(|a, b| a.key == b.key) {
            let key = of_key[0].key;
            expected.extend(std::iter::from_fn(|| matching.next_if(|other| *other < key)));
            let is_match = matching.next_if_eq(&key).is_some();
            if !(is_match && of_key.len() == 1 && is_right(of_key[0])) {
                expected.push(key);
            }
        }
        expected.extend(matching);
        (!expected.is_empty()).then(|| self.unexpected(op, &expected, None))
    }

    /// Compares the result of a function with its value over the rows that match, and over `others`.
    fn compare_function(
        &self,
        op: OpId,
        (function, result): (&Aggregate, ValueId),
        matching: &[KeyId],
        others: &[RowRef<'h>],
    ) -> Result<Option<Evidence>, EvalError> {
        let rows = matching.iter().map(|key| self.row(*key));
        let expected = function.over(rows.chain(others.iter().copied()), Dialect::Postgres)?;
        let is_it = |seen| expected.is(seen, Dialect::Postgres) == Ok(true);
        if self.history().value(result).operand().is_some_and(is_it) {
            return Ok(None);
        }
        Ok(Some(self.unexpected(op, matching, Some(expected.into()))))
    }

    /// The evidence that an operation should have returned or written other rows, or another result.
    fn unexpected(&self, op: OpId, keys: &[KeyId], result: Option<Value>) -> Evidence {
        let expected = keys.iter().take(NAMED_ROWS).map(|key| self.version(*key)).collect();
        Evidence::Unexpected { op, expected, result }
    }
}

/// Rows in the order of their keys.
pub(crate) fn by_key(rows: &[RowView]) -> Vec<&RowView> {
    let mut rows: Vec<&RowView> = rows.iter().collect();
    rows.sort_by_key(|row| row.key);
    rows
}
