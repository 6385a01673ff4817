//! From lines to stated orders.

use isolario_model::{History, KeyId, Outcome, StatedOrder, StatedSet, TxnId, ValueRef};

use super::names::{Names, Who};
use super::sets::SetStatement;
use crate::error::{Fault, utf8};
use crate::jsonl::value::{prepare, value};
use crate::lines::{self, Chunk, Lines};
use crate::notation::{Form, Notation, Shape, json};
use crate::{Problem, ReadError, Source};

/// What a file states about a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionStatements {
    /// The orders, as they stand in the file.
    pub orders: Vec<StatedOrder>,
    /// What operations by predicate met, as it stands in the file.
    pub sets: Vec<StatedSet>,
    /// What it names and the history does not have.
    pub unknown: UnknownNames,
}

/// Keys and versions that a history does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownNames {
    /// How many keys.
    pub keys: u64,
    /// How many versions of keys that it does have.
    pub versions: u64,
    /// The first of all: its line, and what it says.
    pub first: Option<(u64, String)>,
}

impl UnknownNames {
    pub(super) fn note(&mut self, line: u64, what: impl FnOnce() -> String) {
        self.first.get_or_insert_with(|| (line, what()));
    }
}

/// Reads the orders that a file states about the versions of a history.
///
/// Keys and versions that the history does not have are counted and left out. The initial version
/// of a key may stand first; anywhere else it is an error, since it comes before all others. The
/// version of a transaction that aborted is an error, since no database that keeps its promises has
/// it, and so is one that several transactions may have written.
pub fn read(source: &Source, history: &History) -> Result<VersionStatements, ReadError> {
    let bytes = source.require_file()?;
    read_bytes(bytes, history, lines::good_chunk_size(bytes))
        .map_err(|fault| fault.in_text(source, bytes))
}

/// Reads a whole file, in chunks of about `chunk_size` bytes, which do not show in the result.
fn read_bytes(
    bytes: &[u8],
    history: &History,
    chunk_size: usize,
) -> Result<VersionStatements, Fault> {
    let (text, names) = (utf8(bytes)?, Names::new(history));
    let parts = lines::parse_chunks(bytes, chunk_size, |chunk| {
        let mut reader = Reader { names: &names, statements: VersionStatements::default() };
        reader.lines(text, chunk).map(|()| reader.statements)
    })?;
    let mut all = VersionStatements::default();
    parts.into_iter().for_each(|part| all.extend(part));
    Ok(all)
}

impl VersionStatements {
    fn extend(&mut self, more: VersionStatements) {
        let UnknownNames { keys, versions, first } = more.unknown;
        self.orders.extend(more.orders);
        self.sets.extend(more.sets);
        self.unknown.keys += keys;
        self.unknown.versions += versions;
        self.unknown.first = self.unknown.first.take().or(first);
    }
}

pub(super) struct Reader<'n, 'h> {
    pub(super) names: &'n Names<'h>,
    pub(super) statements: VersionStatements,
}

impl Reader<'_, '_> {
    fn lines(&mut self, text: &str, chunk: Chunk<'_>) -> Result<(), Fault> {
        let mut form = Form::new(Notation::Json);
        for line in Lines::new(chunk.bytes, chunk.first_line).significant() {
            let (start, end) = (chunk.start + line.start, chunk.start + line.end);
            json::read_only(&text[..end], start, &mut form)?;
            match SetStatement::of(&form)? {
                Some(set) => self.set(line.number, &set, &mut form)?,
                None => self.statement(line.number, &mut form)?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, at: u64, form: &mut Form<'_>) -> Result<(), Fault> {
        let Statement { key, versions, by_value } = Statement::of(form)?;
        prepare(form, key)?;
        let known = self.names.history.find_key(value(form, key));
        let Some(known) = known else {
            self.statements.unknown.keys += 1;
            self.statements.unknown.note(at, || format!("the key {}", form.render(key)));
            return Ok(());
        };
        let mut writers = Vec::new();
        let (mut version, end) = (versions + 1, form.skip(versions));
        let mut is_first = true;
        while version < end {
            prepare(form, version)?;
            let writer = self
                .writer(known, value(form, version), by_value)
                .map_err(|problem| Fault::new(form.at(version), problem))?;
            match writer {
                Some(TxnId::INIT) if is_first => {}
                Some(TxnId::INIT) => {
                    let found = format!("{} after another version", form.render(version));
                    let problem = Problem::malformed("the initial version first", found);
                    return Err(Fault::new(form.at(version), problem));
                }
                Some(txn) => writers.push(txn),
                None => {
                    let what =
                        || format!("{} of the key {}", form.render(version), form.render(key));
                    self.statements.unknown.versions += 1;
                    self.statements.unknown.note(at, what);
                }
            }
            (version, is_first) = (form.skip(version), false);
        }
        self.statements.orders.push(StatedOrder { key: known, writers, at });
        Ok(())
    }

    /// Who wrote a version, given by its value or by a name.
    pub(super) fn writer(
        &self,
        key: KeyId,
        version: ValueRef<'_>,
        by_value: bool,
    ) -> Result<Option<TxnId>, Problem> {
        let history = self.names.history;
        let who = match by_value {
            true => self.names.by_value(key, version),
            false => self.names.by_name(key, version),
        };
        let key = || history.key_name(key).to_string().into();
        let label = |txn: TxnId| history.txn_label(txn).into();
        match who {
            Who::Nobody => Ok(None),
            Who::Init => Ok(Some(TxnId::INIT)),
            Who::Txn(txn) if history.outcome(txn) == Outcome::Aborted => {
                let version = if by_value { version.to_string().into() } else { "a value".into() };
                Err(Problem::AbortedVersion { key: key(), version, txn: label(txn) })
            }
            Who::Txn(txn) => Ok(Some(txn)),
            Who::Several(..) if !by_value => {
                let found = format!("{version}, which several are called");
                Err(Problem::malformed("the name of one transaction", found))
            }
            Who::Several(first, second) => Err(Problem::AmbiguousVersion {
                key: key(),
                version: version.to_string().into(),
                first: label(first),
                second: label(second),
            }),
        }
    }
}

/// A line, by the nodes of its parts.
struct Statement {
    key: usize,
    versions: usize,
    by_value: bool,
}

impl Statement {
    fn of(form: &Form<'_>) -> Result<Statement, Fault> {
        let wrong = |expected: &str| Fault::malformed(form.at(0), expected, form.render(0));
        if form.shape(0) != Some(Shape::Map) {
            return Err(wrong("a JSON object"));
        }
        let ([key, values, writers], others) = form.fields(0, &["key", "values", "writers"])?;
        let (versions, by_value) = match (values, writers) {
            (Some(values), None) => (values, true),
            (None, Some(writers)) => (writers, false),
            _ => return Err(wrong("either `values` or `writers`")),
        };
        let Some(key) = key.filter(|_| others == 0) else {
            return Err(wrong("`key` and `values` or `writers` alone"));
        };
        if !form.is_sequence(versions) {
            let found = form.render(versions);
            return Err(Fault::malformed(form.at(versions), "a list of versions", found));
        }
        Ok(Statement { key, versions, by_value })
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Initial, Meta, Op, TxnEnd, TxnSink, TxnStart, Value};

    use super::*;

    /// Transactions 1 to 4 write 10, 20, 30 (in vain) and 10 to x; 4 writes 0 to y, too.
    fn history() -> History {
        let mut batch = Batch::new();
        batch.meta(&Meta { initial: Initial::Value(Value::Int(0)), ..Meta::default() }).unwrap();
        for (number, value, outcome) in [
            (1i64, 10i64, Outcome::Committed),
            (2, 20, Outcome::Unknown),
            (3, 30, Outcome::Aborted),
            (4, 10, Outcome::Committed),
        ] {
            let start = TxnStart { session: "s".into(), id: Some(number.into()), line: None };
            batch.begin(&start).unwrap();
            batch.op(&Op::Write { key: "x".into(), value: value.into() }).unwrap();
            if number == 4 {
                batch.op(&Op::Write { key: "y".into(), value: 0i64.into() }).unwrap();
            }
            batch.end(&TxnEnd::new(outcome)).unwrap();
        }
        batch.build().unwrap()
    }

    fn statements(text: &str) -> Result<VersionStatements, String> {
        let source = Source::from_bytes("orders", text.into()).unwrap();
        read(&source, &history()).map_err(|error| error.to_string())
    }

    #[test]
    fn versions_are_named_by_value_or_by_writer() {
        let text = r#"
{"key": "x", "values": [0, 20, 7]}
# the next one is partial, too
{"key": "x", "writers": [1, 2, 4]}
{"key": "y", "writers": [1, 4]}
{"key": "z", "values": [1]}"#;
        let found = statements(text).unwrap();
        for size in [1, 40, 70] {
            assert_eq!(read_bytes(text.as_bytes(), &history(), size).unwrap(), found);
        }
        let order = |key, writers: &[u32], at| StatedOrder {
            key: KeyId(key),
            writers: writers.iter().map(|txn| TxnId(*txn)).collect(),
            at,
        };
        assert_eq!(found.orders, [order(0, &[1], 2), order(0, &[0, 1, 3], 4), order(1, &[3], 5)]);
        let first = Some((2, "7 of the key \"x\"".to_owned()));
        assert_eq!(found.unknown, UnknownNames { keys: 1, versions: 2, first });
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_with_its_place() {
        for (text, error) in [
            (
                r#"{"key":"x","values":[20,30]}"#,
                "1:25: 3 wrote 30 to x but aborted, so this version does not exist",
            ),
            (
                r#"{"key":"x","writers":[3]}"#,
                "1:23: 3 wrote a value to x but aborted, so this version does not exist",
            ),
            (
                "\n{\"key\":\"x\",\"values\":[10]}",
                "2:22: 1 and 4 both wrote 10 to x, so this version is ambiguous",
            ),
            (
                r#"{"key":"y","values":[0]}"#,
                "1:22: init and 4 both wrote 0 to y, so this version is ambiguous",
            ),
            (
                r#"{"key":"x","values":[20,0]}"#,
                "1:25: expected the initial version first, found 0 after another version",
            ),
            (
                r#"{"key":"x","values":[7,0]}"#,
                "1:24: expected the initial version first, found 0 after another version",
            ),
            (r#"{"key":"x"}"#, "1:1: expected either `values` or `writers`, found {"),
            (r#"{"values":[]}"#, "1:1: expected `key` and `values` or `writers` alone, found {"),
            (
                r#"{"key":"x","values":[],"writers":[]}"#,
                "1:1: expected either `values` or `writers`, found {",
            ),
            (
                r#"{"key":"x","values":[],"line":1}"#,
                "1:1: expected `key` and `values` or `writers` alone, found {",
            ),
            (r#"{"key":"x","values":1}"#, "1:21: expected a list of versions, found 1"),
            ("[]", "1:1: expected a JSON object, found []"),
            ("{", "1:1: expected a closing '}', found the end of the input"),
        ] {
            let found = statements(text).unwrap_err();
            assert!(found.starts_with(&format!("orders:{error}")), "{found}");
        }
    }
}
