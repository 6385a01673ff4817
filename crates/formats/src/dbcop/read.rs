//! From bytes to a history.

use isolario_model::{
    Batch, Initial, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
};

use super::{FILE_NAME, file_in_directory};
use crate::cursor::Cursor;
use crate::error::{Position, Problem, ReadError};
use crate::fault::Fault;
use crate::session_files::ignored_if_any;
use crate::{Ignored, Loaded, Source, Warning};

/// The fewest bytes of an event, a transaction and a session: what bounds their counts.
const EVENT_LEN: u64 = 18;
const TXN_LEN: u64 = 9;
const SESSION_LEN: u64 = 8;

/// Reads a file, or the file of the usual name in a directory.
pub(super) fn read(source: &Source) -> Result<Loaded, ReadError> {
    if let Some((name, bytes)) = file_in_directory(source) {
        let mut loaded = parse(bytes).map_err(|fault| fault.in_file(source, name))?;
        let others = source.files().map_or(0, <[_]>::len) as u64 - 1;
        loaded.ignored.extend(ignored_if_any("files beside history.bincode", others));
        return Ok(loaded);
    }
    match source.file() {
        Some(bytes) => parse(bytes).map_err(|fault| fault.in_source(source)),
        None => {
            let expected = format!("a file, or a directory with {FILE_NAME}");
            let problem = Problem::malformed(expected, "a directory without it");
            Err(source.error(Position::Whole, problem))
        }
    }
}

/// Whether the bytes begin with a header, as far as one can tell.
pub(super) fn has_header(bytes: &[u8]) -> bool {
    read_header(&mut Cursor::new(bytes)).is_ok_and(|header| is_date(header.start))
}

/// Whether a text begins as dates of RFC 3339 do: `2019-05-19T`.
fn is_date(text: &str) -> bool {
    let shape = b"0000-00-00T";
    text.len() > shape.len()
        && text.bytes().zip(shape).all(|(byte, model)| match model {
            b'0' => byte.is_ascii_digit(),
            _ => byte == *model,
        })
}

/// What the header says that can be compared or recognised. The rest (an id, the numbers of
/// variables, transactions and events asked for, a description) has no place in a history.
struct Header<'a> {
    sessions: u64,
    start: &'a str,
}

fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<Header<'a>, Fault> {
    cursor.u64_le("the id of the history, 8 bytes")?;
    let sessions = cursor.u64_le("the number of nodes, 8 bytes")?;
    cursor.u64_le("the number of variables, 8 bytes")?;
    cursor.u64_le("the number of transactions, 8 bytes")?;
    cursor.u64_le("the number of events, 8 bytes")?;
    read_text(cursor, "the description of the history")?;
    let start = read_text(cursor, "the date of the start")?;
    read_text(cursor, "the date of the end")?;
    Ok(Header { sessions, start })
}

fn read_text<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a str, Fault> {
    let len = cursor.u64_le(format_args!("the length of {what}, 8 bytes"))?;
    let position = cursor.position();
    let bytes = cursor.take(len, format_args!("{what}, {len} bytes"))?;
    std::str::from_utf8(bytes)
        .map_err(|error| Fault::malformed(position, format!("{what} in UTF-8"), error))
}

fn parse(bytes: &[u8]) -> Result<Loaded, Fault> {
    let whole = Fault::refused;
    let mut cursor = Cursor::new(bytes);
    let header = read_header(&mut cursor)?;
    let mut parser = Parser { cursor, batch: Batch::new(), failed: None, empty_sessions: 0 };
    let meta = Meta { initial: Initial::Value(Value::Int(0)), ..Meta::default() };
    parser.batch.meta(&meta).map_err(whole(Position::Whole))?;
    let counted_at = parser.cursor.position();
    let sessions = parser.count("sessions", SESSION_LEN)?;
    for session in 0..sessions {
        parser.session(session)?;
    }
    if !parser.cursor.is_at_end() {
        let found = format!("{} more bytes", parser.cursor.remaining());
        return Err(Fault::malformed(parser.cursor.position(), "the end of the file", found));
    }
    let mut loaded = Loaded::new(parser.batch.build().map_err(whole(Position::Whole))?);
    loaded.ignored.extend(parser.failed);
    loaded.ignored.extend(ignored_if_any("sessions without transactions", parser.empty_sessions));
    if header.sessions != sessions {
        let promised = header.sessions;
        let message =
            format!("the header speaks of {promised} nodes; there are {sessions} sessions");
        loaded.warnings.push(Warning { message, position: counted_at });
    }
    Ok(loaded)
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    batch: Batch,
    /// Events that did not succeed: the database never did them, or the answer was not seen.
    failed: Option<Ignored>,
    empty_sessions: u64,
}

impl Parser<'_> {
    /// A count of things that take so many bytes each, at least.
    fn count(&mut self, what: &str, each: u64) -> Result<u64, Fault> {
        let position = self.cursor.position();
        let count = self.cursor.u64_le(format_args!("the number of {what}, 8 bytes"))?;
        let most = self.cursor.remaining() as u64 / each;
        if count > most {
            let expected = format!("at most {most} {what}, for which there are bytes");
            return Err(Fault::malformed(position, expected, count));
        }
        Ok(count)
    }

    fn session(&mut self, session: u64) -> Result<(), Fault> {
        let txns = self.count("transactions", TXN_LEN)?;
        self.empty_sessions += u64::from(txns == 0);
        for _ in 0..txns {
            self.txn(session)?;
        }
        Ok(())
    }

    fn txn(&mut self, session: u64) -> Result<(), Fault> {
        let position = self.cursor.position();
        let events = self.count("events", EVENT_LEN)?;
        let start = TxnStart { session: ValueRef::from(session), id: None, line: None };
        self.batch.begin(&start).map_err(Fault::refused(position))?;
        for _ in 0..events {
            let position = self.cursor.position();
            self.event(position)?.map_err(Fault::refused(position))?;
        }
        let is_success = self.flag("whether the transaction committed")?;
        let outcome = if is_success { Outcome::Committed } else { Outcome::Aborted };
        self.batch.end(&TxnEnd::new(outcome)).map_err(Fault::refused(position))
    }

    fn event(&mut self, position: Position) -> Result<Result<(), SinkError>, Fault> {
        let is_write = self.flag("whether the event is a write")?;
        let key = ValueRef::from(self.cursor.u64_le("the variable of an event, 8 bytes")?);
        let value = ValueRef::from(self.cursor.u64_le("the value of an event, 8 bytes")?);
        if !self.flag("whether the event succeeded")? {
            let first = || Ignored { what: "failed events", count: 0, first: position };
            self.failed.get_or_insert_with(first).count += 1;
            return Ok(Ok(()));
        }
        Ok(self.batch.op(&match is_write {
            true => Op::Write { key, value },
            false => Op::Read { key, value: Some(value) },
        }))
    }

    fn flag(&mut self, what: &str) -> Result<bool, Fault> {
        let position = self.cursor.position();
        match self.cursor.byte(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::malformed(position, format!("0 or 1, {what}"), other)),
        }
    }
}
