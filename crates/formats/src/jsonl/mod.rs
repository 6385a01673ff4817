//! `jsonl`: one transaction per line, for people and for other languages.
//!
//! The book has the whole format (`docs/book/src/formats/jsonl.md`), with a JSON schema beside it.

mod json;
mod ops;
mod read;
mod record;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::SinkError;
use memchr::memmem;

pub(crate) use json::{Fields, Json};
pub(crate) use read::significant_lines;

use crate::chunks;
use crate::lines::Lines;
use crate::{HistoryFormat, HistoryWriter, Loaded, ReadError, Source, Target};

/// JSON lines.
pub(crate) struct Jsonl;

impl HistoryFormat for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn about(&self) -> &'static str {
        "one transaction per line, as a JSON object"
    }

    fn sniff(&self, source: &Source) -> bool {
        let line = source.file().and_then(|bytes| significant_lines(Lines::new(bytes)).next());
        line.is_some_and(|(_, line)| {
            let line = line.trim_ascii_start();
            line.starts_with(b"{") && (has_field(line, "isolario") || has_field(line, "ops"))
        })
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        read::read(source, source.file().map_or(1, chunks::good_size))
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target)?))
    }
}

/// Whether a line seems to have a field of this name. Only seems: a line with a mistake in it
/// should be recognised too, so that the reader can say what the mistake is.
fn has_field(line: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memmem::find_iter(line, &quoted)
        .any(|at| line[at + quoted.len()..].trim_ascii_start().starts_with(b":"))
}
