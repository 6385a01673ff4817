//! A part of a graph on its own: nodes renumbered, incoming edges in compressed rows.

use rustc_hash::FxHashMap;

use super::{InEdges, Rows};

/// The nodes of a component and the edges among them.
pub(crate) struct Subgraph {
    /// The nodes, sorted; a node's number in the subgraph is its position here.
    nodes: Vec<u32>,
    predecessors: Rows<u32>,
}

impl Subgraph {
    /// Cuts out the given nodes (sorted).
    pub(crate) fn new(graph: &impl InEdges, nodes: &[u32]) -> Self {
        let number: FxHashMap<u32, u32> =
            nodes.iter().enumerate().map(|(at, node)| (*node, at as u32)).collect();
        let mut predecessors = Rows::default();
        let mut row: Vec<u32> = Vec::new();
        for node in nodes {
            row.extend(graph.predecessors(*node).filter_map(|before| number.get(&before)));
            row.sort_unstable();
            row.dedup();
            predecessors.push(row.drain(..));
        }
        Subgraph { nodes: nodes.to_vec(), predecessors }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of a node of the whole graph.
    pub(crate) fn number(&self, node: u32) -> Option<u32> {
        self.nodes.binary_search(&node).ok().map(|at| at as u32)
    }

    /// The node of the whole graph behind a number.
    pub(crate) fn node(&self, number: u32) -> u32 {
        self.nodes[number as usize]
    }
}

/// Breadth-first search against the direction of the edges, again and again from different nodes
/// without clearing anything.
pub(crate) struct Search<'g> {
    graph: &'g Subgraph,
    /// The next node on the way to the target, valid where the stamp is the current one.
    toward: Vec<u32>,
    stamp: Vec<u32>,
    round: u32,
    queue: Vec<u32>,
    /// How many edges all searches together have looked at.
    pub(crate) edges_seen: usize,
}

impl<'g> Search<'g> {
    pub(crate) fn new(graph: &'g Subgraph) -> Self {
        Search {
            graph,
            toward: vec![0; graph.len()],
            stamp: vec![0; graph.len()],
            round: 0,
            queue: Vec::new(),
            edges_seen: 0,
        }
    }

    /// The shortest path of at least one edge and at most `limit` edges from a node for which
    /// `is_start` holds to `target`, both ends included; all in the subgraph's numbers.
    pub(crate) fn path_to(
        &mut self,
        target: u32,
        limit: usize,
        is_start: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        self.round += 1;
        self.queue.clear();
        self.queue.push(target);
        let (mut at, mut length, mut level_ends) = (0, 1, 1);
        while at < self.queue.len() && length <= limit {
            let node = self.queue[at];
            at += 1;
            for before in self.graph.predecessors.get(node as usize) {
                self.edges_seen += 1;
                if is_start(*before) {
                    return Some(self.path(*before, node, target));
                }
                if *before != target && self.stamp[*before as usize] != self.round {
                    self.stamp[*before as usize] = self.round;
                    self.toward[*before as usize] = node;
                    self.queue.push(*before);
                }
            }
            if at == level_ends {
                length += 1;
                level_ends = self.queue.len();
            }
        }
        None
    }

    fn path(&self, start: u32, second: u32, target: u32) -> Vec<u32> {
        let mut path = vec![start];
        let mut node = second;
        while node != target {
            path.push(node);
            node = self.toward[node as usize];
        }
        path.push(target);
        path
    }
}
