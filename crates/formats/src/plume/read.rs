//! Plume text to a history.

use isolario_model::{
    Batch, History, Meta, Op, Outcome, Pieces, SinkError, TxnEnd, TxnSink, TxnStart, Value,
    ValueRef,
};

use super::INITIAL;
use super::scan::{Line, Owner, Scanner};
use crate::chunks::{self, Chunk, Fault};
use crate::error::{Position, Problem};
use crate::meter::Meter;

/// Reads a whole history in chunks of about `chunk_size` bytes, which do not show in the result.
pub(super) fn history(bytes: &[u8], chunk_size: usize, meter: &Meter) -> Result<History, Fault> {
    let mut batches = chunks::parse(bytes, chunk_size, |chunk| {
        let batch = batch(chunk);
        meter.add(chunk.bytes.len());
        batch
    })?;
    if batches.is_empty() {
        batches.push(empty_batch(0)?);
    }
    History::from_batches(batches, Pieces::ByName).map_err(|error| {
        let position = position_of(&error, bytes).map_or(Position::Whole, Position::Line);
        Box::new((position, error.into()))
    })
}

/// The shortest operation and its newline: `r(0,0,0,0)`.
const SHORTEST_LINE: usize = 11;

/// The runs of operations of a chunk. A run ends where the session or the transaction changes.
fn batch(chunk: Chunk<'_>) -> Result<Batch, Fault> {
    let mut batch = empty_batch(chunk.lines.min(chunk.bytes.len() / SHORTEST_LINE + 1))?;
    let mut scanner = Scanner::new(chunk);
    let mut run: Option<Owner> = None;
    while let Some(line) = scanner.next()? {
        if line.begins_run {
            if let Some(owner) = run {
                end_run(&mut batch, owner).map_err(at(line.number))?;
            }
            begin_run(&mut batch, &line).map_err(at(line.number))?;
            run = Some(line.owner);
        }
        let (key, value) = (ValueRef::from(line.key), ValueRef::from(line.value));
        let op = match line.is_write {
            true => Op::Write { key, value },
            false => Op::Read { key, value: Some(value) },
        };
        batch.op(&op).map_err(at(line.number))?;
    }
    if let Some(owner) = run {
        end_run(&mut batch, owner).map_err(at(chunk.first_line))?;
    }
    Ok(batch)
}

fn empty_batch(ops: usize) -> Result<Batch, Fault> {
    let mut batch = Batch::with_capacity(0, ops);
    batch.meta(&Meta { initial: INITIAL, ..Meta::default() }).map_err(at(1))?;
    Ok(batch)
}

fn begin_run(batch: &mut Batch, line: &Line) -> Result<(), SinkError> {
    let Owner { session, txn } = line.owner;
    batch.begin(&TxnStart {
        session: session.into(),
        id: txn.map(ValueRef::from),
        line: Some(line.number),
    })
}

fn end_run(batch: &mut Batch, owner: Owner) -> Result<(), SinkError> {
    let outcome = if owner.txn.is_some() { Outcome::Committed } else { Outcome::Aborted };
    batch.end(&TxnEnd::new(outcome))
}

fn at(line: u64) -> impl Fn(SinkError) -> Fault {
    move |error| Box::new((Position::Line(line), Problem::from(error)))
}

/// The line that makes a transaction belong to a second session. Only looked for once that is
/// known to be the case, so that a good file does not pay for it.
fn position_of(error: &SinkError, bytes: &[u8]) -> Option<u64> {
    let SinkError::TwoSessions { txn, second, .. } = error else { return None };
    let mut scanner = Scanner::new(Chunk { bytes, first_line: 1, lines: 0 });
    while let Ok(Some(line)) = scanner.next() {
        let Owner { session, txn: Some(name) } = line.owner else { continue };
        if is_number(txn, name) && is_number(second, session) {
            return Some(line.number);
        }
    }
    None
}

fn is_number(value: &Value, number: u64) -> bool {
    value.as_ref() == ValueRef::from(number)
}
