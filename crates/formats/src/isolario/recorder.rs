//! Records the transactions of many sessions at once, each from a thread of its own, as they happen:
//! a crash loses nothing that was known.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use isolario_model::{Batch, Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart};

use super::bytes::put_varint;
use super::fill::BlockSize;
use super::layout::{HEAD, Version, close_frame, frame, put_header};
use super::read::replay_rows;
use super::rows::{put_begin, put_done, put_end, put_row};
use super::tape::Tape;
use super::write::Writer;
use crate::{ContradictoryTimesError, ParsedHistory, Source};

/// Writes an `.iso` file while many sessions run.
///
/// Sessions put their records together by themselves. What a session has done goes to the file
/// together with the beginning of its next transaction, as one record. So, before anything of a
/// transaction is sent, the file has all its session did before and what the transaction is about
/// to do.
///
/// Sessions append in turn. What a record tells of was seen by its session before it had its turn,
/// and was announced by whoever wrote it before it was sent: so the file up to any record has the
/// writes of whatever is read in it, whoever reads the file, and whenever. To let sessions fill
/// places of their own side by side would spare them the turn, which is over in the time of a few
/// stores, and leave gaps when the process dies.
///
/// The file holds row records and nothing else until [`LiveRecorder::finish`] packs them into
/// blocks, in a second file that then takes the place of the first. To pack now and then in place
/// would hold up the very clients whose times are being taken. This way a file at any moment is
/// either the rows or the blocks, never both, and no transaction can count twice.
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
    path: PathBuf,
    next: AtomicU64,
    records: Mutex<Records>,
}

/// All that was appended: on the tape, and in memory as long as it is no more than allowed.
#[derive(Debug)]
struct Records {
    tape: Tape,
    /// The same bytes as on the tape.
    kept: Option<Kept>,
    /// The most bytes to keep.
    allowed: usize,
}

impl Records {
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.tape.append(record)?;
        match &mut self.kept {
            Some(kept) if kept.len + record.len() <= self.allowed => kept.push(record),
            kept => *kept = None,
        }
        Ok(())
    }
}

/// Records one after the other, in chunks that stay where they are: sessions wait while one of them appends, and must
/// not wait for a copy of all that came before.
#[derive(Debug)]
struct Kept {
    chunks: Vec<Vec<u8>>,
    /// The number of bytes in all of them.
    len: usize,
}

/// The size of a chunk in bytes. A record that is longer has a chunk of its own.
const CHUNK: usize = 1 << 20;

impl Kept {
    fn new(header: Vec<u8>) -> Kept {
        Kept { len: header.len(), chunks: vec![header] }
    }

    fn push(&mut self, record: &[u8]) {
        self.len += record.len();
        match self.chunks.last_mut() {
            Some(last) if last.capacity() - last.len() >= record.len() => {
                last.extend_from_slice(record);
            }
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK.max(record.len()));
                chunk.extend_from_slice(record);
                self.chunks.push(chunk);
            }
        }
    }

    /// All of it in one piece. Each chunk is freed as soon as it is copied.
    fn whole(self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.len);
        self.chunks.into_iter().for_each(|chunk| whole.extend_from_slice(&chunk));
        whole
    }
}

impl LiveRecorder {
    /// Creates the file, or empties it.
    pub fn create(path: &Path, meta: &Meta) -> Result<LiveRecorder, SinkError> {
        let mut header = Vec::new();
        put_header(&mut header, Version::RowsRecording, meta)?;
        let tape = Tape::create(path, &header)?;
        let records = Mutex::new(Records { tape, kept: Some(Kept::new(header)), allowed: 0 });
        Ok(LiveRecorder { path: path.to_owned(), next: AtomicU64::new(0), records })
    }

    /// Keeps the records in memory as well while they take at most `allowed` bytes there:
    /// [`finish`](LiveRecorder::finish) then returns their history, and no file is read for it.
    #[must_use]
    pub fn keeping(mut self, allowed: usize) -> LiveRecorder {
        self.records.get_mut().unwrap_or_else(PoisonError::into_inner).allowed = allowed;
        self
    }

    /// Records for one thread.
    pub fn session(&self) -> SessionRecorder<'_> {
        SessionRecorder { recorder: self, record: vec![0; HEAD], open: None }
    }

    /// Packs the records into blocks and closes the file. Transactions that have not ended are of
    /// unknown outcome. If this fails, the records stay as they are and can still be read.
    ///
    /// Returns what a reader of the file would, if all records were [kept](LiveRecorder::keeping) and the
    /// reader would not refuse them.
    pub fn finish(self) -> Result<Option<ParsedHistory>, SinkError> {
        let records = self.records.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop(records.tape);
        let batch = records.kept.is_some().then(Batch::new);
        let rows = match records.kept {
            Some(kept) => Source::from_bytes(self.path.display().to_string(), kept.whole()),
            None => Source::open(&self.path),
        };
        let rows = rows.map_err(io::Error::other)?;
        let Some(batch) = pack_file(&self.path, &rows, batch)? else { return Ok(None) };
        // They take about as much memory as the history.
        drop(rows);
        let history = batch.build()?;
        let is_refused = ContradictoryTimesError::of(&history).is_some();
        Ok((!is_refused).then(|| ParsedHistory::new(history)))
    }
}

/// Records the transactions of one session after the other.
#[derive(Debug)]
pub struct SessionRecorder<'r> {
    recorder: &'r LiveRecorder,
    /// The frame of what is not in the file yet.
    record: Vec<u8>,
    open: Option<u64>,
}

impl SessionRecorder<'_> {
    /// Records that a transaction begins, before any of it is sent, and what it is about to do: at
    /// least its writes, as far as they are known; results in these operations are left aside.
    /// Everything that was recorded before goes to the file with it.
    ///
    /// If the outcome stays unknown, what was intended and is not recorded as done counts as part
    /// of the transaction, since it may have taken effect.
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
        self.put(number, frame::BEGIN, |out| {
            put_varint(out, number);
            put_begin(out, start, at, intended)
        })?;
        self.flush()?;
        self.open = Some(number);
        Ok(())
    }

    /// Records an operation with its result.
    pub fn op(&mut self, op: &OpInput<'_>) -> Result<(), SinkError> {
        let Some(number) = self.open else {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        };
        self.put(number, frame::OP, |out| put_done(out, op, &OpNotes::default()))
    }

    /// Records how the transaction ended. A start time given here replaces that of the beginning.
    pub fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.put_end(end, false)
    }

    /// As [`end`](SessionRecorder::end), of a transaction of which everything that was sent is
    /// recorded: what was intended besides has not taken effect, whatever the outcome.
    pub fn end_complete(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.put_end(end, true)
    }

    fn put_end(&mut self, end: &TxnEnd<'_>, complete: bool) -> Result<(), SinkError> {
        let Some(number) = self.open.take() else {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        };
        self.put(number, frame::END, |out| {
            put_end(out, end, complete);
            Ok(())
        })
    }

    /// Appends what is held back: where it may take a while until the next transaction begins.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        if self.record.len() == HEAD {
            return Ok(());
        }
        close_frame(&mut self.record, frame::ROWS)?;
        let mut records = self.recorder.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.append(&self.record)?;
        drop(records);
        self.record.truncate(HEAD);
        Ok(())
    }

    /// Holds a record of a transaction back. The frame says at its beginning whose records come
    /// first, and a `begin` whose come next.
    #[inline]
    fn put(
        &mut self,
        number: u64,
        kind: u8,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        if self.record.len() == HEAD {
            put_varint(&mut self.record, number);
        }
        put_row(&mut self.record, kind, fill)
    }
}

/// Packs row records into blocks: into a second file, which then replaces the one at `path`.
/// Returns their history if it is wanted.
fn pack_file(path: &Path, rows: &Source, batch: Option<Batch>) -> Result<Option<Batch>, SinkError> {
    let mut packed_path = path.to_owned().into_os_string();
    packed_path.push(".packing");
    let packed_path = PathBuf::from(packed_path);
    let done = pack(rows, &packed_path, batch).and_then(|batch| {
        std::fs::rename(&packed_path, path)?;
        Ok(batch)
    });
    if done.is_err() {
        // The first error is the one to report; there may be nothing to remove.
        let _ = std::fs::remove_file(&packed_path);
    }
    done
}

fn pack(
    rows: &Source,
    packed_path: &Path,
    batch: Option<Batch>,
) -> Result<Option<Batch>, SinkError> {
    let bytes = rows.require_file().map_err(io::Error::other)?;
    let file = BufWriter::with_capacity(1 << 20, File::create(packed_path)?);
    let writer = Writer::new(file, BlockSize::default());
    let mut packing = Packing { writer, batch };
    replay_rows(bytes, &mut packing).map_err(|fault| io::Error::other(fault.in_binary(rows)))?;
    let Packing { writer, batch } = packing;
    let file = writer.complete()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(batch)
}

/// Transactions on their way into blocks, and into memory if they are wanted there.
struct Packing<W> {
    writer: Writer<W>,
    batch: Option<Batch>,
}

impl<W: Write> TxnSink for Packing<W> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.writer.meta(meta)?;
        self.batch.iter_mut().try_for_each(|batch| batch.meta(meta))
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.writer.begin(start)?;
        self.batch.iter_mut().try_for_each(|batch| batch.begin(start))
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.writer.op_with(op, notes)?;
        self.batch.iter_mut().try_for_each(|batch| batch.op_with(op, notes))
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.writer.end(end)?;
        self.batch.iter_mut().try_for_each(|batch| batch.end(end))
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Kept};

    #[test]
    fn what_is_kept_stays_where_it_is_and_comes_back_in_order() {
        let mut kept = Kept::new(b"header".to_vec());
        let mut expected = b"header".to_vec();
        let mut addresses = Vec::new();
        for (number, length) in [700_000, 300_000, 400_000, 2 * CHUNK, 0, 5].into_iter().enumerate()
        {
            let record = vec![number as u8; length];
            kept.push(&record);
            expected.extend(record);
            addresses.push(kept.chunks.last().map(Vec::as_ptr));
            assert_eq!(kept.len, expected.len());
        }
        let now: Vec<_> = kept.chunks.iter().map(|chunk| Some(chunk.as_ptr())).collect();
        assert_eq!(now.len(), 5, "the header, two chunks, the longest record, and the last");
        assert!(addresses.iter().all(|address| now.contains(address)));
        assert_eq!(kept.whole(), expected);
    }
}
