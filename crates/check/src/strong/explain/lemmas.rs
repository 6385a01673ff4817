//! Settled orders of versions, each with the cycle that the opposite closes.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::CycleArc;
use super::arcs::{Arcs, SEEN};
use crate::resolved::KnownBy;
use crate::strong::problem::{Arc, Precedes, Problem};
use crate::strong::saturate::Settled;

/// Why an edge of a cycle is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Clients saw it.
    Seen,
    /// By an order of versions that a read of the later writer shows.
    Read(Precedes),
    /// By an order of versions that is given.
    Given(Precedes, KnownBy),
    /// By an order of versions that is assumed.
    Assumed(Precedes),
    /// By an order of versions that an earlier lemma settled.
    Lemma(usize),
}

/// An order of two versions, and the cycle that the opposite closes.
pub(super) struct Lemma {
    pub(super) precedes: Precedes,
    pub(super) cycle: Vec<(Arc, Cause)>,
}

/// What a set of lemmas leads to.
pub(super) enum Refuted {
    /// A cycle that assumes nothing.
    Cycle(Vec<(Arc, Cause)>),
    /// Cycles whose assumptions leave no case.
    Cases(Vec<Vec<(Arc, Cause)>>),
}

pub(super) struct Lemmas<'a> {
    problem: &'a Problem,
    settled: &'a Settled,
    arcs: &'a Arcs<'a>,
    /// Each rests on those before it alone.
    pub(super) list: Vec<Lemma>,
    by_fact: FxHashMap<u32, usize>,
    by_choice: FxHashMap<Precedes, usize>,
}

impl<'a> Lemmas<'a> {
    pub(super) fn new(problem: &'a Problem, settled: &'a Settled, arcs: &'a Arcs<'a>) -> Self {
        Lemmas {
            problem,
            settled,
            arcs,
            list: Vec::new(),
            by_fact: FxHashMap::default(),
            by_choice: FxHashMap::default(),
        }
    }

    /// The lemmas that cycles of settled edges and of choices rest on, and what they lead to.
    pub(super) fn build(&mut self, cycles: Vec<Vec<CycleArc>>) -> Refuted {
        let cycles: Vec<Vec<CycleArc>> =
            cycles.into_iter().map(|cycle| self.completed(cycle)).collect();
        self.settle_facts(&cycles);
        let mut open = cycles;
        // What one cycle alone rules out is a lemma, and what is left to assume shrinks.
        loop {
            let before = open.len();
            let mut still_open = Vec::new();
            for cycle in open {
                match self.assumptions(&cycle).as_slice() {
                    [] => return Refuted::Cycle(self.caused(&cycle)),
                    [one] => self.settle(one.opposite(), &cycle),
                    _ => still_open.push(cycle),
                }
            }
            open = still_open;
            if open.len() == before {
                return Refuted::Cases(open.iter().map(|cycle| self.caused(cycle)).collect());
            }
        }
    }

    /// How many edges a cycle has with those of all lemmas, and how deep they are nested.
    pub(super) fn cost(&self, cycle: &[(Arc, Cause)]) -> (usize, usize) {
        let mut costs: Vec<(usize, usize)> = Vec::with_capacity(self.list.len());
        let of = |cycle: &[(Arc, Cause)], costs: &[(usize, usize)]| {
            let (mut length, mut depth) = (cycle.len(), 0);
            for (_, cause) in cycle {
                if let Cause::Lemma(lemma) = cause {
                    length = length.saturating_add(costs[*lemma].0);
                    depth = depth.max(costs[*lemma].1 + 1);
                }
            }
            (length, depth)
        };
        for lemma in &self.list {
            let cost = of(&lemma.cycle, &costs);
            costs.push(cost);
        }
        let (length, depth) = of(cycle, &costs);
        if depth > super::DEEPEST { (usize::MAX, depth) } else { (length, depth) }
    }

    /// A cycle of choices with shortest ways between their edges. The settled edges of a cycle that
    /// has no choices are its own.
    fn completed(&self, cycle: Vec<CycleArc>) -> Vec<CycleArc> {
        if cycle.iter().any(|(_, choice)| choice.is_none()) {
            return cycle;
        }
        let mut whole = Vec::new();
        for (at, step) in cycle.iter().enumerate() {
            whole.push(*step);
            let (from, to) = (step.0.1, cycle[(at + 1) % cycle.len()].0.0);
            let way = self.arcs.path(from, |node| node == to, u32::MAX - 1).unwrap_or_default();
            whole.extend(way.into_iter().map(|arc| (arc, None)));
        }
        whole
    }

    /// Lemmas for all facts that the cycles rest on.
    fn settle_facts(&mut self, cycles: &[Vec<CycleArc>]) {
        let mut needed: BTreeSet<u32> = BTreeSet::new();
        let add = |cycle: &[CycleArc], needed: &mut BTreeSet<u32>| {
            let settled = cycle.iter().filter(|(_, choice)| choice.is_none());
            needed.extend(settled.filter_map(|(arc, _)| self.lemma_needed(*arc)));
        };
        cycles.iter().for_each(|cycle| add(cycle, &mut needed));
        let mut found: Vec<(u32, Vec<CycleArc>)> = Vec::new();
        while let Some(fact) = needed.pop_last() {
            let cycle = self.justification(fact);
            add(&cycle, &mut needed);
            found.push((fact, cycle));
        }
        for (fact, cycle) in found.into_iter().rev() {
            let precedes = self.settled.facts[fact as usize];
            let cycle = self.caused(&cycle);
            self.by_fact.insert(fact, self.list.len());
            self.by_choice.insert(precedes, self.list.len());
            self.list.push(Lemma { precedes, cycle });
        }
    }

    /// The fact that an edge needs a lemma for.
    fn lemma_needed(&self, arc: Arc) -> Option<u32> {
        let fact = self.arcs.fact(arc).filter(|fact| *fact != SEEN)? - 1;
        let is_given = (fact as usize) < self.settled.given.len();
        (!is_given && !self.is_read(self.settled.facts[fact as usize])).then_some(fact)
    }

    /// Whether the later writer had read the earlier version.
    fn is_read(&self, precedes: Precedes) -> bool {
        let versions = &self.problem.versions;
        let second = versions.writer(precedes.second);
        versions.readers(precedes.first).iter().any(|reader| reader.txn == second)
    }

    /// The cycle that the opposite of a fact closes with what was settled in earlier rounds.
    fn justification(&self, fact: u32) -> Vec<CycleArc> {
        let precedes = self.settled.facts[fact as usize];
        let round = self.settled.rounds.partition_point(|end| *end <= fact);
        let below = if round == 0 { 0 } else { self.settled.rounds[round - 1] };
        let opposite = precedes.opposite();
        let arcs: Vec<Arc> = self.problem.arcs(opposite).collect();
        let mut best: Option<Vec<CycleArc>> = None;
        // All edges of an alternative lead to the same two nodes, that between the writers to the
        // first.
        for arcs in [&arcs[..1], &arcs[1..]] {
            let Some((_, begin)) = arcs.first().copied() else { continue };
            let is_end = |node: u32| arcs.iter().any(|(from, _)| *from == node);
            let Some(path) = self.arcs.path(begin, is_end, below) else { continue };
            if best.as_ref().is_none_or(|best| path.len() + 1 < best.len()) {
                let end = path.last().map_or(begin, |(_, to)| *to);
                let mut cycle = vec![((end, begin), Some(opposite))];
                cycle.extend(path.into_iter().map(|arc| (arc, None)));
                best = Some(cycle);
            }
        }
        best.unwrap_or_default()
    }

    /// What a cycle assumes beyond the lemmas.
    fn assumptions(&self, cycle: &[CycleArc]) -> Vec<Precedes> {
        let mut open: Vec<Precedes> = cycle.iter().filter_map(|(_, choice)| *choice).collect();
        open.retain(|choice| !self.by_choice.contains_key(choice) && !self.is_read(*choice));
        open.sort_unstable();
        open.dedup();
        open
    }

    fn settle(&mut self, precedes: Precedes, cycle: &[CycleArc]) {
        if !self.by_choice.contains_key(&precedes) {
            let cycle = self.caused(cycle);
            self.by_choice.insert(precedes, self.list.len());
            self.list.push(Lemma { precedes, cycle });
        }
    }

    fn given(&self, fact: u32) -> Option<Cause> {
        let known = self.settled.given.get(fact as usize)?;
        Some(Cause::Given(self.settled.facts[fact as usize], *known))
    }

    /// Whether a cycle or a lemma rests on an order that is stated.
    pub(super) fn rest_on_statements(&self, cycle: &[(Arc, Cause)]) -> bool {
        let rests = |cycle: &[(Arc, Cause)], stated: &[bool]| {
            cycle.iter().any(|(_, cause)| match cause {
                Cause::Given(_, KnownBy::Stated { .. }) => true,
                Cause::Lemma(lemma) => stated[*lemma],
                _ => false,
            })
        };
        let mut stated: Vec<bool> = Vec::with_capacity(self.list.len());
        for lemma in &self.list {
            let is_stated = rests(&lemma.cycle, &stated);
            stated.push(is_stated);
        }
        rests(cycle, &stated)
    }

    fn caused(&self, cycle: &[CycleArc]) -> Vec<(Arc, Cause)> {
        cycle.iter().map(|(arc, choice)| (*arc, self.cause(*arc, *choice))).collect()
    }

    fn cause(&self, arc: Arc, choice: Option<Precedes>) -> Cause {
        let settled = |precedes| match self.is_read(precedes) {
            true => Cause::Read(precedes),
            false => Cause::Assumed(precedes),
        };
        match choice {
            Some(precedes) => match self.by_choice.get(&precedes) {
                Some(lemma) => Cause::Lemma(*lemma),
                None => settled(precedes),
            },
            None => match self.arcs.fact(arc) {
                Some(SEEN) | None => Cause::Seen,
                Some(fact) => match self.by_fact.get(&(fact - 1)) {
                    Some(lemma) => Cause::Lemma(*lemma),
                    None => self
                        .given(fact - 1)
                        .unwrap_or_else(|| settled(self.settled.facts[fact as usize - 1])),
                },
            },
        }
    }
}
