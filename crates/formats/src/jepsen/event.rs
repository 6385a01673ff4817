//! One entry of a Jepsen history: an invocation or a completion.

use crate::error::Fault;
use crate::notation::{Form, Item, Shape};

/// The field for a transaction's name where it is not simply the index of its completion.
pub(super) const NAME_FIELD: &str = "isolario/name";

/// What an entry says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It was asked for.
    Invoke,
    /// It took effect.
    Ok,
    /// It certainly did not take effect.
    Fail,
    /// Nobody can tell.
    Info,
}

impl Kind {
    pub(super) fn from_word(word: &str) -> Option<Kind> {
        match word {
            "invoke" => Some(Kind::Invoke),
            "ok" => Some(Kind::Ok),
            "fail" => Some(Kind::Fail),
            "info" => Some(Kind::Info),
            _ => None,
        }
    }
}

/// Who an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// A client, by the node of its name.
    Client(usize),
    /// What breaks the database on purpose: no client.
    Nemesis,
    /// The entry does not say.
    Unstated,
}

impl Process {
    pub(super) fn from_node(form: &Form<'_>, node: usize) -> Result<Process, Fault> {
        match form.item(node) {
            Item::Int(_) | Item::Uint(_) => Ok(Process::Client(node)),
            Item::Keyword(_) => Ok(Process::Nemesis),
            _ => match form.word(node) {
                Some("nemesis") => Ok(Process::Nemesis),
                Some(_) => Ok(Process::Client(node)),
                None => Err(Fault::malformed(form.at(node), "a process number", form.render(node))),
            },
        }
    }
}

/// An entry, its parts as nodes of the form it was read into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// The byte it begins at.
    pub(super) at: usize,
    /// The line it begins on, counted from 1.
    pub(super) line: u64,
    pub(super) kind: Kind,
    pub(super) process: Process,
    pub(super) function: Option<usize>,
    pub(super) value: Option<usize>,
    pub(super) error: Option<usize>,
    pub(super) time: Option<i64>,
    pub(super) index: Option<i64>,
    /// The node of the transaction's own name, where the entry states it.
    pub(super) name: Option<usize>,
    /// How many fields it has that nothing here makes use of.
    pub(super) unused_fields: u64,
}

impl Event {
    pub(super) fn new(at: usize, kind: Kind) -> Event {
        Event {
            at,
            line: 0,
            kind,
            process: Process::Unstated,
            function: None,
            value: None,
            error: None,
            time: None,
            index: None,
            name: None,
            unused_fields: 0,
        }
    }

    /// The entry that a map describes.
    pub(super) fn from_map(form: &Form<'_>) -> Result<Event, Fault> {
        if form.shape(0) != Some(Shape::Map) {
            return Err(Fault::malformed(form.at(0), "an operation: a map", form.render(0)));
        }
        let (nodes, unused_fields) = form.fields(0, &FIELDS)?;
        let [kind, process, function, value, time, index, error, name] = nodes;
        let Some(kind) = kind else {
            let expected = format!("an operation with {}", kinds(form));
            return Err(Fault::malformed(form.at(0), expected, form.render(0)));
        };
        let integer = |field, node: Option<usize>| {
            node.map_or(Ok(None), |node| read_integer(form, field, node))
        };
        Ok(Event {
            process: process
                .map_or(Ok(Process::Unstated), |node| Process::from_node(form, node))?,
            function,
            value,
            error,
            time: integer("time", time)?,
            index: integer("index", index)?,
            name,
            unused_fields,
            ..Event::new(form.at(0), read_kind(form, kind)?)
        })
    }
}

/// The fields that mean something here. The first one must be there.
const FIELDS: [&str; 8] = ["type", "process", "f", "value", "time", "index", "error", NAME_FIELD];

fn kinds(form: &Form<'_>) -> String {
    let notation = form.notation();
    let [invoke, ok, fail, info] = ["invoke", "ok", "fail", "info"].map(|w| notation.word(w));
    format!("{}, {ok}, {fail} or {info}", notation.field("type", &invoke))
}

pub(super) fn read_kind(form: &Form<'_>, node: usize) -> Result<Kind, Fault> {
    form.word(node)
        .and_then(Kind::from_word)
        .ok_or_else(|| Fault::malformed(form.at(node), kinds(form), form.render(node)))
}

fn read_integer(form: &Form<'_>, field: &str, node: usize) -> Result<Option<i64>, Fault> {
    match form.item(node) {
        Item::Int(i) => Ok(Some(i)),
        Item::Nil => Ok(None),
        _ => {
            let expected = format!("a whole number for {}", form.notation().word(field));
            Err(Fault::malformed(form.at(node), expected, form.render(node)))
        }
    }
}
