//! Cobra: a directory of binary logs, `T<n>.log`, one per session.
//!
//! A version is named by its writing transaction and the number of the write there. Some tools
//! write "any transaction" in the place of the writer; see [`naming`].

mod naming;
mod read;
mod record;
mod write;

use isolario_model::SinkError;

use crate::narrow::Collector;
use crate::session_files::first_session;
use crate::{HistoryFormat, HistoryWriter, OutputTarget, ParsedHistory, ReadError, Source};

const NAME: &str = "cobra";

/// The format of Cobra's logs.
pub(crate) struct Cobra;

/// Whether a file is the log of a session, by its name.
fn is_log(name: &str) -> bool {
    name.starts_with('T') && name.ends_with(".log")
}

impl HistoryFormat for Cobra {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Cobra: a directory of binary logs, T<n>.log, one per session"
    }

    /// A log begins with `S`, a number of eight bytes, and the tag of another record.
    fn sniff(&self, source: &Source) -> bool {
        let log = first_session(source, is_log).unwrap_or_default();
        log.first() == Some(&b'S') && matches!(log.get(9), Some(b'R' | b'W' | b'C'))
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read::read(source)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::boxed(Cobra, target))
    }
}

#[cfg(test)]
mod tests;
