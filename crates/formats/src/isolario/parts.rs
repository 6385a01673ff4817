//! What each kind of operation consists of, in which order: stated once for blocks, which put
//! every part into a column, and for row records, which put them one after the other.

use std::borrow::Cow;

use isolario_model::{
    Op, OpInput, OpNotes, PredicateRow, RowInput, SinkError, ValueRef, VersionRef,
};

use super::bytes::Datum;
use super::layout::{inexpressible, unknown};
use crate::Problem;
use crate::predicates::Predicates;

/// The kinds of operation by number.
pub(super) mod code {
    pub(in super::super) const READ: u8 = 0;
    pub(in super::super) const READ_UNOBSERVED: u8 = 1;
    pub(in super::super) const WRITE: u8 = 2;
    pub(in super::super) const DELETE: u8 = 3;
    pub(in super::super) const APPEND: u8 = 4;
    pub(in super::super) const READ_LIST: u8 = 5;
    pub(in super::super) const READ_LIST_UNOBSERVED: u8 = 6;
    pub(in super::super) const INSERT_IF_ABSENT: u8 = 7;
    pub(in super::super) const COMPARE_AND_SET: u8 = 8;
    pub(in super::super) const PREDICATE_READ: u8 = 9;
    pub(in super::super) const PREDICATE_WRITE: u8 = 10;
    pub(in super::super) const AGGREGATE: u8 = 11;
}

/// Added to the kind of an operation whose version is named.
const HAS_VERSION: u8 = 0x40;
/// Added to the kind of an operation whose statement is known.
const HAS_SQL: u8 = 0x80;

/// The state of a conditional write: whether it applied, and whether it saw a value.
mod conditional {
    pub(super) const UNKNOWN: u8 = 0;
    pub(super) const REFUSED: u8 = 1;
    pub(super) const APPLIED: u8 = 2;
    pub(super) const SEEN: u8 = 4;
}

/// What is known of the answer of a predicate operation.
mod answer {
    pub(super) const UNOBSERVED: u8 = 0;
    pub(super) const OBSERVED: u8 = 1;
    /// Observed, and the versions of some rows are named.
    pub(super) const WITH_VERSIONS: u8 = 2;
}

/// Takes the parts of operations.
pub(super) trait PutParts {
    /// The kind of an operation and which notes it has: its first part.
    fn head(&mut self, head: u8);
    fn key(&mut self, key: ValueRef<'_>);
    fn value(&mut self, value: ValueRef<'_>);
    /// A few bits.
    fn state(&mut self, state: u8);
    /// How many rows follow.
    fn count(&mut self, count: usize);
    fn text(&mut self, text: &str);
    /// The elements of a list; its key came just before.
    fn list(&mut self, elements: &[ValueRef<'_>]);
    fn version(&mut self, version: VersionRef);
}

/// Gives the parts of operations back, in the same order.
pub(super) trait GetParts<'b> {
    fn key(&mut self) -> Result<Datum<'b>, Problem>;
    fn value(&mut self) -> Result<Datum<'b>, Problem>;
    fn state(&mut self) -> Result<u8, Problem>;
    fn count(&mut self) -> Result<usize, Problem>;
    fn text(&mut self) -> Result<&'b str, Problem>;
    /// The elements of a list; its key came just before.
    fn list(&mut self) -> Result<Elements<'b>, Problem>;
    fn version(&mut self) -> Result<VersionRef, Problem>;
}

/// The elements of a list.
pub(super) enum Elements<'b> {
    /// As a dictionary has them.
    Listed(Vec<ValueRef<'b>>),
    /// As they were read.
    Inline(Vec<Datum<'b>>),
}

/// The kind of an operation, whatever notes it has.
pub(super) fn kind_code(head: u8) -> u8 {
    head & !(HAS_VERSION | HAS_SQL)
}

/// Takes an operation apart.
pub(super) fn put_op(
    op: &OpInput<'_>,
    notes: &OpNotes<'_>,
    parts: &mut impl PutParts,
) -> Result<(), SinkError> {
    let version_bit = if notes.version.is_some() { HAS_VERSION } else { 0 };
    let sql_bit = if notes.sql.is_some() { HAS_SQL } else { 0 };
    parts.head(code_of(op)? | version_bit | sql_bit);
    if let Some(key) = op.key() {
        parts.key(key);
    }
    match *op {
        Op::Read { value: Some(value), .. }
        | Op::Write { value, .. }
        | Op::Append { element: value, .. } => parts.value(value),
        Op::ReadList { elements: Some(elements), .. } => parts.list(elements),
        Op::InsertIfAbsent { value, applied, seen, .. } => {
            put_conditional(parts, None, value, applied, seen);
        }
        Op::CompareAndSet { expected, new, applied, seen, .. } => {
            put_conditional(parts, Some(expected), new, applied, seen);
        }
        Op::PredicateRead { predicate, rows } | Op::PredicateWrite { predicate, rows } => {
            put_rows(parts, &predicate.to_string(), rows);
        }
        Op::Aggregate { function, predicate, result } => {
            parts.state(match result {
                Some(_) => answer::OBSERVED,
                None => answer::UNOBSERVED,
            });
            parts.text(&function.to_string());
            parts.text(&predicate.to_string());
            result.into_iter().for_each(|value| parts.value(value));
        }
        // The kind says all. An operation the format does not know was refused by `code_of`.
        _ => {}
    }
    notes.version.into_iter().for_each(|version| parts.version(version));
    notes.sql.into_iter().for_each(|sql| parts.text(sql));
    Ok(())
}

fn code_of(op: &OpInput<'_>) -> Result<u8, SinkError> {
    Ok(match op {
        Op::Read { value: Some(_), .. } => code::READ,
        Op::Read { value: None, .. } => code::READ_UNOBSERVED,
        Op::Write { .. } => code::WRITE,
        Op::Delete { .. } => code::DELETE,
        Op::Append { .. } => code::APPEND,
        Op::ReadList { elements: Some(_), .. } => code::READ_LIST,
        Op::ReadList { elements: None, .. } => code::READ_LIST_UNOBSERVED,
        Op::InsertIfAbsent { .. } => code::INSERT_IF_ABSENT,
        Op::CompareAndSet { .. } => code::COMPARE_AND_SET,
        Op::PredicateRead { .. } => code::PREDICATE_READ,
        Op::PredicateWrite { .. } => code::PREDICATE_WRITE,
        Op::Aggregate { .. } => code::AGGREGATE,
        _ => return Err(inexpressible("this kind of operation")),
    })
}

fn put_conditional(
    parts: &mut impl PutParts,
    expected: Option<ValueRef<'_>>,
    new: ValueRef<'_>,
    applied: Option<bool>,
    seen: Option<ValueRef<'_>>,
) {
    let applied = match applied {
        None => conditional::UNKNOWN,
        Some(false) => conditional::REFUSED,
        Some(true) => conditional::APPLIED,
    };
    parts.state(applied | if seen.is_some() { conditional::SEEN } else { 0 });
    expected.into_iter().chain([new]).chain(seen).for_each(|value| parts.value(value));
}

fn put_rows(parts: &mut impl PutParts, predicate: &str, rows: Option<&[RowInput<'_>]>) {
    let has_versions = rows.is_some_and(|rows| rows.iter().any(|row| row.version.is_some()));
    parts.state(match rows {
        None => answer::UNOBSERVED,
        Some(_) if has_versions => answer::WITH_VERSIONS,
        Some(_) => answer::OBSERVED,
    });
    parts.text(predicate);
    let Some(rows) = rows else { return };
    parts.count(rows.len());
    for row in rows {
        parts.key(row.key);
        parts.value(row.value);
        if has_versions {
            parts.state(u8::from(row.version.is_some()));
            row.version.into_iter().for_each(|version| parts.version(version));
        }
    }
}

/// Puts an operation together whose first part was `head`, and hands it over.
pub(super) fn with_op<'b, P: GetParts<'b>, R>(
    head: u8,
    parts: &mut P,
    predicates: &mut Predicates,
    take: impl FnOnce(&OpInput<'_>, &OpNotes<'_>) -> R,
) -> Result<R, Problem> {
    let take = |parts: &mut P, op: &OpInput<'_>| {
        let version = if head & HAS_VERSION == 0 { None } else { Some(parts.version()?) };
        let sql = if head & HAS_SQL == 0 { None } else { Some(parts.text()?) };
        Ok(take(op, &OpNotes { version, sql }))
    };
    match kind_code(head) {
        code::READ => {
            let (key, value) = (parts.key()?, parts.value()?);
            take(parts, &Op::Read { key: key.as_ref(), value: Some(value.as_ref()) })
        }
        code::READ_UNOBSERVED => {
            let key = parts.key()?;
            take(parts, &Op::Read { key: key.as_ref(), value: None })
        }
        code::WRITE => {
            let (key, value) = (parts.key()?, parts.value()?);
            take(parts, &Op::Write { key: key.as_ref(), value: value.as_ref() })
        }
        code::DELETE => {
            let key = parts.key()?;
            take(parts, &Op::Delete { key: key.as_ref() })
        }
        code::APPEND => {
            let (key, element) = (parts.key()?, parts.value()?);
            take(parts, &Op::Append { key: key.as_ref(), element: element.as_ref() })
        }
        code::READ_LIST => {
            let key = parts.key()?;
            let list = parts.list()?;
            let elements = match &list {
                Elements::Listed(values) => Cow::Borrowed(&values[..]),
                Elements::Inline(data) => data.iter().map(Datum::as_ref).collect(),
            };
            take(parts, &Op::ReadList { key: key.as_ref(), elements: Some(&elements) })
        }
        code::READ_LIST_UNOBSERVED => {
            let key = parts.key()?;
            take(parts, &Op::ReadList { key: key.as_ref(), elements: None })
        }
        code::INSERT_IF_ABSENT => {
            let key = parts.key()?;
            let (applied, has_seen) = get_conditional(parts)?;
            let (value, seen) = (parts.value()?, get_value_if(has_seen, parts)?);
            let (key, value) = (key.as_ref(), value.as_ref());
            let seen = seen.as_ref().map(Datum::as_ref);
            take(parts, &Op::InsertIfAbsent { key, value, applied, seen })
        }
        code::COMPARE_AND_SET => {
            let key = parts.key()?;
            let (applied, has_seen) = get_conditional(parts)?;
            let (expected, new) = (parts.value()?, parts.value()?);
            let seen = get_value_if(has_seen, parts)?;
            let (key, expected, new) = (key.as_ref(), expected.as_ref(), new.as_ref());
            let seen = seen.as_ref().map(Datum::as_ref);
            take(parts, &Op::CompareAndSet { key, expected, new, applied, seen })
        }
        code @ (code::PREDICATE_READ | code::PREDICATE_WRITE) => {
            let state = parts.state()?;
            let predicate = predicates.predicate(parts.text()?);
            let rows = get_rows(parts, state)?;
            let rows: Option<Vec<RowInput<'_>>> =
                rows.as_ref().map(|rows| rows.iter().map(borrow).collect());
            let rows = rows.as_deref();
            take(
                parts,
                &match code {
                    code::PREDICATE_READ => Op::PredicateRead { predicate, rows },
                    _ => Op::PredicateWrite { predicate, rows },
                },
            )
        }
        code::AGGREGATE => {
            let has_result = match parts.state()? {
                answer::UNOBSERVED => false,
                answer::OBSERVED => true,
                other => return Err(unknown("the state of an aggregate, 0 or 1", other)),
            };
            let (function, predicate) = predicates.aggregate(parts.text()?, parts.text()?);
            let result = get_value_if(has_result, parts)?;
            let result = result.as_ref().map(Datum::as_ref);
            take(parts, &Op::Aggregate { function, predicate, result })
        }
        other => Err(unknown("a kind of operation, 0 to 11", other)),
    }
}

fn get_conditional<'b>(parts: &mut impl GetParts<'b>) -> Result<(Option<bool>, bool), Problem> {
    let state = parts.state()?;
    let applied = match state & !conditional::SEEN {
        conditional::UNKNOWN => None,
        conditional::REFUSED => Some(false),
        conditional::APPLIED => Some(true),
        _ => return Err(unknown("the state of a conditional write, 0 to 6", state)),
    };
    Ok((applied, state & conditional::SEEN != 0))
}

fn get_value_if<'b>(
    there: bool,
    parts: &mut impl GetParts<'b>,
) -> Result<Option<Datum<'b>>, Problem> {
    if there { parts.value().map(Some) } else { Ok(None) }
}

/// A row of a predicate operation.
type RowDatum<'b> = PredicateRow<Datum<'b>, Datum<'b>, Option<VersionRef>>;

/// The rows of a predicate operation in this state.
fn get_rows<'b>(
    parts: &mut impl GetParts<'b>,
    state: u8,
) -> Result<Option<Vec<RowDatum<'b>>>, Problem> {
    let has_versions = match state {
        answer::UNOBSERVED => return Ok(None),
        answer::OBSERVED => false,
        answer::WITH_VERSIONS => true,
        other => return Err(unknown("the state of a predicate operation, 0 to 2", other)),
    };
    let mut rows = Vec::new();
    for _ in 0..parts.count()? {
        let (key, value) = (parts.key()?, parts.value()?);
        let version = match has_versions && parts.state()? != 0 {
            true => Some(parts.version()?),
            false => None,
        };
        rows.push(PredicateRow { key, value, version });
    }
    Ok(Some(rows))
}

fn borrow<'r>(row: &'r RowDatum<'_>) -> RowInput<'r> {
    PredicateRow { key: row.key.as_ref(), value: row.value.as_ref(), version: row.version }
}

/// The kinds of version names by number.
pub(super) mod version {
    pub(in super::super) const INITIAL: u8 = 0;
    pub(in super::super) const BY_WRITER: u8 = 1;
    pub(in super::super) const BY_WRITE: u8 = 2;
}

/// A version name as a number for its kind, and the two numbers of those that have any.
pub(super) fn version_parts(version: VersionRef) -> (u8, Option<(u64, u64)>) {
    match version {
        VersionRef::Initial => (version::INITIAL, None),
        VersionRef::ByWriter { txn, write } => (version::BY_WRITER, Some((txn, write))),
        VersionRef::ByWrite { write, value } => (version::BY_WRITE, Some((write, value))),
    }
}

/// Puts a version name together; asks for its numbers only where its kind has them.
pub(super) fn version_from_parts(
    kind: u8,
    numbers: impl FnOnce() -> Result<(u64, u64), Problem>,
) -> Result<VersionRef, Problem> {
    match kind {
        version::INITIAL => Ok(VersionRef::Initial),
        version::BY_WRITER => numbers().map(|(txn, write)| VersionRef::ByWriter { txn, write }),
        version::BY_WRITE => numbers().map(|(write, value)| VersionRef::ByWrite { write, value }),
        other => Err(unknown("a kind of version name, 0 to 2", other)),
    }
}

/// Which facts a transaction has, one bit each.
pub(super) mod fact {
    pub(in super::super) const NAME: u8 = 1;
    /// Of an end, which has no name: what was intended and is not recorded was never sent.
    pub(in super::super) const COMPLETE: u8 = 1;
    pub(in super::super) const LINE: u8 = 2;
    pub(in super::super) const START: u8 = 4;
    pub(in super::super) const FINISH: u8 = 8;
    pub(in super::super) const DB_START: u8 = 16;
    pub(in super::super) const DB_COMMIT: u8 = 32;
    pub(in super::super) const SNAPSHOT: u8 = 64;
    pub(in super::super) const ERROR: u8 = 128;
}
