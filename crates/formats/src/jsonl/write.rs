//! From transactions to lines.

use std::io::{BufWriter, Write};

use isolario_model::{
    Clock, Initial, Meta, Op, OpInput, OpNotes, Outcome, RowInput, SinkError, Stamp, TxnEnd,
    TxnSink, TxnStart, ValueRef,
};

use super::ops::UNOBSERVED;
use super::record::VERSION;
use super::value::{push_value, push_values, push_version};
use crate::narrow::inexpressible;
use crate::notation::json;
use crate::{HistoryWriter, OutputTarget};

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
    pub(super) fn new(target: OutputTarget) -> Result<Self, SinkError> {
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
        let mut initial = Vec::new();
        put_initial(&mut initial, &meta.initial)?;
        write!(self.out, "{{\"isolario\":{VERSION},\"initial\":")?;
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
        push_value(&mut self.line, start.session)?;
        match start.id {
            None => {}
            Some(ValueRef::Nil) => return Err(inexpressible("jsonl", "a transaction named nil")),
            Some(id) => {
                self.line.extend_from_slice(b",\"id\":");
                push_value(&mut self.line, id)?;
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
            json::push_text(&mut self.sql, sql);
        }
        if let Some(version) = notes.version {
            put_index(&mut self.versions, self.op_count)?;
            push_version(&mut self.versions, version);
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
    let tagged = |buffer: &mut Vec<u8>, tag: &[u8], value| {
        buffer.extend_from_slice(tag);
        push_value(buffer, value)?;
        buffer.push(b'}');
        Ok::<(), SinkError>(())
    };
    match initial {
        Initial::Value(value) => match value.as_ref() {
            scalar @ (ValueRef::Nil | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_)) => {
                push_value(buffer, scalar)?;
            }
            value => tagged(buffer, b"{\"value\":", value)?,
        },
        Initial::UnlessWritten(value) => {
            tagged(buffer, b"{\"unless_written\":", value.as_ref())?;
        }
        Initial::Unwritten => json::push_text(buffer, "unwritten"),
        Initial::Marked => json::push_text(buffer, "marked"),
        Initial::None => json::push_text(buffer, "none"),
        _ => return Err(inexpressible("jsonl", "this initial state")),
    }
    Ok(())
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
            json::push_text(buffer, text);
        }
    }
    Ok(())
}

fn put_op(buffer: &mut Vec<u8>, op: &OpInput<'_>) -> Result<(), SinkError> {
    match *op {
        Op::Read { key, value: Some(value) } => put_values(buffer, "r", &[key, value])?,
        Op::Read { key, value: None } => {
            put_values(buffer, "r", &[key])?;
            put_unobserved(buffer, "null")?;
        }
        Op::Write { key, value } => put_values(buffer, "w", &[key, value])?,
        Op::Delete { key } => put_values(buffer, "delete", &[key])?,
        Op::Append { key, element } => put_values(buffer, "append", &[key, element])?,
        Op::ReadList { key, elements } => {
            put_values(buffer, "r", &[key])?;
            match elements {
                Some(elements) => {
                    buffer.push(b',');
                    push_values(buffer, elements)?;
                }
                None => put_unobserved(buffer, "[]")?,
            }
        }
        Op::InsertIfAbsent { key, value, applied, seen } => {
            put_values(buffer, "insert", &[key, value])?;
            put_ending(buffer, applied, seen)?;
        }
        Op::CompareAndSet { key, expected, new, applied, seen } => {
            put_values(buffer, "cas", &[key, expected, new])?;
            put_ending(buffer, applied, seen)?;
        }
        Op::PredicateRead { predicate, rows } => {
            put_values(buffer, "select", &[(&predicate.to_string()).into()])?;
            put_rows(buffer, rows)?;
        }
        Op::PredicateWrite { predicate, rows } => {
            put_values(buffer, "update", &[(&predicate.to_string()).into()])?;
            put_rows(buffer, rows)?;
        }
        Op::Aggregate { function, predicate, result } => {
            let (function, predicate) = (function.to_string(), predicate.to_string());
            put_values(buffer, "aggregate", &[(&function).into(), (&predicate).into()])?;
            match result {
                Some(result) => put_more(buffer, &[result])?,
                None => put_unobserved(buffer, "null")?,
            }
        }
        _ => return Err(inexpressible("jsonl", "this kind of operation")),
    }
    buffer.push(b']');
    Ok(())
}

/// The bracket of an operation, its tag, and values.
fn put_values(buffer: &mut Vec<u8>, tag: &str, values: &[ValueRef<'_>]) -> Result<(), SinkError> {
    buffer.extend_from_slice(b"[\"");
    buffer.extend_from_slice(tag.as_bytes());
    buffer.push(b'"');
    put_more(buffer, values)
}

fn put_more(buffer: &mut Vec<u8>, values: &[ValueRef<'_>]) -> Result<(), SinkError> {
    for value in values {
        buffer.push(b',');
        push_value(buffer, *value)?;
    }
    Ok(())
}

fn put_unobserved(buffer: &mut Vec<u8>, answer: &str) -> Result<(), SinkError> {
    buffer.push(b',');
    buffer.extend_from_slice(answer.as_bytes());
    put_more(buffer, &[UNOBSERVED.into()])
}

fn put_ending(
    buffer: &mut Vec<u8>,
    applied: Option<bool>,
    seen: Option<ValueRef<'_>>,
) -> Result<(), SinkError> {
    put_more(buffer, &[applied.map_or(ValueRef::Nil, ValueRef::Bool)])?;
    put_more(buffer, seen.as_slice())
}

fn put_rows(buffer: &mut Vec<u8>, rows: Option<&[RowInput<'_>]>) -> Result<(), SinkError> {
    let Some(rows) = rows else { return put_unobserved(buffer, "null") };
    buffer.push(b',');
    json::push_array(buffer, rows, |buffer, row| {
        buffer.push(b'[');
        push_value(buffer, row.key)?;
        put_more(buffer, &[row.value])?;
        if let Some(version) = row.version {
            buffer.push(b',');
            push_version(buffer, version);
        }
        buffer.push(b']');
        Ok(())
    })
}

fn put_index(buffer: &mut Vec<u8>, index: usize) -> Result<(), SinkError> {
    let comma = if buffer.is_empty() { "" } else { "," };
    Ok(write!(buffer, "{comma}\"{index}\":")?)
}
