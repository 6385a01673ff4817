//! Writes the language, in the one way that the reader gives back unchanged.

use std::collections::HashSet;
use std::io::{BufWriter, Write};

use isolario_model::{
    Clock, Initial, Meta, Op, OpInput, OpNotes, Outcome, SinkError, TxnEnd, TxnSink, TxnStart,
    Value, ValueRef,
};

use super::show::{Dotted, Ending, InHeader, List, OrUnknown, Quoted, Rows, Shown, Sql};
use crate::narrow::{as_unsigned, inexpressible};
use crate::number_set::NumberSet;
use crate::{HistoryWriter, OutputTarget};

/// Writes each transaction as it ends.
pub(super) struct Writer {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The session of the transactions written last.
    session: Option<Value>,
    names: Names,
    /// The name of the transaction, and its operations so far.
    name: Vec<u8>,
    ops: Vec<u8>,
    open: bool,
    /// Whether the output is still empty.
    fresh: bool,
}

/// The names of all transactions so far: none may come twice.
#[derive(Default)]
struct Names {
    numbers: NumberSet,
    others: HashSet<Value>,
}

impl Names {
    /// Adds a name; says whether it is new.
    fn insert(&mut self, name: ValueRef<'_>) -> bool {
        match as_unsigned(name) {
            Some(number) => self.numbers.insert(number),
            None => self.others.insert(name.to_owned()),
        }
    }
}

impl Writer {
    pub(super) fn new(target: OutputTarget) -> Result<Self, SinkError> {
        Ok(Writer {
            out: BufWriter::with_capacity(1 << 16, target.into_stream()?),
            session: None,
            names: Names::default(),
            name: Vec::new(),
            ops: Vec::new(),
            open: false,
            fresh: true,
        })
    }

    fn begin_session(&mut self, session: ValueRef<'_>) -> Result<(), SinkError> {
        if self.session.as_ref().is_some_and(|current| current.as_ref() == session) {
            return Ok(());
        }
        if !self.fresh {
            writeln!(self.out)?;
        }
        self.fresh = false;
        self.session = Some(session.to_owned());
        Ok(writeln!(self.out, "session {}", Shown(session))?)
    }
}

impl HistoryWriter for Writer {
    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        if self.open {
            return Err(SinkError::Sequence("the history ends inside a transaction"));
        }
        Ok(self.out.flush()?)
    }
}

impl TxnSink for Writer {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.fresh = false;
        match &meta.initial {
            Initial::Value(value) => writeln!(self.out, "initial {}", InHeader(value.as_ref()))?,
            Initial::UnlessWritten(value) => {
                writeln!(self.out, "initial {} unless written", InHeader(value.as_ref()))?;
            }
            Initial::Unwritten => writeln!(self.out, "initial unwritten")?,
            Initial::None => writeln!(self.out, "initial none")?,
            _ => return Err(inexpressible("text", "reads marked as reads of the initial state")),
        }
        match meta.clock {
            Clock::Nanoseconds => Ok(()),
            Clock::EventOrder => Ok(writeln!(self.out, "clock order")?),
            _ => Err(inexpressible("text", "this clock")),
        }
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        if self.open {
            return Err(SinkError::Sequence("a transaction begins inside another one"));
        }
        self.open = true;
        self.begin_session(start.session)?;
        self.name.clear();
        self.ops.clear();
        match start.id {
            None => self.name.push(b'_'),
            Some(id) => {
                if !self.names.insert(id) {
                    let what = format!("two transactions of one name, {id}");
                    return Err(inexpressible("text", what));
                }
                write!(self.name, "{}", Shown(id))?;
            }
        }
        Ok(())
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        if notes.version.is_some() {
            return Err(inexpressible("text", "versions apart from values"));
        }
        if notes.sql.is_some() {
            return Err(inexpressible("text", "the statements that operations came from"));
        }
        self.ops.extend_from_slice(if self.ops.is_empty() { b" " } else { b", " });
        put_op(&mut self.ops, op)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        }
        self.open = false;
        let outcome = match end.outcome {
            Outcome::Committed => "",
            Outcome::Aborted => " aborted",
            Outcome::Unknown => " unknown",
        };
        self.out.write_all(b"  ")?;
        self.out.write_all(&self.name)?;
        self.out.write_all(outcome.as_bytes())?;
        if end.start.is_some() || end.finish.is_some() {
            write!(self.out, " [{}, {}]", OrUnknown(end.start), OrUnknown(end.finish))?;
        }
        if end.db_start.is_some() || end.db_commit.is_some() {
            let stamps = [end.db_start, end.db_commit].map(|stamp| OrUnknown(stamp.map(Dotted)));
            write!(self.out, " db [{}, {}]", stamps[0], stamps[1])?;
        }
        for (name, text) in [("snapshot", end.snapshot), ("error", end.error)] {
            if let Some(text) = text {
                write!(self.out, " {name} {}", Quoted(text, '"'))?;
            }
        }
        self.out.write_all(b":")?;
        self.out.write_all(&self.ops)?;
        Ok(self.out.write_all(b"\n")?)
    }
}

fn put_op(buffer: &mut Vec<u8>, op: &OpInput<'_>) -> Result<(), SinkError> {
    Ok(match *op {
        Op::Read { key, value } => {
            write!(buffer, "r {} {}", Shown(key), OrUnknown(value.map(Shown)))
        }
        Op::Write { key, value } => write!(buffer, "w {} {}", Shown(key), Shown(value)),
        Op::Delete { key } => write!(buffer, "delete {}", Shown(key)),
        Op::Append { key, element } => {
            write!(buffer, "append {} {}", Shown(key), Shown(element))
        }
        Op::ReadList { key, elements } => {
            write!(buffer, "r {} [{}]", Shown(key), OrUnknown(elements.map(List)))
        }
        Op::InsertIfAbsent { key, value, applied, seen } => {
            let ending = Ending { applied, seen };
            write!(buffer, "insert {} {} {ending}", Shown(key), Shown(value))
        }
        Op::CompareAndSet { key, expected, new, applied, seen } => {
            let ending = Ending { applied, seen };
            let (key, expected, new) = (Shown(key), Shown(expected), Shown(new));
            write!(buffer, "cas {key} {expected} -> {new} {ending}")
        }
        Op::PredicateRead { predicate, rows } => {
            let (sql, rows) = (Sql { function: None, predicate }, OrUnknown(rows.map(Rows)));
            write!(buffer, "select {sql} -> {rows}")
        }
        Op::PredicateWrite { predicate, rows } => {
            let (sql, rows) = (Sql { function: None, predicate }, OrUnknown(rows.map(Rows)));
            write!(buffer, "update {sql} -> {rows}")
        }
        Op::Aggregate { function, predicate, result } => {
            let sql = Sql { function: Some(function), predicate };
            write!(buffer, "aggregate {sql} -> {}", OrUnknown(result.map(Shown)))
        }
        _ => return Err(inexpressible("text", "this kind of operation")),
    }?)
}
