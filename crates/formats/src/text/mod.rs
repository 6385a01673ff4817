//! `text`: a small language for writing histories by hand, easy to read in a diff.
//!
//! ```text
//! # lost update: both read the same version and overwrite it
//! initial 0
//! session alice
//!   T1: r x 0, w x 1
//! session bob
//!   T2: r x 0, w x 2
//! ```
//!
//! The book has the whole language (`docs/book/src/formats/text.md`). The form of AWDIT's tests is
//! read as well.

mod awdit;
mod operation;
mod parse;
mod parser;
mod read;
mod show;
mod suggest;
mod token;
mod words;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::{Batch, History, SinkError, TxnSink};

use self::token::Slip;
use crate::chunks;
use crate::{HistoryFormat, HistoryWriter, Loaded, Problem, ReadError, Source, Target};

/// The text language.
pub(crate) struct Text;

impl HistoryFormat for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn about(&self) -> &'static str {
        "a small language for writing histories by hand; also AWDIT's test form"
    }

    fn sniff(&self, source: &Source) -> bool {
        const BEGINNING: usize = 1 << 16;
        let Some(bytes) = source.file() else { return false };
        let beginning = &bytes[..bytes.len().min(BEGINNING)];
        // The beginning may end inside a character.
        let text = match std::str::from_utf8(beginning) {
            Ok(text) => text,
            Err(error) => match std::str::from_utf8(&beginning[..error.valid_up_to()]) {
                Ok(text) if error.error_len().is_none() => text,
                _ => return false,
            },
        };
        let text = without_mark(text);
        awdit::recognise(text) || parse::recognise(text)
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        let text = without_mark(decode(source)?);
        let history = if awdit::recognise(text) {
            in_one_go(text, awdit::parse)
        } else {
            read::history(text, chunks::good_size(text.as_bytes()), source.meter())
                .map_or_else(|| in_one_go(text, parse::parse), Ok)
        };
        history.map(Loaded::new).map_err(|slip| source.error(slip.position(text), *slip.problem))
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target)?))
    }
}

/// The text without the byte order mark that some editors leave.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads a text in one of the two forms from its first line to its last.
fn in_one_go(
    text: &str,
    parse: fn(&str, &mut dyn TxnSink) -> Result<(), Slip>,
) -> Result<History, Slip> {
    let mut batch = Batch::new();
    parse(text, &mut batch)?;
    batch.build().map_err(|error| Slip::new(0, error))
}

fn decode(source: &Source) -> Result<&str, ReadError> {
    let bytes = source.require_file()?;
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        let problem = Problem::malformed("UTF-8 text", format_args!("the byte {byte:#04x}"));
        let slip = Slip::new(valid.len(), problem);
        source.error(slip.position(&valid), *slip.problem)
    })
}
