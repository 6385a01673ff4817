//! What a proof refers to, found in the history.

use std::collections::BTreeMap;

use isolario_model::{History, KeyId, OpId, TxnId};

use crate::proof::names::{INIT, Names, POSITION};
use crate::proof::read::node::Node;
use crate::proof::{ProofError, ProofProblem};

/// Finds the transactions, operations and keys of a history by the user's own names.
pub(super) struct References<'h> {
    names: Names<'h>,
    /// Of a part of a history, who stands where in the whole.
    positions: Option<BTreeMap<u64, TxnId>>,
}

impl<'h> References<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        References { names: Names::new(history), positions: None }
    }

    /// Of a part of a history. A name may be that of others, too, so that only positions count.
    pub(super) fn of_part(part: &'h History, positions: BTreeMap<u64, TxnId>) -> Self {
        References { names: Names::without_txns(part), positions: Some(positions) }
    }

    pub(super) fn txn(&self, node: Node<'_>) -> Result<TxnId, ProofError> {
        if node.is_object() {
            let mut fields = node.object()?;
            if let Some(position) = fields.optional(POSITION) {
                fields.finish()?;
                return self.txn_at(position);
            }
        }
        let name = node.value()?;
        self.names.find_txn(name.as_ref()).ok_or_else(|| {
            let shared = if self.names.is_shared(name.as_ref()) { "single " } else { "" };
            not_there(node, format!("{shared}transaction called {name}"))
        })
    }

    /// The transaction at a position, or the initial one.
    fn txn_at(&self, node: Node<'_>) -> Result<TxnId, ProofError> {
        if node.string().is_ok_and(|word| word == INIT) {
            return Ok(TxnId::INIT);
        }
        let Ok(position) = node.unsigned() else {
            return Err(node.expected(format!("a whole number from 0, or \"{INIT}\"")));
        };
        let txn = match &self.positions {
            Some(positions) => positions.get(&position).copied(),
            None => (position < self.names.history.txn_count() as u64)
                .then(|| TxnId::at(position as usize)),
        };
        txn.ok_or_else(|| not_there(node, format!("transaction at position {position}")))
    }

    pub(super) fn op(&self, node: Node<'_>) -> Result<OpId, ProofError> {
        let parts: Vec<_> = node.array()?.collect();
        let [txn, index] = parts[..] else {
            return Err(node.expected("an operation: [transaction, index]"));
        };
        let mut ops = self.names.history.txn_ops(self.txn(txn)?);
        let position = index.unsigned()?;
        let op = usize::try_from(position).ok().and_then(|index| ops.nth(index));
        op.ok_or_else(|| not_there(index, format!("operation {position} in that transaction")))
    }

    /// An operation, or none.
    pub(super) fn optional_op(&self, node: Node<'_>) -> Result<Option<OpId>, ProofError> {
        if node.is_null() { Ok(None) } else { self.op(node).map(Some) }
    }

    pub(super) fn key(&self, node: Node<'_>) -> Result<KeyId, ProofError> {
        let name = node.value()?;
        let key = self.names.history.find_key(name.as_ref());
        key.ok_or_else(|| not_there(node, format!("key {name}")))
    }
}

fn not_there(node: Node<'_>, what: String) -> ProofError {
    node.error(ProofProblem::Missing(what))
}
