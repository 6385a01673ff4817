//! Operations on a state: what they had to return, and what they leave behind.

use isolario_model::{Evidence, History, Inapplicable, KeyId, Op, OpId, Point, TxnId, ValueRef};
use isolario_predicate::EvalError;

use super::TxnPoints;
use super::state::ReplayState;
use crate::resolved::InitialContent;
use crate::rows::{Contents, by_key, written_rows};

impl ReplayState<'_> {
    /// Does what happens at a point: a transaction reads at its start, and its writes are there from its commit
    /// on; or it has one point, its commit. Adds how its results differ from what they had to be.
    pub(super) fn perform(
        &mut self,
        point: Point,
        moments: TxnPoints,
        differences: &mut Vec<Evidence>,
    ) -> Result<(), Inapplicable> {
        let (Point::Start(txn) | Point::Commit(txn)) = point;
        let is_start = matches!(point, Point::Start(_));
        let mark = self.mark();
        for op in self.history.txn_ops(txn) {
            if is_start || moments == TxnPoints::One {
                differences.extend(self.execute(op)?);
            } else {
                self.install(op);
            }
        }
        if is_start {
            self.take_back(mark);
        }
        Ok(())
    }

    /// Executes an operation, and returns how its result differs from what it had to be.
    fn execute(&mut self, op: OpId) -> Result<Option<Evidence>, Inapplicable> {
        let differs = self.compare(op)?;
        if has_open_effect(self.history, op) {
            self.effects.insert(op, self.takes_effect(op));
        }
        self.install(op);
        Ok(differs)
    }

    /// The first wrong result of a transaction if it runs now. Nothing is left behind.
    pub(super) fn first_difference(
        &mut self,
        txn: TxnId,
    ) -> Result<Option<Evidence>, Inapplicable> {
        let mark = self.mark();
        let mut results = self.history.txn_ops(txn).map(|op| self.execute(op));
        let first = results.find_map(Result::transpose).transpose();
        self.take_back(mark);
        first
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
            Op::Read { key, .. } => self.at(op, key, !self.shows(key, history.encoded_version(op))),
            Op::ReadList { key, elements: Some(elements) } => {
                self.at(op, key, self.lists[key.index()] != elements)
            }
            Op::InsertIfAbsent { key, applied, seen, .. }
            | Op::CompareAndSet { key, applied, seen, .. } => {
                let has_other_effect =
                    applied.is_some_and(|applied| applied != self.takes_effect(op));
                let saw_another = |seen| self.value(key) != history.value(seen);
                self.at(op, key, has_other_effect || seen.is_some_and(saw_another))
            }
            Op::PredicateRead { .. }
            | Op::PredicateWrite { rows: Some(_), .. }
            | Op::Aggregate { .. } => {
                self.compare_matching(op).map_err(|_| Inapplicable::Predicate { op })?
            }
            _ => return Err(Inapplicable::Operation { op }),
        })
    }

    /// Leaves behind what an operation wrote. A conditional write of unknown effect is decided by the state on
    /// which it was performed.
    fn install(&mut self, op: OpId) {
        if let Op::Append { key, element } = self.history.op(op) {
            self.append(key, element);
        } else if !has_open_effect(self.history, op) || self.effects.get(&op) == Some(&true) {
            written_rows(self.history, op).for_each(|row| self.put(row));
        }
    }

    /// Whether a conditional write takes effect now.
    fn takes_effect(&self, op: OpId) -> bool {
        self.history.conditional(op).is_some_and(|conditional| {
            let expected = conditional.expected.map(|expected| self.history.value(expected));
            self.value(conditional.key) == expected.unwrap_or(ValueRef::Nil)
        })
    }

    /// The evidence that an operation on one key did not observe what was there, if so.
    fn at(&self, op: OpId, key: KeyId, differs: bool) -> Option<Evidence> {
        differs.then(|| Evidence::Unexpected {
            op,
            expected: vec![self.version(key)],
            result: None,
        })
    }

    /// Compares the result of an operation by predicate with the rows that satisfy the predicate now.
    fn compare_matching(&self, op: OpId) -> Result<Option<Evidence>, EvalError> {
        let id = self.history.op_predicate(op).ok_or(EvalError::Unparsed)?;
        let matching = self.rows.matching(id, |key| self.value(key))?;
        match self.history.op(op) {
            Op::PredicateRead { rows: Some(rows), .. }
            | Op::PredicateWrite { rows: Some(rows), .. } => {
                Ok(self.compare_rows(op, &by_key(rows), &matching))
            }
            Op::Aggregate { function, result: Some(result), .. } => {
                let differs = self.compare_function(op, (function, result), &matching, &[])?;
                // A row of which nothing is known may make the difference.
                let is_unknown = |key| self.content(key) == InitialContent::Unknown;
                if differs.is_some() && self.rows.of(id).any(is_unknown) {
                    return Err(EvalError::Unparsed);
                }
                Ok(differs)
            }
            _ => Ok(None),
        }
    }
}

/// Whether an operation is a conditional write whose effect the client does not know.
pub(super) fn has_open_effect(history: &History, op: OpId) -> bool {
    matches!(
        history.op(op),
        Op::InsertIfAbsent { applied: None, .. } | Op::CompareAndSet { applied: None, .. }
    )
}

/// Whether an operation wrote rows that are not recorded.
pub(super) fn is_unobserved_write(history: &History, op: OpId) -> bool {
    matches!(history.op(op), Op::PredicateWrite { rows: None, .. })
}
