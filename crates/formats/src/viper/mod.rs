//! Viper: a directory of JSON lines, one file per session, one committed transaction per line.
//!
//! ```json
//! {"value": [["w", 1, 10, true], ["r", 2, -7, false]]}
//! ```

use std::io::Write;

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, OpNotes, Outcome, SessionId, SinkError, TxnEnd,
    TxnId, TxnSink, TxnStart, ValueRef,
};

use crate::by_value::require_same_meaning;
use crate::error::{Fault, Position, utf8};
use crate::lines::{Line, Lines};
use crate::narrow::{
    Access, Collector, NarrowFormat, inexpressible, register_access, require_outcome,
};
use crate::notation::{Form, Item, Notation, Shape, after_tokens, json};
use crate::session_files::{
    SessionFile, first_session, ignored_if_any, session_files, write_session_files,
};
use crate::{
    HistoryFormat, HistoryWriter, IgnoredItems, OutputTarget, ParsedHistory, ReadError, Source,
};

const NAME: &str = "viper";

/// The format of Viper's histories.
pub(crate) struct Viper;

/// Sessions may have any name; files that systems hide are not meant.
fn is_session(name: &str) -> bool {
    !name.starts_with('.')
}

impl HistoryFormat for Viper {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Viper: a directory of JSON lines, J<n>.log, one per session"
    }

    /// A line begins with `{"value": [`, spaces aside.
    fn sniff(&self, source: &Source) -> bool {
        let bytes = first_session(source, is_session).unwrap_or_default();
        let text = crate::source::text_beginning(bytes);
        after_tokens(text, &["{", "\"value\"", ":", "["]).is_some()
    }

    fn parse(&self, source: &Source) -> Result<ParsedHistory, ReadError> {
        let (files, others) = session_files(source, 'J', is_session)?;
        let whole = |error: SinkError| source.error(Position::Whole, error);
        let mut reader = Reader::default();
        let meta = Meta { initial: Initial::Unwritten, ..Meta::default() };
        reader.batch.meta(&meta).map_err(whole)?;
        for file in &files {
            reader.session(file).map_err(|fault| file.text_error(source, fault))?;
            source.meter().add(file.bytes.len());
        }
        let mut loaded = ParsedHistory::new(reader.batch.build().map_err(whole)?);
        loaded.ignored.extend(ignored_if_any("hidden files", others));
        loaded.ignored.extend(ignored_if_any("files without transactions", reader.empty_files));
        loaded.ignored.extend(reader.unknown_fields);
        loaded.ignored.extend(reader.odd_flags);
        Ok(loaded)
    }

    fn writer(&self, target: OutputTarget) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::boxed(Viper, target))
    }
}

#[derive(Default)]
struct Reader {
    batch: Batch,
    empty_files: u64,
    unknown_fields: Option<IgnoredItems>,
    odd_flags: Option<IgnoredItems>,
}

impl Reader {
    fn session(&mut self, file: &SessionFile<'_>) -> Result<(), Fault> {
        let text = utf8(file.bytes)?;
        let before = self.batch.len();
        let mut form = Form::new(Notation::Json);
        for line in Lines::new(file.bytes, 1) {
            if !text[line.start..line.end].trim_ascii().is_empty() {
                json::read_only(&text[..line.end], line.start, &mut form)?;
                self.txn(file.session.as_ref(), &form, line)?;
            }
        }
        self.empty_files += u64::from(self.batch.len() == before);
        Ok(())
    }

    fn txn(&mut self, session: ValueRef<'_>, form: &Form<'_>, line: Line) -> Result<(), Fault> {
        let wrong = |node: usize, expected: &str| {
            Fault::malformed(form.at(node), expected, form.render(node))
        };
        if form.shape(0) != Some(Shape::Map) {
            return Err(wrong(0, "an object with the field `value`"));
        }
        let ([ops], unknown) = form.fields(0, &["value"])?;
        let ops = ops.ok_or_else(|| wrong(0, "an object with the field `value`"))?;
        if !form.is_sequence(ops) {
            return Err(wrong(ops, "an array of operations"));
        }
        let first = Position::Line(line.number);
        count(&mut self.unknown_fields, "unknown fields", unknown, first);
        let refused = |error| Fault::new(line.start, error);
        let start = TxnStart { session, id: None, line: Some(line.number) };
        self.batch.begin(&start).map_err(refused)?;
        for op in form.children(ops) {
            let (access, flag) = read_access(form, op)
                .ok_or_else(|| wrong(op, "[\"r\" or \"w\", key, value, flag]"))?;
            let is_odd = u64::from(flag != access.is_write);
            let what = "flags other than true of writes, false of reads";
            count(&mut self.odd_flags, what, is_odd, first);
            let (key, value) = (ValueRef::Int(access.key), ValueRef::Int(access.value));
            let op = match access.is_write {
                true => Op::Write { key, value },
                false => Op::Read { key, value: Some(value) },
            };
            self.batch.op(&op).map_err(refused)?;
        }
        self.batch.end(&TxnEnd::new(Outcome::Committed)).map_err(refused)
    }
}

/// An operation: what it did, the key, the value, and a flag that repeats whether it wrote.
fn read_access(form: &Form<'_>, op: usize) -> Option<(Access<i64>, bool)> {
    let [letter, key, value, flag] = form.exactly(op)?;
    let is_write = match form.text(letter)? {
        "w" => true,
        "r" => false,
        _ => return None,
    };
    match (form.item(key), form.item(value), form.item(flag)) {
        (Item::Int(key), Item::Int(value), Item::Bool(flag)) => {
            Some((Access { is_write, key, value }, flag))
        }
        _ => None,
    }
}

fn count(slot: &mut Option<IgnoredItems>, what: &'static str, count: u64, first: Position) {
    if count > 0 {
        slot.get_or_insert(IgnoredItems { what, count: 0, first }).count += count;
    }
}

impl NarrowFormat for Viper {
    fn admit_op(&self, op: &OpInput<'_>, _: &OpNotes<'_>) -> Result<(), SinkError> {
        signed_access(op).map(|_| ())
    }

    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed])
    }

    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &Initial::Unwritten)?;
        write_session_files(NAME, 'J', history, target, |session, out| {
            write_session(history, session, out)
        })
    }
}

fn signed_access(op: &OpInput<'_>) -> Result<Access<i64>, SinkError> {
    let signed = |role: &str, value: ValueRef<'_>| match value {
        ValueRef::Int(number) => Ok(number),
        _ => {
            let what = format!("{role} {value}: it takes whole numbers from -2^63 to 2^63-1");
            Err(inexpressible(NAME, what))
        }
    };
    let Access { is_write, key, value } = register_access(NAME, op)?;
    Ok(Access { is_write, key: signed("the key", key)?, value: signed("the value", value)? })
}

fn write_session(
    history: &History,
    session: SessionId,
    out: &mut dyn Write,
) -> Result<(), SinkError> {
    for txn in history.session_txns(session) {
        out.write_all(b"{\"value\": [")?;
        write_ops(history, txn, out)?;
        out.write_all(b"]}\n")?;
    }
    Ok(())
}

fn write_ops(history: &History, txn: TxnId, out: &mut dyn Write) -> Result<(), SinkError> {
    for (position, op) in history.txn_ops(txn).enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        history.with_op_input(op, |input| {
            let Access { is_write, key, value } = signed_access(input)?;
            let letter = if is_write { 'w' } else { 'r' };
            Ok::<_, SinkError>(write!(out, "{comma}[\"{letter}\", {key}, {value}, {is_write}]")?)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
