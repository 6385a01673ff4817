//! A graph in compressed rows, both ways.

use super::problem::Arc;
use crate::graph::{InEdges, Rows};

/// The edges that hold whatever is chosen.
pub(crate) struct Graph {
    outgoing: Rows<u32>,
    incoming: Rows<u32>,
}

impl Graph {
    pub(crate) fn new(nodes: usize, arcs: &[Arc]) -> Self {
        let (outgoing, incoming) = rayon::join(
            || Rows::group(nodes, arcs.iter().copied()),
            || Rows::group(nodes, arcs.iter().map(|(from, to)| (*to, *from))),
        );
        Graph { outgoing, incoming }
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.outgoing.bytes() + self.incoming.bytes()
    }

    /// Where the edges from a node lead.
    #[inline]
    pub(crate) fn after(&self, node: u32) -> &[u32] {
        self.outgoing.get(node as usize)
    }

    /// Where the edges into a node come from.
    #[inline]
    pub(crate) fn before(&self, node: u32) -> &[u32] {
        self.incoming.get(node as usize)
    }
}

impl InEdges for Graph {
    fn node_count(&self) -> usize {
        self.incoming.node_count()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        self.incoming.next_in(node, cursor)
    }
}
