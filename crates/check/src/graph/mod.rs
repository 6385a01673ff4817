//! Graph kernels: iterative, deterministic, and without a graph in memory where the history
//! itself is one.

mod chains;
mod cycle;
mod leading_back;
mod order;
mod realtime;
mod rows;
mod scc;
mod split;
mod subgraph;
mod topo;

pub(crate) use chains::Chains;
pub(crate) use cycle::{BUDGET, Closing, shortest_closed, shortest_cycle};
pub(crate) use leading_back::leading_back;
pub(crate) use order::{Moved, Order, cut, joined, places};
pub(crate) use realtime::{InTime, Moments, RealTime, agrees, interval, precedes};
pub(crate) use rows::Rows;
pub(crate) use scc::components;
pub(crate) use split::{Split, commit_of, is_commit, points, start_of, txn_of};
pub(crate) use subgraph::{Search, Subgraph};
pub(crate) use topo::topological_order;

/// A graph given by the edges that lead into each node.
///
/// Histories say where each transaction's reads came from, so the edges *into* a transaction can
/// be read off its operations; the edges out of it would have to be built.
pub(crate) trait InEdges {
    /// How many nodes there are.
    fn node_count(&self) -> usize;

    /// The next predecessor of a node. `cursor` begins at zero and is the graph's own from then
    /// on; nodes may come more than once.
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32>;

    /// All predecessors of a node.
    fn predecessors(&self, node: u32) -> impl Iterator<Item = u32> {
        let mut cursor = 0;
        std::iter::from_fn(move || self.next_in(node, &mut cursor))
    }
}
