//! Chronos: one JSON array of transactions with the database's own start and commit timestamps.
//!
//! ```json
//! [{"sid": 1, "tid": 7, "sts": {"p": "320", "l": 0}, "cts": {"p": "322", "l": 0},
//!   "ops": [{"t": "r", "k": 5, "v": 0}, {"t": "w", "k": 5, "v": 9}]}]
//! ```

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, OpNotes, Outcome, SinkError, Stamp, TxnEnd, TxnId,
    TxnSink, TxnStart, Value, ValueRef,
};
use rustc_hash::FxHashSet;

use crate::by_value::require_same_meaning;
use crate::decimal::push_u64;
use crate::error::{Fault, Position, utf8};
use crate::narrow::{
    Collector, NarrowFormat, describe, inexpressible, numbers_or_positions, require_outcome,
};
use crate::notation::{Form, Item, Notation, Shape, Values, after_tokens, json};
use crate::{
    HistoryFormat, HistoryWriter, IgnoredItems, OutputTarget, ParsedHistory, ReadError, Source,
};

const NAME: &str = "chronos";

const INITIAL: Initial = Initial::Value(Value::Int(0));

/// The format of Chronos and TimeKiller.
pub(crate) struct Chronos;

impl HistoryFormat for Chronos {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Chronos: a JSON array of transactions with database timestamps"
    }

    /// An array whose first element is an object that begins with one of the five fields.
    fn sniff(&self, source: &Source) -> bool {
        after_tokens(source.beginning(), &["[", "{"]).is_some_and(|object| {
            let fields = ["\"sid\"", "\"tid\"", "\"sts\"", "\"cts\"", "\"ops\""];
            fields.iter().any(|field| after_tokens(object, &[field, ":"]).is_some())
        })
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        let bytes = source.require_file()?;
        parse(bytes).map_err(|fault| fault.in_text(source, bytes))
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::boxed(Chronos, target))
    }
}

fn parse(bytes: &[u8]) -> Result<ParsedHistory, Fault> {
    let mut batch = Batch::new();
    batch.meta(&Meta { initial: INITIAL, ..Meta::default() }).map_err(Fault::refused(0))?;
    let mut reader = Reader { batch, ids: FxHashSet::default(), unknown_fields: None };
    let mut values = Values::of_sequence(utf8(bytes)?, Notation::Json)?;
    let mut form = Form::new(Notation::Json);
    let (mut counted, mut line) = (0, 1);
    while values.next(&mut form)? {
        line += memchr::memchr_iter(b'\n', &bytes[counted..form.at(0)]).count() as u64;
        counted = form.at(0);
        reader.txn(&form, line, bytes)?;
    }
    let mut loaded = ParsedHistory::new(reader.batch.build().map_err(Fault::refused(0))?);
    loaded.ignored.extend(reader.unknown_fields);
    Ok(loaded)
}

struct Reader {
    batch: Batch,
    ids: FxHashSet<Value>,
    unknown_fields: Option<IgnoredItems>,
}

impl Reader {
    fn txn(&mut self, form: &Form<'_>, line: u64, bytes: &[u8]) -> Result<(), Fault> {
        let at = form.at(0);
        let (nodes, unknown) = fields(form, 0, &["sid", "tid", "sts", "cts", "ops"])?;
        let [session, id, start, commit, ops] = nodes;
        if unknown > 0 {
            let first = Position::in_text(bytes, at);
            let none = IgnoredItems { what: "unknown fields", count: 0, first };
            self.unknown_fields.get_or_insert(none).count += unknown;
        }
        let (session, id) = (scalar(form, session)?, scalar(form, id)?);
        let (db_start, db_commit) = (Some(stamp(form, start)?), Some(stamp(form, commit)?));
        if !self.ids.insert(id.to_owned()) {
            let found = format!("transaction {id} again");
            return Err(Fault::malformed(at, "a transaction not seen before", found));
        }
        if !form.is_sequence(ops) {
            return Err(Fault::malformed(form.at(ops), "an array of operations", form.render(ops)));
        }
        let start = TxnStart { session, id: Some(id), line: Some(line) };
        self.batch.begin(&start).map_err(Fault::refused(at))?;
        form.children(ops).try_for_each(|op| self.op(form, op))?;
        let end = TxnEnd { db_start, db_commit, ..TxnEnd::new(Outcome::Committed) };
        self.batch.end(&end).map_err(Fault::refused(at))
    }

    fn op(&mut self, form: &Form<'_>, node: usize) -> Result<(), Fault> {
        let ([kind, key, value], unknown) = fields(form, node, &["t", "k", "v"])?;
        if unknown > 0 {
            let expected = "`t`, `k` and `v` alone";
            return Err(Fault::malformed(form.at(node), expected, form.render(node)));
        }
        let key = scalar(form, key)?;
        let op = match form.text(kind) {
            Some("r") if form.is_sequence(value) => {
                let elements: Result<Vec<_>, _> =
                    form.children(value).map(|element| scalar(form, element)).collect();
                let read = Op::ReadList { key, elements: Some(&elements?) };
                return self.batch.op(&read).map_err(Fault::refused(form.at(node)));
            }
            Some("r") => Op::Read { key, value: Some(scalar(form, value)?) },
            Some("w") => Op::Write { key, value: scalar(form, value)? },
            Some("a") => Op::Append { key, element: scalar(form, value)? },
            _ => {
                let expected = "\"r\", \"w\" or \"a\"";
                return Err(Fault::malformed(form.at(kind), expected, form.render(kind)));
            }
        };
        self.batch.op(&op).map_err(Fault::refused(form.at(node)))
    }
}

/// The fields of an object, none of which may be missing, and how many others there are.
fn fields<const N: usize>(
    form: &Form<'_>,
    node: usize,
    names: &[&str; N],
) -> Result<([usize; N], u64), Fault> {
    let wrong = || {
        let names = names.map(|name| format!("`{name}`")).join(", ");
        let expected = format!("an object with the fields {names}");
        Fault::malformed(form.at(node), expected, form.render(node))
    };
    if form.shape(node) != Some(Shape::Map) {
        return Err(wrong());
    }
    let (found, unknown) = form.fields(node, names)?;
    if found.contains(&None) {
        return Err(wrong());
    }
    Ok((found.map(|node| node.unwrap_or(0)), unknown))
}

/// A value that is not made of others.
fn scalar<'f>(form: &'f Form<'_>, node: usize) -> Result<ValueRef<'f>, Fault> {
    match form.item(node) {
        Item::Open(..) | Item::Other(_) => {
            let expected = "a whole number, a string, true, false or null";
            Err(Fault::malformed(form.at(node), expected, form.render(node)))
        }
        _ => Ok(form.value(node)),
    }
}

/// A hybrid timestamp. Its numbers may be written as strings of decimal digits.
fn stamp(form: &Form<'_>, node: usize) -> Result<Stamp, Fault> {
    let ([physical, logical], unknown) = fields(form, node, &["p", "l"])?;
    if unknown > 0 {
        return Err(Fault::malformed(form.at(node), "`p` and `l` alone", form.render(node)));
    }
    let number = |node: usize| {
        let number = match form.item(node) {
            Item::Int(number) => u64::try_from(number).ok(),
            Item::Uint(number) => Some(number),
            // `parse` takes a plus sign, which no timestamp has.
            _ => form.text(node).filter(|t| !t.starts_with('+')).and_then(|t| t.parse().ok()),
        };
        number.ok_or_else(|| {
            let expected = "a whole number from 0 to 2^64-1, bare or as a string";
            Fault::malformed(form.at(node), expected, form.render(node))
        })
    };
    Ok(Stamp { physical: number(physical)?, logical: number(logical)? })
}

impl NarrowFormat for Chronos {
    fn admit_op(&self, op: &OpInput<'_>, _: &OpNotes<'_>) -> Result<(), SinkError> {
        push_op(&mut Vec::new(), op)
    }

    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed])?;
        // Made-up timestamps would be taken for what the database promised.
        stamps(end).map(|_| ())
    }

    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &INITIAL)?;
        let names = history.sessions().map(|session| Some(history.session_name(session)));
        let sessions = numbers_or_positions(names, |_| true, 0);
        let ids = numbers_or_positions(history.txns().map(|t| history.txn_name(t)), |_| true, 1);
        let mut out = target.into_stream()?;
        out.write_all(b"[")?;
        let mut line = Vec::new();
        for (txn, id) in history.txns().zip(ids) {
            line.clear();
            line.extend_from_slice(if txn.index() == 0 { b"\n{\"sid\":" } else { b",\n{\"sid\":" });
            push_u64(&mut line, sessions[history.session_of(txn).index()]);
            line.extend_from_slice(b",\"tid\":");
            push_u64(&mut line, id);
            push_txn(&mut line, history, txn)?;
            out.write_all(&line)?;
        }
        out.write_all(b"\n]\n")?;
        Ok(out.flush()?)
    }
}

fn stamps(end: &TxnEnd<'_>) -> Result<(Stamp, Stamp), SinkError> {
    match (end.db_start, end.db_commit) {
        (Some(start), Some(commit)) => Ok((start, commit)),
        _ => {
            let what = "transactions without the database's start and commit timestamps";
            Err(inexpressible(NAME, what))
        }
    }
}

fn push_txn(out: &mut Vec<u8>, history: &History, txn: TxnId) -> Result<(), SinkError> {
    let (start, commit) = stamps(&history.txn_end(txn))?;
    for (name, stamp) in [("sts", start), ("cts", commit)] {
        let Stamp { physical, logical } = stamp;
        let text = format!(",\"{name}\":{{\"p\":\"{physical}\",\"l\":{logical}}}");
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b",\"ops\":");
    json::push_array(out, history.txn_ops(txn), |out, op| {
        history.with_op_input(op, |input| push_op(out, input))
    })?;
    out.push(b'}');
    Ok(())
}

fn push_op(out: &mut Vec<u8>, op: &OpInput<'_>) -> Result<(), SinkError> {
    let (kind, key, value) = match *op {
        Op::Read { key, value: Some(value) } => (b'r', key, Ok(value)),
        Op::ReadList { key, elements: Some(elements) } => (b'r', key, Err(elements)),
        Op::Write { key, value } => (b'w', key, Ok(value)),
        Op::Append { key, element } => (b'a', key, Ok(element)),
        _ => return Err(inexpressible(NAME, describe(op))),
    };
    out.extend_from_slice(b"{\"t\":\"");
    out.push(kind);
    out.extend_from_slice(b"\",\"k\":");
    push_scalar(out, key)?;
    out.extend_from_slice(b",\"v\":");
    match value {
        Ok(value) => push_scalar(out, value)?,
        Err(list) => json::push_array(out, list, |out, value| push_scalar(out, *value))?,
    }
    out.push(b'}');
    Ok(())
}

fn push_scalar(out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<(), SinkError> {
    match value {
        ValueRef::Nil => out.extend_from_slice(b"null"),
        ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        ValueRef::Text(text) => json::push_text(out, text),
        ValueRef::Keyword(_) | ValueRef::Other(_) | ValueRef::Decimal(_) | ValueRef::Tuple(_) => {
            let what =
                format!("the value {value}: it takes whole numbers, strings, booleans, null");
            return Err(inexpressible(NAME, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
