//! What an entry asks for or reports: a transaction of micro-operations, or one operation on a
//! register.

use super::event::Event;
use crate::error::Fault;
use crate::notation::{Form, Item};

/// The functions of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Read,
    Write,
    Append,
    CompareAndSet,
}

/// One operation, its parts as nodes of the form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The byte it begins at.
    pub(super) at: usize,
    pub(super) function: Function,
    /// The key; none for the one register of a history without keys.
    pub(super) key: Option<usize>,
    /// What was read, written or appended; for a compare-and-set the new value. An entry may leave
    /// it out where a read has no result yet.
    pub(super) value: Option<usize>,
    /// What a compare-and-set asks for.
    pub(super) expected: Option<usize>,
}

/// How the value of a single operation names its key, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keying {
    /// `3`: there is one register.
    OneRegister,
    /// `[k 3]`: a tuple of key and value.
    Tuples,
}

/// What to do with a history of other operations, predicates among them: what they mean is a matter
/// of the test that recorded them, and a guess could turn a violation into none.
const OTHERS: &str = "others can be brought as jsonl, which has predicates, too";

/// What an entry is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `:f :txn`: a vector of micro-operations.
    Transaction,
    /// `:f :read`, `:write`, `:cas`: one operation.
    Single(Function),
}

impl Style {
    pub(super) fn of(form: &Form<'_>, event: &Event) -> Result<Style, Fault> {
        let Some(node) = event.function else { return Ok(Style::Transaction) };
        match form.word(node) {
            Some("txn") => Ok(Style::Transaction),
            Some("read" | "r") => Ok(Style::Single(Function::Read)),
            Some("write" | "w") => Ok(Style::Single(Function::Write)),
            Some("cas") => Ok(Style::Single(Function::CompareAndSet)),
            _ => {
                let notation = form.notation();
                let txn = notation.field("f", &notation.word("txn"));
                Err(Fault::malformed(
                    form.at(node),
                    format!("{txn} or a register operation (read, write, cas); {OTHERS}"),
                    notation.field("f", &form.render(node)),
                ))
            }
        }
    }
}

/// Reads the operations of an entry. The first single operation of a file settles how all of
/// them name their keys.
pub(super) fn read(
    form: &Form<'_>,
    event: &Event,
    keying: &mut Option<Keying>,
    requests: &mut Vec<Request>,
) -> Result<Style, Fault> {
    requests.clear();
    let style = Style::of(form, event)?;
    match style {
        Style::Transaction => read_transaction(form, event, requests)?,
        Style::Single(function) => {
            let keying = *keying.get_or_insert_with(|| keying_of(form, function, event.value));
            requests.push(read_single(form, event, function, keying)?);
        }
    }
    Ok(style)
}

fn read_transaction(
    form: &Form<'_>,
    event: &Event,
    requests: &mut Vec<Request>,
) -> Result<(), Fault> {
    const EXPECTED: &str = "a vector of operations such as [:r x nil]";
    let Some(value) = event.value else {
        return Err(Fault::malformed(event.at, format!("a value: {EXPECTED}"), "none"));
    };
    if !form.is_sequence(value) {
        return Err(Fault::malformed(form.at(value), EXPECTED, form.render(value)));
    }
    for node in form.children(value) {
        requests.push(read_micro_operation(form, node)?);
    }
    Ok(())
}

fn read_micro_operation(form: &Form<'_>, node: usize) -> Result<Request, Fault> {
    let at = form.at(node);
    let [name, key, value] = form.exactly(node).ok_or_else(|| {
        Fault::malformed(at, "an operation [function key value]", form.render(node))
    })?;
    let function = match form.word(name) {
        Some("r") => Function::Read,
        Some("w") => Function::Write,
        Some("append") => Function::Append,
        Some("cas") => Function::CompareAndSet,
        _ => {
            let [r, w, append, cas] = ["r", "w", "append", "cas"].map(|w| form.notation().word(w));
            let expected = format!("{r}, {w}, {append} or {cas}; {OTHERS}");
            return Err(Fault::malformed(form.at(name), expected, form.render(name)));
        }
    };
    with_value(form, Request { at, function, key: Some(key), value: Some(value), expected: None })
}

/// Takes the pair of a compare-and-set apart.
fn with_value(form: &Form<'_>, request: Request) -> Result<Request, Fault> {
    if request.function != Function::CompareAndSet {
        return Ok(request);
    }
    let pair = request.value.and_then(|value| form.exactly(value));
    let Some([expected, new]) = pair else {
        let (at, found) = describe(form, request.value, request.at);
        return Err(Fault::malformed(at, "a pair [expected new]", found));
    };
    Ok(Request { value: Some(new), expected: Some(expected), ..request })
}

fn describe(form: &Form<'_>, node: Option<usize>, at: usize) -> (usize, String) {
    match node {
        Some(node) => (form.at(node), form.render(node)),
        None => (at, "none".to_owned()),
    }
}

/// A tagged tuple says so. Without a tag, a pair is a tuple; for a compare-and-set, whose plain
/// value is a pair already, a pair whose second part is one.
fn keying_of(form: &Form<'_>, function: Function, value: Option<usize>) -> Keying {
    let Some(value) = value else { return Keying::OneRegister };
    let tagged = matches!(form.item(value), Item::Tag(tag) if tag.ends_with("uple"));
    let pair = form.exactly::<2>(value);
    let is_tuple = match (function, pair) {
        (_, None) => false,
        (Function::CompareAndSet, Some([_, second])) => {
            tagged || form.exactly::<2>(second).is_some()
        }
        (_, Some(_)) => true,
    };
    if is_tuple { Keying::Tuples } else { Keying::OneRegister }
}

fn read_single(
    form: &Form<'_>,
    event: &Event,
    function: Function,
    keying: Keying,
) -> Result<Request, Fault> {
    let (key, value) = match keying {
        Keying::OneRegister => (None, event.value),
        Keying::Tuples => {
            let tuple = event.value.and_then(|value| form.exactly(value));
            let Some([key, value]) = tuple else {
                let (at, found) = describe(form, event.value, event.at);
                return Err(Fault::malformed(at, "a tuple [key value], as before", found));
            };
            (Some(key), Some(value))
        }
    };
    let is_collection = |node: &usize| matches!(form.item(*node), Item::Open(..));
    if function != Function::CompareAndSet && value.as_ref().is_some_and(is_collection) {
        let (at, found) = describe(form, value, event.at);
        return Err(Fault::malformed(at, "the value of a register", found));
    }
    if function == Function::Write && value.is_none() {
        return Err(Fault::malformed(event.at, "the value of a write", "none"));
    }
    with_value(form, Request { at: event.at, function, key, value, expected: None })
}
