//! What stands on one line: the header, or a transaction.

use std::collections::BTreeMap;

use isolario_model::{
    Clock, Initial, Meta, OpNotes, Outcome, Stamp, TxnEnd, TxnSink, TxnStart, Value, VersionRef,
};

use super::json::{Fields, Json};
use super::ops;
use crate::Problem;

/// The version of the format that the header states.
pub(super) const VERSION: u64 = 1;

/// Takes the header's fields off the line.
pub(super) fn take_header(fields: &mut Fields<'_>) -> Result<Meta, Problem> {
    take(fields, "isolario", "1, the version of the format", |json| {
        (json.as_u64() == Some(VERSION)).then_some(())
    })?;
    let defaults = Meta::default();
    // Null is a value here, the default one; elsewhere it is as good as no field.
    let initial = match fields.remove("initial") {
        Some(mut json) => decode_initial(&mut json).ok_or_else(|| {
            let forms = r#"a whole number, boolean or null, {"value": …}, {"unless_written": …}, "unwritten", "marked" or "none""#;
            field_problem("initial", forms, &json)
        })?,
        None => defaults.initial,
    };
    let clock = take(fields, "clock", r#""ns" or "order""#, |json| match json.as_text()? {
        "ns" => Some(Clock::Nanoseconds),
        "order" => Some(Clock::EventOrder),
        _ => None,
    })?;
    Ok(Meta { initial, clock: clock.unwrap_or(defaults.clock) })
}

fn decode_initial(json: &mut Json<'_>) -> Option<Initial> {
    match json {
        Json::Text(word) => match &**word {
            "unwritten" => Some(Initial::Unwritten),
            "marked" => Some(Initial::Marked),
            "none" => Some(Initial::None),
            _ => None,
        },
        Json::Object(fields) if fields.len() == 1 => {
            let mut entry = fields.first_entry()?;
            entry.get_mut().fold();
            let value = Value::from(entry.get().value()?);
            match &**entry.key() {
                "value" => Some(Initial::Value(value)),
                "unless_written" => Some(Initial::UnlessWritten(value)),
                _ => None,
            }
        }
        scalar => Some(Initial::Value(scalar.value()?.into())),
    }
}

/// Takes the fields of a transaction off the line and passes it on.
pub(super) fn take_txn(
    fields: &mut Fields<'_>,
    line: u64,
    sink: &mut dyn TxnSink,
) -> Result<(), Problem> {
    let Some(mut session) = fields.remove("session") else {
        return Err(Problem::malformed("a field \"session\"", "none"));
    };
    session.fold();
    let mut id = fields.remove("id").filter(|id| !matches!(id, Json::Null));
    if let Some(id) = &mut id {
        id.fold();
    }
    let notes = Notes::take(fields)?;
    let mut ops = match fields.remove("ops") {
        Some(Json::Array(ops)) => ops,
        other => return Err(problem_of("ops", "an array of operations", other.as_ref())),
    };
    notes.check_range(ops.len())?;
    let snapshot = take_text(fields, "snapshot")?;
    let error = take_text(fields, "error")?;
    let end = TxnEnd {
        start: take(fields, "start", "a whole number", time)?,
        finish: take(fields, "finish", "a whole number", time)?,
        db_start: take(fields, "db_start", STAMP, stamp)?,
        db_commit: take(fields, "db_commit", STAMP, stamp)?,
        snapshot: snapshot.as_ref().and_then(Json::as_text),
        error: error.as_ref().and_then(Json::as_text),
        ..TxnEnd::new(take_outcome(fields)?)
    };

    let session = session.value().ok_or_else(|| field_problem("session", "a value", &session))?;
    sink.begin(&TxnStart { session, id: id.as_ref().and_then(Json::value), line: Some(line) })?;
    for (index, op) in ops.iter_mut().enumerate() {
        ops::with_op(op, |op| sink.op_with(op, &notes.of(index)))
            .map_err(|problem| in_place(problem, &format!("ops[{index}]")))??;
    }
    Ok(sink.end(&end)?)
}

/// What is known of operations beside themselves, by their position.
#[derive(Default)]
struct Notes<'a> {
    sql: BTreeMap<usize, Json<'a>>,
    versions: BTreeMap<usize, VersionRef>,
}

impl<'a> Notes<'a> {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        for (index, json) in take_indexed(fields, "sql")? {
            if json.as_text().is_none() {
                return Err(field_problem(&format!("sql[{index}]"), "a string", &json));
            }
            notes.sql.insert(index, json);
        }
        for (index, json) in take_indexed(fields, "versions")? {
            let forms = r#""initial", {"txn": …, "write": …} or {"write": …, "value": …}"#;
            let version = decode_version(&json)
                .ok_or_else(|| field_problem(&format!("versions[{index}]"), forms, &json))?;
            notes.versions.insert(index, version);
        }
        Ok(notes)
    }

    fn check_range(&self, ops: usize) -> Result<(), Problem> {
        let last = |name, index: Option<&usize>| match index {
            Some(index) if *index >= ops => Err(Problem::malformed(
                format!("positions of operations, below {ops}, in \"{name}\""),
                index,
            )),
            _ => Ok(()),
        };
        last("sql", self.sql.keys().next_back())?;
        last("versions", self.versions.keys().next_back())
    }

    fn of(&self, index: usize) -> OpNotes<'_> {
        OpNotes {
            version: self.versions.get(&index).copied(),
            sql: self.sql.get(&index).and_then(Json::as_text),
        }
    }
}

/// An object from positions of operations to something.
fn take_indexed<'a>(
    fields: &mut Fields<'a>,
    name: &str,
) -> Result<Vec<(usize, Json<'a>)>, Problem> {
    let entries = match fields.remove(name) {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Object(entries)) => entries,
        Some(other) => {
            let expected = "an object from positions of operations";
            return Err(field_problem(name, expected, &other));
        }
    };
    let indexed = entries.into_iter().map(|(index, json)| match index.parse() {
        // One spelling each, so that no two fields can mean the same position.
        Ok(number) if index == usize::to_string(&number) => Ok((number, json)),
        _ => Err(Problem::malformed(format!("positions of operations in \"{name}\""), index)),
    });
    indexed.collect()
}

fn decode_version(json: &Json<'_>) -> Option<VersionRef> {
    let fields = match json {
        Json::Text(word) if word == "initial" => return Some(VersionRef::Initial),
        Json::Object(fields) if fields.len() == 2 => fields,
        _ => return None,
    };
    let number = |name| fields.get(name).and_then(Json::as_u64);
    let write = number("write")?;
    match (number("txn"), number("value")) {
        (Some(txn), _) => Some(VersionRef::ByWriter { txn, write }),
        (None, Some(value)) => Some(VersionRef::ByWrite { write, value }),
        (None, None) => None,
    }
}

fn take_outcome(fields: &mut Fields<'_>) -> Result<Outcome, Problem> {
    let words = r#""committed", "aborted" or "unknown""#;
    let outcome = take(fields, "outcome", words, |json| match json.as_text()? {
        "committed" => Some(Outcome::Committed),
        "aborted" => Some(Outcome::Aborted),
        "unknown" => Some(Outcome::Unknown),
        _ => None,
    })?;
    Ok(outcome.unwrap_or(Outcome::Committed))
}

fn take_text<'a>(fields: &mut Fields<'a>, name: &str) -> Result<Option<Json<'a>>, Problem> {
    match fields.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(json @ Json::Text(_)) => Ok(Some(json)),
        Some(json) => Err(field_problem(name, "a string", &json)),
    }
}

fn time(json: &Json<'_>) -> Option<i64> {
    match json {
        Json::Int(i) => Some(*i),
        _ => None,
    }
}

const STAMP: &str = "a whole number or [physical, logical]";

fn stamp(json: &Json<'_>) -> Option<Stamp> {
    match json {
        Json::Array(parts) => match parts.as_slice() {
            [physical, logical] => {
                Some(Stamp { physical: physical.as_u64()?, logical: logical.as_u64()? })
            }
            _ => None,
        },
        position => Some(Stamp { physical: position.as_u64()?, logical: 0 }),
    }
}

/// Takes a field that may be missing or null.
fn take<T>(
    fields: &mut Fields<'_>,
    name: &str,
    expected: &str,
    decode: impl FnOnce(&Json<'_>) -> Option<T>,
) -> Result<Option<T>, Problem> {
    match fields.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(json) => match decode(&json) {
            Some(decoded) => Ok(Some(decoded)),
            None => Err(field_problem(name, expected, &json)),
        },
    }
}

fn field_problem(name: &str, expected: &str, found: &Json<'_>) -> Problem {
    problem_of(name, expected, Some(found))
}

fn problem_of(name: &str, expected: &str, found: Option<&Json<'_>>) -> Problem {
    let expected = format!("{expected} as \"{name}\"");
    match found {
        Some(found) => Problem::malformed(expected, found),
        None => Problem::malformed(expected, "none"),
    }
}

fn in_place(problem: Problem, place: &str) -> Problem {
    match problem {
        Problem::Malformed { expected, found } => {
            Problem::Malformed { expected: format!("{expected} as {place}"), found }
        }
        other => other,
    }
}
