//! Reads a file: blocks on all cores, then the row records after them.

use isolario_model::{Batch, BatchEntries, History, Meta, TxnSink};
use rayon::prelude::*;

use super::block::Block;
use super::bytes::Cursor;
use super::drain::drain;
use super::frames::{Frame, Frames, Next};
use super::in_place;
use super::layout::{Header, OPTIONAL, frame, read_header, unknown};
use super::rows::{Replay, get_rows};
use super::unpack::Unpacker;
use crate::error::Fault;
use crate::{IgnoredItems, Meter, ParsedHistory, Position, Problem, ReadError, Source, Warning};

/// Reads a whole file.
pub(super) fn read(source: &Source) -> Result<ParsedHistory, ReadError> {
    let bytes = source.require_file()?;
    read_bytes(bytes, source.meter()).map_err(|fault| fault.in_binary(source))
}

fn read_bytes(bytes: &[u8], meter: &Meter) -> Result<ParsedHistory, Fault> {
    let header = read_header(bytes).map_err(|problem| Fault::new(0, problem))?;
    let mut rows = Batch::new();
    let body = Body::scan(bytes, &header, &mut rows)?;
    let mut loaded = ParsedHistory::new(history(&body, &header, rows, meter)?);
    loaded.warnings = body.warnings(bytes.len());
    loaded.ignored.extend((header.skipped_entries > 0).then_some(IgnoredItems {
        what: "header entries of a newer version",
        count: header.skipped_entries,
        first: Position::Byte(0),
    }));
    loaded.ignored.extend(body.told.skipped);
    Ok(loaded)
}

fn history(
    body: &Body<'_>,
    header: &Header,
    mut rows: Batch,
    meter: &Meter,
) -> Result<History, Fault> {
    let is_long = body.blocks.len() > 1 && rows.is_empty();
    let plain = is_long.then(|| in_place::read(&body.blocks, &header.meta, meter)).flatten();
    if let Some(history) = plain {
        body.told.check_total(history.txn_count() as u64)?;
        return Ok(history);
    }
    let mut batches = read_blocks(&body.blocks, &header.meta, meter)?;
    body.told.check_total(batches.iter().map(|batch| batch.len() as u64).sum())?;
    if batches.is_empty() || !rows.is_empty() {
        rows.meta(&header.meta).map_err(Fault::refused(0))?;
        batches.push(rows);
    }
    History::from_batches(batches, BatchEntries::Whole).map_err(Fault::refused(header.len))
}

/// Blocks in parallel, errors in the order of the file.
pub(super) fn read_blocks(
    blocks: &[Frame<'_>],
    meta: &Meta,
    meter: &Meter,
) -> Result<Vec<Batch>, Fault> {
    let read = |(block, unpacker): &mut (Block, Unpacker), frame: &Frame<'_>| {
        frame.require_intact()?;
        block.get(frame.content, unpacker)?;
        let mut batch = drain(block)?;
        batch.meta(meta)?;
        meter.add(frame.content.len());
        Ok(batch)
    };
    let batches: Vec<Result<Batch, Problem>> =
        blocks.par_iter().map_init(Default::default, read).collect();
    let placed = |(frame, batch): (&Frame<'_>, Result<_, _>)| {
        batch.map_err(|problem| Fault::new(frame.at, problem))
    };
    blocks.iter().zip(batches).map(placed).collect()
}

/// Passes the transactions of the row records on to a sink. For files of row records alone.
pub(super) fn replay_rows(bytes: &[u8], sink: &mut dyn TxnSink) -> Result<(), Fault> {
    let header = read_header(bytes).map_err(|problem| Fault::new(0, problem))?;
    sink.meta(&header.meta).map_err(Fault::refused(0))?;
    Body::scan(bytes, &header, sink).map(|_| ())
}

/// What comes after the header.
#[derive(Default)]
struct Body<'b> {
    blocks: Vec<Frame<'b>>,
    told: Told<&'b [u8]>,
    /// Transactions that began and did not end.
    unended: u64,
    /// Where the last whole frame ends.
    end: usize,
    /// Where the file is cut.
    cut: Option<usize>,
}

/// What frames have told, but for blocks, which can be read on all cores.
#[derive(Clone)]
pub(super) struct Told<R> {
    pub(super) rows: Replay<R>,
    /// Where the first row record stands.
    first_row: Option<u64>,
    /// Where the end mark stands, and the transactions it counts.
    pub(super) finish: Option<(u64, u64)>,
    skipped: Option<IgnoredItems>,
}

impl<R> Default for Told<R> {
    fn default() -> Self {
        Told { rows: Replay::default(), first_row: None, finish: None, skipped: None }
    }
}

impl<R: AsRef<[u8]>> Told<R> {
    /// Takes the next frame, which stands at a place of the file: a block is set aside, and row records
    /// are replayed into the sink.
    pub(super) fn take<'b>(
        &mut self,
        at: u64,
        frame: Frame<'b>,
        blocks: &mut Vec<Frame<'b>>,
        rows: &mut dyn TxnSink,
    ) -> Result<(), Problem>
    where
        R: From<&'b [u8]>,
    {
        if self.finish.is_some() {
            return Err(Problem::malformed("nothing after the end mark", "a record"));
        }
        match frame.kind {
            // Order of transactions is order in the file, and rows come after all blocks.
            frame::BLOCK if self.first_row.is_some() => {
                return Err(Problem::malformed("a row record or the end mark", "a block"));
            }
            frame::BLOCK => blocks.push(frame),
            frame::BEGIN | frame::OP | frame::END => {
                self.first_row.get_or_insert(at);
                self.rows.take_frame(frame.kind, frame.content, rows)?;
            }
            frame::ROWS => {
                self.first_row.get_or_insert(at);
                get_rows(frame.content, |kind, number, content| {
                    self.rows.take(kind, number, content, rows)
                })?;
            }
            frame::FINISH => {
                let txns = Cursor::new(frame.content).array("a number of transactions")?;
                self.finish = Some((at, u64::from_le_bytes(txns)));
            }
            kind if kind >= OPTIONAL => {
                let first = Position::Byte(at);
                let what = "records of kinds that a newer version knows";
                self.skipped.get_or_insert(IgnoredItems { what, count: 0, first }).count += 1;
            }
            kind => return Err(unknown("a record of a known kind", kind)),
        }
        Ok(())
    }

    /// The end mark counts the transactions: one that is missing with its whole frame is missed.
    pub(super) fn check_total(&self, in_blocks: u64) -> Result<(), Fault> {
        let found = in_blocks + self.rows.txns;
        match self.finish {
            Some((at, counted)) if counted != found => {
                let expected = format!("{counted} transactions before the end");
                Err(Fault::malformed(at as usize, expected, found))
            }
            _ => Ok(()),
        }
    }
}

impl<'b> Body<'b> {
    /// Goes through all frames: collects blocks, and replays row records into the sink.
    fn scan(bytes: &'b [u8], header: &Header, rows: &mut dyn TxnSink) -> Result<Self, Fault> {
        let mut body = Body::default();
        let mut frames = Frames::new(bytes, header);
        loop {
            match frames.next(|kind| kind == frame::BLOCK)? {
                Next::Frame(frame) => {
                    let taken = body.told.take(frame.at as u64, frame, &mut body.blocks, rows);
                    taken.map_err(|problem| Fault::new(frame.at, problem))?;
                }
                Next::End => break,
                Next::Cut => {
                    body.cut = Some(frames.at);
                    break;
                }
            }
        }
        body.end = frames.at;
        let unended = body.told.rows.finish(rows);
        body.unended = unended.map_err(|problem| Fault::new(frames.at, problem))?;
        Ok(body)
    }

    /// What is wrong with the end of the file, and what was made of it.
    fn warnings(&self, len: usize) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let warn = |at: usize, message| Warning { message, position: Position::Byte(at as u64) };
        if let Some(at) = self.cut {
            let lost = len - at;
            warnings.push(warn(
                at,
                format!("the file is truncated: its last {lost} bytes are an incomplete record and are ignored"),
            ));
        } else if self.told.finish.is_none() {
            let message =
                "the file has no end mark: it was truncated, or its recorder did not finish";
            warnings.push(warn(self.end, message.to_owned()));
        }
        if self.unended > 0 {
            let message = match self.unended {
                1 => "1 transaction began and did not end: its outcome is unknown".to_owned(),
                n => format!("{n} transactions began and did not end: their outcome is unknown"),
            };
            let first_row = self.told.first_row.map_or(self.end, |at| at as usize);
            warnings.push(warn(first_row, message));
        }
        warnings
    }
}
