//! Predicate operations: which rows they asked for, and what came back.

use std::hash::Hash;
use std::sync::Arc;

use indexmap::IndexSet;
use isolario_predicate::{Aggregate, MatchesOracle, Predicate};
use rustc_hash::FxBuildHasher;

use crate::op::RowView;
use crate::{PredicateId, ValueId};

/// The predicate operations of a batch or of a history. The columns of all operations have only
/// the position of each here: those on rows and aggregates are counted apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct PredicateOps {
    row_ops: Vec<RowOp>,
    /// The rows of all operations, one after the other.
    rows: Vec<RowView>,
    aggregate_ops: Vec<AggregateOp>,
    predicates: IndexSet<Predicate, FxBuildHasher>,
    functions: IndexSet<Aggregate, FxBuildHasher>,
}

/// A read or a write of rows.
#[derive(Clone, Copy, Debug)]
struct RowOp {
    predicate: PredicateId,
    observed: bool,
    /// One past its last row. Its first one comes after the last of the operation before it.
    rows_end: usize,
}

/// A function over rows.
#[derive(Clone, Copy, Debug)]
struct AggregateOp {
    predicate: PredicateId,
    function: u32,
    result: Option<ValueId>,
}

/// Where the operations of a batch begin among joined ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredicateOpsStart {
    pub(crate) row_ops: u64,
    pub(crate) aggregate_ops: u64,
}

/// Adding.
impl PredicateOps {
    /// Adds a row of the operation to come.
    pub(crate) fn push_row(&mut self, row: RowView) {
        self.rows.push(row);
    }

    /// Adds an operation on the rows that were pushed since the last one, and gives its position.
    pub(crate) fn push_row_op(&mut self, predicate: &Predicate, observed: bool) -> u64 {
        let predicate = self.intern_predicate(predicate);
        self.row_ops.push(RowOp { predicate, observed, rows_end: self.rows.len() });
        self.row_ops.len() as u64 - 1
    }

    /// Adds an aggregate, and gives its position.
    pub(crate) fn push_aggregate(
        &mut self,
        predicate: &Predicate,
        function: &Aggregate,
        result: Option<ValueId>,
    ) -> u64 {
        let predicate = self.intern_predicate(predicate);
        let function = intern(&mut self.functions, function) as u32;
        self.aggregate_ops.push(AggregateOp { predicate, function, result });
        self.aggregate_ops.len() as u64 - 1
    }

    fn intern_predicate(&mut self, predicate: &Predicate) -> PredicateId {
        PredicateId::at(intern(&mut self.predicates, predicate))
    }

    /// Appends another batch's operations, renumbered, and tells where they begin.
    pub(crate) fn append(
        &mut self,
        other: PredicateOps,
        row: impl Fn(RowView) -> RowView,
        value: impl Fn(ValueId) -> ValueId,
    ) -> PredicateOpsStart {
        let start = PredicateOpsStart {
            row_ops: self.row_ops.len() as u64,
            aggregate_ops: self.aggregate_ops.len() as u64,
        };
        let first_row = self.rows.len();
        let predicates: Vec<_> =
            other.predicates.iter().map(|predicate| self.intern_predicate(predicate)).collect();
        let functions: Vec<_> =
            other.functions.iter().map(|f| intern(&mut self.functions, f) as u32).collect();
        self.rows.extend(other.rows.into_iter().map(row));
        self.row_ops.extend(other.row_ops.into_iter().map(|op| RowOp {
            predicate: predicates[op.predicate.index()],
            observed: op.observed,
            rows_end: first_row + op.rows_end,
        }));
        self.aggregate_ops.extend(other.aggregate_ops.into_iter().map(|op| AggregateOp {
            predicate: predicates[op.predicate.index()],
            function: functions[op.function as usize],
            result: op.result.map(&value),
        }));
        start
    }
}

/// Changing.
impl PredicateOps {
    /// Predicates that have no form in the language, with somebody who knows what they match.
    pub(crate) fn ask(&mut self, ask: impl Fn(&str) -> Option<Arc<dyn MatchesOracle>>) {
        let asked = |predicate: Predicate| match &predicate {
            Predicate::Unparsed(text) => match ask(text) {
                Some(oracle) => Predicate::asked(text, oracle),
                None => predicate,
            },
            _ => predicate,
        };
        // Each text is there once, before and after: ids stay.
        self.predicates = std::mem::take(&mut self.predicates).into_iter().map(asked).collect();
    }
}

/// Reading.
impl PredicateOps {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.row_ops.is_empty() && self.aggregate_ops.is_empty()
    }

    /// The predicate of a read or a write of rows, and the rows if they were observed.
    pub(crate) fn row_op(&self, position: u64) -> (PredicateId, Option<&[RowView]>) {
        let op = self.row_ops[position as usize];
        let rows = op.observed.then(|| &self.rows[self.rows_start(position)..op.rows_end]);
        (op.predicate, rows)
    }

    /// The rows of a read or a write of rows.
    pub(crate) fn rows_mut(&mut self, position: u64) -> &mut [RowView] {
        let range = self.rows_start(position)..self.row_ops[position as usize].rows_end;
        &mut self.rows[range]
    }

    fn rows_start(&self, position: u64) -> usize {
        let before = (position as usize).checked_sub(1);
        before.map_or(0, |before| self.row_ops[before].rows_end)
    }

    /// The predicate, the function and the value of an aggregate.
    pub(crate) fn aggregate(&self, position: u64) -> (PredicateId, &Aggregate, Option<ValueId>) {
        let op = self.aggregate_ops[position as usize];
        (op.predicate, &self.functions[op.function as usize], op.result)
    }

    /// A predicate by its id.
    pub(crate) fn predicate(&self, id: PredicateId) -> &Predicate {
        &self.predicates[id.index()]
    }

    /// All predicates, in the order of their ids.
    pub(crate) fn predicates(&self) -> impl ExactSizeIterator<Item = &Predicate> {
        self.predicates.iter()
    }
}

fn intern<T: Clone + Eq + Hash>(set: &mut IndexSet<T, FxBuildHasher>, item: &T) -> usize {
    match set.get_index_of(item) {
        Some(index) => index,
        None => set.insert_full(item.clone()).0,
    }
}
