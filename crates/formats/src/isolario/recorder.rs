//! Records transactions as they happen, so that a crash loses nothing that was known.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use isolario_model::{Meta, OpInput, OpNotes, SinkError, TxnEnd, TxnStart};

use super::bytes::put_varint;
use super::fill::BlockSize;
use super::layout::{Version, frame, put_frame, put_header};
use super::read::replay_rows;
use super::rows::{put_begin, put_done, put_end};
use super::write::Writer;
use crate::{Position, Source};

/// A transaction being recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnNumber(u64);

/// Writes an `.iso` file while a workload runs.
///
/// Every call appends one record with one write to the file: a process that dies loses at most
/// the record it was writing. A session ends a transaction before it begins the next; sessions
/// interleave as they like.
///
/// The recorder appends row records and nothing else until [`Recorder::finish`] packs them into
/// blocks, in a second file that then takes the place of the first. To pack now and then in place
/// would be possible (append the block, and have it stand for the rows before it), but it would
/// hold up, under the caller's lock, the very clients whose times are being taken, and leave the
/// packed rows in the file. This way a file at any moment is either the rows or the blocks, never
/// both, and no transaction can count twice.
///
/// ```
/// use isolario_formats::Recorder;
/// use isolario_model::{Meta, Op, OpNotes, Outcome, TxnEnd, TxnStart, ValueRef};
///
/// # let path = std::env::temp_dir().join(format!("isolario-doc-{}.iso", std::process::id()));
/// let mut recorder = Recorder::create(&path, &Meta::default())?;
/// let write = Op::Write { key: ValueRef::Text("x"), value: ValueRef::Int(1) };
/// let start = TxnStart { session: ValueRef::Int(0), id: None, line: None };
/// let txn = recorder.begin(&start, Some(17), &[write])?; // before anything is sent
/// recorder.op(txn, &write, &OpNotes::default())?; // when the answer is there
/// recorder.end(txn, &TxnEnd { finish: Some(42), ..TxnEnd::new(Outcome::Committed) })?;
/// recorder.finish()?;
///
/// let loaded = isolario_formats::read(&path)?;
/// assert_eq!(loaded.history.txn_count(), 1);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recorder {
    file: File,
    path: PathBuf,
    /// The transactions that have begun and not ended.
    open: HashSet<TxnNumber>,
    next: u64,
    /// Reused for every record.
    buffer: Vec<u8>,
}

impl Recorder {
    /// Creates the file, or empties it.
    pub fn create(path: &Path, meta: &Meta) -> Result<Recorder, SinkError> {
        let mut buffer = Vec::new();
        put_header(&mut buffer, Version::First, meta)?;
        let mut file = File::create(path)?;
        file.write_all(&buffer)?;
        Ok(Recorder { file, path: path.to_owned(), open: HashSet::new(), next: 0, buffer })
    }

    /// Records that a transaction begins, before any of it is sent, and what it is about to do:
    /// at least its writes, as far as they are known. Results in these operations are left aside.
    ///
    /// If the outcome stays unknown, what was intended and is not recorded as done counts as part
    /// of the transaction, since it may have taken effect.
    pub fn begin(
        &mut self,
        start: &TxnStart<'_>,
        at: Option<i64>,
        intended: &[OpInput<'_>],
    ) -> Result<TxnNumber, SinkError> {
        let number = TxnNumber(self.next);
        self.append(frame::BEGIN, number, |out| put_begin(out, start, at, intended))?;
        self.next += 1;
        self.open.insert(number);
        Ok(number)
    }

    /// Records an operation with its result.
    pub fn op(
        &mut self,
        txn: TxnNumber,
        op: &OpInput<'_>,
        notes: &OpNotes<'_>,
    ) -> Result<(), SinkError> {
        if !self.open.contains(&txn) {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        self.append(frame::OP, txn, |out| put_done(out, op, notes))
    }

    /// Records how a transaction ended. A start time given here replaces that of the beginning.
    pub fn end(&mut self, txn: TxnNumber, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        if !self.open.contains(&txn) {
            return Err(SinkError::Sequence("an end outside of a transaction"));
        }
        self.append(frame::END, txn, |out| {
            put_end(out, end);
            Ok(())
        })?;
        self.open.remove(&txn);
        Ok(())
    }

    /// Waits until all that was recorded is on the disk, safe also from a crash of the machine.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        Ok(self.file.sync_data()?)
    }

    /// Packs the records into blocks and closes the file. Transactions that have not ended are of
    /// unknown outcome. If this fails, the records stay as they are and can still be read.
    pub fn finish(self) -> Result<(), SinkError> {
        pack_file(&self.path)
    }

    /// One record, one write.
    fn append(
        &mut self,
        kind: u8,
        txn: TxnNumber,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        self.buffer.clear();
        put_frame(&mut self.buffer, kind, |out| {
            put_varint(out, txn.0);
            fill(out)
        })?;
        Ok(self.file.write_all(&self.buffer)?)
    }
}

/// Packs a file of row records into blocks: into a second file, which then takes its place.
pub(super) fn pack_file(path: &Path) -> Result<(), SinkError> {
    let mut packed_path = path.to_owned().into_os_string();
    packed_path.push(".packing");
    let packed_path = PathBuf::from(packed_path);
    let done = pack(path, &packed_path).and_then(|()| {
        std::fs::rename(&packed_path, path)?;
        Ok(())
    });
    if done.is_err() {
        // The first error is the one to report; there may be nothing to remove.
        let _ = std::fs::remove_file(&packed_path);
    }
    done
}

fn pack(path: &Path, packed_path: &Path) -> Result<(), SinkError> {
    let source = Source::open(path).map_err(io::Error::other)?;
    let bytes = source.require_file().map_err(io::Error::other)?;
    let file = BufWriter::with_capacity(1 << 20, File::create(packed_path)?);
    let mut writer = Writer::new(file, BlockSize::default());
    replay_rows(bytes, &mut writer).map_err(|(at, problem)| {
        io::Error::other(source.error(Position::Byte(at as u64), problem))
    })?;
    let file = writer.complete()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}
