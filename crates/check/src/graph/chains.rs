//! Chains: sequences of nodes of which each has an edge or a path to the next.
//!
//! What reaches a node is then one position per chain: the latest of its members that does.

use isolario_model::{History, Outcome, TxnId};

use super::InEdges;

/// The chain of a node outside of every chain: transactions that are not kept.
const NOWHERE: u32 = u32::MAX;

/// A cover of nodes by chains.
pub(crate) struct Chains {
    chain: Vec<u32>,
    position: Vec<u32>,
    count: u32,
    /// Whether every chain is one node.
    are_single: bool,
}

impl Chains {
    fn none(nodes: usize) -> Self {
        let (chain, position) = (vec![NOWHERE; nodes], vec![0; nodes]);
        Chains { chain, position, count: 0, are_single: false }
    }

    /// The transactions of each session, the chains of sessions first. One of unknown outcome is a chain of its
    /// own, since nothing follows it in its session. `place` gives the nodes of a transaction the places that
    /// belong to its position in its chain.
    pub(crate) fn of_sessions(
        history: &History,
        nodes: usize,
        is_kept: impl Fn(TxnId) -> bool,
        place: impl Fn(&mut Chains, TxnId, u32, u32),
    ) -> Chains {
        let mut chains = Chains::none(nodes);
        chains.count = history.session_count() as u32;
        for session in history.sessions() {
            let mut next = 0;
            for txn in history.session_txns(session).filter(|txn| is_kept(*txn)) {
                if history.outcome(txn) == Outcome::Committed {
                    place(&mut chains, txn, session.0, next);
                    next += 1;
                } else {
                    let own = chains.open();
                    place(&mut chains, txn, own, 0);
                }
            }
        }
        chains
    }

    /// Paths, taken greedily in topological order: a node continues the chain of the first of its
    /// predecessors that is the end of one.
    pub(crate) fn of_paths(
        graph: &impl InEdges,
        order: &[u32],
        is_kept: impl Fn(u32) -> bool,
    ) -> Chains {
        let mut chains = Chains::none(order.len());
        let mut ends: Vec<u32> = Vec::new();
        for node in order.iter().copied().filter(|node| is_kept(*node)) {
            let is_end = |before: &u32| {
                let place = chains.place_of(*before);
                place.is_some_and(|(chain, _)| ends[chain as usize] == *before)
            };
            if let Some(before) = graph.predecessors(node).find(is_end) {
                let (chain, position) = chains.at(before);
                chains.place(node, chain, position + 1);
                ends[chain as usize] = node;
            } else {
                let chain = chains.open();
                chains.place(node, chain, 0);
                ends.push(node);
            }
        }
        chains
    }

    /// Every node a chain of its own.
    pub(crate) fn of_nodes(nodes: usize) -> Chains {
        let chain = (0..nodes as u32).collect();
        Chains { chain, position: vec![0; nodes], count: nodes as u32, are_single: true }
    }

    /// Whether every chain is one node.
    pub(crate) fn are_single(&self) -> bool {
        self.are_single
    }

    /// Begins a chain.
    pub(crate) fn open(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    pub(crate) fn place(&mut self, node: u32, chain: u32, position: u32) {
        self.chain[node as usize] = chain;
        self.position[node as usize] = position;
    }

    /// Number of chains.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The chain of a node and its position there; none for transactions that are not kept.
    #[inline]
    pub(crate) fn place_of(&self, node: u32) -> Option<(u32, u32)> {
        let chain = self.chain[node as usize];
        (chain != NOWHERE).then(|| (chain, self.position[node as usize]))
    }

    /// As [`Chains::place_of`], of a node that is known to be in a chain.
    #[inline]
    pub(crate) fn at(&self, node: u32) -> (u32, u32) {
        (self.chain[node as usize], self.position[node as usize])
    }
}
