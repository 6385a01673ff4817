//! dbcop: `history.bincode`, numbers of eight bytes and flags of one, least significant byte
//! first; or a directory with a file of that name.

use std::io::{self, Write};

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, OpNotes, Outcome, SessionId, SinkError, TxnEnd,
    TxnId, TxnSink, TxnStart, Value, ValueRef,
};

use crate::by_value::require_same_meaning;
use crate::cursor::Cursor;
use crate::error::{Fault, Position, Problem};
use crate::narrow::{Access, Collector, NarrowFormat, require_outcome, unsigned_access};
use crate::session_files::ignored_if_any;
use crate::source::Bytes;
use crate::{
    HistoryFormat, HistoryWriter, IgnoredItems, OutputTarget, ParsedHistory, ReadError, Source,
    Warning,
};

const NAME: &str = "dbcop";

/// The name that dbcop gives to every history.
const FILE_NAME: &str = "history.bincode";

const INITIAL: Initial = Initial::Value(Value::Int(0));

/// The format of dbcop's histories.
pub(crate) struct Dbcop;

/// The file of that name, if the source is a directory that has one.
fn file_in_directory(source: &Source) -> Option<&(String, Bytes)> {
    source.files()?.iter().find(|(name, _)| name == FILE_NAME)
}

impl HistoryFormat for Dbcop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "dbcop: history.bincode, or a directory that contains it"
    }

    /// There is no magic number, but the header ends with two dates.
    fn sniff(&self, source: &Source) -> bool {
        let in_directory = file_in_directory(source).map(|(_, bytes)| &bytes[..]);
        in_directory.or_else(|| source.file()).is_some_and(has_header)
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        read(source)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::boxed(Dbcop, target))
    }
}

/// The fewest bytes of an event, a transaction and a session: what bounds their counts.
const EVENT_LEN: u64 = 18;
const TXN_LEN: u64 = 9;
const SESSION_LEN: u64 = 8;

/// Reads a file, or the file of the usual name in a directory.
fn read(source: &Source) -> Result<ParsedHistory, ReadError> {
    if let Some((name, bytes)) = file_in_directory(source) {
        let mut loaded = parse(bytes).map_err(|fault| {
            source.error_in(name, Position::Byte(fault.at as u64), *fault.problem)
        })?;
        let others = source.files().map_or(0, <[_]>::len) as u64 - 1;
        loaded.ignored.extend(ignored_if_any("files other than history.bincode", others));
        return Ok(loaded);
    }
    match source.file() {
        Some(bytes) => parse(bytes).map_err(|fault| fault.in_binary(source)),
        None => {
            let expected = format!("a file, or a directory with {FILE_NAME}");
            let problem = Problem::malformed(expected, "a directory without it");
            Err(source.error(Position::Whole, problem))
        }
    }
}

/// Whether the bytes begin with a header, as far as one can tell.
fn has_header(bytes: &[u8]) -> bool {
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
    let at = cursor.at();
    let bytes = cursor.take(len, format_args!("{what}, {len} bytes"))?;
    std::str::from_utf8(bytes)
        .map_err(|error| Fault::malformed(at, format!("{what} in UTF-8"), error))
}

fn parse(bytes: &[u8]) -> Result<ParsedHistory, Fault> {
    let mut cursor = Cursor::new(bytes);
    let header = read_header(&mut cursor)?;
    let mut parser = Parser { cursor, batch: Batch::new(), failed: None, empty_sessions: 0 };
    let meta = Meta { initial: INITIAL, ..Meta::default() };
    parser.batch.meta(&meta).map_err(Fault::refused(0))?;
    let counted_at = Position::Byte(parser.cursor.at() as u64);
    let sessions = parser.count("sessions", SESSION_LEN)?;
    for session in 0..sessions {
        parser.session(session)?;
    }
    if !parser.cursor.is_at_end() {
        let found = format!("{} more bytes", parser.cursor.remaining());
        return Err(Fault::malformed(parser.cursor.at(), "the end of the file", found));
    }
    let mut loaded = ParsedHistory::new(parser.batch.build().map_err(Fault::refused(0))?);
    loaded.ignored.extend(parser.failed);
    loaded.ignored.extend(ignored_if_any("sessions without transactions", parser.empty_sessions));
    if header.sessions != sessions {
        let promised = header.sessions;
        let message =
            format!("the header states {promised} nodes, but the file has {sessions} sessions");
        loaded.warnings.push(Warning { message, position: counted_at });
    }
    Ok(loaded)
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    batch: Batch,
    /// Events that did not succeed: the database never did them, or the answer was not seen.
    failed: Option<IgnoredItems>,
    empty_sessions: u64,
}

impl Parser<'_> {
    /// A count of things that take so many bytes each, at least.
    fn count(&mut self, what: &str, each: u64) -> Result<u64, Fault> {
        let at = self.cursor.at();
        let count = self.cursor.u64_le(format_args!("the number of {what}, 8 bytes"))?;
        let most = self.cursor.remaining() as u64 / each;
        if count > most {
            let expected = format!("at most {most} {what}, for which there are bytes");
            return Err(Fault::malformed(at, expected, count));
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
        let at = self.cursor.at();
        let events = self.count("events", EVENT_LEN)?;
        let start = TxnStart { session: ValueRef::from(session), id: None, line: None };
        self.batch.begin(&start).map_err(Fault::refused(at))?;
        for _ in 0..events {
            let at = self.cursor.at();
            self.event(at)?.map_err(Fault::refused(at))?;
        }
        let is_success = self.flag("whether the transaction committed")?;
        let outcome = if is_success { Outcome::Committed } else { Outcome::Aborted };
        self.batch.end(&TxnEnd::new(outcome)).map_err(Fault::refused(at))
    }

    fn event(&mut self, at: usize) -> Result<Result<(), SinkError>, Fault> {
        let is_write = self.flag("whether the event is a write")?;
        let key = ValueRef::from(self.cursor.u64_le("the variable of an event, 8 bytes")?);
        let value = ValueRef::from(self.cursor.u64_le("the value of an event, 8 bytes")?);
        if !self.flag("whether the event succeeded")? {
            let first = Position::Byte(at as u64);
            let none = IgnoredItems { what: "failed events", count: 0, first };
            self.failed.get_or_insert(none).count += 1;
            return Ok(Ok(()));
        }
        Ok(self.batch.op(&match is_write {
            true => Op::Write { key, value },
            false => Op::Read { key, value: Some(value) },
        }))
    }

    fn flag(&mut self, what: &str) -> Result<bool, Fault> {
        let at = self.cursor.at();
        match self.cursor.byte(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::malformed(at, format!("0 or 1, {what}"), other)),
        }
    }
}

/// The dates that dbcop insists on, in histories that know none.
const NO_DATE: &str = "1970-01-01T00:00:00+00:00";

impl NarrowFormat for Dbcop {
    fn admit_op(&self, op: &OpInput<'_>, _: &OpNotes<'_>) -> Result<(), SinkError> {
        unsigned_access(NAME, op).map(|_| ())
    }

    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed, Outcome::Aborted])
    }

    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &INITIAL)?;
        let mut out = target.into_stream()?;
        write_header(history, &mut out)?;
        put(&mut out, history.session_count() as u64)?;
        for session in history.sessions() {
            put(&mut out, history.session_txns(session).len() as u64)?;
            for txn in history.session_txns(session) {
                write_txn(history, txn, &mut out)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn put(out: &mut dyn Write, number: u64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}

fn put_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    put(out, text.len() as u64)?;
    out.write_all(text.as_bytes())
}

/// The sizes are those that dbcop's own generator is asked for: transactions per session and
/// events per transaction, here the most there are.
fn write_header(history: &History, out: &mut dyn Write) -> io::Result<()> {
    let txns = |session: SessionId| history.session_txns(session).len();
    let events = |txn: TxnId| history.txn_ops(txn).len();
    let most_txns = history.sessions().map(txns).max().unwrap_or(0);
    let most_events = history.txns().map(events).max().unwrap_or(0);
    let id = 0;
    for number in [id, history.session_count(), history.key_count(), most_txns, most_events] {
        put(out, number as u64)?;
    }
    put_text(out, "isolario")?;
    put_text(out, NO_DATE)?;
    put_text(out, NO_DATE)
}

fn write_txn(history: &History, txn: TxnId, out: &mut dyn Write) -> Result<(), SinkError> {
    put(out, history.txn_ops(txn).len() as u64)?;
    for op in history.txn_ops(txn) {
        history.with_op_input(op, |input| {
            let Access { is_write, key, value } = unsigned_access(NAME, input)?;
            out.write_all(&[u8::from(is_write)])?;
            put(out, key)?;
            put(out, value)?;
            Ok::<(), SinkError>(out.write_all(&[u8::from(true)])?)
        })?;
    }
    let is_committed = history.outcome(txn) == Outcome::Committed;
    Ok(out.write_all(&[u8::from(is_committed)])?)
}

#[cfg(test)]
mod tests;
