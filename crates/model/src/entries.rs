//! What a table of values or names holds, and how it is found again.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table;
use rustc_hash::FxHasher;

use crate::table::{InternedTuple, ValueId, ValueTable};
use crate::tuple::TupleRef;
use crate::value::{Value, ValueRef};

/// What a table holds under an index.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Anything but a tuple.
    Scalar(Value),
    Tuple(InternedTuple),
}

impl Entry {
    /// The value, given the table that has the cells of tuples.
    pub(crate) fn as_ref<'t>(&'t self, cells: &'t ValueTable) -> ValueRef<'t> {
        match self {
            Entry::Scalar(value) => value.as_ref(),
            Entry::Tuple(tuple) => ValueRef::Tuple(TupleRef::interned(tuple, cells)),
        }
    }

    fn is_scalar(&self, wanted: ValueRef<'_>) -> bool {
        matches!(self, Entry::Scalar(value) if value.as_ref() == wanted)
    }

    fn is_tuple(&self, all: &[ValueId], schema: u32, cells: &[ValueId]) -> bool {
        matches!(self, Entry::Tuple(tuple) if tuple.schema() == schema && tuple.cells(all) == cells)
    }
}

/// Entries, each one once, by index and by content. The cells of tuples are kept by whoever asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    entries: Vec<Entry>,
    slots: HashTable<EntrySlot>,
}

/// Where an entry is. With its hash, so that a table that grows does not look at its entries again.
#[derive(Clone, Copy, Debug)]
struct EntrySlot {
    hash: u32,
    index: u32,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Makes room for more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.entries.reserve(more);
        self.slots.reserve(more, |place| spread(place.hash));
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    pub(crate) fn find_scalar(&self, value: ValueRef<'_>) -> Option<usize> {
        self.find(hash_of_scalar(value), |entry| entry.is_scalar(value))
    }

    pub(crate) fn find_tuple(
        &self,
        all: &[ValueId],
        schema: u32,
        cells: &[ValueId],
    ) -> Option<usize> {
        self.find(hash_of_tuple(schema, cells), |entry| entry.is_tuple(all, schema, cells))
    }

    fn find(&self, hash: u32, is: impl Fn(&Entry) -> bool) -> Option<usize> {
        let is = |place: &EntrySlot| place.hash == hash && is(&self.entries[place.index as usize]);
        self.slots.find(spread(hash), is).map(|place| place.index as usize)
    }

    pub(crate) fn intern_scalar(&mut self, value: ValueRef<'_>) -> usize {
        let is = |entry: &Entry| entry.is_scalar(value);
        match self.find_or_take_slot(hash_of_scalar(value), is) {
            Ok(index) => index,
            Err(index) => {
                self.entries.push(Entry::Scalar(value.to_owned()));
                index
            }
        }
    }

    /// Adds a scalar that is found by other means than its content.
    pub(crate) fn push_scalar(&mut self, value: ValueRef<'_>) -> usize {
        self.entries.push(Entry::Scalar(value.to_owned()));
        self.entries.len() - 1
    }

    pub(crate) fn intern_tuple(
        &mut self,
        all: &mut Vec<ValueId>,
        schema: u32,
        cells: &[ValueId],
    ) -> usize {
        let is = |entry: &Entry| entry.is_tuple(all, schema, cells);
        match self.find_or_take_slot(hash_of_tuple(schema, cells), is) {
            Ok(index) => index,
            Err(index) => {
                let tuple = InternedTuple::new(schema, all.len(), cells.len() as u32);
                self.entries.push(Entry::Tuple(tuple));
                all.extend_from_slice(cells);
                index
            }
        }
    }

    /// The index of an entry, or else the one that it will have: it has to be pushed next.
    fn find_or_take_slot(
        &mut self,
        hash: u32,
        is: impl Fn(&Entry) -> bool,
    ) -> Result<usize, usize> {
        let Entries { entries, slots: places } = self;
        let is = |place: &EntrySlot| place.hash == hash && is(&entries[place.index as usize]);
        match places.entry(spread(hash), is, |place| spread(place.hash)) {
            hash_table::Entry::Occupied(place) => Ok(place.get().index as usize),
            hash_table::Entry::Vacant(room) => {
                room.insert(EntrySlot { hash, index: entries.len() as u32 });
                Err(entries.len())
            }
        }
    }
}

fn hash_of_scalar(value: ValueRef<'_>) -> u32 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    fold(hasher.finish())
}

fn hash_of_tuple(schema: u32, cells: &[ValueId]) -> u32 {
    let mut hasher = FxHasher::default();
    schema.hash(&mut hasher);
    cells.iter().for_each(|cell| cell.hash(&mut hasher));
    fold(hasher.finish())
}

const fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// The table looks at the highest bits of a hash and at the lowest ones.
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
