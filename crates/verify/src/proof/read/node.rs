//! JSON with its place in the file.
//!
//! A node is a piece of a line that is known to be JSON. Its parts are looked at only when asked
//! for, and each knows its column, so that a message can point at it. Finding the end of a piece
//! takes no recursion, so depth is bounded by whoever asks.

use std::fmt;

use isolario_model::{DecimalRef, Tuple, Value};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::proof::{ProofError, ProofProblem};

/// A line of the file.
#[derive(Clone, Copy)]
pub(super) struct Line<'l> {
    /// Its number, counted from 1.
    pub(super) number: u64,
    pub(super) text: &'l str,
}

/// A piece of JSON in a line.
#[derive(Clone, Copy)]
pub(super) struct Node<'l> {
    line: Line<'l>,
    raw: &'l str,
}

/// The fields of an object that were not asked for yet.
pub(super) struct Fields<'l> {
    object: Node<'l>,
    fields: Vec<(String, Node<'l>)>,
}

/// More fields than any object of the format has: what comes after them is not looked at.
const MOST_FIELDS: usize = 16;

/// A [`ProofProblem::Malformed`]; what was found is cut to a readable length.
pub(super) fn malformed(expected: impl Into<String>, found: &str) -> ProofProblem {
    const LONGEST: usize = 60;
    let found = match found.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &found[..cut]),
        None => found.to_owned(),
    };
    ProofProblem::Malformed { expected: expected.into(), found }
}

impl<'l> Line<'l> {
    /// The object that the line is.
    pub(super) fn object(self) -> Result<Fields<'l>, ProofError> {
        let whole = Node { line: self, raw: self.text };
        let raw: &RawValue = whole.parse("an object")?;
        whole.inside(raw).object()
    }
}

impl<'l> Node<'l> {
    /// An error at the place of this node.
    pub(super) fn error(self, problem: ProofProblem) -> ProofError {
        let column = self.raw.as_ptr().addr() - self.line.text.as_ptr().addr() + 1;
        ProofError { position: Some((self.line.number, column as u64)), problem }
    }

    /// Something else should stand here.
    pub(super) fn expected(self, expected: impl Into<String>) -> ProofError {
        let found = if self.raw.is_empty() { "an empty line" } else { self.raw };
        self.error(malformed(expected, found))
    }

    fn inside(self, raw: &'l RawValue) -> Node<'l> {
        Node { line: self.line, raw: raw.get() }
    }

    /// Takes the node for something. Where the text breaks off or goes on, the error is there
    /// rather than at the start of the node.
    fn parse<T: Deserialize<'l>>(self, expected: &str) -> Result<T, ProofError> {
        serde_json::from_str(self.raw).map_err(|error| {
            // A node is a part of one line, so columns are those of its text.
            let column = error.column().saturating_sub(1).min(self.raw.len());
            let at = if error.is_eof() { self.raw.len() } else { column };
            match self.raw.get(at..) {
                Some(rest) if error.is_syntax() || error.is_eof() => {
                    let found = if rest.is_empty() { "the end of the line" } else { rest };
                    Node { raw: rest, ..self }.error(malformed("JSON", found))
                }
                _ => self.expected(expected),
            }
        })
    }

    pub(super) fn object(self) -> Result<Fields<'l>, ProofError> {
        let Pairs(pairs) = self.parse("an object")?;
        let mut fields: Vec<(String, Node<'l>)> = Vec::new();
        for (name, raw) in pairs {
            if fields.len() == MOST_FIELDS {
                return Err(self.inside(raw).expected("the end of the object"));
            }
            if fields.iter().any(|(other, _)| *other == name) {
                let expected = format!("`{name}` once");
                return Err(self.inside(raw).expected(expected));
            }
            fields.push((name, self.inside(raw)));
        }
        Ok(Fields { object: self, fields })
    }

    pub(super) fn is_object(self) -> bool {
        self.raw.starts_with('{')
    }

    pub(super) fn is_null(self) -> bool {
        self.raw == "null"
    }

    pub(super) fn array(self) -> Result<impl ExactSizeIterator<Item = Node<'l>>, ProofError> {
        let raws: Vec<&'l RawValue> = self.parse("an array")?;
        Ok(raws.into_iter().map(move |raw| self.inside(raw)))
    }

    pub(super) fn string(self) -> Result<String, ProofError> {
        self.parse("a string")
    }

    pub(super) fn boolean(self) -> Result<bool, ProofError> {
        self.parse("true or false")
    }

    pub(super) fn unsigned(self) -> Result<u64, ProofError> {
        self.parse("a whole number from 0")
    }

    pub(super) fn signed(self) -> Result<i64, ProofError> {
        self.parse("a whole number of 64 bits")
    }

    /// A value with its type.
    pub(super) fn value(self) -> Result<Value, ProofError> {
        let mut fields = match self.raw.as_bytes().first() {
            Some(b'{') => self.object()?,
            _ => return self.scalar(),
        };
        let Some(columns) = fields.optional("columns") else { return self.scalar() };
        let table = fields.take("table")?.string()?;
        fields.finish()?;
        let columns: Result<Vec<_>, _> = columns.array()?.map(Node::column).collect();
        Ok(Tuple::new(&table, columns?).into())
    }

    /// A value that is no tuple.
    fn scalar(self) -> Result<Value, ProofError> {
        match self.raw.as_bytes().first() {
            Some(b'n') => Ok(Value::Nil),
            Some(b't' | b'f') => Ok(Value::Bool(self.boolean()?)),
            Some(b'"') => Ok(Value::Text(self.string()?.into())),
            Some(b'{') => self.marked_text(),
            Some(b'-' | b'0'..=b'9') => match self.raw.parse() {
                Ok(number) => Ok(Value::Int(number)),
                // Equal numbers are equal values: only what is too large for the one is the other.
                Err(_) => self.raw.parse().map(Value::Uint).map_err(|_| self.expected(A_VALUE)),
            },
            _ => Err(self.expected(A_VALUE)),
        }
    }

    fn marked_text(self) -> Result<Value, ProofError> {
        let mut fields = self.object()?;
        let value = if let Some(text) = fields.optional("keyword") {
            Value::Keyword(text.string()?.into())
        } else if let Some(text) = fields.optional("other") {
            Value::Other(text.string()?.into())
        } else if let Some(text) = fields.optional("decimal") {
            let digits = text.string()?;
            let canonical = DecimalRef::from_canonical(&digits);
            Value::Decimal(canonical.ok_or_else(|| text.expected(A_DECIMAL))?.to_owned())
        } else {
            return Err(self.expected(A_VALUE));
        };
        fields.finish()?;
        Ok(value)
    }

    /// The name and the value of a column, which is no tuple.
    fn column(self) -> Result<(String, Value), ProofError> {
        let mut parts = self.array()?;
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(value), None) => Ok((name.string()?, value.scalar()?)),
            _ => Err(self.expected("a name and a value")),
        }
    }

    /// One of several words.
    pub(super) fn one_of<T>(
        self,
        what: &str,
        find: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ProofError> {
        let word: String = self.parse(what)?;
        find(&word).ok_or_else(|| self.expected(what))
    }
}

const A_VALUE: &str = "a value: null, true, false, a whole number of 64 bits, a string, \
                       {\"keyword\":…}, {\"other\":…}, {\"decimal\":…} or \
                       {\"table\":…,\"columns\":…}";
const A_DECIMAL: &str = "the canonical digits of a decimal, such as \"1.5\"";

impl<'l> Fields<'l> {
    /// A field that must be there.
    pub(super) fn take(&mut self, name: &str) -> Result<Node<'l>, ProofError> {
        self.optional(name).ok_or_else(|| {
            self.object.error(malformed(format!("field `{name}`"), "an object without it"))
        })
    }

    /// Whether a field is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(other, _)| other == name)
    }

    /// A field that may be there.
    pub(super) fn optional(&mut self, name: &str) -> Option<Node<'l>> {
        let at = self.fields.iter().position(|(other, _)| other == name)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Refuses fields that were not asked for: they would mean something that is not checked.
    pub(super) fn finish(self) -> Result<(), ProofError> {
        match self.fields.first() {
            Some((name, node)) => Err(node.error(malformed("no such field", &format!("`{name}`")))),
            None => Ok(()),
        }
    }
}

/// The fields of an object, as they come.
struct Pairs<'l>(Vec<(String, &'l RawValue)>);

impl<'l> Deserialize<'l> for Pairs<'l> {
    fn deserialize<D: Deserializer<'l>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'l> Visitor<'l> for PairsVisitor {
    type Value = Pairs<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Pairs<'l>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}
