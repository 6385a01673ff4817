//! Writes a file of blocks.

use std::io::Write;

use isolario_model::{Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart};

use super::fill::{BlockSize, Filling};
use super::layout::{Version, frame, put_frame, put_header};
use crate::HistoryWriter;

/// A sink that packs transactions into blocks, in the order they come.
pub(super) struct Writer<W> {
    out: W,
    meta: Meta,
    size: BlockSize,
    block: Filling,
    /// Whether the header is written.
    started: bool,
    /// Whether a transaction has begun and not ended.
    open: bool,
    txns: u64,
    /// Reused for every frame.
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, size: BlockSize) -> Self {
        Writer {
            out,
            meta: Meta::default(),
            size,
            block: Filling::default(),
            started: false,
            open: false,
            txns: 0,
            buffer: Vec::new(),
        }
    }

    /// Writes the header, once it is certain that its content is known.
    fn start(&mut self) -> Result<(), SinkError> {
        if !self.started {
            self.started = true;
            self.buffer.clear();
            put_header(&mut self.buffer, Version::Rows, &self.meta)?;
            self.out.write_all(&self.buffer)?;
        }
        Ok(())
    }

    fn write_frame(
        &mut self,
        kind: u8,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        self.buffer.clear();
        put_frame(&mut self.buffer, kind, fill)?;
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn write_block(&mut self) -> Result<(), SinkError> {
        let mut block = self.block.take();
        self.write_frame(frame::BLOCK, |out| Ok(block.put(out)?))
    }

    /// Writes what is held back and the end mark, and gives the output back.
    pub(super) fn complete(mut self) -> Result<W, SinkError> {
        if self.open {
            return Err(SinkError::Sequence("the history ends inside a transaction"));
        }
        self.start()?;
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let txns = self.txns.to_le_bytes();
        self.write_frame(frame::FINISH, |out| {
            out.extend_from_slice(&txns);
            Ok(())
        })?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> TxnSink for Writer<W> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        if self.started {
            return Err(SinkError::Sequence("what holds for all comes after a transaction"));
        }
        self.meta = meta.clone();
        Ok(())
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        if self.open {
            return Err(SinkError::Sequence("a transaction begins inside another one"));
        }
        self.start()?;
        self.open = true;
        self.block.begin(start);
        Ok(())
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        self.block.op(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        }
        self.open = false;
        self.block.end(end);
        self.txns += 1;
        if self.block.is_full(self.size) { self.write_block() } else { Ok(()) }
    }
}

impl<W: Write> HistoryWriter for Writer<W> {
    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        self.complete().map(|_| ())
    }
}
