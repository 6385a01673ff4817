//! The settled edges, with the fact each comes from.

use crate::graph::Rows;
use crate::strong::problem::{Arc, Problem};
use crate::strong::saturate::Settled;

/// An edge that clients saw.
pub(super) const SEEN: u32 = 0;

/// The edges from every node: where they lead, and 0 or one more than the fact they come from.
pub(super) struct Arcs<'a> {
    problem: &'a Problem,
    targets: Rows<(u32, u32)>,
}

impl<'a> Arcs<'a> {
    pub(super) fn new(problem: &'a Problem, settled: &Settled) -> Self {
        let seen = problem.known.iter().map(|arc| (*arc, SEEN));
        let facts = settled.arcs.iter().zip(&settled.fact_of).map(|(arc, fact)| (*arc, fact + 1));
        let targets = seen.chain(facts).map(|((from, to), fact)| (from, (to, fact)));
        Arcs { problem, targets: Rows::group(problem.nodes, targets) }
    }

    fn after(&self, node: u32) -> &[(u32, u32)] {
        self.targets.get(node as usize)
    }

    /// What an edge comes from: the earliest if there are several.
    pub(super) fn fact(&self, (from, to): Arc) -> Option<u32> {
        let same = self.after(from).iter().filter(|(other, _)| *other == to);
        same.map(|(_, fact)| *fact).min()
    }

    /// A shortest path from one node to any other for which `is_end` holds, along edges that
    /// clients saw if possible, else also along those of facts before `below`.
    pub(super) fn path(
        &self,
        start: u32,
        is_end: impl Fn(u32) -> bool,
        below: u32,
    ) -> Option<Vec<Arc>> {
        self.bounded_path(start, &is_end, 1)
            .or_else(|| self.bounded_path(start, &is_end, below + 1))
    }

    fn bounded_path(
        &self,
        start: u32,
        is_end: &dyn Fn(u32) -> bool,
        below: u32,
    ) -> Option<Vec<Arc>> {
        let mut came_from = vec![u32::MAX; self.problem.nodes];
        came_from[start as usize] = start;
        let mut queue = vec![start];
        let mut at = 0;
        while at < queue.len() {
            let node = queue[at];
            at += 1;
            if is_end(node) {
                let mut path = Vec::new();
                let mut to = node;
                while to != start {
                    let from = came_from[to as usize];
                    path.push((from, to));
                    to = from;
                }
                path.reverse();
                return Some(path);
            }
            for (next, fact) in self.after(node) {
                if *fact < below && came_from[*next as usize] == u32::MAX {
                    came_from[*next as usize] = node;
                    queue.push(*next);
                }
            }
        }
        None
    }
}
