//! From an entry's requests and its kind to the operations of a transaction.

use isolario_model::{Op, Outcome, SinkError, TxnSink, ValueRef};

use super::event::{Event, Kind};
use super::request::{Function, Request, Style};
use super::survey::Survey;
use crate::error::Fault;
use crate::notation::{Form, Item};

/// How a transaction ended, and which entry tells what it did.
pub(super) struct Content {
    pub(super) outcome: Outcome,
    pub(super) error: Option<String>,
    /// Whether the operations are those of the invocation, and not those of the completion.
    pub(super) from_invocation: bool,
    /// Whether a compare-and-set took effect, if that is known.
    applied: Option<bool>,
}

impl Content {
    /// An invocation that nobody answered.
    pub(super) const UNKNOWN: Content =
        Content { outcome: Outcome::Unknown, error: None, from_invocation: true, applied: None };

    /// A completion that speaks for itself.
    pub(super) fn of_completion(form: &Form<'_>, event: &Event, style: Style) -> Content {
        let error = event.error.and_then(|node| text_of(form, node));
        let (outcome, applied) = outcome_of(event.kind, style, event.error.is_some());
        Content { outcome, error, from_invocation: false, applied }
    }

    /// A completion that says that the invocation failed, or that its end is unknown.
    ///
    /// What was asked for stands in the invocation. A completed transaction that repeats it may
    /// carry results of reads, and is used; a single operation's value may be an error instead.
    pub(super) fn of_failure(
        (form, event): (&Form<'_>, &Event),
        (asked_form, invocation): (&Form<'_>, &Event),
        style: Style,
        agrees: bool,
    ) -> Content {
        let rendered = |form: &Form<'_>, node: Option<usize>| node.map(|node| form.render(node));
        let is_single = style != Style::Transaction;
        let instead = event.value.filter(|value| {
            is_single
                && !form.is_nil(*value)
                && rendered(form, event.value) != rendered(asked_form, invocation.value)
        });
        let error = event.error.or(instead);
        let (outcome, applied) = outcome_of(event.kind, style, error.is_some());
        Content {
            outcome,
            error: error.and_then(|node| text_of(form, node)),
            from_invocation: is_single || !agrees,
            applied,
        }
    }
}

/// A compare-and-set that fails without an error did its work: it found another value than the
/// expected one, and that is something seen, in a transaction that took place.
fn outcome_of(kind: Kind, style: Style, has_error: bool) -> (Outcome, Option<bool>) {
    match kind {
        Kind::Ok => (Outcome::Committed, Some(true)),
        Kind::Fail if style == Style::Single(Function::CompareAndSet) && !has_error => {
            (Outcome::Committed, Some(false))
        }
        Kind::Fail => (Outcome::Aborted, None),
        Kind::Info | Kind::Invoke => (Outcome::Unknown, None),
    }
}

/// An error in words: a text as it is, anything else as it was written.
fn text_of(form: &Form<'_>, node: usize) -> Option<String> {
    match form.item(node) {
        Item::Nil => None,
        Item::Text(_) | Item::Unescaped(..) => form.word(node).map(str::to_owned),
        _ => Some(form.render(node)),
    }
}

/// Makes the values of requests ready to be taken, and checks that reads fit their keys.
pub(super) fn prepare(
    form: &mut Form<'_>,
    requests: &[Request],
    survey: &Survey,
) -> Result<(), Fault> {
    for request in requests {
        if let Some(node) = request.key {
            form.prepare(node);
        }
        if let Some(node) = request.expected {
            form.prepare(node);
        }
        let Some(value) = request.value else { continue };
        let key = survey.key(form, request);
        if request.function != Function::Read || !survey.is_list(key) {
            form.prepare(value);
        } else if form.is_sequence(value) {
            prepare_elements(form, value);
        } else if !form.is_nil(value) {
            let expected = format!("a list: other operations make key {key} one");
            return Err(Fault::malformed(form.at(value), expected, form.render(value)));
        }
    }
    Ok(())
}

fn prepare_elements(form: &mut Form<'_>, list: usize) {
    let end = form.skip(list);
    let mut element = form.untag(list) + 1;
    while element < end {
        form.prepare(element);
        element = form.skip(element);
    }
}

/// Whether two entries ask for the same, whatever their reads returned. Both must be prepared.
pub(super) fn same_requests(
    (form, requests): (&Form<'_>, &[Request]),
    (other_form, others): (&Form<'_>, &[Request]),
    survey: &Survey,
) -> bool {
    let same_value = |a: Option<usize>, b: Option<usize>| {
        a.map(|node| form.value(node)) == b.map(|node| other_form.value(node))
    };
    requests.len() == others.len()
        && requests.iter().zip(others).all(|(a, b)| {
            a.function == b.function
                && survey.key(form, a) == survey.key(other_form, b)
                && (a.function == Function::Read
                    || same_value(a.value, b.value) && same_value(a.expected, b.expected))
        })
}

/// Writes the operations of a transaction. In one that committed, `nil` is what a read saw; in
/// any other it says that nothing is known.
pub(super) fn operations(
    sink: &mut dyn TxnSink,
    form: &Form<'_>,
    requests: &[Request],
    survey: &Survey,
    content: &Content,
) -> Result<(), SinkError> {
    let committed = content.outcome == Outcome::Committed;
    let mut elements = Vec::new();
    for request in requests {
        let key = survey.key(form, request);
        let value = request.value.map_or(ValueRef::Nil, |node| form.value(node));
        let op = match request.function {
            Function::Append => Op::Append { key, element: value },
            Function::Write => Op::Write { key, value },
            Function::CompareAndSet => Op::CompareAndSet {
                key,
                expected: request.expected.map_or(ValueRef::Nil, |node| form.value(node)),
                new: value,
                applied: content.applied,
                seen: None,
            },
            Function::Read if survey.is_list(key) => {
                let list = request.value.filter(|node| form.is_sequence(*node));
                elements.clear();
                elements.extend(
                    list.into_iter()
                        .flat_map(|list| form.children(list))
                        .map(|node| form.value(node)),
                );
                let seen = committed || list.is_some();
                Op::ReadList { key, elements: seen.then_some(&elements[..]) }
            }
            Function::Read => {
                let seen = committed || value != ValueRef::Nil;
                Op::Read { key, value: seen.then_some(value) }
            }
        };
        sink.op(&op)?;
    }
    Ok(())
}
