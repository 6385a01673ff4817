//! Chains of transactions of which each happens before the next. A vector clock has one entry per chain.

use isolario_model::TxnId;

use crate::graph::{Chains, Rows};
use crate::resolved::Dependencies;

/// A cover of the kept transactions by chains, and the members of each.
pub(crate) struct TxnChains {
    chains: Chains,
    /// Per chain, its members in order.
    pub(crate) members: Rows<TxnId>,
}

impl TxnChains {
    /// The sessions; or, without session order, paths of reads.
    pub(crate) fn new(dependencies: &Dependencies<'_>, order: &[u32]) -> Self {
        let is_kept = |txn: TxnId| dependencies.reads.is_kept(txn);
        let place = |chains: &mut Chains, txn: TxnId, chain, position| {
            chains.place(txn.0, chain, position);
        };
        let chains = if dependencies.session_order {
            let history = dependencies.history;
            Chains::of_sessions(history, history.txn_count(), is_kept, place)
        } else {
            Chains::of_paths(dependencies, order, |txn| is_kept(TxnId(txn)))
        };
        // In topological order, which every chain follows.
        let placed = order.iter().filter_map(|txn| {
            let (chain, _) = chains.place_of(*txn)?;
            Some((chain, TxnId(*txn)))
        });
        let members = Rows::group(chains.len(), placed);
        TxnChains { chains, members }
    }

    /// Number of chains.
    pub(crate) fn len(&self) -> usize {
        self.chains.len()
    }

    /// The chain of a kept transaction.
    #[inline]
    pub(crate) fn chain_of(&self, txn: TxnId) -> u32 {
        self.chains.at(txn.0).0
    }

    /// Its position in the chain, counted from zero.
    #[inline]
    pub(crate) fn position(&self, txn: TxnId) -> u32 {
        self.chains.at(txn.0).1
    }

    /// The members of a chain, in order.
    pub(crate) fn members(&self, chain: usize) -> &[TxnId] {
        self.members.get(chain)
    }
}
