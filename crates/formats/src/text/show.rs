//! How each part of the language is written.

use std::fmt::{self, Display, Formatter, Write};

use isolario_model::{Aggregate, Predicate, RowInput, Stamp, TupleRef, ValueRef, VersionRef};

use super::token::is_word_char;
use super::words::RESERVED;

/// A value.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a>(pub(super) ValueRef<'a>);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Nil => f.write_str("nil"),
            ValueRef::Bool(b) => write!(f, "{b}"),
            ValueRef::Int(i) => write!(f, "{i}"),
            ValueRef::Uint(u) => write!(f, "{u}"),
            ValueRef::Text(text) if is_name(text) => f.write_str(text),
            ValueRef::Text(text) => Quoted(text, '"').fmt(f),
            ValueRef::Keyword(text) if is_word(text) => write!(f, ":{text}"),
            ValueRef::Keyword(text) => write!(f, ":{}", Quoted(text, '"')),
            ValueRef::Other(text) => Quoted(text, '`').fmt(f),
            ValueRef::Decimal(decimal) => decimal.fmt(f),
            ValueRef::Tuple(tuple) => show_tuple(tuple, f),
        }
    }
}

/// `accounts(id=1)`, or `(balance=5)` where there is no table.
fn show_tuple(tuple: TupleRef<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    if !tuple.table().is_empty() {
        Shown(ValueRef::Text(tuple.table())).fmt(f)?;
    }
    for (position, (name, value)) in tuple.columns().enumerate() {
        let before = if position == 0 { "(" } else { ", " };
        write!(f, "{before}{}={}", Shown(ValueRef::Text(name)), Shown(value))?;
    }
    f.write_str(if tuple.is_empty() { "()" } else { ")" })
}

/// A predicate as SQL; in quotes where it is in no form of our language of predicates, or would not
/// stand on one line.
pub(super) struct Sql<'a> {
    pub(super) function: Option<&'a Aggregate>,
    pub(super) predicate: &'a Predicate,
}

impl Display for Sql<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let function = self.function.map(ToString::to_string);
        let predicate = self.predicate.to_string();
        let is_plain = matches!(self.predicate, Predicate::Rows { .. })
            && !matches!(self.function, Some(Aggregate::Unparsed(_)))
            && !function.iter().chain([&predicate]).any(|text| text.contains(char::is_control));
        match function {
            Some(function) if is_plain => write!(f, "{function} ")?,
            Some(function) => write!(f, "{} ", Quoted(&function, '"'))?,
            None => {}
        }
        if !is_plain {
            return Quoted(&predicate, '"').fmt(f);
        }
        let before = if self.predicate.table().is_none() { "where " } else { "" };
        write!(f, "{before}{predicate}")
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word_char)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && is_word(text)
        && !RESERVED.contains(&text)
}

/// A value in the header, where texts are always quoted.
pub(super) struct InHeader<'a>(pub(super) ValueRef<'a>);

impl Display for InHeader<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Text(text) => Quoted(text, '"').fmt(f),
            value => Shown(value).fmt(f),
        }
    }
}

/// A text between quotes, which are escaped within.
pub(super) struct Quoted<'a>(pub(super) &'a str, pub(super) char);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Quoted(text, quote) = *self;
        f.write_char(quote)?;
        for c in text.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c == '\\' || c == quote => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char(quote)
    }
}

/// Something, or `?` where it is not known.
pub(super) struct OrUnknown<T>(pub(super) Option<T>);

impl<T: Display> Display for OrUnknown<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(known) => known.fmt(f),
            None => f.write_char('?'),
        }
    }
}

/// The elements of a list.
pub(super) struct List<'a>(pub(super) &'a [ValueRef<'a>]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(i, element)| {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}{}", Shown(*element))
        })
    }
}

/// The rows a predicate operation read or wrote.
pub(super) struct Rows<'a>(pub(super) &'a [RowInput<'a>]);

impl Display for Rows<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (i, row) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}: {}", Shown(row.key), Shown(row.value))?;
            match row.version {
                None => {}
                Some(VersionRef::Initial) => f.write_str(" @initial")?,
                Some(VersionRef::ByWriter { txn, write }) => write!(f, " @{txn}/{write}")?,
                Some(VersionRef::ByWrite { write, value }) => write!(f, " @{write}={value}")?,
            }
        }
        f.write_char('}')
    }
}

/// How a conditional write ended.
pub(super) struct Ending<'a> {
    pub(super) applied: Option<bool>,
    pub(super) seen: Option<ValueRef<'a>>,
}

impl Display for Ending<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.applied {
            Some(true) => "ok",
            Some(false) => "failed",
            None => "?",
        })?;
        match self.seen {
            Some(seen) => write!(f, " saw {}", Shown(seen)),
            None => Ok(()),
        }
    }
}

/// A moment of the database's own clock: `5`, or `5.1` with a logical part.
pub(super) struct Dotted(pub(super) Stamp);

impl Display for Dotted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Stamp { physical, logical: 0 } => write!(f, "{physical}"),
            Stamp { physical, logical } => write!(f, "{physical}.{logical}"),
        }
    }
}
