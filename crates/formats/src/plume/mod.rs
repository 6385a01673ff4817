//! `plume`: the text of Plume and PolySI, one operation per line.
//!
//! ```text
//! w(7,1,0,12)
//! r(7,1,1,13)
//! w(8,2,1,-1)
//! ```
//!
//! is a write (`w`) or a read (`r`) of a key, with its value, its session and its transaction: all
//! of them decimal numbers from 0 to 2^64 - 1.
//!
//! - The order of lines is program order inside a transaction, and the order in which
//!   transactions first appear is their order inside a session. Transactions may interleave.
//! - Transaction -1 is no name: it marks operations of aborted transactions. Those that follow
//!   one another in their session are one transaction.
//! - A read of 0 refers to a write of 0 to its key, if there is one, and to the initial state
//!   otherwise ([`Initial::UnlessWritten`]).
//! - Blank lines, spaces, tabs and `\r` at line ends are of no account.
//!
//! The writer leaves out what only annotates: times, database timestamps, line numbers, errors,
//! snapshots, statements, and the names of aborted transactions, of which two that follow one
//! another in a session become one. It refuses what would change the meaning: see [`mod@write`].

mod read;
mod scan;
mod write;

use isolario_model::{Initial, SinkError, Value};

use crate::{HistoryFormat, HistoryWriter, Loaded, ReadError, Source, Target};

/// Plume and PolySI text.
pub(crate) struct Plume;

const NAME: &str = "plume";

/// What a key holds at first, unless a client writes that value.
const INITIAL: Initial = Initial::UnlessWritten(Value::Int(0));

impl HistoryFormat for Plume {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Plume and PolySI text: r(key,value,session,txn) on each line"
    }

    fn sniff(&self, source: &Source) -> bool {
        source.file().is_some_and(scan::looks_like_operations)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        let bytes = source.require_file()?;
        read::history(bytes, crate::chunks::good_size(bytes), source.meter())
            .map(Loaded::new)
            .map_err(|fault| source.error(fault.0, fault.1))
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target.into_stream()?)))
    }
}

#[cfg(test)]
mod tests;
