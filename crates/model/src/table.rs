//! Tables of names and values: what is on the side of the columns.
//!
//! Integers, by far the most common, are packed into a [`ValueId`] word; everything else is
//! interned.

use std::fmt;
use std::hash::{Hash, Hasher};

use indexmap::{Equivalent, IndexSet};
use rustc_hash::FxBuildHasher;

use crate::entries::{Entries, Entry};
use crate::tuple::TupleRef;
use crate::value::ValueRef;

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
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Rebuilds a value from its raw word.
    #[inline]
    pub(crate) const fn from_bits(word: u64) -> ValueId {
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

/// A tuple of a [`ValueTable`]: its schema, and where its cells are among those of all tuples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InternedTuple {
    schema: u32,
    len: u32,
    start: usize,
}

/// What tuples of one form have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) table: Box<str>,
    pub(crate) columns: Box<[Box<str>]>,
}

impl InternedTuple {
    pub(crate) const fn new(schema: u32, start: usize, len: u32) -> InternedTuple {
        InternedTuple { schema, len, start }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) const fn schema(&self) -> u32 {
        self.schema
    }

    /// Its words among those of all tuples.
    pub(crate) fn cells<'t>(&self, all: &'t [ValueId]) -> &'t [ValueId] {
        &all[self.start..self.start + self.len()]
    }
}

impl Hash for Schema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table.hash(state);
        self.columns.iter().for_each(|name| name.hash(state));
    }
}

/// A tuple whose schema is looked for.
struct SchemaOf<'a>(TupleRef<'a>);

impl Hash for SchemaOf<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.table().hash(state);
        self.0.columns().for_each(|(name, _)| name.hash(state));
    }
}

impl Equivalent<Schema> for SchemaOf<'_> {
    fn equivalent(&self, schema: &Schema) -> bool {
        let wanted = self.0;
        let is_same = |at: usize| is_same_name(wanted.column_name(at), &schema.columns[at]);
        is_same_name(wanted.table(), &schema.table)
            && wanted.len() == schema.columns.len()
            && (0..wanted.len()).all(is_same)
    }
}

/// Whether two names are the same, byte by byte: they are a few letters, and this is asked for every
/// column of every row, so that to call a function that compares memory would take longer.
#[inline]
fn is_same_name(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(one, other)| one == other)
}

/// Interned values, numbered in the order they were first seen.
///
/// A tuple is the number of its schema and the words of its columns, so that rows of a table share
/// their names and equal columns are equal words.
#[derive(Clone, Debug, Default)]
pub struct ValueTable {
    entries: Entries,
    /// The words of all tuples, one after the other: a tuple costs no allocation of its own.
    cells: Vec<ValueId>,
    schemas: IndexSet<Schema, FxBuildHasher>,
    /// The schema that was found last: mostly it is the next one as well.
    last_schema: usize,
    /// Reused for the cells of a tuple, so that finding one that is there allocates nothing.
    scratch: Vec<ValueId>,
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
        self.intern_by_hash(value)
    }

    fn intern_by_hash(&mut self, value: ValueRef<'_>) -> ValueId {
        let ValueRef::Tuple(tuple) = value else {
            return ValueId::interned(self.entries.intern_scalar(value));
        };
        let (schema, cells) = self.intern_cells(tuple);
        let index = self.entries.intern_tuple(&mut self.cells, schema, &cells);
        self.scratch = cells;
        ValueId::interned(index)
    }

    /// The schema and the cells of a tuple. The cells are the scratch, to be given back.
    fn intern_cells(&mut self, tuple: TupleRef<'_>) -> (u32, Vec<ValueId>) {
        let schema = self.intern_schema(tuple);
        let mut cells = std::mem::take(&mut self.scratch);
        cells.clear();
        cells.extend(tuple.columns().map(|(_, value)| self.intern(value)));
        (schema as u32, cells)
    }

    fn intern_schema(&mut self, tuple: TupleRef<'_>) -> usize {
        let wanted = SchemaOf(tuple);
        let is_last = self.schemas.get_index(self.last_schema).map(|last| wanted.equivalent(last));
        if is_last != Some(true) {
            self.last_schema = self.schemas.get_index_of(&wanted).unwrap_or_else(|| {
                let columns = tuple.columns().map(|(name, _)| name.into()).collect();
                self.schemas.insert_full(Schema { table: tuple.table().into(), columns }).0
            });
        }
        self.last_schema
    }

    /// Makes room for values and the cells of tuples.
    pub(crate) fn reserve(&mut self, values: usize, cells: usize) {
        self.entries.reserve(values);
        self.cells.reserve(cells);
    }

    /// Makes room for all values of other tables. They may be the same ones: it is address space that is
    /// taken then, and hardly any memory.
    pub(crate) fn reserve_for<'t>(&mut self, others: impl Iterator<Item = &'t ValueTable>) {
        let sizes = others.map(|other| (other.entries.len(), other.cells.len()));
        let (values, cells) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        self.reserve(values, cells);
    }

    /// Takes over the values of another table. Says which words they have here, in the order of their
    /// indices there.
    pub(crate) fn absorb(&mut self, other: &ValueTable) -> Vec<ValueId> {
        let schemas = self.absorb_schemas(other);
        let mut words: Vec<ValueId> = Vec::with_capacity(other.entries.len());
        let mut cells = std::mem::take(&mut self.scratch);
        for entry in other.entries.iter() {
            let index = match entry {
                Entry::Scalar(value) => self.entries.intern_scalar(value.as_ref()),
                Entry::Tuple(tuple) => {
                    other.translate(tuple, &words, &mut cells);
                    let schema = schemas[tuple.schema as usize];
                    self.entries.intern_tuple(&mut self.cells, schema, &cells)
                }
            };
            words.push(ValueId::interned(index));
        }
        self.scratch = cells;
        words
    }

    fn absorb_schemas(&mut self, other: &ValueTable) -> Vec<u32> {
        let schema = |schema: &Schema| match self.schemas.get_index_of(schema) {
            Some(index) => index as u32,
            None => self.schemas.insert_full(schema.clone()).0 as u32,
        };
        other.schemas.iter().map(schema).collect()
    }

    /// The cells of a tuple of this table, given the words that its entries have elsewhere.
    fn translate(&self, tuple: &InternedTuple, words: &[ValueId], cells: &mut Vec<ValueId>) {
        let there = |cell: &ValueId| cell.table_index().map_or(*cell, |index| words[index]);
        cells.clear();
        cells.extend(self.cells(tuple).iter().map(there));
    }

    /// The word of a value that may not be there.
    pub fn find(&self, value: ValueRef<'_>) -> Option<ValueId> {
        if let ValueRef::Int(i) = value
            && let Some(id) = ValueId::inline(i)
        {
            return Some(id);
        }
        let index = match value {
            ValueRef::Tuple(tuple) => self.find_tuple(&self.entries, tuple),
            _ => self.entries.find_scalar(value),
        };
        index.map(ValueId::interned)
    }

    /// The index of a tuple among `entries`, whose cells are in this table.
    fn find_tuple(&self, entries: &Entries, tuple: TupleRef<'_>) -> Option<usize> {
        let schema = self.schemas.get_index_of(&SchemaOf(tuple))?;
        let cells: Option<Vec<_>> = tuple.columns().map(|(_, value)| self.find(value)).collect();
        entries.find_tuple(&self.cells, schema as u32, &cells?)
    }

    /// The value of a word. A word of another table reads as [`ValueRef::Nil`] at worst.
    pub fn get(&self, id: ValueId) -> ValueRef<'_> {
        match id.as_inline() {
            Some(i) => ValueRef::Int(i),
            None => {
                let entry = self.entries.get((id.0 >> 1) as usize);
                entry.map_or(ValueRef::Nil, |entry| entry.as_ref(self))
            }
        }
    }

    /// The interned values, in the order of their indices. The columns of a tuple come before it.
    pub fn interned(&self) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        self.entries.iter().map(|entry| entry.as_ref(self))
    }

    pub(crate) fn schema(&self, tuple: &InternedTuple) -> &Schema {
        &self.schemas[tuple.schema as usize]
    }

    pub(crate) fn cells(&self, tuple: &InternedTuple) -> &[ValueId] {
        tuple.cells(&self.cells)
    }
}

/// Names with dense numbers, in the order they were first seen: keys and sessions.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    names: Entries,
    /// The schemas and cells of names that are tuples: keys of rows.
    cells: ValueTable,
    /// The numbers of the names 0, 1, 2 and so on, [`NOT_THERE`] where not known. Most histories call
    /// their keys and sessions so, and an array is far faster than hashing. What is found here need not
    /// be found by its content; a name that once was too large to stand here is.
    whole: Vec<u32>,
}

/// The place of a number that is not in the shortcut.
const NOT_THERE: u32 = u32::MAX;

impl NameTable {
    /// The number of a name, adding it if need be.
    #[inline]
    pub fn intern(&mut self, name: ValueRef<'_>) -> u32 {
        self.find_whole(name).unwrap_or_else(|| self.find_or_add(name))
    }

    fn find_or_add(&mut self, name: ValueRef<'_>) -> u32 {
        match name {
            ValueRef::Int(i) if (i as usize) < self.shortcut_limit() => {
                let found = self.names.find_scalar(name);
                let number = found.unwrap_or_else(|| self.names.push_scalar(name)) as u32;
                let i = i as usize;
                if i >= self.whole.len() {
                    self.whole.resize(i + 1, NOT_THERE);
                }
                self.whole[i] = number;
                number
            }
            ValueRef::Tuple(tuple) => {
                let (schema, cells) = self.cells.intern_cells(tuple);
                let number = self.names.intern_tuple(&mut self.cells.cells, schema, &cells);
                self.cells.scratch = cells;
                number as u32
            }
            _ => self.names.intern_scalar(name) as u32,
        }
    }

    /// Takes over the names of another table. Says which numbers they have here, in the order of those
    /// there.
    pub(crate) fn absorb(&mut self, other: &NameTable) -> Vec<u32> {
        let (schemas, words) =
            (self.cells.absorb_schemas(&other.cells), self.cells.absorb(&other.cells));
        let mut cells = Vec::new();
        let number = |entry: &Entry| match entry {
            Entry::Scalar(name) => self.intern(name.as_ref()),
            Entry::Tuple(tuple) => {
                other.cells.translate(tuple, &words, &mut cells);
                let schema = schemas[tuple.schema as usize];
                self.names.intern_tuple(&mut self.cells.cells, schema, &cells) as u32
            }
        };
        other.names.iter().map(number).collect()
    }

    /// Which numbers the names of another table have here; none unless all of them are there and none
    /// is a tuple.
    pub(crate) fn numbers_of(&self, other: &NameTable) -> Option<Vec<u32>> {
        let number = |entry: &Entry| match entry {
            Entry::Scalar(name) => self.find(name.as_ref()),
            Entry::Tuple(_) => None,
        };
        other.names.iter().map(number).collect()
    }

    /// How long the shortcut may be: in proportion to the names, so that a single large name does
    /// not make it large.
    fn shortcut_limit(&self) -> usize {
        1024 + 8 * self.names.len()
    }

    /// The number of a name that may not be there.
    pub fn find(&self, name: ValueRef<'_>) -> Option<u32> {
        let by_content = || match name {
            ValueRef::Tuple(tuple) => self.cells.find_tuple(&self.names, tuple),
            _ => self.names.find_scalar(name),
        };
        self.find_whole(name).or_else(|| by_content().map(|index| index as u32))
    }

    /// The number of a name that is a small number itself, if it is there.
    #[inline]
    pub(crate) fn find_whole(&self, name: ValueRef<'_>) -> Option<u32> {
        // A negative name is larger than any array as an index.
        let ValueRef::Int(i) = name else { return None };
        self.whole.get(i as usize).copied().filter(|number| *number != NOT_THERE)
    }

    /// The name of a number. A number never given reads as [`ValueRef::Nil`].
    pub fn get(&self, id: u32) -> ValueRef<'_> {
        let entry = self.names.get(id as usize);
        entry.map_or(ValueRef::Nil, |entry| entry.as_ref(&self.cells))
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        self.names.iter().map(|entry| entry.as_ref(&self.cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TupleParts;

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
            ValueRef::Decimal(isolario_predicate::DecimalRef::from_canonical("1.0").unwrap()),
            ValueRef::from(&TupleParts { table: "t", columns: &[("a", ValueRef::Int(1))] }),
            ValueRef::from(&TupleParts { table: "", columns: &[("a", ValueRef::Int(1))] }),
            ValueRef::from(&TupleParts { table: "t", columns: &[("b", ValueRef::Int(1))] }),
            ValueRef::from(&TupleParts { table: "t", columns: &[("a", ValueRef::Text("new"))] }),
            ValueRef::from(&TupleParts { table: "t(a=1)", columns: &[] }),
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
    fn a_table_that_takes_over_another_has_all_values_once() {
        let row = |columns| TupleParts { table: "t", columns };
        let (old, new) = (row(&[("a", ValueRef::Text("x"))]), row(&[("a", ValueRef::Text("y"))]));
        let other = row(&[("b", ValueRef::Text("y")), ("c", ValueRef::Int(1))]);
        let (old, new, other) =
            (ValueRef::from(&old), ValueRef::from(&new), ValueRef::from(&other));
        let (mut first, mut second) = (ValueTable::default(), ValueTable::default());
        let mine = first.intern(old);
        let theirs = [other, old, ValueRef::Nil, new].map(|value| (second.intern(value), value));
        let words = first.absorb(&second);
        for (word, value) in theirs {
            let here = words[word.table_index().unwrap()];
            assert_eq!((first.get(here), first.find(value)), (value, Some(here)));
        }
        assert_eq!((first.find(old), first.interned().len()), (Some(mine), 6));

        let (mut first, mut second) = (NameTable::default(), NameTable::default());
        first.intern(old);
        let names = [ValueRef::Int(7), new, old, other];
        names.iter().for_each(|name| assert!(second.intern(*name) < 4));
        assert_eq!(first.absorb(&second), [1, 2, 0, 3]);
        assert!(first.iter().eq([old, ValueRef::Int(7), new, other]));
        assert_eq!(first.intern(ValueRef::Int(7)), 1);
    }

    #[test]
    fn whole_names_are_found_whether_or_not_they_were_too_large_at_first() {
        let mut table = NameTable::default();
        assert_eq!(table.intern(ValueRef::Int(5000)), 0);
        assert_eq!(table.intern(ValueRef::Int(-1)), 1);
        (0..1000).for_each(|i| assert_eq!(table.intern(ValueRef::Int(i)), i as u32 + 2));
        // Large tables have room for it in the array.
        assert_eq!(table.intern(ValueRef::Int(5000)), 0);
        assert_eq!(table.intern(ValueRef::Int(5001)), 1002);
        assert_eq!(table.len(), 1003);
        for (i, number) in [(5000, Some(0)), (-1, Some(1)), (7, Some(9)), (1000, None)] {
            assert_eq!(table.find(ValueRef::Int(i)), number);
        }
        let mut other = NameTable::default();
        for i in [7, 5000, -1] {
            other.intern(ValueRef::Int(i));
        }
        assert_eq!(table.numbers_of(&other), Some(vec![9, 0, 1]));
        other.intern(ValueRef::Int(1000));
        assert_eq!(table.numbers_of(&other), None);
        assert_eq!(table.absorb(&other), [9, 0, 1, 1003]);
    }

    #[test]
    fn names_keep_their_numbers_whether_small_large_or_no_numbers() {
        let mut table = NameTable::default();
        let large = (1..400).map(|i| ValueRef::Int(i * 17));
        let odd = [ValueRef::Int(-1), ValueRef::Int(i64::MAX), ValueRef::Int(i64::MIN)];
        let row = |columns| TupleParts { table: "t", columns };
        let (one, two) = (row(&[("a", ValueRef::Int(0))]), row(&[("a", ValueRef::Text("0"))]));
        let others = ["7".into(), ValueRef::from(&one), ValueRef::Int(0), ValueRef::from(&two)];
        let names: Vec<_> = large.chain(odd).chain(others).collect();
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
}
