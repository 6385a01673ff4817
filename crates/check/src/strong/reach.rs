//! Which nodes reach which, as the latest member of every chain that does.
//!
//! Where chains are few, that is a number per node and chain. Where they are many, because nothing
//! orders the transactions of a session, every node is a chain of its own, and a bit is enough.

use super::chains::Chains;
use super::graph::Graph;

/// How often it is asked whether it is over, in nodes.
const LOOK_EVERY: usize = 4_096;

/// Reachability in an acyclic graph.
pub(crate) struct Reach<'c> {
    chains: &'c Chains,
    table: Table,
}

enum Table {
    /// Per node and chain, one more than the position of the last member that reaches the node;
    /// zero if none does.
    Positions(Vec<u32>),
    /// Per node and chain of one, whether it reaches the node.
    Bits(Vec<u64>),
}

/// What reaches one node.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Positions(&'r [u32]),
    Bits(&'r [u64]),
}

impl Row<'_> {
    /// How many members of a chain reach the node, itself included.
    #[inline]
    pub(crate) fn reached(self, chain: u32) -> u32 {
        match self {
            Row::Positions(row) => row[chain as usize],
            Row::Bits(row) => (row[chain as usize / 64] >> (chain % 64)) as u32 & 1,
        }
    }
}

impl<'c> Reach<'c> {
    /// Works it out in a topological order. Where it is over on the way, what comes out is of no use.
    pub(crate) fn new(
        chains: &'c Chains,
        graph: &Graph,
        order: &[u32],
        is_over: &dyn Fn() -> bool,
    ) -> Self {
        let table = match chains.are_single() {
            false => Table::Positions(fill(
                (order, is_over),
                graph,
                chains,
                chains.len(),
                u32::max,
                |row, (chain, position)| row[chain as usize] = position + 1,
            )),
            true => Table::Bits(fill(
                (order, is_over),
                graph,
                chains,
                chains.len().div_ceil(64),
                |mine, theirs| mine | theirs,
                |row, (chain, _)| row[chain as usize / 64] |= 1 << (chain % 64),
            )),
        };
        Reach { chains, table }
    }

    /// How many bytes it takes for so many nodes.
    pub(crate) fn bytes(chains: &Chains, nodes: usize) -> usize {
        match chains.are_single() {
            false => nodes * chains.len() * size_of::<u32>(),
            true => nodes * chains.len().div_ceil(64) * size_of::<u64>(),
        }
    }

    /// What reaches a node.
    #[inline]
    pub(crate) fn row(&self, node: u32) -> Row<'_> {
        match &self.table {
            Table::Positions(table) => {
                let width = self.chains.len();
                Row::Positions(&table[node as usize * width..(node as usize + 1) * width])
            }
            Table::Bits(table) => {
                let width = self.chains.len().div_ceil(64);
                Row::Bits(&table[node as usize * width..(node as usize + 1) * width])
            }
        }
    }

    /// Whether there is a path, possibly an empty one.
    #[inline]
    pub(crate) fn reaches(&self, from: u32, to: u32) -> bool {
        let (chain, position) = self.chains.at(from);
        self.row(to).reached(chain) > position
    }
}

/// A row per node: those of its predecessors joined, and its own place.
fn fill<T: Copy + Default>(
    (order, is_over): (&[u32], &dyn Fn() -> bool),
    graph: &Graph,
    chains: &Chains,
    width: usize,
    join: impl Fn(T, T) -> T,
    mark: impl Fn(&mut [T], (u32, u32)),
) -> Vec<T> {
    let mut table = vec![T::default(); order.len() * width];
    let mut row = vec![T::default(); width];
    for (at, node) in order.iter().enumerate() {
        if at.is_multiple_of(LOOK_EVERY) && is_over() {
            break;
        }
        let Some(place) = chains.place_of(*node) else { continue };
        row.fill(T::default());
        for before in graph.before(*node) {
            let start = *before as usize * width;
            let other = &table[start..start + width];
            row.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = join(*mine, *theirs));
        }
        mark(&mut row, place);
        let start = *node as usize * width;
        table[start..start + width].copy_from_slice(&row);
    }
    table
}
