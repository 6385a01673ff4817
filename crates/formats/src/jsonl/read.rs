//! From lines to a history.

use isolario_model::{Batch, TxnSink};

use super::json::{Fields, Json};
use super::record;
use crate::lines::Lines;
use crate::{Ignored, Loaded, Position, Problem, ReadError, Source};

/// Reads a whole file.
pub(super) fn read(source: &Source) -> Result<Loaded, ReadError> {
    let mut reader = Reader::default();
    for (number, line) in significant_lines(source.require_file()?) {
        reader.line(number, line).map_err(|(position, problem)| source.error(position, problem))?;
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
    fn line(&mut self, number: u64, line: &[u8]) -> Result<(), (Position, Problem)> {
        let mut fields = parse(line).map_err(|(column, problem)| match column {
            Some(column) => (Position::Column(number, column), problem),
            None => (Position::Line(number), problem),
        })?;
        let first = *self.first_line.get_or_insert(number) == number;
        self.record(number, &mut fields, first)
            .map_err(|problem| (Position::Line(number), problem))?;
        self.count_unknown(number, fields.len());
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

    fn count_unknown(&mut self, number: u64, count: usize) {
        if count > 0 {
            let first = Position::Line(number);
            let ignored = self.unknown_fields.get_or_insert(Ignored {
                what: "unknown fields",
                count: 0,
                first,
            });
            ignored.count += count as u64;
        }
    }
}

/// The fields of a line; where it is no JSON, the column and what is wrong there.
fn parse(line: &[u8]) -> Result<Fields<'_>, (Option<u64>, Problem)> {
    match serde_json::from_slice(line) {
        Ok(Json::Object(fields)) => Ok(fields),
        Ok(other) => Err((None, Problem::malformed("a JSON object", other))),
        Err(error) => {
            let column = error.column().max(1);
            Err((Some(column as u64), syntax_problem(&error, line.get(column - 1))))
        }
    }
}

/// Words the parser's complaint in our own way.
fn syntax_problem(error: &serde_json::Error, byte: Option<&u8>) -> Problem {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    match (message.strip_prefix("expected "), byte) {
        (Some(expected), Some(byte)) => {
            Problem::malformed(expected, format_args!("`{}`", byte.escape_ascii()))
        }
        _ if error.is_eof() => Problem::malformed("a whole JSON object", "the end of the line"),
        _ => Problem::malformed("one JSON object on the line", message),
    }
}
