//! A history to Plume text.
//!
//! Refused, because it would read back as something else: keys, and values, that are not whole
//! numbers from 0 on; operations other than reads with a value and writes; versions named apart
//! from their values; unknown outcomes; transactions without operations; an initial state other
//! than 0; and where `init` writes 0 for certain, a client that writes 0 as well.
//!
//! Sessions and transactions keep their names if those are whole numbers from 0 on and not taken
//! yet; the others get the smallest free numbers.

use std::io;

use isolario_model::{
    Initial, Meta, Op, OpInput, OpNotes, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value,
    ValueRef,
};
use rustc_hash::FxHashMap;

use super::NAME;
use crate::HistoryWriter;
use crate::decimal::push_u64;
use crate::narrow::{as_unsigned, inexpressible};
use crate::number_set::NumberSet;

/// Written to the stream in pieces of this size.
const BUFFER: usize = 1 << 16;

/// Writes Plume text, transaction by transaction.
pub(super) struct Writer {
    out: Box<dyn io::Write + Send>,
    buffer: Vec<u8>,
    /// None before the history said what its initial state is.
    zero: Option<Zero>,
    txn: Option<OpenTxn>,
    /// The operations of the open transaction: how it ends, which every line says, comes last.
    ops: Vec<Written>,
    sessions: FxHashMap<Value, u64>,
    session_numbers: Numbers,
    txn_numbers: Numbers,
}

/// What 0 is to this history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zero {
    /// The initial value of keys on which no client writes it: what Plume text means.
    UnlessWritten,
    /// The initial value of every key: the same, as long as no client writes it.
    Always,
}

struct OpenTxn {
    session: u64,
    name: Option<u64>,
}

struct Written {
    kind: u8,
    key: u64,
    value: u64,
}

/// Numbers in use, and the smallest that may be free.
#[derive(Default)]
struct Numbers {
    taken: NumberSet,
    next: u64,
}

impl Numbers {
    /// The wanted number if it is free, else the smallest free one.
    fn take(&mut self, wanted: Option<u64>) -> u64 {
        if let Some(wanted) = wanted
            && self.taken.insert(wanted)
        {
            return wanted;
        }
        while !self.taken.insert(self.next) {
            self.next += 1;
        }
        self.next
    }
}

impl Writer {
    pub(super) fn new(out: Box<dyn io::Write + Send>) -> Self {
        Writer {
            out,
            buffer: Vec::with_capacity(BUFFER),
            zero: None,
            txn: None,
            ops: Vec::new(),
            sessions: FxHashMap::default(),
            session_numbers: Numbers::default(),
            txn_numbers: Numbers::default(),
        }
    }

    fn session_number(&mut self, name: ValueRef<'_>) -> u64 {
        let wanted = as_unsigned(name);
        let name = name.to_owned();
        *self.sessions.entry(name).or_insert_with(|| self.session_numbers.take(wanted))
    }

    fn push_line(&mut self, op: &Written, session: u64, txn: Option<u64>) {
        let buffer = &mut self.buffer;
        buffer.extend_from_slice(&[op.kind, b'(']);
        push_u64(buffer, op.key);
        buffer.push(b',');
        push_u64(buffer, op.value);
        buffer.push(b',');
        push_u64(buffer, session);
        match txn {
            Some(txn) => {
                buffer.push(b',');
                push_u64(buffer, txn);
            }
            None => buffer.extend_from_slice(b",-1"),
        }
        buffer.extend_from_slice(b")\n");
    }

    fn flush_buffer(&mut self) -> Result<(), SinkError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl TxnSink for Writer {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        const ZERO: Value = Value::Int(0);
        self.zero = Some(match &meta.initial {
            Initial::UnlessWritten(ZERO) => Zero::UnlessWritten,
            Initial::Value(ZERO) => Zero::Always,
            _ => return Err(cannot("an initial state other than 0")),
        });
        Ok(())
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        if self.txn.is_some() {
            return Err(SinkError::Sequence("a transaction begins inside another one"));
        }
        if self.zero.is_none() {
            self.meta(&Meta::default())?;
        }
        let session = self.session_number(start.session);
        self.txn = Some(OpenTxn { session, name: start.id.and_then(as_unsigned) });
        Ok(())
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if self.txn.is_none() {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        if notes.version.is_some() {
            return Err(cannot("versions named apart from their values"));
        }
        let (kind, key, value) = match *op {
            Op::Read { key, value: Some(value) } => (b'r', key, value),
            Op::Write { key, value } => (b'w', key, value),
            _ => return Err(cannot(kind_of(op))),
        };
        let (Some(key_number), Some(value_number)) = (as_unsigned(key), as_unsigned(value)) else {
            let (what, name) = match as_unsigned(key) {
                None => ("key", key),
                Some(_) => ("value", value),
            };
            return Err(cannot(format!("the {what} {name}: only whole numbers from 0 on")));
        };
        if kind == b'w' && value_number == 0 && self.zero == Some(Zero::Always) {
            return Err(cannot("a write of 0 where 0 is the initial value of every key"));
        }
        self.ops.push(Written { kind, key: key_number, value: value_number });
        Ok(())
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let Some(OpenTxn { session, name }) = self.txn.take() else {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        };
        let ops = std::mem::take(&mut self.ops);
        if ops.is_empty() {
            return Err(cannot("a transaction without operations"));
        }
        let txn = match end.outcome {
            Outcome::Committed => Some(self.txn_numbers.take(name)),
            Outcome::Aborted => None,
            Outcome::Unknown => return Err(cannot("a transaction of unknown outcome")),
        };
        for op in &ops {
            self.push_line(op, session, txn);
            if self.buffer.len() >= BUFFER {
                self.flush_buffer()?;
            }
        }
        self.ops = ops;
        self.ops.clear();
        Ok(())
    }
}

impl HistoryWriter for Writer {
    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        self.flush_buffer()?;
        Ok(self.out.flush()?)
    }
}

fn cannot(what: impl Into<String>) -> SinkError {
    inexpressible(NAME, what)
}

/// What to call an operation that Plume text has no line for.
fn kind_of(op: &OpInput<'_>) -> &'static str {
    match op {
        Op::Read { .. } => "a read without a value",
        Op::Delete { .. } => "a delete",
        Op::Append { .. } | Op::ReadList { .. } => "operations on lists",
        Op::InsertIfAbsent { .. } | Op::CompareAndSet { .. } => "conditional writes",
        Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. } => {
            "predicate operations"
        }
        _ => "operations of this kind",
    }
}
