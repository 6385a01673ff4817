//! Reads ahead: while some is looked at, the next pieces are read and unpacked.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use isolario_formats::{ReadError, Stream};
use isolario_model::Batch;

use super::FollowError;
use super::sorted::{Merge, Runs};

/// So many pieces are read before they are asked for.
const AHEAD: usize = 4;

/// Passes on a history piece by piece.
pub(super) struct Reader {
    source: Source,
    /// From where the next piece comes, if one can go on from there.
    place: Option<Stream>,
}

/// Where pieces come from.
enum Source {
    /// A thread that reads up to where there is nothing more for now, and then gives the file back.
    Ahead(Receiver<Read>),
    /// A file that is read when it is asked.
    Here(Box<Stream>),
    /// Sorted parts of a file.
    Sorted(Box<Merge>),
}

/// What a thread has read.
enum Read {
    /// A piece, and the file from after it on.
    Piece(Vec<Batch>, Option<Stream>),
    Failed(ReadError),
    /// Nothing more for now.
    All(Box<Stream>),
}

impl Reader {
    pub(super) fn ahead(mut stream: Stream) -> Reader {
        let (send, receive) = sync_channel(AHEAD);
        thread::spawn(move || {
            loop {
                let read = match stream.next_piece() {
                    Ok(piece) if piece.is_empty() => break,
                    Ok(piece) => Read::Piece(piece, fork(&stream)),
                    Err(error) => Read::Failed(error),
                };
                // Nobody wants more.
                if send.send(read).is_err() {
                    return;
                }
            }
            let _ = send.send(Read::All(Box::new(stream)));
        });
        Reader { source: Source::Ahead(receive), place: None }
    }

    pub(super) fn sorted(runs: &Runs) -> Result<Reader, FollowError> {
        let source = Source::Sorted(Box::new(Merge::new(runs)?));
        Ok(Reader { source, place: None })
    }

    /// The next piece; an empty one if there is nothing more for now.
    pub(super) fn next(&mut self) -> Result<Vec<Batch>, FollowError> {
        match &mut self.source {
            Source::Ahead(receive) => match receive.recv() {
                Ok(Read::Piece(piece, place)) => {
                    self.place = place;
                    return Ok(piece);
                }
                Ok(Read::Failed(error)) => return Err(error.into()),
                Ok(Read::All(stream)) => self.source = Source::Here(stream),
                Err(_) => return Err(ended()),
            },
            Source::Here(stream) => {
                let piece = stream.next_piece()?;
                self.place = fork(stream);
                return Ok(piece);
            }
            Source::Sorted(merge) => return merge.next(),
        }
        Ok(Vec::new())
    }

    /// The file from where the next piece comes, unless it was taken before, or one cannot go on from there.
    pub(super) fn take_place(&mut self) -> Option<Stream> {
        self.place.take()
    }

    /// Whether the file is read when it is asked, as it is then.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.source, Source::Here(_))
    }

    /// Whether nothing will be added any more, and everything was read.
    pub(super) fn is_complete(&self) -> bool {
        match &self.source {
            Source::Ahead(_) => false,
            Source::Here(stream) => stream.is_complete(),
            Source::Sorted(_) => true,
        }
    }

    /// What has begun and not ended; of a file that was read to its end.
    pub(super) fn unended(&mut self) -> Result<Batch, FollowError> {
        match &mut self.source {
            Source::Here(stream) => Ok(stream.unended()?),
            Source::Ahead(_) | Source::Sorted(_) => Ok(Batch::new()),
        }
    }

    /// What is left where nothing more is waited for; of a file that was read to its end.
    pub(super) fn close(&mut self) -> Result<Batch, FollowError> {
        match &mut self.source {
            Source::Here(stream) => Ok(stream.close()?),
            Source::Ahead(_) | Source::Sorted(_) => Ok(Batch::new()),
        }
    }
}

/// Another stream of the same file. Where there is none, for whatever reason, nobody returns to its place.
pub(super) fn fork(stream: &Stream) -> Option<Stream> {
    stream.fork().ok().flatten()
}

fn ended() -> FollowError {
    FollowError::Sink(io::Error::other("the thread that reads the file ended").into())
}
