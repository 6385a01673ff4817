//! The settled edges, with what each comes from.

use crate::graph::Rows;
use crate::strong::problem::{Arc, Problem};
use crate::strong::saturate::Settled;

/// Where a settled edge comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// Clients saw it.
    #[default]
    Seen,
    /// A fact: an order of two versions.
    Fact(u32),
    /// The source of a read.
    Read(u32),
}

/// A round that comes after all others.
pub(super) const ANY_ROUND: u32 = u32::MAX;

/// The edges from every node: where they lead, what they come from, and since which round they are
/// there.
pub(super) struct Arcs<'a> {
    problem: &'a Problem,
    targets: Rows<(u32, Origin, u32)>,
}

impl<'a> Arcs<'a> {
    pub(super) fn new(problem: &'a Problem, settled: &Settled) -> Self {
        let seen = problem.known.iter().map(|arc| (*arc, Origin::Seen, 0));
        let facts = settled
            .arcs
            .iter()
            .zip(&settled.fact_of)
            .map(|(arc, fact)| (*arc, Origin::Fact(*fact), settled.round_of(*fact)));
        let since = |read| settled.pruned.source(read).map_or(0, |(_, since)| since);
        let reads =
            settled.pruned.arcs.iter().map(|(arc, read)| (*arc, Origin::Read(*read), since(*read)));
        let targets = seen
            .chain(facts)
            .chain(reads)
            .map(|((from, to), origin, round)| (from, (to, origin, round)));
        Arcs { problem, targets: Rows::group(problem.nodes, targets) }
    }

    fn after(&self, node: u32) -> &[(u32, Origin, u32)] {
        self.targets.get(node as usize)
    }

    /// What an edge comes from: the earliest if there are several.
    pub(super) fn origin(&self, (from, to): Arc) -> Option<Origin> {
        let same = self.after(from).iter().filter(|(other, ..)| *other == to);
        same.map(|(_, origin, round)| (*round, *origin)).min().map(|(_, origin)| origin)
    }

    /// A shortest path from one node to any other for which `is_end` holds, along edges that
    /// clients saw if possible, else also along those that were settled before a round.
    pub(super) fn path(
        &self,
        start: u32,
        is_end: impl Fn(u32) -> bool,
        round: u32,
    ) -> Option<Vec<Arc>> {
        self.bounded_path(start, &is_end, 0).or_else(|| self.bounded_path(start, &is_end, round))
    }

    /// Which nodes can be reached from one along edges that were settled before a round.
    pub(super) fn reached(&self, start: u32, round: u32) -> Vec<bool> {
        let mut is_reached = vec![false; self.problem.nodes];
        is_reached[start as usize] = true;
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            for (next, origin, since) in self.after(node) {
                let is_settled = *origin == Origin::Seen || *since < round;
                if is_settled && !std::mem::replace(&mut is_reached[*next as usize], true) {
                    stack.push(*next);
                }
            }
        }
        is_reached
    }

    fn bounded_path(
        &self,
        start: u32,
        is_end: &dyn Fn(u32) -> bool,
        round: u32,
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
            for (next, origin, since) in self.after(node) {
                let is_settled = *origin == Origin::Seen || *since < round;
                if is_settled && came_from[*next as usize] == u32::MAX {
                    came_from[*next as usize] = node;
                    queue.push(*next);
                }
            }
        }
        None
    }
}
