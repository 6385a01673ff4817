//! From lines to a history.

use isolario_model::{Batch, TxnSink};

use super::json::{Fields, Json};
use super::record;
use crate::fault::Fault;
use crate::json_text::json_fault;
use crate::lines::Lines;
use crate::{Ignored, Loaded, Position, Problem, ReadError, Source};

/// Reads a whole file.
pub(super) fn read(source: &Source) -> Result<Loaded, ReadError> {
    let mut reader = Reader::default();
    for (number, line) in significant_lines(source.require_file()?) {
        reader.line(number, line).map_err(|fault| fault.in_source(source))?;
    }
    let history = reader.batch.build().map_err(|error| source.error(Position::Whole, error))?;
    let mut loaded = Loaded::new(history);
    loaded.ignored.extend(reader.unknown_fields);
    Ok(loaded)
}

/// The lines that are neither blank nor comments.
pub(super) fn significant_lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    Lines::new(bytes).filter(|(_, line)| {
        let line = line.trim_ascii_start();
        !(line.is_empty() || line.starts_with(b"#") || line.starts_with(b"//"))
    })
}

#[derive(Default)]
struct Reader {
    batch: Batch,
    unknown_fields: Option<Ignored>,
    /// The line that the header could only have come before.
    first_line: Option<u64>,
}

impl Reader {
    fn line(&mut self, number: u64, line: &[u8]) -> Result<(), Fault> {
        let position = Position::Line(number);
        let mut fields = match serde_json::from_slice(line) {
            Ok(Json::Object(fields)) => fields,
            Ok(other) => return Err(Fault::malformed(position, "a JSON object", other)),
            Err(error) => return Err(json_fault(&error, number, 1, line)),
        };
        let first = *self.first_line.get_or_insert(number) == number;
        self.record(number, &mut fields, first).map_err(|problem| Fault::new(position, problem))?;
        self.count_unknown(position, fields.len());
        Ok(())
    }

    fn record(&mut self, number: u64, fields: &mut Fields<'_>, first: bool) -> Result<(), Problem> {
        if !fields.contains_key("isolario") {
            return record::take_txn(fields, number, &mut self.batch);
        }
        if !first {
            return Err(Problem::malformed("a transaction (the header stands first)", "a header"));
        }
        Ok(self.batch.meta(&record::take_header(fields)?)?)
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
