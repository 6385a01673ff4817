//! Why a polygraph has no order: cycles that close every case.
//!
//! A cycle may run along edges of alternatives that saturation had to take. Each of those rests on
//! the cycles that the other alternatives of its choice close with what was settled in earlier
//! rounds, so these belong to the argument, too.

use std::collections::{BTreeSet, VecDeque};

use super::CycleEdge;
use crate::strong::problem::{Arc, Problem};
use crate::strong::saturate::Settled;

/// Where an edge comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Known,
    /// Saturation took an alternative, by its place in the list of those.
    Forced(u32),
    /// An alternative that the search or a case takes.
    Chosen(u32),
}

type Caused = (Arc, Cause);

pub(super) struct Argument<'a> {
    problem: &'a Problem,
    settled: &'a Settled,
    /// The settled edges from every node.
    edges: Vec<Vec<(u32, Cause)>>,
}

impl<'a> Argument<'a> {
    pub(super) fn new(problem: &'a Problem, settled: &'a Settled) -> Self {
        let mut edges: Vec<Vec<(u32, Cause)>> = vec![Vec::new(); problem.nodes];
        for (from, to) in &problem.known {
            edges[*from as usize].push((*to, Cause::Known));
        }
        for ((from, to), taken) in &settled.forced.arcs {
            edges[*from as usize].push((*to, Cause::Forced(*taken)));
        }
        Argument { problem, settled, edges }
    }

    /// From a cycle of settled edges, given by its nodes.
    pub(super) fn of_nodes(&self, cycle: &[u32]) -> Vec<Vec<CycleEdge>> {
        let next = cycle.iter().cycle().skip(1);
        let caused = cycle.iter().zip(next).filter_map(|(from, to)| {
            let same = self.edges[*from as usize].iter().filter(|(other, _)| other == to);
            Some(((*from, *to), same.map(|(_, cause)| *cause).min()?))
        });
        self.whole(vec![caused.collect()])
    }

    /// From cycles that a search found, given by the edges of choices on them.
    pub(super) fn of_choices(&self, cycles: Vec<Vec<(Arc, u32)>>) -> Vec<Vec<CycleEdge>> {
        let completed = cycles.into_iter().map(|cycle| {
            let mut whole: Vec<Caused> = Vec::new();
            for (at, (arc, alternative)) in cycle.iter().enumerate() {
                whole.push((*arc, Cause::Chosen(*alternative)));
                let next = cycle[(at + 1) % cycle.len()].0;
                whole.extend(self.path(arc.1, next.0, u32::MAX).unwrap_or_default());
            }
            whole
        });
        self.whole(completed.collect())
    }

    /// All cycles that some rest on, shortest first.
    fn whole(&self, cycles: Vec<Vec<Caused>>) -> Vec<Vec<CycleEdge>> {
        let mut all = cycles;
        let mut needed: BTreeSet<u32> = all.iter().flatten().filter_map(taken).collect();
        // An alternative rests on those of earlier rounds, which come before it in the list.
        while let Some(place) = needed.pop_last() {
            for cycle in self.rejections(place) {
                needed.extend(cycle.iter().filter_map(taken));
                all.push(cycle);
            }
        }
        let told = |cycle: &Vec<Caused>| cycle.iter().map(|step| self.told(*step)).collect();
        let mut told: Vec<Vec<CycleEdge>> = all.iter().map(told).collect();
        told.sort_by_key(Vec::len);
        told
    }

    fn told(&self, (arc, cause): Caused) -> CycleEdge {
        match cause {
            Cause::Known => (arc, None),
            Cause::Forced(place) => (arc, Some(self.settled.forced.alternatives[place as usize].0)),
            Cause::Chosen(alternative) => (arc, Some(alternative)),
        }
    }

    /// The cycles that the other alternatives close than one that was taken.
    fn rejections(&self, place: u32) -> Vec<Vec<Caused>> {
        let (taken, round) = self.settled.forced.alternatives[place as usize];
        let choices = &self.problem.choices;
        let others = choices.alternatives(choices.choice(taken)).filter(|other| *other != taken);
        others.filter_map(|other| self.rejection(other, round)).collect()
    }

    /// A shortest cycle that an alternative closes with what was settled before a round.
    fn rejection(&self, alternative: u32, round: u32) -> Option<Vec<Caused>> {
        let closed = self.problem.choices.arcs(alternative).iter().filter_map(|(from, to)| {
            let mut cycle = vec![((*from, *to), Cause::Chosen(alternative))];
            cycle.extend(self.path(*to, *from, round)?);
            Some(cycle)
        });
        closed.min_by_key(Vec::len)
    }

    /// A shortest path along what was settled before a round.
    fn path(&self, start: u32, end: u32, round: u32) -> Option<Vec<Caused>> {
        let is_settled = |cause: Cause| match cause {
            Cause::Forced(place) => self.settled.forced.alternatives[place as usize].1 < round,
            _ => true,
        };
        let mut came: Vec<Option<Caused>> = vec![None; self.problem.nodes];
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if node == end {
                break;
            }
            for (next, cause) in &self.edges[node as usize] {
                let is_new = *next != start && came[*next as usize].is_none();
                if is_new && is_settled(*cause) {
                    came[*next as usize] = Some(((node, *next), *cause));
                    queue.push_back(*next);
                }
            }
        }
        let mut path = Vec::new();
        let mut node = end;
        while node != start {
            let step = came[node as usize]?;
            path.push(step);
            node = step.0.0;
        }
        path.reverse();
        Some(path)
    }
}

fn taken((_, cause): &Caused) -> Option<u32> {
    match cause {
        Cause::Forced(place) => Some(*place),
        _ => None,
    }
}
