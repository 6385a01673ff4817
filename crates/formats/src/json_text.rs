//! JSON formats: places and words for what the JSON parser does not like, and values.

use std::borrow::Cow;
use std::fmt;

use isolario_model::ValueRef;
use serde::de::{self, Deserialize, Deserializer, Error as _, SeqAccess, Unexpected, Visitor};

use crate::error::Position;
use crate::fault::Fault;

/// A fault from an error of the JSON parser, in a text that begins at this line and column
/// (counted from 1) of its file.
pub(crate) fn json_fault(error: &serde_json::Error, line: u64, column: u64, text: &[u8]) -> Fault {
    // The parser counts columns from 1 but calls the end of an empty text column 0.
    let (down, right) = (error.line().max(1) as u64, error.column().max(1) as u64);
    let column = if down == 1 { column + right - 1 } else { right };
    let position = Position::Column(line + down - 1, column);
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&message[..], |(text, _)| text);
    let (expected, found) = reword(message, error.is_eof(), || byte_at(text, error));
    Fault::malformed(position, expected, found)
}

/// What the parser's message says was expected, and what was found.
fn reword(message: &str, is_eof: bool, byte: impl Fn() -> String) -> (String, String) {
    if is_eof {
        return ("more".to_owned(), format!("the end of the text ({message})"));
    }
    if let Some((found, expected)) = message.split_once(", expected ") {
        let kinds = ["invalid type: ", "invalid value: "];
        let found = kinds.iter().find_map(|kind| found.strip_prefix(kind)).unwrap_or(found);
        return (expected.to_owned(), found.to_owned());
    }
    if let Some(field) = message.strip_prefix("missing ") {
        return (field.to_owned(), "an object without it".to_owned());
    }
    if let Some(field) = message.strip_prefix("duplicate ") {
        return (format!("one {field}"), "a second one".to_owned());
    }
    match message.strip_prefix("expected ") {
        Some(expected) => (expected.to_owned(), byte()),
        None if message == "trailing characters" => ("nothing more".to_owned(), byte()),
        None => ("JSON".to_owned(), message.to_owned()),
    }
}

/// The byte an error points at.
fn byte_at(text: &[u8], error: &serde_json::Error) -> String {
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1));
    match line.and_then(|line| line.get(error.column().saturating_sub(1))) {
        Some(byte) => show_byte(*byte),
        None => "the end of the line".to_owned(),
    }
}

/// What follows these tokens, if the text begins with them, spaces between them aside.
pub(crate) fn after_tokens<'a>(text: &'a [u8], tokens: &[&str]) -> Option<&'a [u8]> {
    tokens
        .iter()
        .try_fold(text, |rest, token| rest.trim_ascii_start().strip_prefix(token.as_bytes()))
}

/// A byte as people know it.
pub(crate) fn show_byte(byte: u8) -> String {
    match byte {
        b' '..=b'~' => format!("`{}`", char::from(byte)),
        _ => format!("the byte 0x{byte:02x}"),
    }
}

/// A value that is not made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scalar<'a> {
    /// `null`, `true`, `false` or a whole number.
    Plain(ValueRef<'static>),
    /// A string, borrowed unless it has escapes in it.
    Text(Cow<'a, str>),
}

impl Scalar<'_> {
    /// As the sinks take it.
    pub(crate) fn as_value(&self) -> ValueRef<'_> {
        match self {
            Scalar::Plain(value) => *value,
            Scalar::Text(text) => ValueRef::Text(text),
        }
    }
}

/// A scalar or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    /// One value.
    One(Scalar<'a>),
    /// A list.
    List(Vec<Scalar<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Payload::deserialize(deserializer)? {
            Payload::One(scalar) => Ok(scalar),
            Payload::List(_) => Err(D::Error::invalid_type(Unexpected::Seq, &SCALAR)),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Payload<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PayloadVisitor)
    }
}

const SCALAR: &str = "a whole number, a string, true, false or null";

fn plain(value: ValueRef<'static>) -> Payload<'static> {
    Payload::One(Scalar::Plain(value))
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = Payload<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCALAR)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(plain(ValueRef::Nil))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(plain(ValueRef::Bool(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(plain(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(plain(value.into()))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Payload::One(Scalar::Text(Cow::Borrowed(value))))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Payload::One(Scalar::Text(Cow::Owned(value.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        // Pushed one by one: a claimed length is never trusted with an allocation.
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Payload::List(list))
    }
}
