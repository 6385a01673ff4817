//! Tuples of named, typed columns: what a row holds, and what it is called by.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::ValueRef;
use crate::table::{InternedTuple, ValueTable};
use crate::value::Value;

/// What a [`TupleRef`] is made of.
#[derive(Clone, Copy, Debug)]
pub struct TupleParts<'a> {
    /// The table, where the tuple is the key of a row; empty where it is what a row holds.
    pub table: &'a str,
    /// The columns, by name, in their order. None of them is itself a tuple.
    pub columns: &'a [(&'a str, ValueRef<'a>)],
}

/// A tuple of named columns, borrowed from wherever it is kept.
///
/// Tuples serve for two things. A row is called by its table and its primary key,
/// `accounts(id=1)`: that is a key of the history. What a version of the row holds is a tuple
/// without a table, `(owner="Ada", balance=5)`: that is a value. The columns of the key need not be
/// repeated in the value.
///
/// ```
/// use isolario_model::{TupleParts, ValueRef};
///
/// let key = TupleParts { table: "accounts", columns: &[("id", 1.into())] };
/// let held = TupleParts { table: "", columns: &[("balance", 5.into()), ("open", true.into())] };
/// let (key, held) = (ValueRef::from(&key), ValueRef::from(&held));
/// assert_eq!(format!("{key} holds {held}"), "accounts(id=1) holds (balance=5, open=true)");
/// assert_ne!(key, ValueRef::Text("accounts(id=1)"));
///
/// let ValueRef::Tuple(tuple) = held else { unreachable!() };
/// assert_eq!(tuple.get("balance"), Some(ValueRef::Int(5)));
/// ```
#[derive(Clone, Copy)]
pub struct TupleRef<'a>(TupleStorage<'a>);

/// Where a tuple is kept.
#[derive(Clone, Copy)]
enum TupleStorage<'a> {
    Parts(&'a TupleParts<'a>),
    Owned(&'a Tuple),
    /// In a table, which also has its names and values.
    Interned(&'a InternedTuple, &'a ValueTable),
}

/// An owned [`TupleRef`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    table: Box<str>,
    columns: Box<[(Box<str>, Value)]>,
}

impl<'a> TupleRef<'a> {
    pub(crate) fn interned(tuple: &'a InternedTuple, table: &'a ValueTable) -> TupleRef<'a> {
        TupleRef(TupleStorage::Interned(tuple, table))
    }

    /// The table, where the tuple is the key of a row; empty otherwise.
    pub fn table(self) -> &'a str {
        match self.0 {
            TupleStorage::Parts(parts) => parts.table,
            TupleStorage::Owned(tuple) => &tuple.table,
            TupleStorage::Interned(tuple, table) => &table.schema(tuple).table,
        }
    }

    /// How many columns there are.
    pub fn len(self) -> usize {
        match self.0 {
            TupleStorage::Parts(parts) => parts.columns.len(),
            TupleStorage::Owned(tuple) => tuple.columns.len(),
            TupleStorage::Interned(tuple, _) => tuple.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The columns, in their order.
    pub fn columns(self) -> impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> {
        (0..self.len()).map(move |position| self.column(position))
    }

    /// The value of a column, by name; the first where a name is there twice.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        let position = (0..self.len()).find(|position| self.column_name(*position) == name)?;
        Some(self.column(position).1)
    }

    pub(crate) fn column_name(self, position: usize) -> &'a str {
        match self.0 {
            TupleStorage::Parts(parts) => parts.columns[position].0,
            TupleStorage::Owned(tuple) => &tuple.columns[position].0,
            TupleStorage::Interned(tuple, table) => &table.schema(tuple).columns[position],
        }
    }

    fn column(self, position: usize) -> (&'a str, ValueRef<'a>) {
        match self.0 {
            TupleStorage::Parts(parts) => parts.columns[position],
            TupleStorage::Owned(tuple) => {
                let (name, value) = &tuple.columns[position];
                (name, value.as_ref())
            }
            TupleStorage::Interned(tuple, table) => {
                let name = &table.schema(tuple).columns[position];
                (name, table.get(table.cells(tuple)[position]))
            }
        }
    }

    /// Copies the tuple.
    pub fn to_owned(self) -> Tuple {
        let columns = self.columns().map(|(name, value)| (name.into(), value.to_owned()));
        Tuple { table: self.table().into(), columns: columns.collect() }
    }
}

impl Tuple {
    /// A tuple of these columns. The table is empty unless it is the key of a row.
    pub fn new<N: Into<Box<str>>, V: Into<Value>>(
        table: &str,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Tuple {
        let columns = columns.into_iter().map(|(name, value)| (name.into(), value.into()));
        Tuple { table: table.into(), columns: columns.collect() }
    }

    /// Borrows the tuple.
    pub fn as_ref(&self) -> TupleRef<'_> {
        TupleRef(TupleStorage::Owned(self))
    }
}

impl<'a> From<&'a TupleParts<'a>> for TupleRef<'a> {
    fn from(parts: &'a TupleParts<'a>) -> Self {
        TupleRef(TupleStorage::Parts(parts))
    }
}

impl<'a> From<&'a TupleParts<'a>> for ValueRef<'a> {
    fn from(parts: &'a TupleParts<'a>) -> Self {
        ValueRef::Tuple(parts.into())
    }
}

impl From<Tuple> for Value {
    fn from(tuple: Tuple) -> Self {
        Value::Tuple(Box::new(tuple))
    }
}

/// Tuples are equal wherever they are kept.
impl PartialEq for TupleRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.table() == other.table() && self.columns().eq(other.columns())
    }
}

impl Eq for TupleRef<'_> {}

impl PartialOrd for TupleRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TupleRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.table().cmp(other.table()).then_with(|| self.columns().cmp(other.columns()))
    }
}

impl Hash for TupleRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.table().hash(state);
        self.len().hash(state);
        self.columns().for_each(|column| column.hash(state));
    }
}

impl fmt::Debug for TupleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `accounts(id=1)`, or `(balance=5, open=true)` where there is no table.
impl fmt::Display for TupleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.table())?;
        for (position, (name, value)) in self.columns().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{name}={value}")?;
        }
        f.write_str(")")
    }
}
