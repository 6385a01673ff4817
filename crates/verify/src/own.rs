//! What a transaction's operations have to do with each other.

use isolario_model::{History, KeyId, OpId, TxnId};
use rustc_hash::FxHashMap;

use crate::facts::is_write;

/// Up to so many keys, looking through all is faster than a map.
const FEW: usize = 16;

/// Each transaction by itself.
#[derive(Debug)]
pub(crate) struct Own {
    /// The transaction of each operation.
    pub(crate) txn_of: Vec<TxnId>,
    /// Per read, the transaction's own last write of the key before it.
    pub(crate) before: Vec<Option<OpId>>,
    /// Per write, the transaction's own next write of the key.
    pub(crate) next: Vec<Option<OpId>>,
    /// The keys that each transaction writes, sorted, and where each transaction's end.
    written: Vec<KeyId>,
    written_ends: Vec<usize>,
}

impl Own {
    pub(crate) fn new(history: &History) -> Self {
        let mut own = Own {
            txn_of: Vec::with_capacity(history.op_count()),
            before: vec![None; history.op_count()],
            next: vec![None; history.op_count()],
            written: Vec::new(),
            written_ends: Vec::with_capacity(history.txn_count()),
        };
        let mut last = LastWrites::default();
        for txn in history.txns() {
            last.clear();
            own.add(history, txn, &mut last);
        }
        own
    }

    fn add(&mut self, history: &History, txn: TxnId, last: &mut LastWrites) {
        let begin = self.written.len();
        for op in history.txn_ops(txn) {
            self.txn_of.push(txn);
            let key = history.op_keys()[op.index()];
            if !is_write(history, op) {
                self.before[op.index()] = last.get(key);
                continue;
            }
            match last.replace(key, op) {
                Some(before) => self.next[before.index()] = Some(op),
                None => self.written.push(key),
            }
        }
        self.written[begin..].sort_unstable();
        self.written_ends.push(self.written.len());
    }

    /// The keys a transaction writes, sorted. `init` writes all and has none here.
    pub(crate) fn written(&self, txn: TxnId) -> &[KeyId] {
        let Some(end) = self.written_ends.get(txn.index()) else { return &[] };
        let begin = txn.index().checked_sub(1).map_or(0, |before| self.written_ends[before]);
        &self.written[begin..*end]
    }
}

/// The last write of each key by the transaction that is gone through.
#[derive(Default)]
pub(crate) struct LastWrites {
    few: Vec<(KeyId, OpId)>,
    many: FxHashMap<KeyId, OpId>,
}

impl LastWrites {
    pub(crate) fn clear(&mut self) {
        self.few.clear();
        // Clearing a map takes as long as it was ever large: large ones are left behind.
        if !self.many.is_empty() {
            self.many = FxHashMap::default();
        }
    }

    pub(crate) fn get(&self, key: KeyId) -> Option<OpId> {
        let few = self.few.iter().find(|(other, _)| *other == key).map(|(_, op)| *op);
        few.or_else(|| self.many.get(&key).copied())
    }

    pub(crate) fn replace(&mut self, key: KeyId, write: OpId) -> Option<OpId> {
        if let Some((_, last)) = self.few.iter_mut().find(|(other, _)| *other == key) {
            return Some(std::mem::replace(last, write));
        }
        if self.few.len() < FEW {
            self.few.push((key, write));
            return None;
        }
        self.many.insert(key, write)
    }
}
