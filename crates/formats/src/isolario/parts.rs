//! What each kind of operation consists of, in which order: stated once for blocks, which put
//! every part into a column, and for row records, which put them one after the other.

use isolario_model::{
    Aggregate, Op, OpInput, OpNotes, Predicate, RowInput, SinkError, TxnStart, ValueRef, VersionRef,
};

use super::layout::{FORMAT, inexpressible, unknown};
use crate::Problem;
use crate::express::{require_plain, require_plain_op};

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
    fn key(&mut self) -> Result<ValueRef<'b>, Problem>;
    fn value(&mut self) -> Result<ValueRef<'b>, Problem>;
    fn state(&mut self) -> Result<u8, Problem>;
    fn count(&mut self) -> Result<usize, Problem>;
    fn text(&mut self) -> Result<&'b str, Problem>;
    /// Replaces what is in `elements`.
    fn list(&mut self, elements: &mut Vec<ValueRef<'b>>) -> Result<(), Problem>;
    fn version(&mut self) -> Result<VersionRef, Problem>;
}

/// Refuses names of sessions and transactions that the format has no place for.
pub(super) fn require_plain_names(start: &TxnStart<'_>) -> Result<(), SinkError> {
    require_plain(FORMAT, start.session)?;
    start.id.map_or(Ok(()), |name| require_plain(FORMAT, name))
}

/// Takes an operation apart.
pub(super) fn put_op(
    op: &OpInput<'_>,
    notes: &OpNotes<'_>,
    parts: &mut impl PutParts,
) -> Result<(), SinkError> {
    require_plain_op(FORMAT, op)?;
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
            parts.state(u8::from(rows.is_some()));
            parts.text(&predicate.to_string());
            put_rows(parts, rows);
        }
        Op::Aggregate { function, predicate, result } => {
            parts.state(u8::from(result.is_some()));
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

fn put_rows(parts: &mut impl PutParts, rows: Option<&[RowInput<'_>]>) {
    let Some(rows) = rows else { return };
    parts.count(rows.len());
    for row in rows {
        parts.key(row.key);
        parts.value(row.value);
    }
}

/// Room for the elements or rows of one operation, used again for the next.
#[derive(Default)]
pub(super) struct Scratch<'b> {
    elements: Vec<ValueRef<'b>>,
    rows: Vec<RowInput<'b>>,
    predicate: Option<Predicate>,
    function: Option<Aggregate>,
}

/// Puts an operation together whose first part was `head`.
pub(super) fn get_op<'x, 'b: 'x>(
    head: u8,
    parts: &mut impl GetParts<'b>,
    scratch: &'x mut Scratch<'b>,
) -> Result<(OpInput<'x>, OpNotes<'x>), Problem> {
    let op = match head & !(HAS_VERSION | HAS_SQL) {
        code::READ => Op::Read { key: parts.key()?, value: Some(parts.value()?) },
        code::READ_UNOBSERVED => Op::Read { key: parts.key()?, value: None },
        code::WRITE => Op::Write { key: parts.key()?, value: parts.value()? },
        code::DELETE => Op::Delete { key: parts.key()? },
        code::APPEND => Op::Append { key: parts.key()?, element: parts.value()? },
        code::READ_LIST => {
            let key = parts.key()?;
            parts.list(&mut scratch.elements)?;
            Op::ReadList { key, elements: Some(&scratch.elements) }
        }
        code::READ_LIST_UNOBSERVED => Op::ReadList { key: parts.key()?, elements: None },
        code::INSERT_IF_ABSENT => {
            let key = parts.key()?;
            let (applied, has_seen) = get_conditional(parts)?;
            let value = parts.value()?;
            Op::InsertIfAbsent { key, value, applied, seen: get_value_if(has_seen, parts)? }
        }
        code::COMPARE_AND_SET => {
            let key = parts.key()?;
            let (applied, has_seen) = get_conditional(parts)?;
            let (expected, new) = (parts.value()?, parts.value()?);
            Op::CompareAndSet { key, expected, new, applied, seen: get_value_if(has_seen, parts)? }
        }
        code::PREDICATE_READ => {
            let (predicate, rows) = get_rows(parts, scratch)?;
            Op::PredicateRead { predicate, rows }
        }
        code::PREDICATE_WRITE => {
            let (predicate, rows) = get_rows(parts, scratch)?;
            Op::PredicateWrite { predicate, rows }
        }
        code::AGGREGATE => {
            let has_result = get_presence(parts)?;
            let function = scratch.function.insert(Aggregate::from_sql(parts.text()?));
            let predicate = scratch.predicate.insert(Predicate::from_sql(parts.text()?));
            Op::Aggregate { function, predicate, result: get_value_if(has_result, parts)? }
        }
        other => return Err(unknown("a kind of operation, 0 to 11", other)),
    };
    let version = if head & HAS_VERSION == 0 { None } else { Some(parts.version()?) };
    let sql = if head & HAS_SQL == 0 { None } else { Some(parts.text()?) };
    Ok((op, OpNotes { version, sql }))
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

fn get_presence<'b>(parts: &mut impl GetParts<'b>) -> Result<bool, Problem> {
    match parts.state()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(unknown("the state of a predicate operation, 0 or 1", other)),
    }
}

fn get_value_if<'b>(
    there: bool,
    parts: &mut impl GetParts<'b>,
) -> Result<Option<ValueRef<'b>>, Problem> {
    if there { parts.value().map(Some) } else { Ok(None) }
}

/// A predicate and the rows it met.
type Matched<'x> = (&'x Predicate, Option<&'x [RowInput<'x>]>);

fn get_rows<'x, 'b: 'x>(
    parts: &mut impl GetParts<'b>,
    scratch: &'x mut Scratch<'b>,
) -> Result<Matched<'x>, Problem> {
    let has_rows = get_presence(parts)?;
    let Scratch { rows, predicate, .. } = scratch;
    let predicate = predicate.insert(Predicate::from_sql(parts.text()?));
    if !has_rows {
        return Ok((predicate, None));
    }
    rows.clear();
    for _ in 0..parts.count()? {
        rows.push(RowInput::new(parts.key()?, parts.value()?));
    }
    Ok((predicate, Some(rows)))
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
    pub(in super::super) const LINE: u8 = 2;
    pub(in super::super) const START: u8 = 4;
    pub(in super::super) const FINISH: u8 = 8;
    pub(in super::super) const DB_START: u8 = 16;
    pub(in super::super) const DB_COMMIT: u8 = 32;
    pub(in super::super) const SNAPSHOT: u8 = 64;
    pub(in super::super) const ERROR: u8 = 128;
}
