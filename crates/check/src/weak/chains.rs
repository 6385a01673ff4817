//! Chains: sequences of transactions of which each happens before the next.
//!
//! A vector clock has one entry per chain. Sessions are chains; a kept transaction of unknown
//! outcome is one of its own, since nothing follows it in its session.

use std::ops::Range;

use isolario_model::{Outcome, TxnId};

use crate::graph::{InEdges, Rows};
use crate::resolved::Dependencies;

/// Where a transaction that is not kept has its place.
const NOWHERE: u32 = u32::MAX;

/// A cover of the kept transactions by chains.
pub(crate) struct Chains {
    chain_of: Vec<u32>,
    position: Vec<u32>,
    members: Rows<TxnId>,
}

impl Chains {
    /// The sessions; or, without session order, paths of reads, taken greedily in topological
    /// order: a transaction continues the chain of the first writer it read from that is the end
    /// of one.
    pub(crate) fn new(dependencies: &Dependencies<'_>, order: &[u32]) -> Self {
        let txns = dependencies.history.txn_count();
        let mut chains = Chains {
            chain_of: vec![NOWHERE; txns],
            position: vec![0; txns],
            members: Rows::default(),
        };
        let count = if dependencies.session_order {
            chains.assign_sessions(dependencies)
        } else {
            chains.assign_paths(dependencies, order)
        };
        // In topological order, which every chain follows.
        let places = order.iter().map(|txn| (chains.chain_of[*txn as usize], TxnId(*txn)));
        let members = Rows::group(count as usize, places.filter(|(chain, _)| *chain != NOWHERE));
        chains.members = members;
        chains
    }

    fn assign_sessions(&mut self, dependencies: &Dependencies<'_>) -> u32 {
        let history = dependencies.history;
        let mut count = history.session_count() as u32;
        for session in history.sessions() {
            let mut next = 0;
            for txn in history.session_txns(session) {
                if !dependencies.reads.is_kept(txn) {
                    continue;
                }
                if history.outcome(txn) == Outcome::Committed {
                    self.place(txn.0, session.0, next);
                    next += 1;
                } else {
                    self.place(txn.0, count, 0);
                    count += 1;
                }
            }
        }
        count
    }

    fn assign_paths(&mut self, dependencies: &Dependencies<'_>, order: &[u32]) -> u32 {
        let mut tails: Vec<u32> = Vec::new();
        for txn in order.iter().copied().filter(|txn| dependencies.reads.is_kept(TxnId(*txn))) {
            let is_tail = |before: &u32| {
                let chain = self.chain_of[*before as usize];
                chain != NOWHERE && tails[chain as usize] == *before
            };
            match dependencies.predecessors(txn).find(is_tail) {
                Some(tail) => {
                    let chain = self.chain_of[tail as usize];
                    self.place(txn, chain, self.position[tail as usize] + 1);
                    tails[chain as usize] = txn;
                }
                None => {
                    self.place(txn, tails.len() as u32, 0);
                    tails.push(txn);
                }
            }
        }
        tails.len() as u32
    }

    fn place(&mut self, txn: u32, chain: u32, position: u32) {
        self.chain_of[txn as usize] = chain;
        self.position[txn as usize] = position;
    }

    /// How many chains there are.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The chain of a kept transaction.
    #[inline]
    pub(crate) fn chain_of(&self, txn: TxnId) -> u32 {
        self.chain_of[txn.index()]
    }

    /// Its position in the chain, counted from zero.
    #[inline]
    pub(crate) fn position(&self, txn: TxnId) -> u32 {
        self.position[txn.index()]
    }

    /// The members of a chain, in order.
    pub(crate) fn members(&self, chain: usize) -> &[TxnId] {
        self.members.get(chain)
    }

    /// Where a chain's members are among [`Chains::all_members`].
    pub(crate) fn span(&self, chain: usize) -> Range<usize> {
        self.members.span(chain)
    }

    /// The members of all chains, one chain after the other.
    pub(crate) fn all_members(&self) -> &[TxnId] {
        self.members.entries()
    }
}
