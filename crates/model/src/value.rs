//! The user's own names: keys, values, session names and transaction ids, typed.
//!
//! `1`, `"1"` and `:x` are three different values.

use std::fmt;

use isolario_predicate::{Decimal, DecimalRef, Literal};

use crate::tuple::{Tuple, TupleRef};

/// A value borrowed from wherever it was read.
///
/// `Uint` holds only what `Int` cannot, so that equal integers are equal values: build them with
/// `From`, which every integer type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueRef<'a> {
    /// Nothing there: SQL's null, EDN's `nil`, an absent row. What a delete writes.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above `i64::MAX`.
    Uint(u64),
    /// An exact decimal. `1` and `1.0` are different values, as they are in SQL.
    Decimal(DecimalRef<'a>),
    /// A string.
    Text(&'a str),
    /// An EDN keyword, without its colon.
    Keyword(&'a str),
    /// Anything else (floating point, dates, nested collections), as canonical text of its format.
    Other(&'a str),
    /// Named columns: what a row holds, or what it is called by.
    Tuple(TupleRef<'a>),
}

/// An owned [`ValueRef`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// See [`ValueRef::Nil`].
    Nil,
    /// See [`ValueRef::Bool`].
    Bool(bool),
    /// See [`ValueRef::Int`].
    Int(i64),
    /// See [`ValueRef::Uint`].
    Uint(u64),
    /// See [`ValueRef::Decimal`].
    Decimal(Decimal),
    /// See [`ValueRef::Text`].
    Text(Box<str>),
    /// See [`ValueRef::Keyword`].
    Keyword(Box<str>),
    /// See [`ValueRef::Other`].
    Other(Box<str>),
    /// See [`ValueRef::Tuple`].
    Tuple(Box<Tuple>),
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Nil => ValueRef::Nil,
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Uint(u) => ValueRef::Uint(*u),
            Value::Decimal(d) => ValueRef::Decimal(d.as_ref()),
            Value::Text(s) => ValueRef::Text(s),
            Value::Keyword(s) => ValueRef::Keyword(s),
            Value::Other(s) => ValueRef::Other(s),
            Value::Tuple(t) => ValueRef::Tuple((**t).as_ref()),
        }
    }
}

impl ValueRef<'_> {
    /// Copies the value.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Nil => Value::Nil,
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Uint(u) => Value::Uint(u),
            ValueRef::Decimal(d) => Value::Decimal(d.to_owned()),
            ValueRef::Text(s) => Value::Text(s.into()),
            ValueRef::Keyword(s) => Value::Keyword(s.into()),
            ValueRef::Other(s) => Value::Other(s.into()),
            ValueRef::Tuple(t) => Value::Tuple(Box::new(t.to_owned())),
        }
    }
}

/// Integers, however wide, are the same values.
macro_rules! from_integers {
    ($narrow:ty: $($int:ty),+) => {$(
        impl From<$int> for ValueRef<'_> {
            #[inline]
            fn from(int: $int) -> Self {
                ValueRef::from(int as $narrow)
            }
        }

        impl From<$int> for Value {
            fn from(int: $int) -> Self {
                ValueRef::from(int).to_owned()
            }
        }
    )+};
}

from_integers!(i64: i8, i16, i32, isize);
from_integers!(u64: u8, u16, u32, usize);

impl From<i64> for ValueRef<'_> {
    #[inline]
    fn from(i: i64) -> Self {
        ValueRef::Int(i)
    }
}

impl From<u64> for ValueRef<'_> {
    #[inline]
    fn from(u: u64) -> Self {
        i64::try_from(u).map_or(ValueRef::Uint(u), ValueRef::Int)
    }
}

impl From<bool> for ValueRef<'_> {
    fn from(b: bool) -> Self {
        ValueRef::Bool(b)
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(s: &'a str) -> Self {
        ValueRef::Text(s)
    }
}

impl<'a> From<&'a String> for ValueRef<'a> {
    fn from(s: &'a String) -> Self {
        ValueRef::Text(s)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl<'a> From<&'a Literal> for ValueRef<'a> {
    fn from(literal: &'a Literal) -> Self {
        match literal {
            Literal::Null => ValueRef::Nil,
            Literal::Bool(b) => ValueRef::Bool(*b),
            Literal::Int(i) => ValueRef::Int(*i),
            Literal::Decimal(d) => ValueRef::Decimal(d.as_ref()),
            Literal::Text(s) => ValueRef::Text(s),
            Literal::Other(s) => ValueRef::Other(s),
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_owned()
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Self {
        Value::Int(i)
    }
}

impl From<u64> for Value {
    fn from(u: u64) -> Self {
        ValueRef::from(u).to_owned()
    }
}

/// Integers beyond 64 bits are decimals.
impl From<i128> for Value {
    fn from(i: i128) -> Self {
        i64::try_from(i).map_or_else(|_| Value::from_wide(i.try_into(), i.into()), Value::Int)
    }
}

/// Integers beyond 64 bits are decimals.
impl From<u128> for Value {
    fn from(u: u128) -> Self {
        Value::from_wide(u.try_into(), u.into())
    }
}

impl Value {
    fn from_wide<E>(narrow: Result<u64, E>, wide: Decimal) -> Value {
        narrow.map_or(Value::Decimal(wide), Value::from)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Value::Text(s.into())
    }
}

impl From<String> for Value {
    fn from(s: String) -> Self {
        Value::Text(s.into())
    }
}

/// Bytes are text where they are UTF-8, and SQL's `x'…'` otherwise.
impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Value::Other(format!("x'{digits}'").into())
            }
        }
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

/// Whether a string reads as a name without quotes, and as nothing else.
fn is_plain_name(s: &str) -> bool {
    let mut chars = s.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !matches!(s, "nil" | "null" | "true" | "false" | "init")
}

/// The form every message uses: numbers and plain names bare, other strings quoted, keywords with
/// their colon.
impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ValueRef::Nil => f.write_str("nil"),
            ValueRef::Bool(b) => write!(f, "{b}"),
            ValueRef::Int(i) => write!(f, "{i}"),
            ValueRef::Uint(u) => write!(f, "{u}"),
            ValueRef::Decimal(d) => d.fmt(f),
            ValueRef::Text(s) if is_plain_name(s) => f.write_str(s),
            ValueRef::Text(s) => write!(f, "{s:?}"),
            ValueRef::Keyword(s) => write!(f, ":{s}"),
            ValueRef::Other(s) => f.write_str(s),
            ValueRef::Tuple(t) => t.fmt(f),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_are_one_value_each() {
        let one = ValueRef::Int(1);
        let narrow = [ValueRef::from(1i8), 1u8.into(), 1i16.into(), 1u16.into(), 1i32.into()];
        let wide = [ValueRef::from(1u32), 1i64.into(), 1u64.into(), 1isize.into(), 1usize.into()];
        assert!(narrow.iter().chain(&wide).all(|value| *value == one));
        assert_eq!([Value::from(1i128), Value::from(1u128)].map(|v| v.as_ref() == one), [true; 2]);
        assert_eq!(Value::from(i128::from(u64::MAX)), Value::Uint(u64::MAX));
        assert_eq!(Value::from(i128::from(i64::MIN)), Value::Int(i64::MIN));
        assert_eq!(Value::from(-1i128 << 64).to_string(), "-18446744073709551616.0");
        assert_eq!(Value::from(1u128 << 64).to_string(), "18446744073709551616.0");
    }

    #[test]
    fn bytes_are_text_where_they_can_be() {
        assert_eq!(Value::from("é".as_bytes()), Value::from("é"));
        assert_eq!(Value::from(vec![0xff, 0x01]), Value::Other("x'ff01'".into()));
    }

    #[test]
    fn a_borrowed_value_is_three_words() {
        assert_eq!(size_of::<ValueRef<'_>>(), 24);
        assert_eq!(size_of::<Value>(), 24);
    }

    #[test]
    fn strings_are_quoted_where_they_could_be_taken_for_something_else() {
        let shown = |v: ValueRef<'_>| v.to_string();
        assert_eq!(shown(ValueRef::Text("x")), "x");
        assert_eq!(shown(ValueRef::Text("1")), "\"1\"");
        assert_eq!(shown(ValueRef::Text("nil")), "\"nil\"");
        assert_eq!(shown(ValueRef::Text("a b")), "\"a b\"");
        assert_eq!(shown(ValueRef::Keyword("x")), ":x");
        assert_eq!(shown(ValueRef::from(u64::MAX)), "18446744073709551615");
    }
}
