//! The dependencies with more edges: what lists show and what the rule of a level infers.

use isolario_model::{Edge, TxnId};

use super::Dependencies;
use crate::graph::{InEdges, Moments, Rows};
use crate::order::Demand;

/// The inferred edges, and those that lists show, by the transaction they lead into. Reasons are
/// not kept: they are inferred again for the few edges that are reported. There may be nodes beyond
/// the transactions that many edges pass through.
pub(crate) struct Inferred {
    edges: Rows<u32>,
    /// Whether some transaction would have to come before `init`.
    pub(crate) before_init: bool,
}

impl Inferred {
    /// Gathers edges (before, after), in any order.
    pub(crate) fn new(nodes: usize, chunks: &[Vec<Demand>]) -> Self {
        let is_before_init = |(_, after): &&Demand| TxnId(*after).is_init();
        let edges = || chunks.iter().flatten();
        let before_init = edges().any(|edge| is_before_init(&edge));
        let between = edges().filter(|edge| !is_before_init(edge));
        let into = between.map(|(before, after)| (*after, *before));
        Inferred { edges: Rows::group(nodes, into), before_init }
    }
}

impl InEdges for Inferred {
    fn node_count(&self) -> usize {
        self.edges.node_count()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        self.edges.next_in(node, cursor)
    }
}

impl Moments for Inferred {}

/// Session order ∪ write-read ∪ inferred, over the nodes of the inferred edges.
pub(crate) struct Saturated<'a> {
    pub(crate) dependencies: &'a Dependencies<'a>,
    pub(crate) inferred: &'a Inferred,
}

impl Saturated<'_> {
    #[inline]
    fn is_txn(&self, node: u32) -> bool {
        (node as usize) < self.dependencies.node_count()
    }

    /// The edge between two transactions that needs no rule: session order, a read, or a list.
    pub(crate) fn plain_edge(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.dependencies.plain_edge(from, to)
    }
}

/// Set in a cursor that has gone on to the inferred edges. No transaction has that many
/// operations.
const INFERRED: u32 = 1 << 31;

impl InEdges for Saturated<'_> {
    fn node_count(&self) -> usize {
        self.inferred.node_count()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        if *cursor & INFERRED == 0 {
            if self.is_txn(node)
                && let Some(before) = self.dependencies.next_in(node, cursor)
            {
                return Some(before);
            }
            *cursor = INFERRED;
        }
        let mut inner = *cursor & !INFERRED;
        let before = self.inferred.next_in(node, &mut inner);
        *cursor = inner | INFERRED;
        before
    }
}

impl Moments for Saturated<'_> {
    fn begins(&self, node: u32) -> Option<TxnId> {
        self.is_txn(node).then_some(TxnId(node))
    }

    fn ends(&self, node: u32) -> Option<TxnId> {
        self.is_txn(node).then_some(TxnId(node))
    }
}
