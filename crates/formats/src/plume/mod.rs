//! `plume`: the text of Plume and PolySI, one operation per line.
//!
//! ```text
//! w(7,1,0,12)
//! r(7,1,1,13)
//! w(8,2,1,-1)
//! ```
//!
//! is a write (`w`) or a read (`r`) of a key, with its value, its session and its transaction: all
//! of them decimal numbers from 0 to 2^64 - 1.
//!
//! - The order of lines is program order inside a transaction, and the order in which
//!   transactions first appear is their order inside a session. Transactions may interleave.
//! - Transaction -1 is not a name: it marks operations of aborted transactions. Those that follow
//!   one another in their session are one transaction.
//! - A read of 0 refers to a write of 0 to its key, if there is one, and to the initial state
//!   otherwise ([`Initial::UnlessWritten`]).
//! - Blank lines, spaces, tabs and `\r` at line ends are of no account.
//!
//! The writer leaves out what only annotates: times, database timestamps, line numbers, errors,
//! snapshots, statements, and the names of aborted transactions, of which two that follow one
//! another in a session become one. It refuses what would change the meaning: see [`mod@write`].

mod in_place;
mod scan;
mod write;

use isolario_model::{
    Batch, BatchEntries, History, Initial, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart,
    Value, ValueRef,
};

use crate::error::Fault;
use crate::lines::{self, Chunk};
use crate::{HistoryFormat, HistoryWriter, Meter, OutputTarget, ParsedHistory, ReadError, Source};
use scan::{Line, Owner, Scanner};

/// Plume and PolySI text.
pub(crate) struct Plume;

const NAME: &str = "plume";

/// What a key holds at first, unless a client writes that value.
const INITIAL: Initial = Initial::UnlessWritten(Value::Int(0));

impl HistoryFormat for Plume {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Plume and PolySI text: r(key,value,session,txn) on each line"
    }

    fn sniff(&self, source: &Source) -> bool {
        source.file().is_some_and(scan::looks_like_operations)
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        let bytes = source.require_file()?;
        read(bytes, lines::good_chunk_size(bytes), source.meter())
            .map(ParsedHistory::new)
            .map_err(|fault| fault.in_text(source, bytes))
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target.into_stream()?)))
    }
}

/// Reads a whole history in chunks of about `chunk_size` bytes, which do not show in the result.
fn read(bytes: &[u8], chunk_size: usize, meter: &Meter) -> Result<History, Fault> {
    if let Some(history) = in_place::read(bytes, chunk_size, meter) {
        return Ok(history);
    }
    meter.begin(bytes.len());
    read_in_batches(bytes, chunk_size, meter)
}

/// Reads any history.
fn read_in_batches(bytes: &[u8], chunk_size: usize, meter: &Meter) -> Result<History, Fault> {
    let mut batches = lines::parse_chunks(bytes, chunk_size, |chunk| {
        let batch = batch(chunk).map_err(|fault| fault.shifted(chunk.start));
        meter.add(chunk.bytes.len());
        batch
    })?;
    if batches.is_empty() {
        batches.push(empty_batch(0)?);
    }
    History::from_batches(batches, BatchEntries::ByName)
        .map_err(|error| Fault::new(place_of(&error, bytes).unwrap_or(0), error))
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
                end_run(&mut batch, owner).map_err(Fault::refused(line.at))?;
            }
            begin_run(&mut batch, &line).map_err(Fault::refused(line.at))?;
            run = Some(line.owner);
        }
        let (key, value) = (ValueRef::from(line.key), ValueRef::from(line.value));
        let op = match line.is_write {
            true => Op::Write { key, value },
            false => Op::Read { key, value: Some(value) },
        };
        batch.op(&op).map_err(Fault::refused(line.at))?;
    }
    if let Some(owner) = run {
        end_run(&mut batch, owner).map_err(Fault::refused(0))?;
    }
    Ok(batch)
}

fn empty_batch(ops: usize) -> Result<Batch, Fault> {
    let mut batch = Batch::with_capacity(0, ops);
    batch.meta(&Meta { initial: INITIAL, ..Meta::default() }).map_err(Fault::refused(0))?;
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

/// The line that makes a transaction belong to a second session. Only looked for once that is
/// known to be the case, so that a good file does not pay for it.
fn place_of(error: &SinkError, bytes: &[u8]) -> Option<usize> {
    let SinkError::TwoSessions { txn, second, .. } = error else { return None };
    let mut scanner = Scanner::new(Chunk { bytes, start: 0, first_line: 1, lines: 0 });
    while let Ok(Some(line)) = scanner.next() {
        let Owner { session, txn: Some(name) } = line.owner else { continue };
        if is_number(txn, name) && is_number(second, session) {
            return Some(line.at);
        }
    }
    None
}

fn is_number(value: &Value, number: u64) -> bool {
    value.as_ref() == ValueRef::from(number)
}

#[cfg(test)]
mod tests;
