//! `text`: a small language for writing histories by hand, easy to read in a diff.
//!
//! ```text
//! # lost update: both read the same version and overwrite it
//! initial 0
//! session alice
//!   T1: r x 0, w x 1
//! session bob
//!   T2: r x 0, w x 2
//! ```
//!
//! The book has the whole language (`docs/book/src/formats/text.md`). The form of AWDIT's tests is
//! read as well.

mod awdit;
mod operation;
mod parse;
mod parser;
mod predicate;
mod read;
mod show;
mod token;
mod words;
mod write;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use isolario_model::{
    Batch, History, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart,
};

use crate::error::{Fault, utf8};
use crate::lines;
use crate::{HistoryFormat, HistoryWriter, OutputTarget, ParsedHistory, ReadError, Source};

/// The text language.
pub(crate) struct Text;

impl HistoryFormat for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn about(&self) -> &'static str {
        "a small language for writing histories by hand; also AWDIT's test form"
    }

    fn sniff(&self, source: &Source) -> bool {
        let text = without_mark(source.beginning());
        awdit::recognise(text) || parse::recognise(text)
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        let bytes = source.require_file()?;
        let decoded = utf8(bytes).map_err(|fault| fault.in_text(source, bytes))?;
        let text = without_mark(decoded);
        let history = if awdit::recognise(text) {
            in_one_go(text, awdit::parse)
        } else {
            read::history(text, lines::good_chunk_size(bytes), source.meter())
                .map_or_else(|| in_one_go(text, parse::parse), Ok)
        };
        history.map(ParsedHistory::new).map_err(|fault| fault.in_text(source, text.as_bytes()))
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target)?))
    }
}

/// A history in the text language, which has no words for the statements that operations came from: these
/// are left out.
pub fn as_text(history: &History) -> Result<String, SinkError> {
    let memory = Memory::default();
    let mut writer = Text.writer(OutputTarget::Stream(Box::new(memory.clone())))?;
    history.replay(&mut WithoutSql(writer.as_mut()))?;
    writer.finish()?;
    let bytes = memory.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Passes on everything but statements.
struct WithoutSql<'w>(&'w mut dyn TxnSink);

impl TxnSink for WithoutSql<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.0.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.0.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.0.op_with(op, &OpNotes { sql: None, ..*notes })
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.0.end(end)
    }
}

/// Bytes that are still there when the writer that owns them is gone.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text without the byte order mark that some editors leave.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads a text in one of the two forms from its first line to its last.
fn in_one_go(
    text: &str,
    parse: fn(&str, &mut dyn TxnSink) -> Result<(), Fault>,
) -> Result<History, Fault> {
    let mut batch = Batch::new();
    parse(text, &mut batch)?;
    batch.build().map_err(|error| Fault::new(0, error))
}
