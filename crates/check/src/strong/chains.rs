//! Chains: sequences of nodes of which each has an edge or a path to the next.
//!
//! What reaches a node is then one position per chain: the latest of its members that does.

use isolario_model::{Outcome, TxnId};

use super::graph::Graph;
use super::layout::Layout;
use super::problem::Problem;
use crate::resolved::Dependencies;

/// A node outside of every chain: transactions that are not kept.
const NOWHERE: u32 = u32::MAX;

/// A cover of the nodes by chains.
pub(crate) struct Chains {
    chain: Vec<u32>,
    position: Vec<u32>,
    count: u32,
    /// Whether every chain is one node.
    are_single: bool,
}

impl Chains {
    fn none(nodes: usize) -> Self {
        Chains {
            chain: vec![NOWHERE; nodes],
            position: vec![0; nodes],
            count: 0,
            are_single: false,
        }
    }

    fn at_most(self, most: usize) -> Option<Chains> {
        ((self.count as usize) <= most).then_some(self)
    }

    /// Sessions that are ordered; none if there are more than `most`.
    pub(crate) fn of_sessions(
        dependencies: &Dependencies<'_>,
        problem: &Problem,
        most: usize,
    ) -> Option<Chains> {
        let mut chains = Chains::none(problem.nodes);
        let (history, layout) = (dependencies.history, problem.layout);
        for session in history.sessions() {
            let (chain, mut next) = (chains.open(), 0);
            for txn in history.session_txns(session) {
                let may_be_there = problem.sources.maybe().binary_search(&txn).is_ok();
                if !dependencies.reads.is_kept(txn) && !may_be_there {
                    continue;
                }
                if history.outcome(txn) == Outcome::Committed {
                    chains.place_txn(layout, txn, chain, next);
                    next += 1;
                } else {
                    // Nothing follows a transaction of unknown outcome.
                    let own = chains.open();
                    chains.place_txn(layout, txn, own, 0);
                }
            }
        }
        if !problem.moments.is_empty() {
            let chain = chains.open();
            let first = layout.txn_nodes() as u32;
            for at in 0..problem.moments.len() as u32 {
                chains.place(first + at, chain, at);
            }
        }
        chains.at_most(most)
    }

    /// Paths, taken greedily in topological order: a node continues the chain of the first of its
    /// predecessors that is the end of one. None if that takes more than `most`.
    pub(crate) fn of_paths(
        graph: &Graph,
        order: &[u32],
        is_kept: impl Fn(u32) -> bool,
        most: usize,
    ) -> Option<Chains> {
        let mut chains = Chains::none(order.len());
        let mut ends: Vec<u32> = Vec::new();
        for node in order.iter().copied().filter(|node| is_kept(*node)) {
            let is_end = |before: &u32| ends[chains.chain[*before as usize] as usize] == *before;
            match graph.before(node).iter().copied().find(is_end) {
                Some(before) => {
                    let chain = chains.chain[before as usize];
                    chains.place(node, chain, chains.position[before as usize] + 1);
                    ends[chain as usize] = node;
                }
                None => {
                    let chain = chains.open();
                    chains.place(node, chain, 0);
                    ends.push(node);
                }
            }
        }
        chains.at_most(most)
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

    fn place_txn(&mut self, layout: Layout, txn: TxnId, chain: u32, position: u32) {
        self.place(layout.start(txn), chain, 2 * position);
        self.place(layout.commit(txn), chain, 2 * position + 1);
    }

    fn open(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    fn place(&mut self, node: u32, chain: u32, position: u32) {
        self.chain[node as usize] = chain;
        self.position[node as usize] = position;
    }

    /// How many chains there are.
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
