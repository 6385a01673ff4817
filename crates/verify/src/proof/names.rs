//! The user's own names in a proof: how transactions, operations, keys and values are called.
//!
//! | what | form |
//! |---|---|
//! | a value, a key | `null`, `true`, `7`, `"x"`, `{"keyword":"x"}`, `{"other":"1.5"}` |
//! | a transaction | its own name as a value, if no other one has it; else `{"#":3}`, its position |
//! | the initial one | `{"#":"init"}` |
//! | an operation | `[transaction, index]`, the index counted from 0 |

use isolario_model::{History, KeyId, OpId, TxnId, ValueRef};
use rustc_hash::FxHashMap;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

/// The field that marks a position, and what stands there for the initial transaction.
pub(super) const POSITION: &str = "#";
pub(super) const INIT: &str = "init";

/// The names of a history, in both directions.
pub(super) struct Names<'h> {
    pub(super) history: &'h History,
    /// Per name, the transaction; none where several have it.
    txns: FxHashMap<ValueRef<'h>, Option<TxnId>>,
    /// Where the history is in a larger one, if it is told in terms of that.
    places: Option<PartPositionsRef<'h>>,
}

/// Where the transactions and operations of a part are in the whole.
#[derive(Clone, Copy, Debug)]
pub struct PartPositionsRef<'p> {
    /// By transaction, its position in the whole.
    pub txns: &'p [u64],
    /// By operation, its index within its transaction.
    pub ops: &'p [u32],
}

impl<'h> Names<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        let mut txns = FxHashMap::default();
        for txn in history.txns() {
            if let Some(name) = history.txn_name(txn) {
                txns.entry(name).and_modify(|one| *one = None).or_insert(Some(txn));
            }
        }
        Names { history, txns, places: None }
    }

    /// Names of a larger history, of which this is a part. They are positions: a name that is unique in
    /// the part need not be so in the whole.
    pub(super) fn in_whole(history: &'h History, places: PartPositionsRef<'h>) -> Self {
        Names { places: Some(places), ..Names::without_txns(history) }
    }

    /// Names of keys, and none of transactions.
    pub(super) fn without_txns(history: &'h History) -> Self {
        Names { history, txns: FxHashMap::default(), places: None }
    }

    /// The position of a transaction.
    fn position(&self, txn: TxnId) -> u64 {
        let place = self.places.and_then(|places| places.txns.get(txn.index()));
        place.copied().unwrap_or(u64::from(txn.0))
    }

    /// The index of an operation within its transaction.
    fn index(&self, op: OpId) -> usize {
        let place = self.places.and_then(|places| places.ops.get(op.index()));
        let txn = self.history.op_txn(op);
        place.map_or_else(|| op.index() - self.history.op_range(txn).start, |place| *place as usize)
    }

    /// The one transaction of a name.
    pub(super) fn find_txn(&self, name: ValueRef<'_>) -> Option<TxnId> {
        self.txns.get(&name).copied().flatten()
    }

    /// Whether several transactions have the name.
    pub(super) fn is_shared(&self, name: ValueRef<'_>) -> bool {
        self.txns.get(&name) == Some(&None)
    }

    /// The name of a transaction that no other one has.
    fn own_name(&self, txn: TxnId) -> Option<ValueRef<'h>> {
        self.history.txn_name(txn).filter(|name| self.find_txn(*name).is_some())
    }

    /// Something to be written with these names.
    pub(super) fn named<T>(&self, item: T) -> Named<'_, T> {
        Named { names: self, item, depth: 0 }
    }
}

/// Something that is written with the names of a history.
#[derive(Clone, Copy)]
pub(super) struct Named<'n, T> {
    pub(super) names: &'n Names<'n>,
    pub(super) item: T,
    /// How many reasons it is part of.
    pub(super) depth: usize,
}

impl<'n, T> Named<'n, T> {
    /// A part of it.
    pub(super) fn part<U>(&self, item: U) -> Named<'n, U> {
        Named { names: self.names, item, depth: self.depth }
    }
}

impl Serialize for Named<'_, TxnId> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.item.is_init() {
            return one_field(serializer, POSITION, INIT);
        }
        if self.item.index() >= self.names.history.txn_count() {
            return Err(S::Error::custom(format_args!("there is no transaction {:?}", self.item)));
        }
        match self.names.own_name(self.item) {
            Some(name) => Typed(name).serialize(serializer),
            None => one_field(serializer, POSITION, self.names.position(self.item)),
        }
    }
}

impl Serialize for Named<'_, OpId> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let history = self.names.history;
        if self.item.index() >= history.op_count() {
            return Err(S::Error::custom(format_args!("there is no operation {:?}", self.item)));
        }
        let txn = history.op_txn(self.item);
        (self.part(txn), self.names.index(self.item)).serialize(serializer)
    }
}

impl Serialize for Named<'_, Option<OpId>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.item.map(|op| self.part(op)).serialize(serializer)
    }
}

impl Serialize for Named<'_, KeyId> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.item.index() >= self.names.history.key_count() {
            return Err(S::Error::custom(format_args!("there is no key {:?}", self.item)));
        }
        Typed(self.names.history.key_name(self.item)).serialize(serializer)
    }
}

/// A value with its type.
pub(super) struct Typed<'a>(pub(super) ValueRef<'a>);

impl Serialize for Typed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Nil => serializer.serialize_unit(),
            ValueRef::Bool(value) => value.serialize(serializer),
            ValueRef::Int(number) => number.serialize(serializer),
            ValueRef::Uint(number) => number.serialize(serializer),
            ValueRef::Text(text) => text.serialize(serializer),
            ValueRef::Keyword(text) => one_field(serializer, "keyword", text),
            ValueRef::Other(text) => one_field(serializer, "other", text),
            ValueRef::Decimal(decimal) => one_field(serializer, "decimal", decimal.as_str()),
            ValueRef::Tuple(tuple) => {
                let columns = tuple.columns().map(|(name, value)| (name, Typed(value)));
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("table", tuple.table())?;
                map.serialize_entry("columns", &columns.collect::<Vec<_>>())?;
                map.end()
            }
        }
    }
}

/// An object of one field.
pub(super) fn one_field<S: Serializer>(
    serializer: S,
    name: &str,
    value: impl Serialize,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, &value)?;
    map.end()
}
