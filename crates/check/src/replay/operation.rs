//! One operation on a state: what it had to return, and what it leaves behind.

use isolario_model::{
    Aggregate, Evidence, ExpectedVersion, History, Inapplicable, KeyId, Op, OpId, Predicate,
    RowRef, RowView, ValueId, ValueRef,
};
use isolario_predicate::Dialect;

use super::state::{Held, State};
use crate::resolved::InitialContent;

/// How many of the rows that make a difference are told.
const ROWS_TOLD: usize = 10;

impl State<'_> {
    /// Does what an operation does. Tells how its result differs from what it had to be.
    pub(super) fn perform(&mut self, op: OpId) -> Result<Option<Evidence>, Inapplicable> {
        let differs = self.compare(op)?;
        if has_open_effect(self.history, op) {
            self.set_effect(op, self.is_due(op));
        }
        self.install(op);
        Ok(differs)
    }

    /// How the result of an operation differs from what it had to be.
    fn compare(&self, op: OpId) -> Result<Option<Evidence>, Inapplicable> {
        let history = self.history;
        Ok(match history.op(op) {
            Op::Read { value: None, .. }
            | Op::ReadList { elements: None, .. }
            | Op::PredicateRead { rows: None, .. }
            | Op::Aggregate { result: None, .. }
            | Op::Write { .. }
            | Op::Delete { .. }
            | Op::Append { .. } => None,
            Op::Read { key, .. } => self.at(op, key, !self.holds(key, history.encoded_version(op))),
            Op::ReadList { key, elements: Some(elements) } => {
                self.at(op, key, self.list(key) != elements)
            }
            Op::InsertIfAbsent { key, applied, seen, .. }
            | Op::CompareAndSet { key, applied, seen, .. } => {
                let took_effect = applied.is_some_and(|applied| applied != self.is_due(op));
                let saw_another = |seen| self.value(key) != history.value(seen);
                self.at(op, key, took_effect || seen.is_some_and(saw_another))
            }
            Op::PredicateRead { predicate, rows: Some(rows) } => {
                let is_right =
                    |row: &RowView| self.holds(row.key, history.encoded_row_version(row));
                self.compare_rows(op, predicate, rows, is_right)?
            }
            Op::PredicateWrite { predicate, rows: Some(rows) } => {
                self.compare_rows(op, predicate, rows, |_| true)?
            }
            Op::Aggregate { function, predicate, result: Some(result) } => {
                self.compare_aggregate(op, function, predicate, result)?
            }
            _ => return Err(Inapplicable::Operation { op }),
        })
    }

    /// Leaves behind what an operation wrote. A conditional write of unknown effect is decided by the state on
    /// which it was performed.
    pub(super) fn install(&mut self, op: OpId) {
        let history = self.history;
        match history.op(op) {
            Op::Write { key, value } => {
                self.put(key, Held { word: history.encoded_version(op), value, write: op });
            }
            Op::Delete { key } => {
                // Nothing is a value of every history that deletes.
                if let Some(value) = history.find_value(ValueRef::Nil) {
                    self.put(key, Held { word: history.encoded_version(op), value, write: op });
                }
            }
            Op::Append { key, element } => self.append(key, element),
            Op::InsertIfAbsent { key, value, applied, .. }
            | Op::CompareAndSet { key, new: value, applied, .. }
                if applied.or(self.effect(op)) == Some(true) =>
            {
                self.put(key, Held { word: value.to_bits(), value, write: op });
            }
            Op::PredicateWrite { rows: Some(rows), .. } => {
                for row in rows {
                    let word = history.encoded_row_version(row);
                    self.put(row.key, Held { word, value: row.value, write: op });
                }
            }
            _ => {}
        }
    }

    /// Whether a conditional write takes effect now.
    fn is_due(&self, op: OpId) -> bool {
        match self.history.op(op) {
            Op::InsertIfAbsent { key, .. } => self.value(key) == ValueRef::Nil,
            Op::CompareAndSet { key, expected, .. } => {
                self.value(key) == self.history.value(expected)
            }
            _ => false,
        }
    }

    /// That an operation on one key did not see what was there, if so.
    fn at(&self, op: OpId, key: KeyId, differs: bool) -> Option<Evidence> {
        differs.then(|| Evidence::Unexpected {
            op,
            expected: vec![self.version(key)],
            result: None,
        })
    }

    fn version(&self, key: KeyId) -> ExpectedVersion {
        ExpectedVersion { key, write: self.held(key).map(|held| held.write) }
    }

    /// Compares the rows of a result with those that satisfy the predicate now.
    fn compare_rows(
        &self,
        op: OpId,
        predicate: &Predicate,
        rows: &[RowView],
        is_right: impl Fn(&RowView) -> bool,
    ) -> Result<Option<Evidence>, Inapplicable> {
        let matching = self.matching(op, predicate)?;
        let mut seen: Vec<&RowView> = rows.iter().collect();
        seen.sort_unstable_by_key(|row| row.key);
        let mut expected = Vec::new();
        let mut due = matching.into_iter().peekable();
        for of_key in seen.chunk_by(|a, b| a.key == b.key) {
            let key = of_key[0].key;
            let missing = std::iter::from_fn(|| due.next_if(|other| *other < key));
            expected.extend(missing.map(|key| self.version(key)));
            let is_due = due.next_if_eq(&key).is_some();
            if !(is_due && of_key.len() == 1 && is_right(of_key[0])) {
                expected.push(self.version(key));
            }
        }
        expected.extend(due.map(|key| self.version(key)));
        expected.truncate(ROWS_TOLD);
        let differs = !expected.is_empty();
        Ok(differs.then_some(Evidence::Unexpected { op, expected, result: None }))
    }

    fn compare_aggregate(
        &self,
        op: OpId,
        function: &Aggregate,
        predicate: &Predicate,
        result: ValueId,
    ) -> Result<Option<Evidence>, Inapplicable> {
        let matching = self.matching(op, predicate)?;
        let row = |key| RowRef { key: self.history.key_name(key), value: self.value(key) };
        let unevaluable = |_| Inapplicable::Predicate { op };
        let due = function
            .over(matching.iter().map(|key| row(*key)), Dialect::Postgres)
            .map_err(unevaluable)?;
        let seen = self.history.value(result);
        if seen.operand().map(|seen| due.is(seen, Dialect::Postgres)) == Some(Ok(true)) {
            return Ok(None);
        }
        // Who knows what a row held that nobody ever saw?
        let mut keys = self.rows().of(predicate);
        if keys.any(|key| self.content(key) == InitialContent::Unknown) {
            return Err(Inapplicable::Predicate { op });
        }
        let expected = matching.iter().take(ROWS_TOLD).map(|key| self.version(*key)).collect();
        Ok(Some(Evidence::Unexpected { op, expected, result: Some(due.into()) }))
    }

    /// The rows that satisfy a predicate, in the order of their keys.
    fn matching(&self, op: OpId, predicate: &Predicate) -> Result<Vec<KeyId>, Inapplicable> {
        let id = self.history.op_predicate(op).ok_or(Inapplicable::Predicate { op })?;
        let value = |key| self.value(key);
        self.rows().matching(id, predicate, value).map_err(|_| Inapplicable::Predicate { op })
    }
}

/// Whether an operation is a conditional write of which the client does not know whether it took effect.
pub(super) fn has_open_effect(history: &History, op: OpId) -> bool {
    matches!(
        history.op(op),
        Op::InsertIfAbsent { applied: None, .. } | Op::CompareAndSet { applied: None, .. }
    )
}

/// Whether an operation wrote rows that nothing tells.
pub(super) fn is_unobserved_write(history: &History, op: OpId) -> bool {
    matches!(history.op(op), Op::PredicateWrite { rows: None, .. })
}

/// The keys that an operation may have written.
pub(super) fn written(history: &History, op: OpId) -> impl Iterator<Item = KeyId> {
    let (key, rows): (_, &[RowView]) = match history.op(op) {
        Op::Write { key, .. } | Op::Delete { key } | Op::Append { key, .. } => (Some(key), &[]),
        Op::InsertIfAbsent { key, applied, .. } | Op::CompareAndSet { key, applied, .. } => {
            (Some(key).filter(|_| applied != Some(false)), &[])
        }
        Op::PredicateWrite { rows: Some(rows), .. } => (None, rows),
        _ => (None, &[]),
    };
    key.into_iter().chain(rows.iter().map(|row| row.key))
}
