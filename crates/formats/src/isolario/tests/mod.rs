//! Tests of whole files, by what they protect.

mod damage;
mod golden;
mod recording;
mod refusals;
mod round_trip;
mod tail;

use isolario_model::{
    Batch, History, Op, OpInput, OpNotes, Outcome, SinkError, TxnEnd, TxnId, TxnSink, TxnStart,
};

use isolario_fuzz::arbitrary::{Facts, sample};
use tempfile::NamedTempFile;

use super::Isolario;
use super::bytes::put_varint;
use super::fill::BlockSize;
use super::layout::{HEAD, frame, put_frame};
use super::rows::{put_begin, put_done, put_end};
use super::write::Writer;
use crate::{HistoryFormat, ParsedHistory, ReadError, Source};

pub(super) fn load(bytes: &[u8]) -> Result<ParsedHistory, ReadError> {
    Isolario.read(&Source::from_bytes("h.iso", bytes.to_vec())?)
}

/// A file of blocks, as `fill` writes into it.
pub(super) fn blocks(
    size: BlockSize,
    fill: impl FnOnce(&mut dyn TxnSink) -> Result<(), SinkError>,
) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), size);
    fill(&mut writer).unwrap();
    writer.complete().unwrap()
}

/// A history of so many transactions with everything that a history can have.
pub(super) fn any(txns: usize) -> History {
    sample(Facts::All, txns).unwrap()
}

/// A history, as `fill` tells it.
pub(super) fn history(fill: impl FnOnce(&mut dyn TxnSink) -> Result<(), SinkError>) -> History {
    let mut batch = Batch::new();
    fill(&mut batch).unwrap();
    batch.build().unwrap()
}

/// Blocks of `size` transactions for the first `in_blocks` ones, row records for the others, and
/// the end mark. The transactions in rows overlap: each begins before the one before it ends.
pub(super) fn mixed_file(history: &History, in_blocks: usize, size: usize) -> Vec<u8> {
    let txns: Vec<TxnId> = history.txns().collect();
    let (packed, rows) = txns.split_at(in_blocks);
    let mut bytes = blocks(BlockSize { txns: size, ..BlockSize::default() }, |sink| {
        sink.meta(history.meta())?;
        packed.iter().try_for_each(|txn| history.replay_txn(*txn, sink))
    });
    bytes.truncate(bytes.len() - HEAD - 8);
    let mut appender = Appender { bytes, next: 0, ending: None };
    rows.iter().for_each(|txn| history.replay_txn(*txn, &mut appender).unwrap());
    appender.end_last();
    let total = txns.len() as u64;
    appender.frame(frame::FINISH, |out| out.extend_from_slice(&total.to_le_bytes()));
    appender.bytes
}

/// Appends row records; a transaction's end waits for the next one's beginning.
struct Appender {
    bytes: Vec<u8>,
    next: u64,
    ending: Option<Vec<u8>>,
}

impl Appender {
    fn frame(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        let filled = put_frame(&mut self.bytes, kind, |out| {
            fill(out);
            Ok(())
        });
        filled.unwrap();
    }

    fn end_last(&mut self) {
        if let Some(end) = self.ending.take() {
            self.frame(frame::END, |out| out.extend_from_slice(&end));
        }
    }
}

/// Writes each call as a record.
impl TxnSink for Appender {
    fn meta(&mut self, _: &isolario_model::Meta) -> Result<(), SinkError> {
        Ok(())
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        let number = self.next;
        put_frame(&mut self.bytes, frame::BEGIN, |out| {
            put_varint(out, number);
            put_begin(out, start, None, &[])
        })?;
        self.end_last();
        Ok(())
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        put_frame(&mut self.bytes, frame::OP, |out| {
            put_varint(out, self.next);
            put_done(out, op, notes)
        })
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let mut content = Vec::new();
        put_varint(&mut content, self.next);
        put_end(&mut content, end, false);
        self.ending = Some(content);
        self.next += 1;
        Ok(())
    }
}

/// All that a sink would be told of a transaction.
pub(super) fn describe(history: &History, txn: TxnId) -> String {
    let mut text = format!("{:?} {:?}", history.txn_name(txn), history.line(txn));
    for op in history.txn_ops(txn) {
        let notes = (history.op_version(op), history.op_sql(op));
        history.with_op_input(op, |input| text += &format!("\n  {input:?} {notes:?}"));
    }
    text + &format!("\n  {:?}", history.txn_end(txn))
}

/// A file of its own for a test, removed at its end.
pub(super) fn temp_file() -> NamedTempFile {
    NamedTempFile::new().unwrap()
}

/// Tells a sink a transaction of a session, with operations and an outcome.
pub(super) fn tell(
    sink: &mut dyn TxnSink,
    session: i64,
    ops: &[OpInput<'_>],
    outcome: Outcome,
) -> Result<(), SinkError> {
    sink.begin(&TxnStart { session: session.into(), id: None, line: None })?;
    ops.iter().try_for_each(|op| sink.op(op))?;
    sink.end(&TxnEnd::new(outcome))
}

/// A write of an integer to a register with an integer name.
pub(super) fn write<'a>(key: i64, value: i64) -> OpInput<'a> {
    Op::Write { key: key.into(), value: value.into() }
}

/// A read of an integer.
pub(super) fn read<'a>(key: i64, value: i64) -> OpInput<'a> {
    Op::Read { key: key.into(), value: Some(value.into()) }
}
