//! Viper: a directory of JSON lines, one file per session, one committed transaction per line.
//!
//! ```json
//! {"value": [["w", 1, 10, true], ["r", 2, -7, false]]}
//! ```

use std::fmt;
use std::io::Write;

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, Outcome, SessionId, SinkError, TxnEnd, TxnId,
    TxnSink, TxnStart, ValueRef,
};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::by_value::require_same_meaning;
use crate::collect::{Collector, Layout};
use crate::error::Position;
use crate::express::{inexpressible, register_access, require_outcome};
use crate::fault::Fault;
use crate::json_text::{after_tokens, json_fault};
use crate::session_files::{
    SessionFile, first_session, ignored_if_any, session_files, write_session_files,
};
use crate::{HistoryFormat, HistoryWriter, Ignored, Loaded, ReadError, Source, Target};

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
        let text = first_session(source, is_session).unwrap_or_default();
        after_tokens(text, &["{", "\"value\"", ":", "["]).is_some()
    }

    fn read(&self, source: &Source) -> Result<Loaded, ReadError> {
        let (files, others) = session_files(source, 'J', is_session)?;
        let whole = |error: SinkError| source.error(Position::Whole, error);
        let mut reader = Reader::default();
        let meta = Meta { initial: Initial::Unwritten, ..Meta::default() };
        reader.batch.meta(&meta).map_err(whole)?;
        for file in &files {
            reader.session(file).map_err(|fault| fault.in_file(source, file.name))?;
            source.meter().add(file.bytes.len());
        }
        let mut loaded = Loaded::new(reader.batch.build().map_err(whole)?);
        loaded.ignored.extend(ignored_if_any("hidden files", others));
        loaded.ignored.extend(ignored_if_any("files without transactions", reader.empty_files));
        loaded.ignored.extend(reader.unknown_fields);
        loaded.ignored.extend(reader.odd_flags);
        Ok(loaded)
    }

    fn writer(&self, target: Target) -> Result<Box<dyn HistoryWriter>, SinkError> {
        Ok(Collector::<Viper>::boxed(target))
    }
}

#[derive(Default)]
struct Reader {
    batch: Batch,
    empty_files: u64,
    unknown_fields: Option<Ignored>,
    odd_flags: Option<Ignored>,
}

impl Reader {
    fn session(&mut self, file: &SessionFile<'_>) -> Result<(), Fault> {
        let before = self.batch.len();
        let lines = file.bytes.split(|byte| *byte == b'\n').zip(1..);
        for (line, number) in lines.filter(|(line, _)| !line.trim_ascii().is_empty()) {
            let txn: Line =
                serde_json::from_slice(line).map_err(|e| json_fault(&e, number, 1, line))?;
            self.count_ignored(&txn, Position::Line(number));
            let session = file.session.as_ref();
            self.txn(&TxnStart { session, id: None, line: Some(number) }, &txn)
                .map_err(Fault::refused(Position::Line(number)))?;
        }
        self.empty_files += u64::from(self.batch.len() == before);
        Ok(())
    }

    fn txn(&mut self, start: &TxnStart<'_>, txn: &Line) -> Result<(), SinkError> {
        self.batch.begin(start)?;
        for Entry(access, key, value, _) in &txn.entries {
            let (key, value) = (ValueRef::Int(*key), ValueRef::Int(*value));
            self.batch.op(&match access {
                Access::Read => Op::Read { key, value: Some(value) },
                Access::Write => Op::Write { key, value },
            })?;
        }
        self.batch.end(&TxnEnd::new(Outcome::Committed))
    }

    fn count_ignored(&mut self, txn: &Line, first: Position) {
        let add = |slot: &mut Option<Ignored>, what, count| {
            if count > 0 {
                slot.get_or_insert(Ignored { what, count: 0, first }).count += count;
            }
        };
        let is_odd = |entry: &&Entry| entry.3 != (entry.0 == Access::Write);
        let odd_flags = txn.entries.iter().filter(is_odd).count() as u64;
        add(&mut self.unknown_fields, "unknown fields", txn.unknown_fields);
        add(&mut self.odd_flags, "flags other than true of writes, false of reads", odd_flags);
    }
}

/// An operation: what it did, the key, the value, and a flag that repeats whether it wrote.
#[derive(Debug, serde::Deserialize)]
#[serde(expecting = "[\"r\" or \"w\", key, value, flag]")]
struct Entry(Access, i64, i64, bool);

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
enum Access {
    #[serde(rename = "r")]
    Read,
    #[serde(rename = "w")]
    Write,
}

/// A transaction, and how many fields it has beside its operations.
#[derive(Debug)]
struct Line {
    entries: Vec<Entry>,
    unknown_fields: u64,
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Value,
    #[serde(other)]
    Unknown,
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the field `value`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut entries = None;
        let mut unknown_fields = 0;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Value if entries.is_some() => {
                    return Err(A::Error::duplicate_field("value"));
                }
                Field::Value => entries = Some(map.next_value()?),
                Field::Unknown => {
                    unknown_fields += 1;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let entries = entries.ok_or_else(|| A::Error::missing_field("value"))?;
        Ok(Line { entries, unknown_fields })
    }
}

impl Layout for Viper {
    fn admit_op(op: &OpInput<'_>) -> Result<(), SinkError> {
        let access = register_access(NAME, op)?;
        signed("the key", access.key)?;
        signed("the value", access.value)?;
        Ok(())
    }

    fn admit_end(end: &TxnEnd<'_>) -> Result<(), SinkError> {
        require_outcome(NAME, end.outcome, &[Outcome::Committed])
    }

    fn write(history: &History, target: Target) -> Result<(), SinkError> {
        require_same_meaning(NAME, history, &Initial::Unwritten)?;
        write_session_files(NAME, 'J', history, target, |session, out| {
            write_session(history, session, out)
        })
    }
}

fn signed(role: &str, value: ValueRef<'_>) -> Result<i64, SinkError> {
    match value {
        ValueRef::Int(number) => Ok(number),
        _ => {
            let what = format!("{role} {value}: it takes whole numbers from -2^63 to 2^63-1");
            Err(inexpressible(NAME, what))
        }
    }
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
            let access = register_access(NAME, input)?;
            let key = signed("the key", access.key)?;
            let value = signed("the value", access.value)?;
            let (letter, flag) = if access.is_write { ("w", true) } else { ("r", false) };
            Ok::<_, SinkError>(write!(out, "{comma}[\"{letter}\", {key}, {value}, {flag}]")?)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
