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

use isolario_model::{History, Initial, Meta, OpInput, OpNotes, SinkError, TxnEnd, Value};

use super::stream::Syntax;
use crate::narrow::{Collector, NarrowFormat, inexpressible};
use crate::{HistoryWriter, OutputTarget};
use values::Values;

/// A writer of maps, one per line, or of log lines.
pub(super) fn writer(
    target: OutputTarget,
    format: &'static str,
    syntax: Syntax,
) -> Box<dyn HistoryWriter> {
    Collector::boxed(Jepsen { format, syntax }, target)
}

struct Jepsen {
    format: &'static str,
    syntax: Syntax,
}

impl Jepsen {
    fn refuse(&self, what: &str) -> Result<(), SinkError> {
        Err(inexpressible(self.format, what))
    }
}

impl NarrowFormat for Jepsen {
    fn admit_meta(&self, meta: &Meta) -> Result<(), SinkError> {
        match meta.initial {
            Initial::Value(Value::Nil) => Ok(()),
            _ => self.refuse("an initial state other than nil"),
        }
    }

    fn admit_op(&self, _: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        match notes {
            OpNotes { version: Some(_), .. } => self.refuse("versions apart from values"),
            OpNotes { sql: Some(_), .. } => self.refuse("statements"),
            _ => Ok(()),
        }
    }

    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        match end {
            TxnEnd { db_start: None, db_commit: None, snapshot: None, .. } => Ok(()),
            _ => self.refuse("the database's own timestamps and snapshots"),
        }
    }

    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError> {
        let (format, notation) = (self.format, self.syntax.notation());
        let values = Values { format, notation, scalars_only: false };
        let write = match self.syntax {
            Syntax::Log => log::write,
            Syntax::Edn | Syntax::Json => maps::write,
        };
        // Once through without writing, so that a history refused leaves no half of it behind.
        write(history, &mut std::io::sink(), values)?;
        let mut out = target.into_stream()?;
        write(history, &mut out, values)?;
        Ok(out.flush()?)
    }
}
