//! Formats over bytes in memory.

use std::io::Write;
use std::sync::{Arc, Mutex};

use isolario_formats::{Source, Target, find};
use isolario_model::{
    Batch, History, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart,
};

/// The bytes a format writes for a history.
pub fn write(format: &str, history: &History) -> Result<Vec<u8>, SinkError> {
    let shared = Shared::default();
    let mut writer = find(format).unwrap().writer(Target::Stream(Box::new(shared.clone())))?;
    history.replay(&mut *writer)?;
    writer.finish()?;
    let bytes = shared.0.lock().unwrap().clone();
    Ok(bytes)
}

/// The history a format reads from bytes, without the lines transactions stood on: no writer can
/// give those back.
pub fn read(format: &str, bytes: &[u8]) -> History {
    let source = Source::from_bytes("memory", bytes.to_vec()).unwrap();
    let loaded = find(format).unwrap().read(&source);
    let loaded =
        loaded.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(bytes)));
    let mut lineless = WithoutLines(Batch::new());
    loaded.history.replay(&mut lineless).unwrap();
    lineless.0.build().unwrap()
}

/// A stream whose bytes can still be reached once the writer is gone.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
