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
pub(crate) struct NotInWhole;

impl IdMap<NotInWhole> for Whole<'_> {
    fn op(&self, op: OpId) -> Result<OpId, NotInWhole> {
        self.ops.get(op.index()).copied().ok_or(NotInWhole)
    }

    fn txn(&self, txn: TxnId) -> Result<TxnId, NotInWhole> {
        if txn.is_init() {
            return Ok(txn);
        }
        let first = self.part.txn_ops(txn).next().ok_or(NotInWhole)?;
        Ok(self.history.op_txn(self.op(first)?))
    }

    fn key(&self, key: KeyId) -> Result<KeyId, NotInWhole> {
        self.history.find_key(self.part.key_name(key)).ok_or(NotInWhole)
    }
}
