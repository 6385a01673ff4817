//! A history that is read from front to back, piece by piece, while it may still grow.

use std::fmt;
use std::path::{Path, PathBuf};

use isolario_model::Batch;

use crate::isolario::Pieces;
use crate::jsonl::Tail;
use crate::{ContradictoryTimesError, HistoryFormat, Position, ReadError};

/// A file of which transactions are read in the order in which they stand there.
///
/// Only a piece of it is in memory at a time, however long it is. What is not whole yet is read when it
/// is.
///
/// ```
/// use std::io::Write;
///
/// use isolario_formats::{Stream, find};
///
/// # let mut file = tempfile::NamedTempFile::new()?;
/// # let path = file.path().to_owned();
/// let mut stream = Stream::open(&path, find("jsonl").unwrap())?.unwrap();
/// assert!(stream.next_piece()?.is_empty());
/// file.write_all(b"{\"session\": 1, \"ops\": [[\"w\", \"x\", 1]]}\n{\"session\": 2")?;
/// assert_eq!(stream.next_piece()?[0].len(), 1);
/// assert!(stream.next_piece()?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Stream {
    path: PathBuf,
    kind: Kind,
    leaves_out_contradictory_times: bool,
}

enum Kind {
    Lines(Tail),
    Frames(Box<Pieces>),
}

impl Stream {
    /// The formats that can be read so.
    pub const FORMATS: [&'static str; 2] = ["isolario", "jsonl"];

    /// Opens a file in a format; none if the format cannot be read so.
    pub fn open(path: &Path, format: &dyn HistoryFormat) -> Result<Option<Stream>, ReadError> {
        let kind = match format.name() {
            "jsonl" => Kind::Lines(Tail::open(path)?),
            "isolario" => Kind::Frames(Box::new(Pieces::open(path)?)),
            _ => return Ok(None),
        };
        Ok(Some(Stream { path: path.to_owned(), kind, leaves_out_contradictory_times: false }))
    }

    /// Reads pieces of about so many bytes: a line or a record at least.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Stream {
        match &mut self.kind {
            Kind::Lines(tail) => tail.at_a_time = bytes,
            Kind::Frames(pieces) => pieces.at_a_time = bytes,
        }
        self
    }

    /// Leaves it to the reader to leave out both times of transactions that finish before they start, as every
    /// history does; otherwise they are an error.
    #[must_use]
    pub fn leaving_out_contradictory_times(self, left_out: bool) -> Stream {
        Stream { leaves_out_contradictory_times: left_out, ..self }
    }

    /// Another stream that goes on where this one is, for somebody who wants to return there. None if another
    /// file has taken the place of this one.
    pub fn fork(&self) -> Result<Option<Stream>, ReadError> {
        let kind = match &self.kind {
            Kind::Lines(tail) => Some(Kind::Lines(tail.fork()?)),
            Kind::Frames(pieces) => pieces.fork()?.map(|pieces| Kind::Frames(Box::new(pieces))),
        };
        let (path, leaves_out_contradictory_times) =
            (&self.path, self.leaves_out_contradictory_times);
        Ok(kind.map(|kind| Stream { path: path.clone(), kind, leaves_out_contradictory_times }))
    }

    /// Begins again.
    pub fn rewind(&mut self) -> Result<(), ReadError> {
        self.kind = match self.kind {
            Kind::Lines(_) => Kind::Lines(Tail::open(&self.path)?),
            Kind::Frames(_) => Kind::Frames(Box::new(Pieces::open(&self.path)?)),
        };
        Ok(())
    }

    /// How many bytes were passed on.
    pub fn position(&self) -> u64 {
        match &self.kind {
            Kind::Lines(tail) => tail.position(),
            Kind::Frames(pieces) => pieces.position(),
        }
    }

    /// Some of the transactions that were added, in order; none if none were. Whoever has read
    /// everything asks again later, unless the file [is complete](Stream::is_complete).
    pub fn next_piece(&mut self) -> Result<Vec<Batch>, ReadError> {
        let piece = match &mut self.kind {
            Kind::Lines(tail) => {
                let mut batch = Batch::new();
                if tail.read(&mut batch)? { vec![batch] } else { Vec::new() }
            }
            Kind::Frames(pieces) => pieces.next()?,
        };
        self.refuse_contradictory_times(&piece)?;
        Ok(piece)
    }

    fn refuse_contradictory_times(&self, piece: &[Batch]) -> Result<(), ReadError> {
        if self.leaves_out_contradictory_times {
            return Ok(());
        }
        ContradictoryTimesError::refuse(
            self.contradictory_times_in(piece)?,
            &self.path.display().to_string(),
            false,
        )
    }

    /// The transactions of a piece that finish before they start.
    pub fn contradictory_times_in(
        &self,
        piece: &[Batch],
    ) -> Result<Option<ContradictoryTimesError>, ReadError> {
        ContradictoryTimesError::of_piece(piece).map_err(|error| ReadError {
            file: self.path.display().to_string(),
            position: Position::Whole,
            problem: error.into(),
        })
    }

    /// Whether the file says that nothing will be added to it any more. A file of lines never does.
    pub fn is_complete(&self) -> bool {
        match &self.kind {
            Kind::Lines(_) => false,
            Kind::Frames(pieces) => pieces.is_complete(),
        }
    }

    /// The transactions that have begun and not ended, as ones of unknown outcome. They are told again when
    /// they end.
    pub fn unended(&mut self) -> Result<Batch, ReadError> {
        match &mut self.kind {
            Kind::Lines(_) => Ok(Batch::new()),
            Kind::Frames(pieces) => pieces.unended(),
        }
    }

    /// What is left when nothing more is waited for: transactions that never ended, a last line without an
    /// end.
    pub fn close(&mut self) -> Result<Batch, ReadError> {
        let rest = match &mut self.kind {
            Kind::Lines(tail) => {
                let mut batch = Batch::new();
                tail.close(&mut batch)?;
                batch
            }
            Kind::Frames(pieces) => pieces.close()?,
        };
        self.refuse_contradictory_times(std::slice::from_ref(&rest))?;
        Ok(rest)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("path", &self.path).finish_non_exhaustive()
    }
}
