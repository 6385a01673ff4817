//! Which nodes reach which, as the latest member of every chain that does.

use super::chains::Chains;
use super::graph::Graph;

/// Reachability in an acyclic graph.
pub(crate) struct Reach<'c> {
    chains: &'c Chains,
    /// Per node and chain, one more than the position of the last member that reaches the node;
    /// zero if none does.
    latest: Vec<u32>,
}

impl<'c> Reach<'c> {
    /// Works it out in a topological order.
    pub(crate) fn new(chains: &'c Chains, graph: &Graph, order: &[u32]) -> Self {
        let width = chains.len();
        let mut latest = vec![0u32; order.len() * width];
        let mut row = vec![0u32; width];
        for node in order {
            let Some((chain, position)) = chains.place_of(*node) else { continue };
            row.fill(0);
            for before in graph.before(*node) {
                let start = *before as usize * width;
                let other = &latest[start..start + width];
                row.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
            }
            row[chain as usize] = position + 1;
            let start = *node as usize * width;
            latest[start..start + width].copy_from_slice(&row);
        }
        Reach { chains, latest }
    }

    /// Per chain, how many members reach a node, itself included.
    #[inline]
    pub(crate) fn row(&self, node: u32) -> &[u32] {
        let width = self.chains.len();
        &self.latest[node as usize * width..(node as usize + 1) * width]
    }

    /// Whether there is a path, possibly an empty one.
    #[inline]
    pub(crate) fn reaches(&self, from: u32, to: u32) -> bool {
        let (chain, position) = self.chains.at(from);
        self.row(to)[chain as usize] > position
    }
}
