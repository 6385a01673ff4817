//! Histories as files in memory: for tests that write a history and read it again.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use isolario_formats::{Content, HistoryFormat, OutputTarget, ReadError, Source};
use isolario_model::{
    Batch, History, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart,
};

/// What a format makes of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// One file.
    One(Vec<u8>),
    /// The files of a directory, with their names.
    Several(Vec<(String, Vec<u8>)>),
}

impl Files {
    /// The files as a source that can be read.
    pub fn source(&self, name: &str) -> Result<Source, ReadError> {
        match self {
            Files::One(bytes) => Source::from_bytes(name, bytes.clone()),
            Files::Several(files) => Ok(Source::from_files(name, files.clone())),
        }
    }
}

/// Whether a format makes a directory of a history.
pub fn is_directory(format: &dyn HistoryFormat) -> bool {
    matches!(format.name(), "cobra" | "viper")
}

/// Writes a history.
pub fn write(format: &dyn HistoryFormat, history: &History) -> Result<Files, SinkError> {
    if is_directory(format) { write_several(format, history) } else { write_one(format, history) }
}

fn write_one(format: &dyn HistoryFormat, history: &History) -> Result<Files, SinkError> {
    let shared = SharedBytes::default();
    send(format, history, OutputTarget::Stream(Box::new(shared.clone())))?;
    Ok(Files::One(shared.take()))
}

/// Formats of several files write to a path and nowhere else.
fn write_several(format: &dyn HistoryFormat, history: &History) -> Result<Files, SinkError> {
    let parent = tempfile::tempdir()?;
    let path = parent.path().join("history");
    send(format, history, OutputTarget::Path(path.clone()))?;
    let source = Source::open(&path).map_err(io::Error::other)?;
    Ok(match source.content() {
        Content::File(bytes) => Files::One(bytes.to_vec()),
        Content::Directory(files) => Files::Several(
            files.iter().map(|(name, bytes)| (name.clone(), bytes.to_vec())).collect(),
        ),
    })
}

fn send(
    format: &dyn HistoryFormat,
    history: &History,
    target: OutputTarget,
) -> Result<(), SinkError> {
    let mut writer = format.writer(target)?;
    history.replay(&mut *writer)?;
    writer.finish()
}

/// The history without the lines on which transactions stood: a file that is written again has
/// lines of its own.
pub fn without_lines(history: &History) -> Result<History, SinkError> {
    let mut lineless = WithoutLines(Batch::new());
    history.replay(&mut lineless)?;
    lineless.0.build()
}

struct WithoutLines(Batch);

impl TxnSink for WithoutLines {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.0.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.0.begin(&TxnStart { line: None, ..*start })
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.0.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.0.end(end)
    }
}

/// A stream whose bytes can still be reached once the writer is gone.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn take(self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
