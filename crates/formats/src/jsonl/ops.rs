//! Operations as JSON arrays: a tag, then what it needs.

use isolario_model::{Op, OpInput, ValueRef};

use super::json::Json;
use crate::Problem;

/// Every tag, with the forms it takes: what error messages show.
pub(super) const FORMS: &[(&str, &str)] = &[
    ("r", r#"["r", key, value], ["r", key, [elements]], or null or [] and "unobserved""#),
    ("w", r#"["w", key, value]"#),
    ("delete", r#"["delete", key]"#),
    ("append", r#"["append", key, element]"#),
    ("insert", r#"["insert", key, value, true | false | null], then perhaps the value seen"#),
    ("cas", r#"["cas", key, expected, new, true | false | null], then perhaps the value seen"#),
    ("select", r#"["select", predicate, [[key, value], …]], or null and "unobserved""#),
    ("update", r#"["update", predicate, [[key, value], …]], or null and "unobserved""#),
    ("aggregate", r#"["aggregate", function, predicate, result], or null and "unobserved""#),
];

/// The last word of an operation whose answer the client never got.
pub(super) const UNOBSERVED: &str = "unobserved";

type Row<'s> = (ValueRef<'s>, ValueRef<'s>);

/// Decodes an operation and hands it over.
pub(super) fn with_op<R>(
    op: &mut Json<'_>,
    take: impl FnOnce(&OpInput<'_>) -> R,
) -> Result<R, Problem> {
    if let Some((tag, arguments)) = split(op) {
        fold(tag, arguments);
    }
    let (mut elements, mut rows) = (Vec::new(), Vec::new());
    match decode(op, &mut elements, &mut rows) {
        Some(op) => Ok(take(&op)),
        None => Err(Problem::malformed(expected_form(op), &*op)),
    }
}

fn split<'s, 'a>(op: &'s mut Json<'a>) -> Option<(&'s str, &'s mut [Json<'a>])> {
    match op {
        Json::Array(parts) => match parts.as_mut_slice() {
            [Json::Text(tag), arguments @ ..] => Some((tag, arguments)),
            _ => None,
        },
        _ => None,
    }
}

/// Makes values of all arguments, except where an array is an answer of several values.
fn fold(tag: &str, arguments: &mut [Json<'_>]) {
    for (position, argument) in arguments.iter_mut().enumerate() {
        match (tag, position, argument) {
            ("r", 1, Json::Array(elements)) => elements.iter_mut().for_each(Json::fold),
            ("select" | "update", 1, Json::Array(rows)) => {
                for row in rows {
                    if let Json::Array(pair) = row {
                        pair.iter_mut().for_each(Json::fold);
                    }
                }
            }
            (_, _, argument) => argument.fold(),
        }
    }
}

fn decode<'s>(
    op: &'s Json<'_>,
    elements: &'s mut Vec<ValueRef<'s>>,
    rows: &'s mut Vec<Row<'s>>,
) -> Option<OpInput<'s>> {
    let Json::Array(parts) = op else { return None };
    let [Json::Text(tag), key, rest @ ..] = parts.as_slice() else { return None };
    let (tag, rest) = split_unobserved(tag, rest);
    Some(match (tag, rest) {
        (("r", true), [Json::Null]) => Op::Read { key: key.value()?, value: None },
        (("r", true), [Json::Array(none)]) if none.is_empty() => {
            Op::ReadList { key: key.value()?, elements: None }
        }
        (("r", false), [Json::Array(items)]) => {
            *elements = items.iter().map(Json::value).collect::<Option<_>>()?;
            Op::ReadList { key: key.value()?, elements: Some(elements) }
        }
        (("r", false), [value]) => Op::Read { key: key.value()?, value: Some(value.value()?) },
        (("w", false), [value]) => Op::Write { key: key.value()?, value: value.value()? },
        (("delete", false), []) => Op::Delete { key: key.value()? },
        (("append", false), [element]) => {
            Op::Append { key: key.value()?, element: element.value()? }
        }
        (("insert", false), [value, applied, seen @ ..]) => Op::InsertIfAbsent {
            key: key.value()?,
            value: value.value()?,
            applied: decode_applied(applied)?,
            seen: decode_seen(seen)?,
        },
        (("cas", false), [expected, new, applied, seen @ ..]) => Op::CompareAndSet {
            key: key.value()?,
            expected: expected.value()?,
            new: new.value()?,
            applied: decode_applied(applied)?,
            seen: decode_seen(seen)?,
        },
        (("select", unobserved), [answer]) => Op::PredicateRead {
            predicate: key.as_text()?,
            rows: decode_rows(unobserved, answer, rows)?,
        },
        (("update", unobserved), [answer]) => Op::PredicateWrite {
            predicate: key.as_text()?,
            rows: decode_rows(unobserved, answer, rows)?,
        },
        (("aggregate", true), [predicate, Json::Null]) => Op::Aggregate {
            function: key.as_text()?,
            predicate: predicate.as_text()?,
            result: None,
        },
        (("aggregate", false), [predicate, result]) => Op::Aggregate {
            function: key.as_text()?,
            predicate: predicate.as_text()?,
            result: Some(result.value()?),
        },
        _ => return None,
    })
}

/// Takes the mark of an unobserved answer off the end, where the tag can have one: elsewhere the
/// word is a value like any other.
fn split_unobserved<'s, 'a>(
    tag: &'s str,
    rest: &'s [Json<'a>],
) -> ((&'s str, bool), &'s [Json<'a>]) {
    let answer = match tag {
        "r" | "select" | "update" => 1,
        "aggregate" => 2,
        _ => return ((tag, false), rest),
    };
    match rest.split_last() {
        Some((Json::Text(mark), answer_part))
            if mark == UNOBSERVED && answer_part.len() == answer =>
        {
            ((tag, true), answer_part)
        }
        _ => ((tag, false), rest),
    }
}

fn decode_applied(json: &Json<'_>) -> Option<Option<bool>> {
    match json {
        Json::Null => Some(None),
        Json::Bool(applied) => Some(Some(*applied)),
        _ => None,
    }
}

fn decode_seen<'s>(rest: &'s [Json<'_>]) -> Option<Option<ValueRef<'s>>> {
    match rest {
        [] => Some(None),
        [seen] => Some(Some(seen.value()?)),
        _ => None,
    }
}

fn decode_rows<'s>(
    unobserved: bool,
    answer: &'s Json<'_>,
    rows: &'s mut Vec<Row<'s>>,
) -> Option<Option<&'s [Row<'s>]>> {
    match (unobserved, answer) {
        (true, Json::Null) => Some(None),
        (false, Json::Array(items)) => {
            for item in items {
                let Json::Array(pair) = item else { return None };
                let [key, value] = pair.as_slice() else { return None };
                rows.push((key.value()?, value.value()?));
            }
            Some(Some(rows))
        }
        _ => None,
    }
}

/// The form of the operation's tag; the list of tags where that is what is wrong.
fn expected_form(op: &Json<'_>) -> String {
    let tag = match op {
        Json::Array(parts) => parts.first().and_then(Json::as_text),
        _ => None,
    };
    match FORMS.iter().find(|(known, _)| Some(*known) == tag) {
        Some((_, form)) => (*form).to_owned(),
        None => {
            let tags: Vec<_> = FORMS.iter().map(|(tag, _)| *tag).collect();
            format!("an array that begins with one of {}", tags.join(", "))
        }
    }
}
