//! From a history to JSON, one transaction per line.

use std::io::{self, Write};

use isolario_model::{
    History, Initial, Op, OpInput, Outcome, SinkError, Stamp, TxnEnd, TxnId, Value, ValueRef,
};

use super::{Chronos, NAME};
use crate::Target;
use crate::by_value::require_same_meaning;
use crate::collect::Layout;
use crate::express::{describe, inexpressible, numbers_or_positions, require_outcome};

impl Layout for Chronos {
    fn admit_op(op: &OpInput<'_>) -> Result<(), SinkError> {
        write_op(op, &mut io::sink())
    }

    fn admit_end(end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed])?;
        // Made-up timestamps would be taken for what the database promised.
        stamps(end).map(|_| ())
    }

    fn write(history: &History, target: Target) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &Initial::Value(Value::Int(0)))?;
        let names = history.sessions().map(|session| Some(history.session_name(session)));
        let sessions = numbers_or_positions(names, |_| true, 0);
        let ids = numbers_or_positions(history.txns().map(|t| history.txn_name(t)), |_| true, 1);
        let mut out = target.into_stream()?;
        out.write_all(b"[")?;
        for (txn, id) in history.txns().zip(ids) {
            out.write_all(if txn.index() == 0 { b"\n" } else { b",\n" })?;
            let session = sessions[history.session_of(txn).index()];
            write!(out, "{{\"sid\":{session},\"tid\":{id},")?;
            write_txn(history, txn, &mut out)?;
        }
        out.write_all(b"\n]\n")?;
        Ok(out.flush()?)
    }
}

fn stamps(end: &TxnEnd<'_>) -> Result<(Stamp, Stamp), SinkError> {
    match (end.db_start, end.db_commit) {
        (Some(start), Some(commit)) => Ok((start, commit)),
        _ => {
            let what = "transactions without the database's start and commit timestamps";
            Err(inexpressible(NAME, what))
        }
    }
}

fn write_txn(history: &History, txn: TxnId, out: &mut dyn Write) -> Result<(), SinkError> {
    let (start, commit) = stamps(&history.txn_end(txn))?;
    for (name, stamp) in [("sts", start), ("cts", commit)] {
        write!(out, "\"{name}\":{{\"p\":\"{}\",\"l\":{}}},", stamp.physical, stamp.logical)?;
    }
    out.write_all(b"\"ops\":[")?;
    for (position, op) in history.txn_ops(txn).enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        history.with_op_input(op, |input| write_op(input, out))?;
    }
    Ok(out.write_all(b"]}")?)
}

fn write_op(op: &OpInput<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
    match *op {
        Op::Read { key, value: Some(value) } => write_access("r", key, &[value], false, out),
        Op::ReadList { key, elements: Some(list) } => write_access("r", key, list, true, out),
        Op::Write { key, value } => write_access("w", key, &[value], false, out),
        Op::Append { key, element } => write_access("a", key, &[element], false, out),
        _ => Err(inexpressible(NAME, describe(op))),
    }
}

fn write_access(
    kind: &str,
    key: ValueRef<'_>,
    values: &[ValueRef<'_>],
    is_list: bool,
    out: &mut dyn Write,
) -> Result<(), SinkError> {
    let (open, close) = if is_list { ("[", "]") } else { ("", "") };
    write!(out, "{{\"t\":\"{kind}\",\"k\":")?;
    write_scalar(key, out)?;
    write!(out, ",\"v\":{open}")?;
    for (position, value) in values.iter().enumerate() {
        if position > 0 {
            out.write_all(b",")?;
        }
        write_scalar(*value, out)?;
    }
    Ok(write!(out, "{close}}}")?)
}

fn write_scalar(value: ValueRef<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
    match value {
        ValueRef::Nil => out.write_all(b"null")?,
        ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) => write!(out, "{value}")?,
        ValueRef::Text(text) => serde_json::to_writer(out, text).map_err(io::Error::from)?,
        ValueRef::Keyword(_) | ValueRef::Other(_) => {
            let what =
                format!("the value {value}: it takes whole numbers, strings, booleans, null");
            return Err(inexpressible(NAME, what));
        }
    }
    Ok(())
}
