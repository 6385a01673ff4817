//! Row records: what a recorder appends the moment it happens.
//!
//! A transaction is a `begin` with what it means to do, an `op` for each operation with its result
//! as it comes, and an `end`. Records of several transactions interleave; each names its own by a
//! number.

use std::collections::BTreeMap;

use isolario_model::{
    Op, OpInput, OpNotes, Outcome, SinkError, Stamp, TxnEnd, TxnSink, TxnStart, ValueRef,
    VersionRef,
};

use super::bytes::{Cursor, Datum, put_signed, put_text, put_value, put_varint};
use super::drain::outcome_of;
use super::fill::outcome_code;
use super::layout::{frame, unknown};
use super::parts::{
    Elements, GetParts, PutParts, fact, put_op, version_from_parts, version_parts, with_op,
};
use crate::Problem;
use crate::predicates::Predicates;

/// Writes a record behind others of the same frame: how long it is, its kind, and its content, which
/// `fill` writes. Where that fails, nothing is written.
#[inline]
pub(super) fn put_row(
    out: &mut Vec<u8>,
    kind: u8,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let start = out.len();
    out.extend_from_slice(&[0, kind]);
    if let Err(error) = fill(out) {
        out.truncate(start);
        return Err(error);
    }
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
    } else {
        // Few records are that long; they are moved to make room for their length.
        let mut long = Vec::new();
        put_varint(&mut long, len as u64);
        out.splice(start..=start, long);
    }
    Ok(())
}

/// The records of a frame that holds several: the kind of each, the number of its transaction, and
/// its content.
pub(super) fn get_rows<'b>(
    content: &'b [u8],
    mut take: impl FnMut(u8, u64, Cursor<'b>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut content = Cursor::new(content);
    let mut number = content.varint("the number of a transaction")?;
    while !content.is_empty() {
        let len = content.count("the length of a row record")?;
        let mut record = Cursor::new(content.take(len, "a row record")?);
        let kind = record.byte("the kind of a row record")?;
        match kind {
            frame::BEGIN => number = record.varint("the number of a transaction")?,
            frame::OP | frame::END => {}
            other => return Err(unknown("a row record, 2 to 4", other)),
        }
        take(kind, number, record)?;
    }
    Ok(())
}

/// Writes the content of a `begin`, but for the number of the transaction.
pub(super) fn put_begin(
    out: &mut Vec<u8>,
    start: &TxnStart<'_>,
    at: Option<i64>,
    intended: &[OpInput<'_>],
) -> Result<(), SinkError> {
    let there = |there, fact| if there { fact } else { 0 };
    out.push(
        there(start.id.is_some(), fact::NAME)
            | there(start.line.is_some(), fact::LINE)
            | there(at.is_some(), fact::START),
    );
    put_value(out, start.session);
    start.id.into_iter().for_each(|name| put_value(out, name));
    start.line.into_iter().for_each(|line| put_varint(out, line));
    at.into_iter().for_each(|at| put_signed(out, at));
    put_varint(out, intended.len() as u64);
    intended.iter().try_for_each(|op| put_op(&intent(op), &OpNotes::default(), &mut Row(out)))
}

/// Writes the content of an `op`, but for the number of the transaction.
pub(super) fn put_done(
    out: &mut Vec<u8>,
    op: &OpInput<'_>,
    notes: &OpNotes<'_>,
) -> Result<(), SinkError> {
    put_op(op, notes, &mut Row(out))
}

/// Writes the content of an `end`, but for the number of the transaction.
pub(super) fn put_end(out: &mut Vec<u8>, end: &TxnEnd<'_>, complete: bool) {
    let there = |there, fact| if there { fact } else { 0 };
    let facts = there(complete, fact::COMPLETE)
        | there(end.start.is_some(), fact::START)
        | there(end.finish.is_some(), fact::FINISH)
        | there(end.db_start.is_some(), fact::DB_START)
        | there(end.db_commit.is_some(), fact::DB_COMMIT)
        | there(end.snapshot.is_some(), fact::SNAPSHOT)
        | there(end.error.is_some(), fact::ERROR);
    out.extend_from_slice(&[outcome_code(end.outcome), facts]);
    for time in [end.start, end.finish].into_iter().flatten() {
        put_signed(out, time);
    }
    for stamp in [end.db_start, end.db_commit].into_iter().flatten() {
        put_varint(out, stamp.physical);
        put_varint(out, stamp.logical);
    }
    for text in [end.snapshot, end.error].into_iter().flatten() {
        put_text(out, text);
    }
}

/// An operation without what only its execution can tell: what is known before it is sent.
fn intent<'a>(op: &OpInput<'a>) -> OpInput<'a> {
    match *op {
        Op::Read { key, .. } => Op::Read { key, value: None },
        Op::ReadList { key, .. } => Op::ReadList { key, elements: None },
        Op::InsertIfAbsent { key, value, .. } => {
            Op::InsertIfAbsent { key, value, applied: None, seen: None }
        }
        Op::CompareAndSet { key, expected, new, .. } => {
            Op::CompareAndSet { key, expected, new, applied: None, seen: None }
        }
        Op::PredicateRead { predicate, .. } => Op::PredicateRead { predicate, rows: None },
        Op::PredicateWrite { predicate, .. } => Op::PredicateWrite { predicate, rows: None },
        Op::Aggregate { function, predicate, .. } => {
            Op::Aggregate { function, predicate, result: None }
        }
        other => other,
    }
}

/// Parts written one after the other.
struct Row<'o>(&'o mut Vec<u8>);

impl PutParts for Row<'_> {
    fn head(&mut self, head: u8) {
        self.0.push(head);
    }

    fn key(&mut self, key: ValueRef<'_>) {
        put_value(self.0, key);
    }

    fn value(&mut self, value: ValueRef<'_>) {
        put_value(self.0, value);
    }

    fn state(&mut self, state: u8) {
        self.0.push(state);
    }

    fn count(&mut self, count: usize) {
        put_varint(self.0, count as u64);
    }

    fn text(&mut self, text: &str) {
        put_text(self.0, text);
    }

    fn list(&mut self, elements: &[ValueRef<'_>]) {
        self.count(elements.len());
        elements.iter().for_each(|element| put_value(self.0, *element));
    }

    fn version(&mut self, version: VersionRef) {
        let (kind, numbers) = version_parts(version);
        self.0.push(kind);
        if let Some((first, second)) = numbers {
            put_varint(self.0, first);
            put_varint(self.0, second);
        }
    }
}

impl<'b> GetParts<'b> for Cursor<'b> {
    fn key(&mut self) -> Result<Datum<'b>, Problem> {
        Cursor::value(self)
    }

    fn value(&mut self) -> Result<Datum<'b>, Problem> {
        Cursor::value(self)
    }

    fn state(&mut self) -> Result<u8, Problem> {
        self.byte("the state of an operation")
    }

    fn count(&mut self) -> Result<usize, Problem> {
        Cursor::count(self, "a number of rows or elements")
    }

    fn text(&mut self) -> Result<&'b str, Problem> {
        Cursor::text(self, "a text of an operation")
    }

    fn list(&mut self) -> Result<Elements<'b>, Problem> {
        let count = GetParts::count(self)?;
        (0..count).map(|_| Cursor::value(self)).collect::<Result<_, _>>().map(Elements::Inline)
    }

    fn version(&mut self) -> Result<VersionRef, Problem> {
        let kind = self.byte("a version")?;
        version_from_parts(kind, || {
            Ok((self.varint("a version's number")?, self.varint("a version's number")?))
        })
    }
}

/// Puts the transactions of row records together and passes each on when it ends. Those that have not
/// ended are kept as `R`: a part of the file that is there all the time, or a copy.
pub(super) struct Replay<R> {
    /// By number, which is the order in which they began.
    open: BTreeMap<u64, Open<R>>,
    predicates: Predicates,
    pub(super) txns: u64,
    pub(super) ops: u64,
}

impl<R> Default for Replay<R> {
    fn default() -> Self {
        Replay { open: BTreeMap::new(), predicates: Predicates::default(), txns: 0, ops: 0 }
    }
}

/// The records of a transaction that has not ended.
#[derive(Clone)]
struct Open<R> {
    begin: R,
    ops: Vec<R>,
}

/// What was parsed of predicates is parsed again.
impl<R: Clone> Clone for Replay<R> {
    fn clone(&self) -> Self {
        let (open, predicates) = (self.open.clone(), Predicates::default());
        Replay { open, predicates, txns: self.txns, ops: self.ops }
    }
}

impl<R: AsRef<[u8]>> Replay<R> {
    /// Takes the content of a frame that holds one row record.
    pub(super) fn take_frame<'b>(
        &mut self,
        kind: u8,
        content: &'b [u8],
        sink: &mut dyn TxnSink,
    ) -> Result<(), Problem>
    where
        R: From<&'b [u8]>,
    {
        let mut content = Cursor::new(content);
        let number = content.varint("the number of a transaction")?;
        self.take(kind, number, content, sink)
    }

    /// Takes what a row record says of a transaction.
    pub(super) fn take<'b>(
        &mut self,
        kind: u8,
        number: u64,
        content: Cursor<'b>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), Problem>
    where
        R: From<&'b [u8]>,
    {
        if kind == frame::BEGIN {
            let open = Open { begin: R::from(content.rest()), ops: Vec::new() };
            return match self.open.insert(number, open) {
                None => Ok(()),
                Some(_) => Err(Problem::malformed(
                    "the number of a new transaction",
                    format_args!("{number}, which has begun already"),
                )),
            };
        }
        let not_begun = || {
            Problem::malformed(
                "the number of a transaction that has begun",
                format_args!("{number}, which has not, or has ended"),
            )
        };
        if kind == frame::OP {
            let open = self.open.get_mut(&number).ok_or_else(not_begun)?;
            open.ops.push(R::from(content.rest()));
            return Ok(());
        }
        let open = self.open.remove(&number).ok_or_else(not_begun)?;
        let (end, complete) = read_end(content)?;
        self.emit(&open, end, complete, sink)
    }

    /// Passes on what never ended, as transactions of unknown outcome, and says how many they are.
    pub(super) fn finish(&mut self, sink: &mut dyn TxnSink) -> Result<u64, Problem> {
        let open = std::mem::take(&mut self.open);
        self.emit_unended(&open, sink)?;
        Ok(open.len() as u64)
    }

    /// Tells what has not ended yet, as transactions of unknown outcome, and goes on waiting for their
    /// ends.
    pub(super) fn peek(&mut self, sink: &mut dyn TxnSink) -> Result<(), Problem> {
        let (open, counts) = (std::mem::take(&mut self.open), (self.txns, self.ops));
        let told = self.emit_unended(&open, sink);
        (self.open, (self.txns, self.ops)) = (open, counts);
        told
    }

    fn emit_unended(
        &mut self,
        open: &BTreeMap<u64, Open<R>>,
        sink: &mut dyn TxnSink,
    ) -> Result<(), Problem> {
        let unknown = || TxnEnd::new(Outcome::Unknown);
        open.values().try_for_each(|open| self.emit(open, unknown(), false, sink))
    }

    fn emit(
        &mut self,
        open: &Open<R>,
        mut end: TxnEnd<'_>,
        complete: bool,
        sink: &mut dyn TxnSink,
    ) -> Result<(), Problem> {
        let mut begin = Cursor::new(open.begin.as_ref());
        let start = Start::read(&mut begin)?;
        end.start = end.start.or(start.at);
        sink.begin(&start.txn_start())?;
        for op in &open.ops {
            let mut parts = Cursor::new(op.as_ref());
            let head = parts.byte("an operation")?;
            with_op(head, &mut parts, &mut self.predicates, |op, notes| sink.op_with(op, notes))??;
            require_end(parts)?;
        }
        self.ops += open.ops.len() as u64;
        if end.outcome == Outcome::Unknown && !complete {
            self.emit_rest(begin, &open.ops, sink)?;
        }
        self.txns += 1;
        Ok(sink.end(&end)?)
    }

    /// What the transaction meant to do and what no record says it did. It may have been sent, and
    /// it may have taken effect: its writes must be known, or who reads them would seem to have
    /// read out of thin air.
    fn emit_rest(
        &mut self,
        mut intended: Cursor<'_>,
        done: &[R],
        sink: &mut dyn TxnSink,
    ) -> Result<(), Problem> {
        let count = intended.count("a number of intended operations")?;
        let mut met: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for op in done {
            *met.entry(self.intent_key(&mut Cursor::new(op.as_ref()))?).or_default() += 1;
        }
        for _ in 0..count {
            let mut again = intended;
            let key = self.intent_key(&mut intended)?;
            match met.get_mut(&key).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => {
                    let head = again.byte("an operation")?;
                    let send = |op: &OpInput<'_>, notes: &OpNotes<'_>| sink.op_with(op, notes);
                    with_op(head, &mut again, &mut self.predicates, send)??;
                    self.ops += 1;
                }
            }
        }
        require_end(intended)
    }

    /// The bytes of an operation's intent: equal for an operation meant and the same one done.
    fn intent_key(&mut self, parts: &mut Cursor<'_>) -> Result<Vec<u8>, Problem> {
        let head = parts.byte("an operation")?;
        let mut key = Vec::new();
        with_op(head, parts, &mut self.predicates, |op, _| {
            put_op(&intent(op), &OpNotes::default(), &mut Row(&mut key))
        })??;
        Ok(key)
    }
}

fn require_end(rest: Cursor<'_>) -> Result<(), Problem> {
    match rest.rest().len() {
        0 => Ok(()),
        more => Err(Problem::malformed("the end of a record", format_args!("{more} more bytes"))),
    }
}

/// What a `begin` says before what is intended.
struct Start<'b> {
    session: Datum<'b>,
    id: Option<Datum<'b>>,
    line: Option<u64>,
    at: Option<i64>,
}

impl<'b> Start<'b> {
    fn read(record: &mut Cursor<'b>) -> Result<Start<'b>, Problem> {
        let facts = record.byte("the facts of a transaction")?;
        let session = Cursor::value(record)?;
        let id = if facts & fact::NAME == 0 { None } else { Some(Cursor::value(record)?) };
        let line = if facts & fact::LINE == 0 { None } else { Some(record.varint("a line")?) };
        let at = if facts & fact::START == 0 { None } else { Some(record.signed("a start time")?) };
        Ok(Start { session, id, line, at })
    }

    fn txn_start(&self) -> TxnStart<'_> {
        let id = self.id.as_ref().map(Datum::as_ref);
        TxnStart { session: self.session.as_ref(), id, line: self.line }
    }
}

/// How a transaction ended, and whether all of it is recorded.
fn read_end(mut record: Cursor<'_>) -> Result<(TxnEnd<'_>, bool), Problem> {
    let mut end = TxnEnd::new(outcome_of(record.byte("an outcome")?)?);
    let facts = record.byte("the facts of a transaction")?;
    for (fact, time) in [(fact::START, &mut end.start), (fact::FINISH, &mut end.finish)] {
        if facts & fact != 0 {
            *time = Some(record.signed("a time")?);
        }
    }
    for (fact, stamp) in
        [(fact::DB_START, &mut end.db_start), (fact::DB_COMMIT, &mut end.db_commit)]
    {
        if facts & fact != 0 {
            let physical = record.varint("a timestamp")?;
            *stamp = Some(Stamp { physical, logical: record.varint("a timestamp")? });
        }
    }
    for (fact, text) in [(fact::SNAPSHOT, &mut end.snapshot), (fact::ERROR, &mut end.error)] {
        if facts & fact != 0 {
            *text = Some(Cursor::text(&mut record, "a text")?);
        }
    }
    require_end(record)?;
    Ok((end, facts & fact::COMPLETE != 0))
}
