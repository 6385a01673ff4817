//! Which keys a transaction writes, asked from whichever side is smaller.

use isolario_model::{History, KeyId, OpKind, TxnId};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

/// Transactions with more operations than this are asked by key, not walked through.
const LARGE: usize = 64;

/// The write sets of all transactions. Those of small ones are their operations; for large ones
/// there is one table of (transaction, key), so that an intersection costs the smaller of the two
/// sets: that is what bounds read committed and read atomic by n^1.5 (AWDIT, Lemma 3.4).
///
/// Before any of that, a filter of 64 bits per transaction: where the keys asked for and the keys
/// written have no bit in common, the operations need not be fetched from memory, which is what an
/// intersection of small sets costs.
pub(crate) struct WriteSets<'a> {
    history: &'a History,
    filters: Vec<u64>,
    large: FxHashSet<(TxnId, KeyId)>,
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

/// One of 64 bits, by multiplicative hashing.
#[inline]
pub(crate) fn filter_bit(key: KeyId) -> u64 {
    1 << (u64::from(key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

impl<'a> WriteSets<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let mut large = FxHashSet::default();
        for txn in history.txns().filter(|txn| history.op_range(*txn).len() > LARGE) {
            large.extend(keys_written(history, txn).map(|key| (txn, key)));
        }
        let filter = |txn: usize| {
            keys_written(history, TxnId::at(txn)).fold(0, |filter, key| filter | filter_bit(key))
        };
        let filters = (0..history.txn_count()).into_par_iter().map(filter).collect();
        WriteSets { history, filters, large }
    }

    /// The keys a transaction writes, in program order; a key written twice comes twice.
    pub(crate) fn of(&self, txn: TxnId) -> impl Iterator<Item = KeyId> {
        keys_written(self.history, txn)
    }

    /// Whether a transaction may write one of these keys; never a false no.
    #[inline]
    pub(crate) fn may_write_any(&self, txn: TxnId, keys: impl Iterator<Item = KeyId>) -> bool {
        let filter = keys.fold(0, |filter, key| filter | filter_bit(key));
        filter != 0 && self.filters[txn.index()] & filter != 0
    }

    /// Whether a transaction writes a key.
    #[inline]
    pub(crate) fn contains(&self, txn: TxnId, key: KeyId) -> bool {
        self.may_write_any(txn, std::iter::once(key))
            && match self.history.op_range(txn).len() {
                ops if ops > LARGE => self.large.contains(&(txn, key)),
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
            let written = |key: &&KeyId| self.large.contains(&(txn, **key));
            keys.keys.iter().filter(written).for_each(|key| each(*key));
        } else {
            self.of(txn).filter(|key| contains(*key)).for_each(each);
        }
    }
}

fn keys_written(history: &History, txn: TxnId) -> impl Iterator<Item = KeyId> {
    let range = history.op_range(txn);
    let kinds = &history.op_kinds()[range.clone()];
    let keys = &history.op_keys()[range];
    let writes = |kind: &OpKind| matches!(kind, OpKind::Write | OpKind::Delete | OpKind::Append);
    kinds.iter().zip(keys).filter(move |(kind, _)| writes(kind)).map(|(_, key)| *key)
}
