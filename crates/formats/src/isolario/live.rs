//! Records the transactions of many sessions at once, each from a thread of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use isolario_model::{Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnStart};

use super::layout::{frame, put_frame, put_header};
use super::recorder::pack_file;
use super::rows::{put_begin, put_done, put_end};

/// Writes an `.iso` file while many sessions run, as [`Recorder`](crate::Recorder) does for one
/// caller.
///
/// Sessions encode and write their records by themselves. What a session has done goes to the file together with the beginning of its next transaction: one write per
/// transaction. So, before anything of a transaction is sent, the file has all its session did
/// before and what the transaction is about to do.
///
/// ```
/// use isolario_formats::LiveRecorder;
/// use isolario_model::{Meta, Op, Outcome, TxnEnd, TxnStart, ValueRef};
///
/// # let path = std::env::temp_dir().join(format!("isolario-live-{}.iso", std::process::id()));
/// let recorder = LiveRecorder::create(&path, &Meta::default())?;
/// let mut session = recorder.session()?;
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
    path: PathBuf,
    next: AtomicU64,
    /// Whether there is damage: looked at before every write, so without a lock.
    damaged: AtomicBool,
    damage: Mutex<Damage>,
}

/// What went wrong when records were written.
#[derive(Debug, Default)]
struct Damage {
    /// Why nothing can be written any more.
    reason: Option<(io::ErrorKind, String)>,
    /// Where the first half record begins.
    torn_at: Option<u64>,
}

impl LiveRecorder {
    /// Creates the file, or empties it.
    pub fn create(path: &Path, meta: &Meta) -> Result<LiveRecorder, SinkError> {
        let mut header = Vec::new();
        put_header(&mut header, meta)?;
        File::create(path)?.write_all(&header)?;
        let (next, damaged) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(LiveRecorder { path: path.to_owned(), next, damaged, damage: Mutex::default() })
    }

    /// Records for one thread.
    ///
    /// Every thread has a file handle of its own, for appending: the system puts what one appends
    /// behind what others did, as a whole, and no thread has to wait until another one gets a
    /// processor to let go of a lock.
    pub fn session(&self) -> Result<SessionRecorder<'_>, SinkError> {
        let file = OpenOptions::new().append(true).open(&self.path)?;
        Ok(SessionRecorder { recorder: self, file, buffer: Vec::new(), open: None })
    }

    /// Packs the records into blocks and closes the file. Transactions that have not ended are of
    /// unknown outcome. If this fails, the records stay as they are and can still be read.
    pub fn finish(self) -> Result<(), SinkError> {
        self.mend()?;
        pack_file(&self.path)
    }

    /// Takes half a record away, and all that others wrote behind it. What is left is what the file
    /// was at some moment of the run, and at every moment it has the writes of whatever anybody
    /// could have read.
    fn mend(&self) -> io::Result<()> {
        match self.damage().torn_at {
            Some(whole) => OpenOptions::new().write(true).open(&self.path)?.set_len(whole),
            None => Ok(()),
        }
    }

    fn damage(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that records could not be written, or only a part of them, up to `end`.
    pub(super) fn note_damage(&self, error: &io::Error, torn: Option<(u64, usize)>) {
        self.damaged.store(true, Ordering::Release);
        let mut damage = self.damage();
        damage.reason.get_or_insert_with(|| (error.kind(), error.to_string()));
        if let Some((end, part)) = torn {
            let begin = end.saturating_sub(part as u64);
            damage.torn_at = Some(damage.torn_at.map_or(begin, |other| other.min(begin)));
        }
    }
}

/// Records the transactions of one session after the other.
#[derive(Debug)]
pub struct SessionRecorder<'r> {
    recorder: &'r LiveRecorder,
    file: File,
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
        if self.buffer.is_empty() {
            return Ok(());
        }
        // Behind half a record nothing could be read.
        if self.recorder.damaged.load(Ordering::Acquire)
            && let Some((kind, message)) = &self.recorder.damage().reason
        {
            return Err(io::Error::new(*kind, message.clone()).into());
        }
        match self.file.write(&self.buffer) {
            Ok(written) if written == self.buffer.len() => {
                self.buffer.clear();
                Ok(())
            }
            // The rest would no longer follow its beginning: somebody else may have appended.
            Ok(part) => {
                let error = io::Error::new(io::ErrorKind::StorageFull, "the disk is full");
                let end = self.file.stream_position()?;
                self.recorder.note_damage(&error, Some((end, part)));
                Err(error.into())
            }
            Err(error) => {
                self.recorder.note_damage(&error, None);
                Err(error.into())
            }
        }
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
