//! A graph in compressed rows, both ways.

use super::problem::Arc;
use crate::graph::InEdges;

/// The edges that hold whatever is chosen.
pub(crate) struct Graph {
    outgoing: Rows,
    incoming: Rows,
}

/// Neighbours of every node, those of a node together.
struct Rows {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Rows {
    fn new(
        nodes: usize,
        arcs: &[Arc],
        from: impl Fn(&Arc) -> u32,
        to: impl Fn(&Arc) -> u32,
    ) -> Self {
        let mut starts = vec![0u32; nodes + 2];
        arcs.iter().for_each(|arc| starts[from(arc) as usize + 2] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut targets = vec![0u32; arcs.len()];
        for arc in arcs {
            let place = &mut starts[from(arc) as usize + 1];
            targets[*place as usize] = to(arc);
            *place += 1;
        }
        starts.pop();
        Rows { starts, nodes: targets }
    }

    #[inline]
    fn of(&self, node: u32) -> &[u32] {
        let (start, end) = (self.starts[node as usize], self.starts[node as usize + 1]);
        &self.nodes[start as usize..end as usize]
    }
}

impl Graph {
    pub(crate) fn new(nodes: usize, arcs: &[Arc]) -> Self {
        let (outgoing, incoming) = rayon::join(
            || Rows::new(nodes, arcs, |arc| arc.0, |arc| arc.1),
            || Rows::new(nodes, arcs, |arc| arc.1, |arc| arc.0),
        );
        Graph { outgoing, incoming }
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> usize {
        let rows = |rows: &Rows| (rows.starts.len() + rows.nodes.len()) * size_of::<u32>();
        rows(&self.outgoing) + rows(&self.incoming)
    }

    /// Where the edges from a node lead.
    #[inline]
    pub(crate) fn after(&self, node: u32) -> &[u32] {
        self.outgoing.of(node)
    }

    /// Where the edges into a node come from.
    #[inline]
    pub(crate) fn before(&self, node: u32) -> &[u32] {
        self.incoming.of(node)
    }
}

impl InEdges for Graph {
    fn node_count(&self) -> usize {
        self.incoming.starts.len() - 1
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let found = self.before(node).get(*cursor as usize).copied();
        *cursor += 1;
        found
    }
}
