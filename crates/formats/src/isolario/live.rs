//! Records the transactions of many sessions at once, each from a thread of its own.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use isolario_model::{Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnStart};

use super::layout::{frame, put_frame, put_header};
use super::recorder::pack_file;
use super::rows::{put_begin, put_done, put_end};

/// Writes an `.iso` file while many sessions run, as [`Recorder`](crate::Recorder) does for one
/// caller.
///
/// Sessions encode their records by themselves, and only writing takes turns. What a session has
/// done goes to the file together with the beginning of its next transaction: one write per
/// transaction. So, before anything of a transaction is sent, the file has all its session did
/// before and what the transaction is about to do.
///
/// ```
/// use isolario_formats::LiveRecorder;
/// use isolario_model::{Meta, Op, Outcome, TxnEnd, TxnStart, ValueRef};
///
/// # let path = std::env::temp_dir().join(format!("isolario-live-{}.iso", std::process::id()));
/// let recorder = LiveRecorder::create(&path, &Meta::default())?;
/// let mut session = recorder.session();
/// let write = Op::Write { key: ValueRef::Text("x"), value: ValueRef::Int(1) };
/// let start = TxnStart { session: ValueRef::Int(0), id: None, line: None };
/// session.begin(&start, Some(17), &[write])?; // before anything is sent
/// session.op(&write)?; // when the answer is there
/// session.end(&TxnEnd { finish: Some(42), ..TxnEnd::new(Outcome::Committed) })?;
/// session.flush()?;
/// recorder.finish()?;
/// assert_eq!(isolario_formats::read(&path)?.history.txn_count(), 1);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveRecorder {
    tail: Mutex<Tail>,
    path: PathBuf,
    next: AtomicU64,
}

/// The end of the file.
#[derive(Debug)]
struct Tail {
    file: File,
    /// Up to where it holds whole records.
    len: u64,
    /// Why nothing can be written any more.
    failed: Option<(io::ErrorKind, String)>,
}

impl LiveRecorder {
    /// Creates the file, or empties it.
    pub fn create(path: &Path, meta: &Meta) -> Result<LiveRecorder, SinkError> {
        let mut header = Vec::new();
        put_header(&mut header, meta)?;
        let mut tail = Tail { file: File::create(path)?, len: 0, failed: None };
        tail.append(&header)?;
        let (tail, next) = (Mutex::new(tail), AtomicU64::new(0));
        Ok(LiveRecorder { tail, path: path.to_owned(), next })
    }

    /// Records for one thread.
    pub fn session(&self) -> SessionRecorder<'_> {
        SessionRecorder { recorder: self, buffer: Vec::new(), open: None }
    }

    /// Packs the records into blocks and closes the file. Transactions that have not ended are of
    /// unknown outcome. If this fails, the records stay as they are and can still be read.
    pub fn finish(self) -> Result<(), SinkError> {
        pack_file(&self.path)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).append(bytes)
    }
}

impl Tail {
    /// Writes whole records, or none. A disk may be full in the middle of one: what is behind half
    /// a record could never be read, so half a record is taken away, and nothing comes after it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some((kind, message)) = &self.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If even that fails, the half record is the last thing in the file: it can be
                // read up to there.
                let _ = self.file.set_len(self.len);
                self.failed = Some((error.kind(), error.to_string()));
                Err(error)
            }
        }
    }
}

/// Records the transactions of one session after the other.
#[derive(Debug)]
pub struct SessionRecorder<'r> {
    recorder: &'r LiveRecorder,
    /// Records that are not in the file yet.
    buffer: Vec<u8>,
    open: Option<u64>,
}

impl SessionRecorder<'_> {
    /// Records that a transaction begins, before any of it is sent, and what it is about to do: at
    /// least its writes. Everything that was recorded before goes to the file with it.
    pub fn begin(
        &mut self,
        start: &TxnStart<'_>,
        at: Option<i64>,
        intended: &[OpInput<'_>],
    ) -> Result<(), SinkError> {
        if self.open.is_some() {
            return Err(SinkError::Sequence("a beginning inside of a transaction"));
        }
        let number = self.recorder.next.fetch_add(1, Ordering::Relaxed);
        self.put(frame::BEGIN, |out| put_begin(out, number, start, at, intended))?;
        self.flush()?;
        self.open = Some(number);
        Ok(())
    }

    /// Records an operation with its result.
    pub fn op(&mut self, op: &OpInput<'_>) -> Result<(), SinkError> {
        let outside = SinkError::Sequence("an operation outside of a transaction");
        let number = self.open.ok_or(outside)?;
        self.put(frame::OP, |out| put_done(out, number, op, &OpNotes::default()))
    }

    /// Records how the transaction ended. A start time given here replaces that of the beginning.
    pub fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        let outside = SinkError::Sequence("an end outside of a transaction");
        let number = self.open.take().ok_or(outside)?;
        self.put(frame::END, |out| {
            put_end(out, number, end);
            Ok(())
        })
    }

    /// Writes what is held back: where it may take a while until the next transaction begins.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        if !self.buffer.is_empty() {
            self.recorder.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Holds a record back; none at all where it cannot be expressed.
    fn put(
        &mut self,
        kind: u8,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let whole = self.buffer.len();
        let done = put_frame(&mut self.buffer, kind, fill);
        if done.is_err() {
            self.buffer.truncate(whole);
        }
        done
    }
}
