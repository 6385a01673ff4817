//! Reads a file from front to back, piece by piece, while it may still grow.
//!
//! Files of blocks and recordings are read alike, since both are frames, and a frame counts once it is
//! whole. What differs is how they end. A file of blocks has an end mark. A recording has none: when it is
//! over, its recorder puts a file of blocks in its place, and whoever has the recording open has all there
//! will ever be of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use isolario_model::{Batch, TxnSink};

use super::frames::{Frames, LONGEST_CUT, Next, damaged};
use super::layout::{HEAD, Head, Header, frame, read_header};
use super::read::{Told, read_blocks};
use crate::error::{Fault, Position, Problem};
use crate::{Meter, ReadError};

/// So many bytes are looked at, at a time, unless somebody wants fewer.
const AT_A_TIME: usize = 1 << 24;

/// More than any header has.
const LONGEST_HEADER: u64 = 1 << 20;

/// A file on its way from front to back.
pub(crate) struct Pieces {
    path: PathBuf,
    file: File,
    header: Header,
    /// Where the next frame begins.
    at: u64,
    told: Told<Box<[u8]>>,
    /// How many transactions there were in blocks.
    in_blocks: u64,
    /// Whether another file has taken the place of this recording.
    is_replaced: bool,
    /// So many bytes are looked at, at a time; more where a frame is longer.
    pub(crate) at_a_time: usize,
    buffer: Vec<u8>,
}

impl Pieces {
    pub(crate) fn open(path: &Path) -> Result<Pieces, ReadError> {
        let failed = |problem| error(path, Position::Whole, problem);
        let (file, header) = open(path).map_err(failed)?;
        Ok(Pieces {
            path: path.to_owned(),
            file,
            at: header.len as u64,
            header,
            told: Told::default(),
            in_blocks: 0,
            is_replaced: false,
            at_a_time: AT_A_TIME,
            buffer: Vec::new(),
        })
    }

    /// The same file, from where the next frame begins; none if another file has taken its place.
    pub(crate) fn fork(&self) -> Result<Option<Pieces>, ReadError> {
        let there = Pieces::open(&self.path)?;
        Ok((there.header.version == self.header.version).then(|| Pieces {
            at: self.at,
            told: self.told.clone(),
            in_blocks: self.in_blocks,
            at_a_time: self.at_a_time,
            ..there
        }))
    }

    /// How many bytes were passed on.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Whether nothing will be added any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.told.finish.is_some() || self.is_replaced
    }

    /// What was added, or some of it; nothing if nothing was.
    pub(crate) fn next(&mut self) -> Result<Vec<Batch>, ReadError> {
        let mut batches = Vec::new();
        let mut begin = None;
        // Records may fill a buffer, and no transaction has ended in them.
        while batches.is_empty() && begin != Some(self.at) {
            begin = Some(self.at);
            batches = self.read_some()?;
        }
        if batches.is_empty() && !self.is_complete() && self.header.version.is_recording() {
            // What is there now is looked at once more: it may have been added before the recording ended.
            self.is_replaced =
                open(&self.path).is_ok_and(|(_, header)| !header.version.is_recording());
            if self.is_replaced {
                return self.next();
            }
        }
        Ok(batches)
    }

    fn read_some(&mut self) -> Result<Vec<Batch>, ReadError> {
        let begin = self.at;
        let filled = self.fill().map_err(|problem| error(&self.path, Position::Whole, problem));
        let reaches_end = filled?;
        let buffer = std::mem::take(&mut self.buffer);
        let taken = self.take(&buffer, reaches_end);
        self.buffer = buffer;
        taken.map_err(|fault| {
            error(&self.path, Position::Byte(begin + fault.at as u64), *fault.problem)
        })
    }

    /// The transactions that have begun and not ended, as ones of unknown outcome.
    pub(crate) fn unended(&mut self) -> Result<Batch, ReadError> {
        let mut batch = self.batch()?;
        let told = self.told.rows.peek(&mut batch);
        told.map_err(|problem| error(&self.path, Position::Byte(self.at), problem))?;
        Ok(batch)
    }

    /// Passes these on: nothing more is waited for.
    pub(crate) fn close(&mut self) -> Result<Batch, ReadError> {
        let mut batch = self.batch()?;
        let told = self.told.rows.finish(&mut batch);
        told.map_err(|problem| error(&self.path, Position::Byte(self.at), problem))?;
        Ok(batch)
    }

    fn batch(&self) -> Result<Batch, ReadError> {
        let mut batch = Batch::new();
        let told = batch.meta(&self.header.meta);
        told.map_err(|refused| error(&self.path, Position::Whole, refused))?;
        Ok(batch)
    }

    /// Puts what comes next into the buffer: whole frames, if there are any; and says whether that is up
    /// to the end of the file.
    fn fill(&mut self) -> Result<bool, Problem> {
        self.buffer.clear();
        let there = self.file.metadata()?.len();
        if there < self.at {
            return Err(Problem::malformed("a file that only grows", "one that became shorter"));
        }
        // Most of the time nothing was added to a recording, whose room need not be read for that.
        self.read(HEAD)?;
        if self.buffer.first().is_none_or(|kind| *kind == 0 && self.header.version.is_recording()) {
            self.buffer.clear();
            return Ok(true);
        }
        let wanted = match Head::parse(&self.buffer) {
            Some(head) => self.at_a_time.max(HEAD + head.len as usize),
            // To tell a cut from damage takes all that may have been cut.
            None => LONGEST_CUT + 1,
        };
        self.read(wanted)?;
        Ok(self.buffer.len() < wanted)
    }

    /// Reads up to so many bytes from where the next frame begins.
    fn read(&mut self, most: usize) -> io::Result<()> {
        self.buffer.clear();
        self.file.seek(SeekFrom::Start(self.at))?;
        (&self.file).take(most as u64).read_to_end(&mut self.buffer)?;
        Ok(())
    }

    /// Takes the whole frames at the beginning of some bytes.
    fn take(&mut self, bytes: &[u8], reaches_end: bool) -> Result<Vec<Batch>, Fault> {
        let mut rows = Batch::new();
        rows.meta(&self.header.meta).map_err(Fault::refused(0))?;
        let mut blocks = Vec::new();
        let version = self.header.version;
        let mut frames = Frames::of_part(bytes, version);
        while self.has_whole(bytes, frames.at, reaches_end) {
            let frame = match frames.next(|kind| kind == frame::BLOCK)? {
                Next::Frame(frame) => frame,
                // Nothing of a recording counts that comes after this.
                Next::Cut if frames.at == 0 && !reaches_end && !version.is_recording() => {
                    return Err(Fault::new(0, damaged()));
                }
                Next::Cut | Next::End => break,
            };
            let at = self.at + frame.at as u64;
            let taken = self.told.take(at, frame, &mut blocks, &mut rows);
            taken.map_err(|problem| Fault::new(frame.at, problem))?;
        }
        let mut batches = read_blocks(&blocks, &self.header.meta, &Meter::default())?;
        self.in_blocks += batches.iter().map(|batch| batch.len() as u64).sum::<u64>();
        self.told.check_total(self.in_blocks).map_err(|fault| self.within(fault))?;
        self.at += frames.at as u64;
        if !rows.is_empty() {
            batches.push(rows);
        }
        Ok(batches)
    }

    /// A fault in the file as one in the buffer.
    fn within(&self, fault: Fault) -> Fault {
        Fault { at: fault.at.saturating_sub(self.at as usize), ..fault }
    }

    /// Whether what stands at a place can be told from what is in the buffer. A frame of which the end is
    /// beyond it comes next time. Where the buffer reaches the end of the file, a frame that is not whole
    /// may become so, and what cannot become one is damage.
    fn has_whole(&self, bytes: &[u8], at: usize, reaches_end: bool) -> bool {
        let rest = bytes.len() - at;
        match Head::parse(&bytes[at..]) {
            Some(head) => HEAD + head.len as usize <= rest,
            None => rest >= HEAD && (reaches_end || at == 0),
        }
    }
}

/// Opens a file and reads its header.
fn open(path: &Path) -> Result<(File, Header), Problem> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(LONGEST_HEADER).read_to_end(&mut bytes)?;
    let header = read_header(&bytes)?;
    Ok((file, header))
}

fn error(path: &Path, position: Position, problem: impl Into<Problem>) -> ReadError {
    ReadError { file: path.display().to_string(), position, problem: problem.into() }
}
