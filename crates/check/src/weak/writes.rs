//! Which keys a transaction writes, asked from whichever side is smaller.

use isolario_model::{History, KeyId, OpKind, TxnId};
use rustc_hash::FxHashSet;

/// Transactions with more operations than this are asked by key, not walked through.
const LARGE: usize = 64;

/// The write sets of all transactions. Those of small ones are their operations; for large ones
/// there is one table of (transaction, key), so that an intersection costs the smaller of the two
/// sets: that is what bounds read committed and read atomic by n^1.5 (AWDIT, Lemma 3.4).
pub(crate) struct WriteSets<'a> {
    history: &'a History,
    large: FxHashSet<(TxnId, KeyId)>,
}

impl<'a> WriteSets<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let mut large = FxHashSet::default();
        for txn in history.txns().filter(|txn| history.op_range(*txn).len() > LARGE) {
            large.extend(keys_written(history, txn).map(|key| (txn, key)));
        }
        WriteSets { history, large }
    }

    /// The keys a transaction writes, in program order; a key written twice comes twice.
    pub(crate) fn of(&self, txn: TxnId) -> impl Iterator<Item = KeyId> {
        keys_written(self.history, txn)
    }

    /// Calls `each` with the keys that `txn` writes and that are among `keys`, once per key where
    /// `txn` writes it once. `contains` says whether a key is among `keys`.
    #[inline]
    pub(crate) fn for_each_common(
        &self,
        txn: TxnId,
        keys: &[KeyId],
        contains: impl Fn(KeyId) -> bool,
        mut each: impl FnMut(KeyId),
    ) {
        if keys.is_empty() {
            return;
        }
        let ops = self.history.op_range(txn).len();
        if ops > LARGE && keys.len() < ops {
            let written = |key: &&KeyId| self.large.contains(&(txn, **key));
            keys.iter().filter(written).for_each(|key| each(*key));
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
