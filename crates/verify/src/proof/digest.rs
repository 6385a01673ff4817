//! The digest that ties a proof to its history.
//!
//! SHA-256 over a byte stream that says everything about a history that can matter to a verdict,
//! and nothing of the file it came from: no line numbers, no statements, no error messages. The
//! book defines the stream byte by byte, so that another program can compute it; this file must
//! follow it to the letter.

use std::fmt;

use isolario_model::{
    Clock, History, Initial, Op, OpId, OpInput, Outcome, Predicate, RowInput, SessionId, Stamp,
    TxnId, Value, ValueRef, VersionRef,
};
use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

/// What the stream begins with: the version of its definition.
const PREAMBLE: &[u8] = b"isolario.history/1\n";
const PREAMBLE_BY_SESSION: &[u8] = b"isolario.history-by-session/1\n";

/// How much is collected before it is hashed.
const CHUNK: usize = 1 << 13;

/// The digest of a history: equal for equal histories, whatever format they came in.
///
/// Shown and parsed as `sha256:` and 64 hexadecimal digits, or `sha256-by-session:` and as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    form: Form,
    bytes: [u8; 32],
}

/// What a digest is taken of. One session after the other is what takes the fewest words to define; each session
/// by itself is what can be done while all of them go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Whole,
    BySession,
}

impl Form {
    const ALL: [Form; 2] = [Form::Whole, Form::BySession];

    fn prefix(self) -> &'static str {
        match self {
            Form::Whole => "sha256:",
            Form::BySession => "sha256-by-session:",
        }
    }
}

impl Digest {
    /// The digest of a history, in the same form as this one.
    pub(crate) fn again(self, history: &History) -> Digest {
        match self.form {
            Form::Whole => Digest::of(history),
            Form::BySession => {
                let mut sessions = SessionDigests::default();
                sessions.add(history);
                sessions.finish()
            }
        }
    }

    /// Whether the digest is one of sessions by themselves, which need not be in memory for it.
    pub fn is_by_session(self) -> bool {
        self.form == Form::BySession
    }

    /// The digest of a history.
    pub fn of(history: &History) -> Digest {
        let mut stream = Stream::default();
        stream.begin(PREAMBLE, history);
        for session in history.sessions() {
            stream.session(history, session);
        }
        Digest { form: Form::Whole, bytes: stream.finish() }
    }

    /// The digest of a text such as [`Digest`] displays.
    pub(crate) fn parse(text: &str) -> Option<Digest> {
        let of_form = |form: &Form| Some((*form, text.strip_prefix(form.prefix())?));
        let (form, digits) = Form::ALL.iter().find_map(of_form)?;
        let digits = digits.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Digest { form, bytes })
    }
}

/// The digest of a history that comes in pieces, session by session: what is hashed in the end are the
/// digests of the sessions. Each piece has the next transactions of some sessions.
#[derive(Default)]
pub struct SessionDigests {
    /// What holds for all; empty before the first piece.
    begin: Stream,
    names: FxHashMap<Value, usize>,
    sessions: Vec<Stream>,
    counts: Vec<u64>,
}

impl SessionDigests {
    /// Adds a piece.
    pub fn add(&mut self, piece: &History) {
        if self.begin.buffer.is_empty() {
            self.begin.begin(PREAMBLE_BY_SESSION, piece);
        }
        for session in piece.sessions() {
            let name = piece.session_name(session);
            let next = self.sessions.len();
            let number = *self.names.entry(name.to_owned()).or_insert(next);
            if number == next {
                let mut stream = Stream::default();
                stream.tag(b'S');
                stream.value(name);
                self.sessions.push(stream);
                self.counts.push(0);
            }
            piece.session_txns(session).for_each(|txn| self.sessions[number].txn(piece, txn));
            self.counts[number] += piece.session_txns(session).len() as u64;
        }
    }

    /// The number of a session, in the order in which they first appear.
    pub fn session(&self, name: &Value) -> Option<usize> {
        self.names.get(name).copied()
    }

    pub(super) fn names(&self) -> &FxHashMap<Value, usize> {
        &self.names
    }

    /// By session, how many transactions it has.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The digest of everything.
    pub fn finish(self) -> Digest {
        let mut all = self.begin;
        for session in self.sessions {
            all.buffer.extend_from_slice(&session.finish());
        }
        Digest { form: Form::BySession, bytes: all.finish() }
    }
}

/// A digit of one of the sixteen that are written: one digest has one form.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form.prefix())?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The byte stream on its way into the hash.
#[derive(Default)]
struct Stream {
    buffer: Vec<u8>,
    hasher: Sha256,
}

/// The history.
impl Stream {
    /// What holds for all.
    fn begin(&mut self, preamble: &[u8], history: &History) {
        self.buffer.extend_from_slice(preamble);
        self.initial(history.initial());
        self.clock(history.clock());
    }

    fn initial(&mut self, initial: &Initial) {
        match initial {
            Initial::None => self.tag(0),
            Initial::Value(value) => {
                self.tag(1);
                self.value(value.as_ref());
            }
            Initial::UnlessWritten(value) => {
                self.tag(2);
                self.value(value.as_ref());
            }
            Initial::Unwritten => self.tag(3),
            Initial::Marked => self.tag(4),
            _ => self.tag(UNNAMED),
        }
    }

    fn clock(&mut self, clock: Clock) {
        self.tag(match clock {
            Clock::Nanoseconds => 0,
            Clock::EventOrder => 1,
            _ => UNNAMED,
        });
    }

    fn session(&mut self, history: &History, session: SessionId) {
        self.tag(b'S');
        self.value(history.session_name(session));
        for txn in history.session_txns(session) {
            self.txn(history, txn);
        }
    }

    fn txn(&mut self, history: &History, txn: TxnId) {
        self.tag(b'T');
        self.optional(history.txn_name(txn), Stream::value);
        for op in history.txn_ops(txn) {
            self.op(history, op);
        }
        let end = history.txn_end(txn);
        self.tag(b'E');
        self.tag(match end.outcome {
            Outcome::Committed => 0,
            Outcome::Aborted => 1,
            Outcome::Unknown => 2,
        });
        self.optional(end.start, Stream::signed);
        self.optional(end.finish, Stream::signed);
        self.optional(end.db_start, Stream::stamp);
        self.optional(end.db_commit, Stream::stamp);
        self.optional(end.snapshot, Stream::text);
        if self.buffer.len() >= CHUNK {
            self.hash();
        }
    }

    fn op(&mut self, history: &History, op: OpId) {
        history.with_op_input(op, |input| self.op_input(input));
        self.version(history.op_version(op));
    }

    fn op_input(&mut self, op: &OpInput<'_>) {
        match *op {
            Op::Read { key, value } => {
                self.keyed(b'r', key);
                self.optional(value, Stream::value);
            }
            Op::Write { key, value } => {
                self.keyed(b'w', key);
                self.value(value);
            }
            Op::Delete { key } => self.keyed(b'd', key),
            Op::Append { key, element } => {
                self.keyed(b'a', key);
                self.value(element);
            }
            Op::ReadList { key, elements } => {
                self.keyed(b'l', key);
                self.optional(elements, |stream, elements| {
                    stream.count(elements.len());
                    elements.iter().for_each(|element| stream.value(*element));
                });
            }
            Op::InsertIfAbsent { key, value, applied, seen } => {
                self.keyed(b'i', key);
                self.value(value);
                self.ending(applied, seen);
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => {
                self.keyed(b'c', key);
                self.value(expected);
                self.value(new);
                self.ending(applied, seen);
            }
            Op::PredicateRead { predicate, rows } => self.predicate(b'p', predicate, rows),
            Op::PredicateWrite { predicate, rows } => self.predicate(b'q', predicate, rows),
            Op::Aggregate { function, predicate, result } => {
                self.tag(b'g');
                self.text(&function.to_string());
                self.text(&predicate.to_string());
                self.optional(result, Stream::value);
            }
            _ => self.tag(UNNAMED),
        }
    }

    fn keyed(&mut self, tag: u8, key: ValueRef<'_>) {
        self.tag(tag);
        self.value(key);
    }

    /// How a conditional write ended.
    fn ending(&mut self, applied: Option<bool>, seen: Option<ValueRef<'_>>) {
        self.optional(applied, |stream, applied| stream.tag(u8::from(applied)));
        self.optional(seen, Stream::value);
    }

    fn predicate(&mut self, tag: u8, predicate: &Predicate, rows: Option<&[RowInput<'_>]>) {
        self.tag(tag);
        self.text(&predicate.to_string());
        self.optional(rows, |stream, rows| {
            stream.count(rows.len());
            for row in rows {
                stream.value(row.key);
                stream.value(row.value);
                // A row without a named version has no tag here, which no value and no version of
                // an operation has: so it was before rows could have one.
                if row.version.is_some() {
                    stream.tag(ROW_VERSION);
                    stream.version(row.version);
                }
            }
        });
    }

    fn version(&mut self, version: Option<VersionRef>) {
        match version {
            None => self.tag(0),
            Some(VersionRef::Initial) => self.tag(1),
            Some(VersionRef::ByWriter { txn, write }) => self.numbered_version(2, txn, write),
            Some(VersionRef::ByWrite { write, value }) => self.numbered_version(3, write, value),
        }
    }

    fn numbered_version(&mut self, tag: u8, first: u64, second: u64) {
        self.tag(tag);
        self.unsigned(first);
        self.unsigned(second);
    }

    fn stamp(&mut self, stamp: Stamp) {
        self.unsigned(stamp.physical);
        self.unsigned(stamp.logical);
    }
}

/// Before the version of a row, where it is named.
const ROW_VERSION: u8 = 0x10;

/// For what this version of the definition has no tag for: the model may grow before it does.
const UNNAMED: u8 = 0xff;

/// The parts that everything is made of.
impl Stream {
    fn tag(&mut self, tag: u8) {
        self.buffer.push(tag);
    }

    fn signed(&mut self, number: i64) {
        self.buffer.extend_from_slice(&number.to_le_bytes());
    }

    fn unsigned(&mut self, number: u64) {
        self.buffer.extend_from_slice(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.unsigned(count as u64);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.buffer.extend_from_slice(text.as_bytes());
    }

    fn optional<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.tag(0),
            Some(value) => {
                self.tag(1);
                put(self, value);
            }
        }
    }

    fn value(&mut self, value: ValueRef<'_>) {
        let mut tagged_text = |tag, text| {
            self.tag(tag);
            self.text(text);
        };
        match value {
            ValueRef::Text(text) => tagged_text(5, text),
            ValueRef::Keyword(text) => tagged_text(6, text),
            ValueRef::Other(text) => tagged_text(7, text),
            ValueRef::Decimal(decimal) => tagged_text(8, decimal.as_str()),
            ValueRef::Tuple(tuple) => {
                tagged_text(9, tuple.table());
                self.count(tuple.len());
                for (name, value) in tuple.columns() {
                    self.text(name);
                    self.value(value);
                }
            }
            ValueRef::Nil => self.tag(0),
            ValueRef::Bool(false) => self.tag(1),
            ValueRef::Bool(true) => self.tag(2),
            ValueRef::Int(number) => {
                self.tag(3);
                self.signed(number);
            }
            ValueRef::Uint(number) => {
                self.tag(4);
                self.unsigned(number);
            }
        }
    }

    fn hash(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    fn finish(mut self) -> [u8; 32] {
        self.hash();
        self.hasher.finalize().into()
    }
}
