//! Tells a sink what clients of a table saw.

use isolario_model::{
    Op, OpInput, Outcome, RowInput, SinkError, Stamp, TupleParts, TxnEnd, TxnSink, TxnStart,
    ValueRef,
};
use isolario_predicate::ExprError;
use isolario_workload::{Chance, Rng, RowValues, TableOp, ValueRange};

use super::clients::{Answer, TableFlight};
use super::{KEY_COLUMN, RowId, TABLE};

/// Passes transactions on to a sink.
pub(super) struct RowReporter<'s> {
    pub(super) sink: &'s mut dyn TxnSink,
    /// How many operations the transaction has so far.
    ops: usize,
    /// Which reads of a transaction of unknown outcome got no answer.
    unanswered: Chance,
}

/// What hears of the snapshot of an operation by range, by its number.
type Heard<'h> = &'h mut dyn FnMut(usize, Stamp) -> Result<(), SinkError>;

impl<'s> RowReporter<'s> {
    pub(super) fn new(sink: &'s mut dyn TxnSink) -> Self {
        RowReporter { sink, ops: 0, unanswered: Chance::new(0.25) }
    }

    /// Tells a transaction that has ended, and how many operations it has.
    pub(super) fn flight(
        &mut self,
        session: u32,
        flight: &TableFlight,
        outcome: Outcome,
        finish: i64,
        rng: &mut Rng,
        mut met: impl FnMut(usize, Stamp) -> Result<(), SinkError>,
    ) -> Result<usize, SinkError> {
        self.begin(session.into(), flight.name)?;
        for (op, answer) in flight.plan.iter().zip(&flight.answers) {
            let answered = outcome != Outcome::Unknown || !rng.happens(self.unanswered);
            self.planned_op(op, answer, answered, &mut met)?;
        }
        let (db_start, db_commit) = flight.stamps;
        self.sink.end(&TxnEnd {
            start: Some(flight.start),
            // As far as its client knows, one of unknown outcome never finishes.
            finish: (outcome != Outcome::Unknown).then_some(finish),
            db_start,
            db_commit,
            ..TxnEnd::new(outcome)
        })?;
        Ok(self.ops)
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self, session: u64, name: u64) -> Result<(), SinkError> {
        self.ops = 0;
        let id = Some(name.into());
        self.sink.begin(&TxnStart { session: session.into(), id, line: None })
    }

    fn op(&mut self, op: &OpInput<'_>) -> Result<(), SinkError> {
        self.ops += 1;
        self.sink.op(op)
    }

    /// An operation and its answer. An update by key that found no row is a read that found none. A
    /// client that hears of no outcome may not have heard of reads, either; of writes it has.
    fn planned_op(
        &mut self,
        op: &TableOp,
        answer: &Answer,
        answered: bool,
        met: Heard<'_>,
    ) -> Result<(), SinkError> {
        if let Some(snapshot) = answer.snapshot() {
            met(self.ops, snapshot)?;
        }
        let row = |key: u32| RowId { table: TABLE, id: key.into() };
        match (*op, answer) {
            (TableOp::Insert { key, held }, _) => self.write(row(key), held),
            (TableOp::Update { key, held }, Answer::Row(Some(_))) => self.write(row(key), held),
            (TableOp::Update { key, .. }, _) => self.read(row(key), Some(None)),
            (TableOp::Read { key }, Answer::Row(found)) => {
                self.read(row(key), answered.then_some(*found))
            }
            (TableOp::Increment { key, version }, Answer::Row(found)) => {
                self.read(row(key), Some(*found))?;
                match found {
                    Some(found) => self.write(row(key), found.incremented(version)),
                    None => Ok(()),
                }
            }
            (TableOp::RangeRead { range }, Answer::Rows(rows, _)) => {
                self.rows(TABLE, range, answered.then_some(rows), false)
            }
            (
                TableOp::RangeUpdate { range, .. } | TableOp::Delete { range, .. },
                Answer::Rows(rows, _),
            ) => self.rows(TABLE, range, Some(rows), true),
            (TableOp::Aggregate { function, range }, Answer::Value(value, _)) => {
                let result = value.map_or(ValueRef::Nil, ValueRef::Int);
                let function = function.aggregate().map_err(refused)?;
                let predicate = range.predicate(TABLE).map_err(refused)?;
                let result = answered.then_some(result);
                self.op(&Op::Aggregate { function: &function, predicate: &predicate, result })
            }
            _ => Err(SinkError::Sequence("an answer to another operation")),
        }
    }

    /// Tells a read of a row.
    pub(super) fn read(
        &mut self,
        row: RowId<'_>,
        found: Option<Option<RowValues>>,
    ) -> Result<(), SinkError> {
        with_row(row, found.flatten(), |key, value| {
            self.op(&Op::Read { key, value: found.map(|_| value) })
        })
    }

    /// Tells a write of a row.
    pub(super) fn write(&mut self, row: RowId<'_>, held: RowValues) -> Result<(), SinkError> {
        with_row(row, Some(held), |key, value| self.op(&Op::Write { key, value }))
    }

    /// Tells a read or a write by range.
    pub(super) fn rows(
        &mut self,
        table: &str,
        range: ValueRange,
        rows: Option<&Vec<(u32, Option<RowValues>)>>,
        is_write: bool,
    ) -> Result<(), SinkError> {
        let predicate = range.predicate(table).map_err(refused)?;
        let keys: Vec<_> = rows.into_iter().flatten().map(|(key, _)| key_columns(*key)).collect();
        let held: Vec<_> = rows.into_iter().flatten().map(|(_, held)| columns(*held)).collect();
        let parts = |columns| TupleParts { table: "", columns };
        let keys: Vec<_> =
            keys.iter().map(|columns| TupleParts { table, columns: &columns[..] }).collect();
        let values: Vec<_> = held
            .iter()
            .map(|columns| columns.as_ref().map(|columns| parts(&columns[..])))
            .collect();
        let shown: Vec<RowInput<'_>> = keys
            .iter()
            .zip(&values)
            .map(|(key, value)| {
                let value = value.as_ref().map_or(ValueRef::Nil, ValueRef::from);
                RowInput::new(key, value)
            })
            .collect();
        let (predicate, rows) = (&predicate, rows.map(|_| &shown[..]));
        self.op(&match is_write {
            true => Op::PredicateWrite { predicate, rows },
            false => Op::PredicateRead { predicate, rows },
        })
    }
}

/// The columns that a row is called by.
fn key_columns(key: u32) -> [(&'static str, ValueRef<'static>); 1] {
    [(KEY_COLUMN, key.into())]
}

/// The columns that a row holds.
fn columns(held: Option<RowValues>) -> Option<[(&'static str, ValueRef<'static>); 3]> {
    held.map(|held| [("a", held.a.into()), ("b", held.b.into()), ("v", held.version.into())])
}

/// A row and what it holds, as the sink sees them.
fn with_row<T>(
    row: RowId<'_>,
    held: Option<RowValues>,
    tell: impl FnOnce(ValueRef<'_>, ValueRef<'_>) -> T,
) -> T {
    let key = TupleParts { table: row.table, columns: &[(KEY_COLUMN, row.id.into())] };
    match columns(held) {
        None => tell((&key).into(), ValueRef::Nil),
        Some(columns) => tell((&key).into(), (&TupleParts { table: "", columns: &columns }).into()),
    }
}

/// Expressions as small as these are never refused.
fn refused(_: ExprError) -> SinkError {
    SinkError::Sequence("an expression that is none")
}
