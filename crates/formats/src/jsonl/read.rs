//! From lines to a history.

use isolario_model::{Batch, History, Meta, Pieces, SinkError, TxnSink};

use super::json::{Fields, Json};
use super::record;
use crate::chunks::{self, Chunk};
use crate::fault::Fault;
use crate::json_text::json_fault;
use crate::lines::Lines;
use crate::{Ignored, Loaded, Position, Problem, ReadError, Source};

/// Reads a whole file, in chunks of about `chunk_size` bytes, which do not show in the result.
pub(super) fn read(source: &Source, chunk_size: usize) -> Result<Loaded, ReadError> {
    let bytes = source.require_file()?;
    let first = significant_lines(Lines::new(bytes)).next().map(|(number, _)| number);
    let parse = |chunk: Chunk<'_>| {
        let part = part(chunk, first);
        source.meter().add(chunk.bytes.len());
        part
    };
    let parts = chunks::parse(bytes, chunk_size, parse).map_err(|fault| fault.in_source(source))?;
    let ignored = parts.iter().filter_map(|part| part.unknown_fields.clone());
    let ignored = ignored.reduce(|all, more| Ignored { count: all.count + more.count, ..all });
    let header = parts.iter().find_map(|part| part.header.clone());
    let batches = parts.into_iter().map(|part| part.batch).collect();
    let history = join(header, batches).map_err(|error| source.error(Position::Whole, error))?;
    let mut loaded = Loaded::new(history);
    loaded.ignored.extend(ignored);
    Ok(loaded)
}

fn join(header: Option<Meta>, mut batches: Vec<Batch>) -> Result<History, SinkError> {
    if let (Some(header), Some(first)) = (header, batches.first_mut()) {
        first.meta(&header)?;
    }
    History::from_batches(batches, Pieces::Whole)
}

/// The lines that are neither blank nor comments.
pub(crate) fn significant_lines(lines: Lines<'_>) -> impl Iterator<Item = (u64, &[u8])> {
    lines.filter(|(_, line)| {
        let line = line.trim_ascii_start();
        !(line.is_empty() || line.starts_with(b"#") || line.starts_with(b"//"))
    })
}

/// Reads some lines of a file, of which `first` is the first significant one.
fn part(chunk: Chunk<'_>, first: Option<u64>) -> Result<Reader, Fault> {
    let mut reader = Reader { first, ..Reader::default() };
    for (number, line) in significant_lines(Lines::of(chunk)) {
        reader.line(number, line)?;
    }
    Ok(reader)
}

#[derive(Default)]
struct Reader {
    header: Option<Meta>,
    batch: Batch,
    unknown_fields: Option<Ignored>,
    /// The line of the file that the header may stand on.
    first: Option<u64>,
}

impl Reader {
    fn line(&mut self, number: u64, line: &[u8]) -> Result<(), Fault> {
        let position = Position::Line(number);
        let mut fields = match serde_json::from_slice(line) {
            Ok(Json::Object(fields)) => fields,
            Ok(other) => return Err(Fault::malformed(position, "a JSON object", other)),
            Err(error) => return Err(json_fault(&error, number, 1, line)),
        };
        self.record(number, &mut fields).map_err(|problem| Fault::new(position, problem))?;
        self.count_unknown(position, fields.len());
        Ok(())
    }

    fn record(&mut self, number: u64, fields: &mut Fields<'_>) -> Result<(), Problem> {
        if !fields.contains_key("isolario") {
            return record::take_txn(fields, number, &mut self.batch);
        }
        if self.first != Some(number) {
            return Err(Problem::malformed("a transaction (the header stands first)", "a header"));
        }
        self.header = Some(record::take_header(fields)?);
        Ok(())
    }

    fn count_unknown(&mut self, first: Position, count: usize) {
        if count > 0 {
            let ignored = self.unknown_fields.get_or_insert(Ignored {
                what: "unknown fields",
                count: 0,
                first,
            });
            ignored.count += count as u64;
        }
    }
}
