//! Writes Jepsen histories.
//!
//! Entries stand in the order of events, and transactions arrive session by session; so the
//! writers keep the whole history and write it at the end.

mod content;
mod fitness;
mod log;
mod maps;
mod order;
mod values;

use std::io::Write;

use isolario_model::{
    Batch, History, Initial, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart, Value,
};

use super::form::Notation;
use crate::{HistoryWriter, Target};
use values::Values;

/// What this format lacks, as an error.
fn inexpressible(format: &'static str, what: impl Into<String>) -> SinkError {
    SinkError::Inexpressible { format, what: what.into() }
}

/// A writer of maps in EDN or JSON, one per line.
pub(super) fn maps(
    target: Target,
    format: &'static str,
    notation: Notation,
) -> Result<Box<dyn HistoryWriter>, SinkError> {
    buffered(target, format, notation, maps::write)
}

/// A writer of log lines.
pub(super) fn log(
    target: Target,
    format: &'static str,
) -> Result<Box<dyn HistoryWriter>, SinkError> {
    buffered(target, format, Notation::Edn, log::write)
}

fn buffered(
    target: Target,
    format: &'static str,
    notation: Notation,
    write: WriteAll,
) -> Result<Box<dyn HistoryWriter>, SinkError> {
    let values = Values { format, notation, scalars_only: false };
    Ok(Box::new(Buffered { values, batch: Batch::new(), stream: target.into_stream()?, write }))
}

type WriteAll = fn(&History, &mut dyn Write, Values) -> Result<(), SinkError>;

/// Keeps all transactions until the end.
struct Buffered {
    values: Values,
    batch: Batch,
    stream: Box<dyn Write + Send>,
    write: WriteAll,
}

impl TxnSink for Buffered {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        if meta.initial != Initial::Value(Value::Nil) {
            return Err(inexpressible(self.values.format, "an initial state other than nil"));
        }
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.batch.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if notes.version.is_some() {
            return Err(inexpressible(self.values.format, "versions apart from values"));
        }
        if notes.sql.is_some() {
            return Err(inexpressible(self.values.format, "statements"));
        }
        self.batch.op(op)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if end.db_start.is_some() || end.db_commit.is_some() || end.snapshot.is_some() {
            return Err(inexpressible(
                self.values.format,
                "the database's own timestamps and snapshots",
            ));
        }
        self.batch.end(end)
    }
}

impl HistoryWriter for Buffered {
    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        let history = self.batch.build()?;
        (self.write)(&history, &mut self.stream, self.values)?;
        Ok(self.stream.flush()?)
    }
}
