//! From transactions to lines.

use std::io::{BufWriter, Write};

use isolario_model::{
    Clock, Initial, Meta, Op, OpInput, OpNotes, Outcome, SinkError, Stamp, TxnEnd, TxnSink,
    TxnStart, ValueRef, VersionRef,
};

use super::ops::UNOBSERVED;
use super::record::VERSION;
use crate::express::inexpressible;
use crate::{HistoryWriter, Target};

/// Writes each transaction as it ends.
pub(super) struct Writer {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The line so far: session and name, then the rest as the transaction ends.
    line: Vec<u8>,
    /// The operations so far, with commas between.
    ops: Vec<u8>,
    op_count: usize,
    sql: Vec<u8>,
    versions: Vec<u8>,
    open: bool,
}

impl Writer {
    pub(super) fn new(target: Target) -> Result<Self, SinkError> {
        Ok(Writer {
            out: BufWriter::with_capacity(1 << 16, target.into_stream()?),
            line: Vec::new(),
            ops: Vec::new(),
            op_count: 0,
            sql: Vec::new(),
            versions: Vec::new(),
            open: false,
        })
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
        write!(self.out, "{{\"isolario\":{VERSION},\"initial\":")?;
        let mut initial = Vec::new();
        put_initial(&mut initial, &meta.initial)?;
        self.out.write_all(&initial)?;
        let clock = match meta.clock {
            Clock::Nanoseconds => "ns",
            Clock::EventOrder => "order",
            _ => return Err(inexpressible("jsonl", "this clock")),
        };
        Ok(writeln!(self.out, ",\"clock\":\"{clock}\"}}")?)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        if self.open {
            return Err(SinkError::Sequence("a transaction begins inside another one"));
        }
        self.open = true;
        for buffer in [&mut self.line, &mut self.ops, &mut self.sql, &mut self.versions] {
            buffer.clear();
        }
        self.op_count = 0;
        self.line.extend_from_slice(b"{\"session\":");
        put_value(&mut self.line, start.session)?;
        match start.id {
            None => {}
            Some(ValueRef::Nil) => return Err(inexpressible("jsonl", "a transaction named nil")),
            Some(id) => {
                self.line.extend_from_slice(b",\"id\":");
                put_value(&mut self.line, id)?;
            }
        }
        Ok(())
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        if let Some(sql) = notes.sql {
            put_index(&mut self.sql, self.op_count)?;
            put_text(&mut self.sql, sql)?;
        }
        if let Some(version) = notes.version {
            put_index(&mut self.versions, self.op_count)?;
            put_version(&mut self.versions, version)?;
        }
        if self.op_count > 0 {
            self.ops.push(b',');
        }
        self.op_count += 1;
        put_op(&mut self.ops, op)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        }
        self.open = false;
        put_end(&mut self.line, end)?;
        self.line.extend_from_slice(b",\"ops\":[");
        self.line.extend_from_slice(&self.ops);
        self.line.push(b']');
        for (name, entries) in [("sql", &self.sql), ("versions", &self.versions)] {
            if !entries.is_empty() {
                write!(self.line, ",\"{name}\":{{")?;
                self.line.extend_from_slice(entries);
                self.line.push(b'}');
            }
        }
        self.line.extend_from_slice(b"}\n");
        Ok(self.out.write_all(&self.line)?)
    }
}

fn put_initial(buffer: &mut Vec<u8>, initial: &Initial) -> Result<(), SinkError> {
    let tagged = |buffer: &mut Vec<u8>, tag, value| {
        write!(buffer, "{{\"{tag}\":")?;
        put_value(buffer, value)?;
        buffer.push(b'}');
        Ok(())
    };
    match initial {
        Initial::Value(value) => match value.as_ref() {
            scalar @ (ValueRef::Nil | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_)) => {
                put_value(buffer, scalar)
            }
            value => tagged(buffer, "value", value),
        },
        Initial::UnlessWritten(value) => tagged(buffer, "unless_written", value.as_ref()),
        Initial::Unwritten => put_text(buffer, "unwritten"),
        Initial::Marked => put_text(buffer, "marked"),
        Initial::None => put_text(buffer, "none"),
        _ => Err(inexpressible("jsonl", "this initial state")),
    }
}

fn put_end(buffer: &mut Vec<u8>, end: &TxnEnd<'_>) -> Result<(), SinkError> {
    match end.outcome {
        Outcome::Committed => {}
        Outcome::Aborted => buffer.extend_from_slice(b",\"outcome\":\"aborted\""),
        Outcome::Unknown => buffer.extend_from_slice(b",\"outcome\":\"unknown\""),
    }
    for (name, time) in [("start", end.start), ("finish", end.finish)] {
        if let Some(time) = time {
            write!(buffer, ",\"{name}\":{time}")?;
        }
    }
    for (name, stamp) in [("db_start", end.db_start), ("db_commit", end.db_commit)] {
        match stamp {
            None => {}
            Some(Stamp { physical, logical: 0 }) => write!(buffer, ",\"{name}\":{physical}")?,
            Some(Stamp { physical, logical }) => {
                write!(buffer, ",\"{name}\":[{physical},{logical}]")?;
            }
        }
    }
    for (name, text) in [("snapshot", end.snapshot), ("error", end.error)] {
        if let Some(text) = text {
            write!(buffer, ",\"{name}\":")?;
            put_text(buffer, text)?;
        }
    }
    Ok(())
}

fn put_op(buffer: &mut Vec<u8>, op: &OpInput<'_>) -> Result<(), SinkError> {
    let mut array = Array::new(buffer);
    match *op {
        Op::Read { key, value: Some(value) } => array.tag("r")?.value(key)?.value(value)?,
        Op::Read { key, value: None } => array.tag("r")?.value(key)?.unobserved("null")?,
        Op::Write { key, value } => array.tag("w")?.value(key)?.value(value)?,
        Op::Delete { key } => array.tag("delete")?.value(key)?,
        Op::Append { key, element } => array.tag("append")?.value(key)?.value(element)?,
        Op::ReadList { key, elements: None } => array.tag("r")?.value(key)?.unobserved("[]")?,
        Op::ReadList { key, elements: Some(elements) } => {
            array.tag("r")?.value(key)?.list(elements)?
        }
        Op::InsertIfAbsent { key, value, applied, seen } => {
            array.tag("insert")?.value(key)?.value(value)?.result(applied, seen)?
        }
        Op::CompareAndSet { key, expected, new, applied, seen } => {
            array.tag("cas")?.value(key)?.value(expected)?.value(new)?.result(applied, seen)?
        }
        Op::PredicateRead { predicate, rows } => {
            array.tag("select")?.value(predicate.into())?.rows(rows)?
        }
        Op::PredicateWrite { predicate, rows } => {
            array.tag("update")?.value(predicate.into())?.rows(rows)?
        }
        Op::Aggregate { function, predicate, result } => {
            let array = array.tag("aggregate")?.value(function.into())?.value(predicate.into())?;
            match result {
                Some(result) => array.value(result)?,
                None => array.unobserved("null")?,
            }
        }
        _ => return Err(inexpressible("jsonl", "this kind of operation")),
    };
    buffer.push(b']');
    Ok(())
}

/// The array of an operation, element by element.
struct Array<'b> {
    buffer: &'b mut Vec<u8>,
}

type Step<'s, 'b> = Result<&'s mut Array<'b>, SinkError>;

impl<'b> Array<'b> {
    fn new(buffer: &'b mut Vec<u8>) -> Self {
        Array { buffer }
    }

    fn tag(&mut self, tag: &str) -> Step<'_, 'b> {
        write!(self.buffer, "[\"{tag}\"")?;
        Ok(self)
    }

    fn value(&mut self, value: ValueRef<'_>) -> Step<'_, 'b> {
        self.buffer.push(b',');
        put_value(self.buffer, value)?;
        Ok(self)
    }

    fn unobserved(&mut self, answer: &str) -> Step<'_, 'b> {
        write!(self.buffer, ",{answer},\"{UNOBSERVED}\"")?;
        Ok(self)
    }

    fn list(&mut self, values: &[ValueRef<'_>]) -> Step<'_, 'b> {
        self.buffer.extend_from_slice(b",[");
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.buffer.push(b',');
            }
            put_value(self.buffer, *value)?;
        }
        self.buffer.push(b']');
        Ok(self)
    }

    fn rows(&mut self, rows: Option<&[(ValueRef<'_>, ValueRef<'_>)]>) -> Step<'_, 'b> {
        let Some(rows) = rows else { return self.unobserved("null") };
        self.buffer.extend_from_slice(b",[");
        for (i, (key, value)) in rows.iter().enumerate() {
            self.buffer.extend_from_slice(if i > 0 { b",[" } else { b"[" });
            put_value(self.buffer, *key)?;
            self.value(*value)?;
            self.buffer.push(b']');
        }
        self.buffer.push(b']');
        Ok(self)
    }

    fn result(&mut self, applied: Option<bool>, seen: Option<ValueRef<'_>>) -> Step<'_, 'b> {
        self.value(applied.map_or(ValueRef::Nil, ValueRef::Bool))?;
        match seen {
            Some(seen) => self.value(seen),
            None => Ok(self),
        }
    }
}

fn put_index(buffer: &mut Vec<u8>, index: usize) -> Result<(), SinkError> {
    let comma = if buffer.is_empty() { "" } else { "," };
    Ok(write!(buffer, "{comma}\"{index}\":")?)
}

fn put_version(buffer: &mut Vec<u8>, version: VersionRef) -> Result<(), SinkError> {
    Ok(match version {
        VersionRef::Initial => write!(buffer, "\"initial\""),
        VersionRef::ByWriter { txn, write } => {
            write!(buffer, "{{\"txn\":{txn},\"write\":{write}}}")
        }
        VersionRef::ByWrite { write, value } => {
            write!(buffer, "{{\"write\":{write},\"value\":{value}}}")
        }
    }?)
}

fn put_value(buffer: &mut Vec<u8>, value: ValueRef<'_>) -> Result<(), SinkError> {
    let mut tagged = |tag, text| {
        write!(buffer, "{{\"{tag}\":")?;
        put_text(buffer, text)?;
        buffer.push(b'}');
        Ok(())
    };
    match value {
        ValueRef::Keyword(text) => tagged("keyword", text),
        ValueRef::Other(text) => tagged("other", text),
        ValueRef::Text(text) => put_text(buffer, text),
        ValueRef::Nil => Ok(write!(buffer, "null")?),
        ValueRef::Bool(b) => Ok(write!(buffer, "{b}")?),
        ValueRef::Int(i) => Ok(write!(buffer, "{i}")?),
        ValueRef::Uint(u) => Ok(write!(buffer, "{u}")?),
    }
}

fn put_text(buffer: &mut Vec<u8>, text: &str) -> Result<(), SinkError> {
    Ok(serde_json::to_writer(buffer, text).map_err(std::io::Error::from)?)
}
