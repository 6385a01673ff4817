//! Operations as JSON arrays: a tag, then what it needs.

use isolario_model::{Op, OpInput, PredicateRow, RowInput, ValueRef};

use super::value::{prepare, value, version};
use crate::error::Fault;
use crate::notation::Form;
use crate::predicates::Predicates;

/// Every tag, with the forms it takes: what error messages show.
pub(super) const FORMS: &[(&str, &str)] = &[
    ("r", r#"["r", key, value], ["r", key, [elements]], or null or [] and "unobserved""#),
    ("w", r#"["w", key, value]"#),
    ("delete", r#"["delete", key]"#),
    ("append", r#"["append", key, element]"#),
    ("insert", r#"["insert", key, value, true | false | null], then perhaps the value seen"#),
    ("cas", r#"["cas", key, expected, new, true | false | null], then perhaps the value seen"#),
    (
        "select",
        r#"["select", predicate, [[key, value], …]] with versions as third parts, or null and "unobserved""#,
    ),
    (
        "update",
        r#"["update", predicate, [[key, value], …]] with versions as third parts, or null and "unobserved""#,
    ),
    ("aggregate", r#"["aggregate", function, predicate, result], or null and "unobserved""#),
];

/// The last word of an operation whose answer the client never got.
pub(super) const UNOBSERVED: &str = "unobserved";

/// The parts of an operation after its tag. None has more than this many.
type Parts = ([usize; 6], usize);

/// Decodes the operation of a node and hands it over.
#[inline]
pub(super) fn with_op<R>(
    form: &mut Form<'_>,
    node: usize,
    predicates: &mut Predicates,
    take: impl FnOnce(&OpInput<'_>) -> R,
) -> Result<R, Fault> {
    let Some((tag, (parts, count))) = split(form, node) else { return Err(no_op(form, node)) };
    let parts = &parts[..count];
    for (position, part) in parts.iter().enumerate() {
        match (form.word(tag), position) {
            (Some("r"), 1) if form.is_sequence(*part) => prepare_all(form, *part)?,
            (Some("select" | "update"), 1) if form.is_sequence(*part) => prepare_rows(form, *part)?,
            _ => prepare(form, *part)?,
        }
    }
    let decoder = Decoder { form, parts };
    let mut answer = Answer::default();
    match decoder.op(form.word(tag).unwrap_or(""), &mut answer, predicates) {
        Some(op) => Ok(take(&op)),
        None => Err(no_op(form, node)),
    }
}

#[inline]
fn split(form: &Form<'_>, node: usize) -> Option<(usize, Parts)> {
    if !form.is_sequence(node) {
        return None;
    }
    let mut children = form.children(node);
    let tag = children.next()?;
    let mut parts = [0; 6];
    let mut count = 0;
    for part in children {
        *parts.get_mut(count)? = part;
        count += 1;
    }
    Some((tag, (parts, count)))
}

fn prepare_all(form: &mut Form<'_>, list: usize) -> Result<(), Fault> {
    let end = form.skip(list);
    let mut node = list + 1;
    while node < end {
        prepare(form, node)?;
        node = form.skip(node);
    }
    Ok(())
}

fn prepare_rows(form: &mut Form<'_>, rows: usize) -> Result<(), Fault> {
    let end = form.skip(rows);
    let mut row = rows + 1;
    while row < end {
        let end_of_row = form.skip(row);
        if form.is_sequence(row) {
            // The third part, if there is one, is a version and no value.
            let (key, end) = (row + 1, end_of_row);
            if key < end {
                prepare(form, key)?;
                let value = form.skip(key);
                if value < end {
                    prepare(form, value)?;
                }
            }
        }
        row = end_of_row;
    }
    Ok(())
}

/// An answer of several values.
#[derive(Default)]
struct Answer<'f> {
    elements: Vec<ValueRef<'f>>,
    rows: Vec<RowInput<'f>>,
}

/// Makes an operation of its parts, if they are as its tag wants them.
struct Decoder<'f, 'a> {
    form: &'f Form<'a>,
    parts: &'f [usize],
}

impl<'f> Decoder<'f, '_> {
    fn op<'x>(
        &self,
        tag: &str,
        answers: &'x mut Answer<'f>,
        predicates: &'x mut Predicates,
    ) -> Option<OpInput<'x>>
    where
        'f: 'x,
    {
        let value = |node: &usize| value(self.form, *node);
        Some(match (tag, self.parts) {
            ("r", [key, list]) if self.form.is_sequence(*list) => {
                answers.elements.extend(self.form.children(*list).map(|node| value(&node)));
                Op::ReadList { key: value(key), elements: Some(&answers.elements) }
            }
            ("r", [key, seen]) => Op::Read { key: value(key), value: Some(value(seen)) },
            ("r", [key, none, mark]) if self.is_unobserved(*mark) => {
                if self.form.is_nil(*none) {
                    Op::Read { key: value(key), value: None }
                } else if self.form.exactly::<0>(*none).is_some() {
                    Op::ReadList { key: value(key), elements: None }
                } else {
                    return None;
                }
            }
            ("w", [key, new]) => Op::Write { key: value(key), value: value(new) },
            ("delete", [key]) => Op::Delete { key: value(key) },
            ("append", [key, element]) => Op::Append { key: value(key), element: value(element) },
            ("insert", [key, new, applied, seen @ ..]) => Op::InsertIfAbsent {
                key: value(key),
                value: value(new),
                applied: self.applied(*applied)?,
                seen: self.seen(seen)?,
            },
            ("cas", [key, expected, new, applied, seen @ ..]) => Op::CompareAndSet {
                key: value(key),
                expected: value(expected),
                new: value(new),
                applied: self.applied(*applied)?,
                seen: self.seen(seen)?,
            },
            ("select", [predicate, answer @ ..]) => {
                let rows = self.rows(answer, &mut answers.rows)?;
                Op::PredicateRead { predicate: predicates.predicate(self.text(*predicate)?), rows }
            }
            ("update", [predicate, answer @ ..]) => {
                let rows = self.rows(answer, &mut answers.rows)?;
                Op::PredicateWrite { predicate: predicates.predicate(self.text(*predicate)?), rows }
            }
            ("aggregate", [function, predicate, answer @ ..]) => {
                let result = match answer {
                    [result] => Some(value(result)),
                    [none, mark] if self.is_nothing(*none, *mark) => None,
                    _ => return None,
                };
                let (function, predicate) = (self.text(*function)?, self.text(*predicate)?);
                let (function, predicate) = predicates.aggregate(function, predicate);
                Op::Aggregate { function, predicate, result }
            }
            _ => return None,
        })
    }

    fn text(&self, node: usize) -> Option<&'f str> {
        self.form.text(node)
    }

    /// The word is a mark only behind an answer; elsewhere it is a value like any other.
    fn is_unobserved(&self, mark: usize) -> bool {
        self.form.word(mark) == Some(UNOBSERVED)
    }

    fn is_nothing(&self, none: usize, mark: usize) -> bool {
        self.form.is_nil(none) && self.is_unobserved(mark)
    }

    fn applied(&self, node: usize) -> Option<Option<bool>> {
        match self.form.value(node) {
            ValueRef::Nil => Some(None),
            ValueRef::Bool(applied) => Some(Some(applied)),
            _ => None,
        }
    }

    fn seen(&self, rest: &[usize]) -> Option<Option<ValueRef<'f>>> {
        match rest {
            [] => Some(None),
            [seen] => Some(Some(value(self.form, *seen))),
            _ => None,
        }
    }

    fn rows<'x>(
        &self,
        answer: &[usize],
        rows: &'x mut Vec<RowInput<'f>>,
    ) -> Option<Option<&'x [RowInput<'f>]>> {
        match answer {
            [none, mark] if self.is_nothing(*none, *mark) => Some(None),
            [list] if self.form.is_sequence(*list) => {
                for row in self.form.children(*list) {
                    let (key, new, name) = match self.form.exactly(row) {
                        Some([key, new]) => (key, new, None),
                        None => {
                            let [key, new, name] = self.form.exactly(row)?;
                            (key, new, Some(version(self.form, name)?))
                        }
                    };
                    let (key, value) = (value(self.form, key), value(self.form, new));
                    rows.push(PredicateRow { key, value, version: name });
                }
                Some(Some(rows))
            }
            _ => None,
        }
    }
}

/// The form of the operation's tag; the list of tags where that is what is wrong.
#[cold]
fn no_op(form: &Form<'_>, node: usize) -> Fault {
    let tag = form.children(node).next().filter(|_| form.is_sequence(node));
    let tag = tag.and_then(|tag| form.word(tag));
    let expected = match FORMS.iter().find(|(known, _)| Some(*known) == tag) {
        Some((_, form)) => (*form).to_owned(),
        None => {
            let tags: Vec<_> = FORMS.iter().map(|(tag, _)| *tag).collect();
            format!("an array that begins with one of {}", tags.join(", "))
        }
    };
    Fault::malformed(form.at(node), expected, form.render(node))
}
