//! The user's own names: keys, values, session names and transaction ids, typed.
//!
//! `1`, `"1"` and `:x` are three different values. Integers, by far the most common, are packed
//! into a [`ValueId`] word; everything else is interned in a [`ValueTable`].

use std::fmt;
use std::hash::BuildHasher;

use indexmap::{Equivalent, IndexSet};
use rustc_hash::FxBuildHasher;

/// A value borrowed from wherever it was read.
///
/// `Uint` holds only what `Int` cannot, so that equal numbers are equal values: build numbers
/// with `From<u64>` and `From<i64>`.
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
    /// A string.
    Text(&'a str),
    /// An EDN keyword, without its colon.
    Keyword(&'a str),
    /// Anything else (floating point, nested collections), as canonical text of its format.
    Other(&'a str),
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
    /// See [`ValueRef::Text`].
    Text(Box<str>),
    /// See [`ValueRef::Keyword`].
    Keyword(Box<str>),
    /// See [`ValueRef::Other`].
    Other(Box<str>),
}

impl Value {
    /// Borrows the value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Nil => ValueRef::Nil,
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Uint(u) => ValueRef::Uint(*u),
            Value::Text(s) => ValueRef::Text(s),
            Value::Keyword(s) => ValueRef::Keyword(s),
            Value::Other(s) => ValueRef::Other(s),
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
            ValueRef::Text(s) => Value::Text(s.into()),
            ValueRef::Keyword(s) => Value::Keyword(s.into()),
            ValueRef::Other(s) => Value::Other(s.into()),
        }
    }
}

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

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(s: &'a str) -> Self {
        ValueRef::Text(s)
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_owned()
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
            ValueRef::Text(s) if is_plain_name(s) => f.write_str(s),
            ValueRef::Text(s) => write!(f, "{s:?}"),
            ValueRef::Keyword(s) => write!(f, ":{s}"),
            ValueRef::Other(s) => f.write_str(s),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// A value as one word. Within one table, equal words are equal values.
///
/// An even word is an integer of 63 bits; an odd word is an index into the table. Almost every
/// history writes small integers, and so never touches the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u64);

impl ValueId {
    /// The word of an integer that fits in 63 bits.
    #[inline]
    pub const fn inline(i: i64) -> Option<ValueId> {
        let word = (i as u64) << 1;
        if (word as i64) >> 1 == i { Some(ValueId(word)) } else { None }
    }

    /// The integer, if the word holds one.
    #[inline]
    pub const fn as_inline(self) -> Option<i64> {
        if self.0 & 1 == 0 { Some(self.0 as i64 >> 1) } else { None }
    }

    /// The raw word: for hashing, sorting and joining, not for showing.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Rebuilds a value from its raw word.
    #[inline]
    pub(crate) const fn from_word(word: u64) -> ValueId {
        ValueId(word)
    }

    const fn interned(index: usize) -> ValueId {
        ValueId((index as u64) << 1 | 1)
    }

    /// The index into the value table, for words that are not inline.
    #[inline]
    pub const fn table_index(self) -> Option<usize> {
        if self.0 & 1 == 1 { Some((self.0 >> 1) as usize) } else { None }
    }
}

impl fmt::Debug for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_inline() {
            Some(i) => write!(f, "{i}"),
            None => write!(f, "#{}", self.0 >> 1),
        }
    }
}

/// Lets the interning sets be searched by a borrowed value. Sound because both enums have the
/// same variants in the same order, so that the derived hashes agree.
impl Equivalent<Value> for ValueRef<'_> {
    fn equivalent(&self, key: &Value) -> bool {
        *self == key.as_ref()
    }
}

/// Interned values, numbered in the order they were first seen.
#[derive(Clone, Debug, Default)]
pub struct ValueTable {
    values: IndexSet<Value, FxBuildHasher>,
}

impl ValueTable {
    /// The word of a value, interning it if need be.
    #[inline]
    pub fn intern(&mut self, value: ValueRef<'_>) -> ValueId {
        if let ValueRef::Int(i) = value
            && let Some(id) = ValueId::inline(i)
        {
            return id;
        }
        ValueId::interned(intern_index(&mut self.values, value))
    }

    /// The word of a value that may not be there.
    pub fn find(&self, value: ValueRef<'_>) -> Option<ValueId> {
        if let ValueRef::Int(i) = value
            && let Some(id) = ValueId::inline(i)
        {
            return Some(id);
        }
        self.values.get_index_of(&value).map(ValueId::interned)
    }

    /// The value of a word. A word of another table reads as [`ValueRef::Nil`] at worst.
    pub fn get(&self, id: ValueId) -> ValueRef<'_> {
        match id.as_inline() {
            Some(i) => ValueRef::Int(i),
            None => {
                self.values.get_index((id.0 >> 1) as usize).map_or(ValueRef::Nil, Value::as_ref)
            }
        }
    }

    /// The interned values, in the order of their indices.
    pub fn interned(&self) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        self.values.iter().map(Value::as_ref)
    }
}

/// Names with dense numbers, in the order they were first seen: keys and sessions.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    names: IndexSet<Value, FxBuildHasher>,
    /// The numbers of the names 0, 1, 2 and so on, [`NOT_THERE`] where not known. Only a shortcut:
    /// most histories call their keys and sessions so, and an array is far faster than hashing.
    whole: Vec<u32>,
}

/// The place of a number that is not in the shortcut.
const NOT_THERE: u32 = u32::MAX;

impl NameTable {
    /// The number of a name, adding it if need be.
    #[inline]
    pub fn intern(&mut self, name: ValueRef<'_>) -> u32 {
        // A negative name is larger than any array as an index.
        if let ValueRef::Int(i) = name
            && let Some(number) = self.whole.get(i as usize)
            && *number != NOT_THERE
        {
            return *number;
        }
        self.intern_by_hash(name)
    }

    fn intern_by_hash(&mut self, name: ValueRef<'_>) -> u32 {
        let number = intern_index(&mut self.names, name) as u32;
        if let ValueRef::Int(i) = name
            && (i as usize) < self.shortcut_limit()
        {
            let i = i as usize;
            if i >= self.whole.len() {
                self.whole.resize(i + 1, NOT_THERE);
            }
            self.whole[i] = number;
        }
        number
    }

    /// How long the shortcut may be: in proportion to the names, so that a single large name does
    /// not make it large.
    fn shortcut_limit(&self) -> usize {
        1024 + 8 * self.names.len()
    }

    /// The number of a name that may not be there.
    pub fn find(&self, name: ValueRef<'_>) -> Option<u32> {
        self.names.get_index_of(&name).map(|index| index as u32)
    }

    /// The name of a number. A number never given reads as [`ValueRef::Nil`].
    pub fn get(&self, id: u32) -> ValueRef<'_> {
        self.names.get_index(id as usize).map_or(ValueRef::Nil, Value::as_ref)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        self.names.iter().map(Value::as_ref)
    }
}

fn intern_index<S: BuildHasher>(set: &mut IndexSet<Value, S>, value: ValueRef<'_>) -> usize {
    match set.get_index_of(&value) {
        Some(index) => index,
        None => set.insert_full(value.to_owned()).0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_words_cover_63_bits() {
        for i in [0, 1, -1, (1 << 62) - 1, -(1 << 62)] {
            assert_eq!(ValueId::inline(i).and_then(ValueId::as_inline), Some(i));
        }
        for i in [1 << 62, -(1 << 62) - 1, i64::MAX, i64::MIN] {
            assert_eq!(ValueId::inline(i), None);
        }
    }

    #[test]
    fn a_table_gives_back_what_went_in_and_equal_words_for_equal_values() {
        let mut table = ValueTable::default();
        let values = [
            ValueRef::Nil,
            ValueRef::Int(1),
            ValueRef::Int(i64::MIN),
            ValueRef::from(u64::MAX),
            ValueRef::Text("1"),
            ValueRef::Keyword("1"),
            ValueRef::Other("1"),
            ValueRef::Bool(true),
        ];
        let ids: Vec<_> = values.iter().map(|v| table.intern(*v)).collect();
        for (value, id) in values.iter().zip(&ids) {
            assert_eq!(table.get(*id), *value);
            assert_eq!(table.intern(*value), *id);
            assert_eq!(table.find(*value), Some(*id));
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }

    #[test]
    fn names_keep_their_numbers_whether_small_large_or_no_numbers() {
        let mut table = NameTable::default();
        let large = (1..400).map(|i| ValueRef::Int(i * 17));
        let odd = [ValueRef::Int(-1), ValueRef::Int(i64::MAX), ValueRef::Int(i64::MIN)];
        let names: Vec<_> = large.chain(odd).chain(["7".into(), ValueRef::Int(0)]).collect();
        // Again and again: names seen before the shortcut was long enough enter it later.
        for _ in 0..3 {
            for (number, name) in names.iter().enumerate() {
                assert_eq!(table.intern(*name), number as u32);
                assert_eq!(table.find(*name), Some(number as u32));
            }
        }
        assert_eq!(table.len(), names.len());
        assert!(table.iter().eq(names));
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
