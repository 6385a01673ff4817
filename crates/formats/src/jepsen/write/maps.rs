//! Entries as maps, one per line: `elle-edn` and `elle-json`.

use std::io::Write;

use isolario_model::{Clock, History, SessionId, SinkError, TxnId, ValueRef};

use super::content::Contents;
use super::fitness;
use super::order::{self, Entry};
use super::values::Values;
use crate::jepsen::event::NAME_FIELD;
use crate::notation::Notation;

/// Writes a whole history.
pub(super) fn write(
    history: &History,
    out: &mut dyn Write,
    values: Values,
) -> Result<(), SinkError> {
    fitness::check_keys(history, values.format)?;
    let contents = Contents::new(history, fitness::workload(history), values);
    let mut map = Map { values, text: String::new() };
    // The invocation's index is wanted once more for the name its completion would go by.
    let mut invoked: Vec<Option<i64>> = vec![None; history.txn_count()];
    for (position, entry) in order::entries(history).into_iter().enumerate() {
        let index = index_of(history, entry, position);
        map.open();
        if let Some(index) = index {
            map.field("index").push_str(&index.to_string());
        }
        if let (Clock::Nanoseconds, Some(time)) = (history.clock(), entry.moment(history)) {
            map.field("time").push_str(&time.to_string());
        }
        push_entry(&mut map, &contents, entry)?;
        match entry {
            Entry::Invocation(txn) => invoked[txn.index()] = index,
            Entry::Completion(txn) => {
                push_name(&mut map, history, txn, index.or(invoked[txn.index()]))?;
            }
        }
        map.close();
        out.write_all(map.text.as_bytes())?;
    }
    Ok(())
}

/// Where times are only an order of events, the index carries them; else it counts entries.
fn index_of(history: &History, entry: Entry, position: usize) -> Option<i64> {
    if history.clock() == Clock::EventOrder && history.has_times() {
        entry.moment(history)
    } else {
        i64::try_from(position).ok()
    }
}

fn push_entry(map: &mut Map, contents: &Contents<'_>, entry: Entry) -> Result<(), SinkError> {
    let (Entry::Invocation(txn) | Entry::Completion(txn)) = entry;
    let history = contents.history;
    map.word_field("type", contents.kind(entry));
    let session = process(contents, history.session_of(txn))?;
    let values = map.values;
    values.push(session, map.field("process"))?;
    let mut value = String::new();
    let function = contents.push(entry, &mut value)?;
    map.word_field("f", function);
    map.field("value").push_str(&value);
    match (entry, history.error(txn)) {
        (Entry::Completion(_), Some(error)) => values.push_error(error, map.field("error")),
        _ if contents.wants_error(entry) => map.field("error").push_str(values.nil()),
        _ => {}
    }
    Ok(())
}

fn process<'h>(contents: &Contents<'h>, session: SessionId) -> Result<ValueRef<'h>, SinkError> {
    let name = contents.history.session_name(session);
    match name {
        ValueRef::Int(_) | ValueRef::Uint(_) => Ok(name),
        ValueRef::Text(text) if text != "nemesis" => Ok(name),
        _ => Err(contents.refuse(format!("a session named {name}"))),
    }
}

/// Writes the transaction's name, unless it is the one a reader would give it anyway.
fn push_name(
    map: &mut Map,
    history: &History,
    txn: TxnId,
    index: Option<i64>,
) -> Result<(), SinkError> {
    let name = history.txn_name(txn);
    if name == index.map(ValueRef::Int) {
        return Ok(());
    }
    let values = map.values;
    values.push(name.unwrap_or(ValueRef::Nil), map.field(NAME_FIELD))
}

/// A map under construction.
struct Map {
    values: Values,
    text: String,
}

impl Map {
    fn open(&mut self) {
        self.text.clear();
        self.text.push('{');
    }

    fn close(&mut self) {
        self.text.push_str("}\n");
    }

    /// Begins a field; its value is to be written next.
    fn field(&mut self, name: &str) -> &mut String {
        let notation = self.values.notation;
        if self.text.len() > 1 {
            self.text.push_str(", ");
        }
        self.text.push_str(&notation.word(name));
        self.text.push_str(match notation {
            Notation::Edn => " ",
            Notation::Json => ": ",
        });
        &mut self.text
    }

    fn word_field(&mut self, name: &str, word: &str) {
        let word = self.values.notation.word(word);
        self.field(name).push_str(&word);
    }
}
