//! An argument about a part of a history, as one about the whole.

use isolario_model::{History, IdMap, KeyId, OpId, TxnId};

/// From a part of a history to the whole.
pub(crate) struct Whole<'a> {
    pub(crate) history: &'a History,
    pub(crate) part: &'a History,
    /// Per operation of the part, that of the whole.
    pub(crate) ops: &'a [OpId],
}

/// The whole does not have what the part is about.
pub(crate) struct Missing;

impl IdMap for Whole<'_> {
    type Missing = Missing;

    fn op(&self, op: OpId) -> Result<OpId, Missing> {
        self.ops.get(op.index()).copied().ok_or(Missing)
    }

    fn txn(&self, txn: TxnId) -> Result<TxnId, Missing> {
        if txn.is_init() {
            return Ok(txn);
        }
        let first = self.part.txn_ops(txn).next().ok_or(Missing)?;
        Ok(self.history.op_txn(self.op(first)?))
    }

    fn key(&self, key: KeyId) -> Result<KeyId, Missing> {
        self.history.find_key(self.part.key_name(key)).ok_or(Missing)
    }
}
