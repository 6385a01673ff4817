//! From rows of a table of operations back to transactions.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::plan_datafusion_err;
use isolario_model::{Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, ValueRef};

use crate::Error;

/// A column of some type, whatever the engine made of it.
fn column(batch: &RecordBatch, name: &str, wanted: &DataType) -> Result<ArrayRef, Error> {
    let missing = || plan_datafusion_err!("no column `{name}` came back");
    Ok(cast(batch.column_by_name(name).ok_or_else(missing)?, wanted)?)
}

/// A column of integers.
pub(crate) fn integers(batch: &RecordBatch, name: &str) -> Result<Int64Array, Error> {
    Ok(column(batch, name, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// A column of words.
pub(crate) fn words(batch: &RecordBatch, name: &str) -> Result<StringArray, Error> {
    Ok(column(batch, name, &DataType::Utf8)?.as_string::<i32>().clone())
}

fn flags(batch: &RecordBatch, name: &str) -> Result<BooleanArray, Error> {
    Ok(column(batch, name, &DataType::Boolean)?.as_boolean().clone())
}

/// The cell of a nullable column of integers.
pub(crate) fn cell(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

/// A column of names.
enum NameColumn {
    Integers(Int64Array),
    Text(StringArray),
}

impl NameColumn {
    fn of(batch: &RecordBatch, name: &str) -> Result<NameColumn, Error> {
        let is_integer = batch.column_by_name(name).is_some_and(|c| c.data_type().is_integer());
        Ok(match is_integer {
            true => NameColumn::Integers(integers(batch, name)?),
            false => NameColumn::Text(words(batch, name)?),
        })
    }

    fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        match self {
            NameColumn::Integers(column) => cell(column, row).map(ValueRef::Int),
            NameColumn::Text(column) => {
                column.is_valid(row).then(|| ValueRef::Text(column.value(row)))
            }
        }
    }
}

/// The columns of operations.
pub(crate) struct Operations {
    session: NameColumn,
    txn: Int64Array,
    name: NameColumn,
    kind: StringArray,
    key: NameColumn,
    value: NameColumn,
    external: BooleanArray,
    outcome: StringArray,
    start: Int64Array,
    finish: Int64Array,
}

/// An operation, with what its row repeats of its transaction.
pub(crate) struct Operation<'r> {
    session: ValueRef<'r>,
    pub(crate) txn: i64,
    pub(crate) name: Option<ValueRef<'r>>,
    pub(crate) kind: &'r str,
    key: ValueRef<'r>,
    value: ValueRef<'r>,
    pub(crate) is_external: bool,
    pub(crate) outcome: Outcome,
    start: Option<i64>,
    finish: Option<i64>,
}

impl Operations {
    pub(crate) fn of(batch: &RecordBatch) -> Result<Operations, Error> {
        Ok(Operations {
            session: NameColumn::of(batch, "session")?,
            txn: integers(batch, "txn")?,
            name: NameColumn::of(batch, "name")?,
            kind: words(batch, "kind")?,
            key: NameColumn::of(batch, "key")?,
            value: NameColumn::of(batch, "value")?,
            external: flags(batch, "external")?,
            outcome: words(batch, "outcome")?,
            start: integers(batch, "start")?,
            finish: integers(batch, "finish")?,
        })
    }

    pub(crate) fn get(&self, row: usize) -> Operation<'_> {
        Operation {
            session: self.session.get(row).unwrap_or(ValueRef::Nil),
            txn: self.txn.value(row),
            name: self.name.get(row),
            kind: self.kind.value(row),
            key: self.key.get(row).unwrap_or(ValueRef::Nil),
            value: self.value.get(row).unwrap_or(ValueRef::Nil),
            is_external: self.external.value(row),
            outcome: match self.outcome.value(row) {
                "committed" => Outcome::Committed,
                "aborted" => Outcome::Aborted,
                _ => Outcome::Unknown,
            },
            start: cell(&self.start, row),
            finish: cell(&self.finish, row),
        }
    }
}

/// Tells a sink of operations that come transaction by transaction.
#[derive(Default)]
pub(crate) struct Teller {
    /// The transaction that has begun, and how it ends.
    open: Option<(i64, TxnEnd<'static>)>,
}

impl Teller {
    /// Begins the transaction of an operation, under some name, unless it has begun.
    pub(crate) fn begin(
        &mut self,
        row: &Operation<'_>,
        id: Option<ValueRef<'_>>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), SinkError> {
        if self.open.is_some_and(|(txn, _)| txn == row.txn) {
            return Ok(());
        }
        self.end(sink)?;
        sink.begin(&TxnStart { session: row.session, id, line: None })?;
        let end = TxnEnd { start: row.start, finish: row.finish, ..TxnEnd::new(row.outcome) };
        self.open = Some((row.txn, end));
        Ok(())
    }

    /// Tells of an operation of the transaction that has begun.
    pub(crate) fn tell(
        &self,
        row: &Operation<'_>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), SinkError> {
        let (key, value) = (row.key, row.value);
        match row.kind {
            "write" => sink.op(&Op::Write { key, value }),
            "read" => sink.op(&Op::Read { key, value: Some(value) }),
            "unobserved" => sink.op(&Op::Read { key, value: None }),
            _ => Ok(()),
        }
    }

    /// Ends the last transaction.
    pub(crate) fn end(&mut self, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        self.open.take().map_or(Ok(()), |(_, end)| sink.end(&end))
    }
}
