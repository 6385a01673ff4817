//! dbcop: `history.bincode`, numbers of eight bytes and flags of one, least significant byte
//! first; or a directory with a file of that name.

mod read;
mod write;

use isolario_model::SinkError;

use crate::collect::Collector;
use crate::source::Bytes;
use crate::{HistoryFormat, HistoryWriter, Loaded, ReadError, Source, Target};

const NAME: &str = "dbcop";

/// The name that dbcop gives to every history.
const FILE_NAME: &str = "history.bincode";

/// The format of dbcop's histories.
pub(crate) struct Dbcop;

/// The file of that name, if the source is a directory that has one.
fn file_in_directory(source: &Source) -> Option<&(String, Bytes)> {
    source.files()?.iter().find(|(name, _)| name == FILE_NAME)
}

impl HistoryFormat for Dbcop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "dbcop: history.bincode, or a directory that contains it"
    }

    /// There is no magic number, but the header ends with two dates.
    fn sniff(&self, source: &Source) -> bool {
        let in_directory = file_in_directory(source).map(|(_, bytes)| &bytes[..]);
        in_directory.or_else(|| source.file()).is_some_and(read::has_header)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read::read(source)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::<Dbcop>::boxed(target))
    }
}

#[cfg(test)]
mod tests;
