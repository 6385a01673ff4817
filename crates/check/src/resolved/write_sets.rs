//! Which keys a transaction writes, asked from whichever side is smaller.

use std::ops::Range;

use isolario_model::{History, KeyId, TxnId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::writes;

/// Transactions with more operations than this are asked by key, not walked through.
const LARGE: usize = 64;

/// The write sets of all transactions. Those of small ones are their operations; large ones have a
/// table of their keys, so that an intersection costs the smaller of the two sets: that is what
/// bounds read committed and read atomic by n^1.5 (AWDIT, Lemma 3.4).
///
/// Before any of that, a filter of 64 bits per transaction: where the keys asked for and the keys
/// written have no bit in common, the operations need not be fetched from memory, which is what an
/// intersection of small sets costs.
pub(crate) struct WriteSets<'a> {
    history: &'a History,
    filters: Vec<u64>,
    large: Tables,
}

/// Tables of keys, each in one piece: who asks one of them for many keys finds it in the cache,
/// however many there are.
#[derive(Default)]
struct Tables {
    spans: FxHashMap<TxnId, Range<usize>>,
    /// Open addressing in each table: keys plus one, zero for empty.
    slots: Vec<u32>,
}

impl Tables {
    fn add(&mut self, txn: TxnId, keys: impl Iterator<Item = KeyId> + Clone) {
        let start = self.slots.len();
        self.slots.resize(start + (2 * keys.clone().count()).next_power_of_two().max(2), 0);
        let table = &mut self.slots[start..];
        for key in keys {
            let slot = slot(table, key);
            table[slot] = key.0 + 1;
        }
        self.spans.insert(txn, start..self.slots.len());
    }

    /// The table of a transaction.
    fn of(&self, txn: TxnId) -> &[u32] {
        self.spans.get(&txn).map_or(&[0], |span| &self.slots[span.clone()])
    }
}

/// The slot of a table that holds the key, or would. A table has a power of two of slots, and at
/// least one is empty.
#[inline]
fn slot(table: &[u32], key: KeyId) -> usize {
    let mask = table.len() - 1;
    let mut slot = (mixed(key) >> 32) as usize & mask;
    while table[slot] != 0 && table[slot] != key.0 + 1 {
        slot = (slot + 1) & mask;
    }
    slot
}

/// Multiplicative hashing: the upper bits of the product depend on all bits below.
#[inline]
fn mixed(key: KeyId) -> u64 {
    u64::from(key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A set of keys to intersect write sets with.
#[derive(Default)]
pub(crate) struct KeySet {
    keys: Vec<KeyId>,
    filter: u64,
}

impl KeySet {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.filter = 0;
    }

    /// Adds a key that is not there yet.
    #[inline]
    pub(crate) fn push(&mut self, key: KeyId) {
        self.keys.push(key);
        self.filter |= filter_bit(key);
    }
}

/// One of 64 bits.
#[inline]
pub(crate) fn filter_bit(key: KeyId) -> u64 {
    1 << (mixed(key) >> 58)
}

impl<'a> WriteSets<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let mut large = Tables::default();
        for txn in history.txns().filter(|txn| history.op_range(*txn).len() > LARGE) {
            large.add(txn, keys_written(history, txn));
        }
        // Without a branch: reads and writes come in no order that a processor could guess.
        let filter = |txn: usize| {
            let range = history.op_range(TxnId::at(txn));
            let ops = history.op_kinds()[range.clone()].iter().zip(&history.op_keys()[range]);
            ops.fold(0, |filter, (kind, key)| {
                filter | if writes(*kind) { filter_bit(*key) } else { 0 }
            })
        };
        let filters = (0..history.txn_count()).into_par_iter().map(filter).collect();
        WriteSets { history, filters, large }
    }

    /// The keys a transaction writes, in program order; a key written twice comes twice.
    pub(crate) fn of(&self, txn: TxnId) -> impl Iterator<Item = KeyId> + Clone {
        keys_written(self.history, txn)
    }

    /// Whether a transaction may write one of these keys; never a false no.
    #[inline]
    pub(crate) fn may_write_any(&self, txn: TxnId, keys: impl Iterator<Item = KeyId>) -> bool {
        self.may_write(txn, keys.fold(0, |filter, key| filter | filter_bit(key)))
    }

    /// The same for keys by their [`filter_bit`]s.
    #[inline]
    pub(crate) fn may_write(&self, txn: TxnId, filter: u64) -> bool {
        filter != 0 && self.filters[txn.index()] & filter != 0
    }

    /// Whether a transaction writes a key.
    #[inline]
    pub(crate) fn contains(&self, txn: TxnId, key: KeyId) -> bool {
        self.may_write_any(txn, std::iter::once(key))
            && match self.history.op_range(txn).len() {
                ops if ops > LARGE => {
                    let table = self.large.of(txn);
                    table[slot(table, key)] != 0
                }
                _ => self.of(txn).any(|written| written == key),
            }
    }

    /// Calls `each` with the keys that `txn` writes and that are among `keys`, once per key where
    /// `txn` writes it once. `contains` says whether a key is among `keys`.
    #[inline]
    pub(crate) fn for_each_common(
        &self,
        txn: TxnId,
        keys: &KeySet,
        contains: impl Fn(KeyId) -> bool,
        mut each: impl FnMut(KeyId),
    ) {
        if self.filters[txn.index()] & keys.filter == 0 {
            return;
        }
        let ops = self.history.op_range(txn).len();
        if ops > LARGE && keys.keys.len() < ops {
            let table = self.large.of(txn);
            let written = |key: &&KeyId| table[slot(table, **key)] != 0;
            keys.keys.iter().filter(written).for_each(|key| each(*key));
        } else {
            self.of(txn).filter(|key| contains(*key)).for_each(each);
        }
    }
}

fn keys_written(history: &History, txn: TxnId) -> impl Iterator<Item = KeyId> + Clone {
    let range = history.op_range(txn);
    let kinds = &history.op_kinds()[range.clone()];
    let keys = &history.op_keys()[range];
    kinds.iter().zip(keys).filter(|(kind, _)| writes(**kind)).map(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_hold_the_keys_of_each_transaction_and_no_others() {
        let mut tables = Tables::default();
        let keys = |txn: u32| (0..txn * 50).map(move |i| KeyId(i * 7 + txn));
        (0..10).for_each(|txn| tables.add(TxnId(txn), keys(txn).chain(keys(txn))));
        for txn in 0..12 {
            let table = tables.of(TxnId(txn));
            let found = (0..4000).map(KeyId).filter(|key| table[slot(table, *key)] != 0);
            assert!(found.eq(keys(txn).filter(|_| txn < 10)), "{txn}");
        }
    }
}
