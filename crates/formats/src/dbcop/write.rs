//! From a history to bytes.

use std::io::{self, Write};

use isolario_model::{
    History, Initial, OpInput, Outcome, SessionId, SinkError, TxnEnd, TxnId, Value,
};

use super::{Dbcop, NAME};
use crate::Target;
use crate::by_value::require_same_meaning;
use crate::collect::Layout;
use crate::express::{register_access, require_outcome, unsigned};

/// The dates that dbcop insists on, in histories that know none.
const NO_DATE: &str = "1970-01-01T00:00:00+00:00";

impl Layout for Dbcop {
    fn admit_op(op: &OpInput<'_>) -> Result<(), SinkError> {
        let access = register_access(NAME, op)?;
        unsigned(NAME, "the key", access.key)?;
        unsigned(NAME, "the value", access.value)?;
        Ok(())
    }

    fn admit_end(end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed, Outcome::Aborted])
    }

    fn write(history: &History, target: Target) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &Initial::Value(Value::Int(0)))?;
        let mut out = target.into_stream()?;
        write_header(history, &mut out)?;
        put(&mut out, history.session_count() as u64)?;
        for session in history.sessions() {
            put(&mut out, history.session_txns(session).len() as u64)?;
            for txn in history.session_txns(session) {
                write_txn(history, txn, &mut out)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn put(out: &mut dyn Write, number: u64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}

fn put_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    put(out, text.len() as u64)?;
    out.write_all(text.as_bytes())
}

/// The sizes are those that dbcop's own generator is asked for: transactions per session and
/// events per transaction, here the most there are.
fn write_header(history: &History, out: &mut dyn Write) -> io::Result<()> {
    let txns = |session: SessionId| history.session_txns(session).len();
    let events = |txn: TxnId| history.txn_ops(txn).len();
    let most_txns = history.sessions().map(txns).max().unwrap_or(0);
    let most_events = history.txns().map(events).max().unwrap_or(0);
    let id = 0;
    for number in [id, history.session_count(), history.key_count(), most_txns, most_events] {
        put(out, number as u64)?;
    }
    put_text(out, "isolario")?;
    put_text(out, NO_DATE)?;
    put_text(out, NO_DATE)
}

fn write_txn(history: &History, txn: TxnId, out: &mut dyn Write) -> Result<(), SinkError> {
    put(out, history.txn_ops(txn).len() as u64)?;
    for op in history.txn_ops(txn) {
        history.with_op_input(op, |input| {
            let access = register_access(NAME, input)?;
            out.write_all(&[u8::from(access.is_write)])?;
            put(out, unsigned(NAME, "the key", access.key)?)?;
            put(out, unsigned(NAME, "the value", access.value)?)?;
            Ok::<(), SinkError>(out.write_all(&[u8::from(true)])?)
        })?;
    }
    let is_committed = history.outcome(txn) == Outcome::Committed;
    Ok(out.write_all(&[u8::from(is_committed)])?)
}
