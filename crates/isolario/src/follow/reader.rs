//! Reads ahead: while one piece is looked at, the next one is read and unpacked.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use isolario_formats::{ReadError, Stream};
use isolario_model::Batch;

use super::FollowError;
use super::sorted::{Merge, Runs};

/// So many pieces are read before they are asked for.
const AHEAD: usize = 2;

/// Where pieces come from.
pub(super) enum Reader {
    /// A thread that reads up to where there is nothing more for now, and then gives the file back.
    Ahead(Receiver<Read>),
    /// A file that is read when it is asked.
    Here(Box<Stream>),
    /// Sorted parts of a file.
    Sorted(Box<Merge>),
}

/// What a thread has read.
pub(super) enum Read {
    Piece(Vec<Batch>),
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
                    Ok(piece) => Read::Piece(piece),
                    Err(error) => Read::Failed(error),
                };
                // Nobody wants more.
                if send.send(read).is_err() {
                    return;
                }
            }
            let _ = send.send(Read::All(Box::new(stream)));
        });
        Reader::Ahead(receive)
    }

    pub(super) fn sorted(runs: &Runs) -> Result<Reader, FollowError> {
        Ok(Reader::Sorted(Box::new(Merge::new(runs)?)))
    }

    /// The next piece; an empty one if there is nothing more for now.
    pub(super) fn next(&mut self) -> Result<Vec<Batch>, FollowError> {
        match self {
            Reader::Ahead(receive) => match receive.recv() {
                Ok(Read::Piece(piece)) => return Ok(piece),
                Ok(Read::Failed(error)) => return Err(error.into()),
                Ok(Read::All(stream)) => *self = Reader::Here(stream),
                Err(_) => return Err(ended()),
            },
            Reader::Here(stream) => return Ok(stream.next_piece()?),
            Reader::Sorted(merge) => return merge.next(),
        }
        Ok(Vec::new())
    }

    /// Whether the file is read when it is asked, as it is then.
    pub(super) fn is_here(&self) -> bool {
        matches!(self, Reader::Here(_))
    }

    /// Whether nothing will be added any more, and everything was read.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Reader::Ahead(_) => false,
            Reader::Here(stream) => stream.is_complete(),
            Reader::Sorted(_) => true,
        }
    }

    /// What has begun and not ended; of a file that was read to its end.
    pub(super) fn unended(&mut self) -> Result<Batch, FollowError> {
        match self {
            Reader::Here(stream) => Ok(stream.unended()?),
            Reader::Ahead(_) | Reader::Sorted(_) => Ok(Batch::new()),
        }
    }

    /// What is left where nothing more is waited for; of a file that was read to its end.
    pub(super) fn close(&mut self) -> Result<Batch, FollowError> {
        match self {
            Reader::Here(stream) => Ok(stream.close()?),
            Reader::Ahead(_) | Reader::Sorted(_) => Ok(Batch::new()),
        }
    }
}

fn ended() -> FollowError {
    FollowError::Sink(io::Error::other("the thread that reads the file ended").into())
}
