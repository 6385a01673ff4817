//! `isolario`, the native format: everything the model has, quick to load and safe to append to.
//!
//! A file is a header and frames, each with a checksum: blocks of whole transactions in columns,
//! then row records for what is not in a block, then an end mark. The book's page on the format
//! has every byte.

mod block;
mod bytes;
mod drain;
mod fill;
mod frames;
mod in_place;
mod ints;
mod layout;
mod parts;
mod pieces;
mod read;
mod recorder;
mod rows;
mod streams;
mod tape;
#[cfg(test)]
mod tests;
mod unpack;
mod write;

use isolario_model::SinkError;

pub(crate) use pieces::Pieces;
pub use recorder::{LiveRecorder, SessionRecorder};

use crate::{HistoryFormat, HistoryWriter, OutputTarget, ParsedHistory, ReadError, Source};

/// The native format.
pub(crate) struct Isolario;

impl HistoryFormat for Isolario {
    fn name(&self) -> &'static str {
        "isolario"
    }

    fn about(&self) -> &'static str {
        "the native format (.iso): complete, compact, quick to load"
    }

    fn sniff(&self, source: &Source) -> bool {
        source.file().is_some_and(|bytes| bytes.starts_with(&layout::MAGIC))
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read::read(source)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target.into_stream()?, fill::BlockSize::default())))
    }
}
