//! `jsonl`: one transaction per line, for people and for other languages.
//!
//! The book has the whole format (`docs/book/src/formats/jsonl.md`), with a JSON schema beside it.

mod ops;
mod record;
mod tail;
pub(crate) mod value;
mod write;

#[cfg(test)]
mod tests;

use isolario_model::{Batch, BatchEntries, History, Meta, SinkError, TxnSink};
use memchr::memmem;

use crate::error::{Fault, utf8};
use crate::lines::{self, Chunk, Line, Lines};
use crate::notation::{Form, Notation, Shape, json};
use crate::predicates::Predicates;
use crate::{
    HistoryFormat, HistoryWriter, IgnoredItems, OutputTarget, ParsedHistory, Position, ReadError,
    Source,
};

pub(crate) use tail::Tail;

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
        let text = source.beginning();
        let first = Lines::new(text.as_bytes(), 1).significant().next();
        first.is_some_and(|line| {
            let line = text[line.start..line.end].trim_ascii_start();
            line.starts_with('{') && (has_field(line, "isolario") || has_field(line, "ops"))
        })
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read(source, source.file().map_or(1, lines::good_chunk_size))
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Box::new(write::Writer::new(target)?))
    }
}

/// Whether a line seems to have a field of this name. Only seems: a line with a mistake in it
/// should be recognised too, so that the reader can say what the mistake is.
fn has_field(line: &str, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memmem::find_iter(line.as_bytes(), &quoted)
        .any(|at| line[at + quoted.len()..].trim_ascii_start().starts_with(':'))
}

/// Reads a whole file, in chunks of about `chunk_size` bytes, which do not show in the result.
fn read(source: &Source, chunk_size: usize) -> Result<ParsedHistory, ReadError> {
    read_bytes(source, source.require_file()?, chunk_size)
}

/// The same of the beginning of a file.
fn read_bytes(
    source: &Source,
    bytes: &[u8],
    chunk_size: usize,
) -> Result<ParsedHistory, ReadError> {
    let first = Lines::new(bytes, 1).significant().next();
    let has_rows = first.as_ref().is_none_or(|line| !is_header_of_version_1(bytes, line));
    let first = first.map(|line| line.number);
    let parts = lines::parse_chunks(bytes, chunk_size, |chunk| {
        let part = part(chunk, first, has_rows).map_err(|fault| fault.shifted(chunk.start));
        source.meter().add(chunk.bytes.len());
        part
    })
    .map_err(|fault| fault.in_text(source, bytes))?;
    let ignored = parts.iter().filter_map(|part| part.unknown_fields.clone());
    let ignored = ignored.reduce(|all, more| IgnoredItems { count: all.count + more.count, ..all });
    let history = join(parts).map_err(|error| source.error(Position::Whole, error))?;
    let mut loaded = ParsedHistory::new(history);
    loaded.ignored.extend(ignored);
    Ok(loaded)
}

/// Whether a line is the header of a file of version 1. Mistakes in it are found later, with their
/// places.
fn is_header_of_version_1(bytes: &[u8], line: &Line) -> bool {
    let mut form = Form::new(Notation::Json);
    let text = str::from_utf8(&bytes[line.start..line.end]).unwrap_or_default();
    json::read_only(text, 0, &mut form).is_ok() && record::version_of(&form) == Some(1)
}

fn join(parts: Vec<Part>) -> Result<History, SinkError> {
    let header = parts.iter().find_map(|part| part.header.clone());
    let mut batches: Vec<Batch> = parts.into_iter().map(|part| part.batch).collect();
    if let (Some(header), Some(first)) = (header, batches.first_mut()) {
        first.meta(&header)?;
    }
    History::from_batches(batches, BatchEntries::Whole)
}

/// What some lines of a file say.
#[derive(Default)]
struct Part {
    header: Option<Meta>,
    batch: Batch,
    predicates: Predicates,
    unknown_fields: Option<IgnoredItems>,
}

/// Reads some lines of a file. The header may stand on its `first` line that says anything.
fn part(chunk: Chunk<'_>, first: Option<u64>, has_rows: bool) -> Result<Part, Fault> {
    let text = utf8(chunk.bytes)?;
    let mut part = Part::default();
    let mut form = Form::new(Notation::Json);
    form.has_rows = has_rows;
    for line in Lines::new(chunk.bytes, chunk.first_line).significant() {
        json::read_only(&text[..line.end], line.start, &mut form)?;
        if form.shape(0) != Some(Shape::Map) {
            return Err(Fault::malformed(form.at(0), "a JSON object", form.render(0)));
        }
        part.take(&mut form, line.number, first == Some(line.number))?;
    }
    Ok(part)
}

impl Part {
    fn take(&mut self, form: &mut Form<'_>, line: u64, is_first: bool) -> Result<(), Fault> {
        let unknown = if !record::is_header(form) {
            record::read_txn(form, line, &mut self.predicates, &mut self.batch)?
        } else if is_first {
            let (meta, unknown) = record::read_header(form)?;
            self.header = Some(meta);
            unknown
        } else {
            let expected = "a transaction (only the first line is a header)";
            return Err(Fault::malformed(form.at(0), expected, "a header"));
        };
        if unknown > 0 {
            let first = Position::Line(line);
            let none = IgnoredItems { what: "unknown fields", count: 0, first };
            self.unknown_fields.get_or_insert(none).count += unknown;
        }
        Ok(())
    }
}
