//! What was settled, each with the cycle that the opposite closes: orders of versions, and that a read
//! did not see a version.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::CycleArc;
use super::arcs::{ANY_ROUND, Arcs, Origin};
use crate::resolved::{KnownBy, Version};
use crate::strong::problem::{Arc, Precedes, Problem, Under};
use crate::strong::saturate::Settled;
use crate::strong::search::Refutation;
use crate::strong::sources::{Candidate, OpenRead};

/// Which order of versions an edge of a cycle rests on, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// None: clients saw the edge, or it comes from the source of a read alone.
    Seen,
    /// One that a read of the later writer shows.
    Read(Precedes),
    /// One that is given.
    Given(Precedes, KnownBy),
    /// One that is assumed.
    Assumed(Precedes),
    /// One that an earlier lemma settled.
    Lemma(Precedes, usize),
}

/// An edge of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) arc: Arc,
    pub(super) cause: Cause,
    /// The source of a read that it rests on.
    pub(super) source: Option<Candidate>,
}

/// The cycle that the opposite of something settled closes.
pub(super) struct Lemma {
    pub(super) cycle: Vec<Step>,
    /// The order of versions that it settles, if it settles one.
    settles: Option<Precedes>,
}

/// What a set of lemmas leads to.
pub(super) enum Refuted {
    /// A cycle that assumes nothing.
    Cycle(Vec<Step>),
    /// Cycles whose assumptions leave no case.
    Cases(Vec<Vec<Step>>),
}

/// Something settled. In the order in which it was: by round; in each, sources of reads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    round: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A read did not see a version.
    Gone(Candidate),
    /// An order of two versions.
    Fact(u32),
}

pub(super) struct Lemmas<'a> {
    problem: &'a Problem,
    settled: &'a Settled,
    arcs: &'a Arcs<'a>,
    /// Each rests on those before it alone.
    pub(super) list: Vec<Lemma>,
    by_fact: FxHashMap<u32, usize>,
    by_choice: FxHashMap<Precedes, usize>,
    /// Whether anything rests on the source of a read.
    rests_on_sources: bool,
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
            rests_on_sources: false,
        }
    }

    /// The lemmas that a refutation rests on, and what they lead to. A read that has no candidate left may
    /// be the end of it instead of a cycle.
    pub(super) fn build(&mut self, refutation: Refutation<CycleArc>) -> Refuted {
        let Refutation { cycles, reads } = refutation;
        let cycles: Vec<Vec<CycleArc>> =
            cycles.into_iter().map(|cycle| self.completed(cycle)).collect();
        self.settle(&cycles, &reads);
        if self.rests_on_sources {
            return Refuted::Cases(cycles.iter().map(|cycle| self.caused(cycle)).collect());
        }
        let mut open = cycles;
        // What one cycle alone rules out is a lemma, and what is left to assume shrinks.
        loop {
            let before = open.len();
            let mut still_open = Vec::new();
            for cycle in open {
                match self.assumptions(&cycle).as_slice() {
                    [] => return Refuted::Cycle(self.caused(&cycle)),
                    [one] => self.add_lemma(one.opposite(), &cycle),
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
    pub(super) fn cost(&self, cycle: &[Step]) -> (usize, usize) {
        let mut costs: Vec<(usize, usize)> = Vec::with_capacity(self.list.len());
        let of = |cycle: &[Step], costs: &[(usize, usize)]| {
            let (mut length, mut depth) = (cycle.len(), 0);
            for step in cycle {
                if let Cause::Lemma(_, lemma) = step.cause {
                    length = length.saturating_add(costs[lemma].0);
                    depth = depth.max(costs[lemma].1 + 1);
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
            let way = self.arcs.path(from, |node| node == to, ANY_ROUND).unwrap_or_default();
            whole.extend(way.into_iter().map(|arc| (arc, None)));
        }
        whole
    }

    /// Lemmas for all that the cycles rest on, and for those candidates of reads that are gone.
    fn settle(&mut self, cycles: &[Vec<CycleArc>], reads: &[u32]) {
        let mut needed: BTreeSet<Claim> = BTreeSet::new();
        let mut found: BTreeMap<Claim, Vec<Vec<CycleArc>>> = BTreeMap::new();
        cycles.iter().for_each(|cycle| needed.extend(self.claims(cycle)));
        reads.iter().for_each(|read| needed.extend(self.others_gone(*read)));
        while let Some(claim) = needed.pop_last() {
            let cycles = match claim.what {
                What::Fact(fact) => vec![self.justification(fact, claim.round)],
                What::Gone(candidate) => self.rejection(candidate, claim.round),
            };
            let mut claims: Vec<Claim> =
                cycles.iter().flat_map(|cycle| self.claims(cycle)).collect();
            if let What::Gone(candidate) = claim.what
                && cycles.is_empty()
            {
                claims.extend(self.writer_is_not_there(candidate));
            }
            found.insert(claim, cycles);
            needed.extend(claims.into_iter().filter(|claim| !found.contains_key(claim)));
        }
        self.rests_on_sources = !reads.is_empty()
            || cycles.iter().chain(found.values().flatten()).any(|c| self.uses_source(c));
        for (claim, cycles) in found {
            if let What::Fact(fact) = claim.what {
                self.by_fact.insert(fact, self.list.len());
            }
            for cycle in &cycles {
                // It begins with the edge that is supposed.
                let supposed = cycle.first().and_then(|(_, choice)| *choice);
                let order = supposed.filter(|_| self.settles_order(claim, cycle));
                let settles = order.and_then(|under| under.order).map(Precedes::opposite);
                let cycle = self.caused(cycle);
                if let Some(precedes) = settles {
                    self.by_choice.entry(precedes).or_insert(self.list.len());
                }
                self.list.push(Lemma { cycle, settles });
            }
        }
    }

    /// Whether a cycle of a claim shows an order of versions, rather than what a read did not see.
    fn settles_order(&self, claim: Claim, cycle: &[CycleArc]) -> bool {
        let source = cycle.first().and_then(|(_, choice)| choice.and_then(|under| under.source));
        matches!(claim.what, What::Fact(_)) || source.is_none()
    }

    /// Per lemma, whether it can be told where it is used: it settles an order of versions, and
    /// nothing is supposed but the opposite.
    pub(super) fn plain(&self) -> Vec<bool> {
        let mut plain: Vec<bool> = Vec::with_capacity(self.list.len());
        for lemma in &self.list {
            let is_certain = |step: &Step| match step.cause {
                _ if step.source.is_some() => false,
                Cause::Seen | Cause::Read(_) | Cause::Given(..) => true,
                Cause::Assumed(order) => lemma.settles == Some(order.opposite()),
                Cause::Lemma(_, other) => plain[other],
            };
            let is_short = lemma.cycle.len() <= super::SHORT;
            plain.push(lemma.settles.is_some() && is_short && lemma.cycle.iter().all(is_certain));
        }
        plain
    }

    /// What a cycle of settled edges rests on.
    fn claims(&self, cycle: &[CycleArc]) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (arc, choice) in cycle {
            if choice.is_none()
                && let Some(Origin::Fact(fact)) = self.arcs.origin(*arc)
                && self.needs_lemma(fact)
            {
                let round = self.settled.round_of(fact);
                claims.push(Claim { round, what: What::Fact(fact) });
            }
            if let Some(source) = self.source(*arc, *choice) {
                claims.extend(self.others_gone(self.problem.sources.read_of(source)));
            }
        }
        claims
    }

    fn uses_source(&self, cycle: &[CycleArc]) -> bool {
        cycle.iter().any(|(arc, choice)| self.source(*arc, *choice).is_some())
    }

    /// The source of a read that an edge rests on.
    fn source(&self, arc: Arc, choice: Option<Under>) -> Option<Candidate> {
        if let Some(under) = choice {
            return under.source;
        }
        let pruned = &self.settled.pruned;
        match self.arcs.origin(arc)? {
            Origin::Seen => None,
            Origin::Read(read) => pruned.source(read).map(|(source, _)| source),
            Origin::Fact(fact) => self.reader_of(arc, self.settled.facts[fact as usize]),
        }
    }

    /// The read whose source makes an edge of an order of versions; none if it needs none. Of several it is
    /// the one whose source was known first: that of another may rest on this very edge.
    fn reader_of(&self, arc: Arc, precedes: Precedes) -> Option<Candidate> {
        if self.problem.arcs(precedes).any(|other| other == arc) {
            return None;
        }
        let (sources, pruned) = (&self.problem.sources, &self.settled.pruned);
        let known_since = |candidate: &Candidate| {
            let (source, since) = pruned.source(sources.read_of(*candidate))?;
            (source == *candidate).then_some(since)
        };
        let makes_it =
            |candidate: &Candidate| self.problem.joint_arc(*candidate, precedes) == Some(arc);
        let readers = sources.of_version(precedes.first).iter().copied().filter(makes_it);
        let known = readers.filter_map(|reader| Some((known_since(&reader)?, reader)));
        known.min_by_key(|(since, _)| *since).map(|(_, reader)| reader)
    }

    /// That candidates of a read are gone, as far as they are; and that the reader is there, where it may
    /// not be and another read shows that it is.
    fn others_gone(&self, read: u32) -> Vec<Claim> {
        let mut claims = Vec::new();
        let mut at = Some(read);
        while let Some(read) = at {
            claims.extend(self.all_gone(read));
            let number = self.problem.sources.read(read).if_there;
            at = number.and_then(|number| self.settled.pruned.shows_there(number));
        }
        claims
    }

    /// That those candidates of a read are gone that are.
    fn all_gone(&self, read: u32) -> Vec<Claim> {
        let gone = |candidate| {
            let round = self.settled.pruned.gone_since(candidate)?;
            Some(Claim { round, what: What::Gone(candidate) })
        };
        self.problem.sources.candidates(read).filter_map(gone).collect()
    }

    /// That no candidate of a read of its writer is left, where a version was not seen for that reason.
    fn writer_is_not_there(&self, candidate: Candidate) -> Vec<Claim> {
        let number = self.problem.sources.writer_if_there(candidate);
        let shown_by = number.and_then(|number| self.settled.pruned.shows_not_there(number));
        shown_by.map(|read| self.all_gone(read)).unwrap_or_default()
    }

    /// Whether a fact needs a lemma.
    fn needs_lemma(&self, fact: u32) -> bool {
        let is_given = (fact as usize) < self.settled.given.len();
        !is_given && !self.is_read(self.settled.facts[fact as usize])
    }

    /// Whether the later writer had read the earlier version.
    fn is_read(&self, precedes: Precedes) -> bool {
        let versions = &self.problem.versions;
        let second = versions.writer(precedes.second);
        versions.readers(precedes.first).iter().any(|reader| reader.txn == second)
    }

    /// The cycle that the opposite of a fact closes with what was settled in earlier rounds.
    fn justification(&self, fact: u32, round: u32) -> Vec<CycleArc> {
        let opposite = self.settled.facts[fact as usize].opposite();
        let order = Some(opposite);
        let by_order = self.problem.arcs(opposite).map(|arc| (arc, Under { order, source: None }));
        let by_both = self.problem.sources.of_version(opposite.first).iter().filter_map(|source| {
            let (known, since) =
                self.settled.pruned.source(self.problem.sources.read_of(*source))?;
            let arc = self.problem.joint_arc(*source, opposite)?;
            let under = Under { order, source: Some(*source) };
            (known == *source && since <= round).then_some((arc, under))
        });
        let arcs: Vec<(Arc, Under)> = by_order.chain(by_both).collect();
        let mut best: Option<Vec<CycleArc>> = None;
        // All edges of an alternative lead to the same two nodes, that between the writers to the
        // first.
        for arcs in [&arcs[..1], &arcs[1..]] {
            let Some(((_, begin), _)) = arcs.first().copied() else { continue };
            let is_end = |node: u32| arcs.iter().any(|((from, _), _)| *from == node);
            let Some(path) = self.arcs.path(begin, is_end, round) else { continue };
            if best.as_ref().is_none_or(|best| path.len() + 1 < best.len()) {
                let end = path.last().map_or(begin, |(_, to)| *to);
                let under =
                    arcs.iter().find(|((from, _), _)| *from == end).map(|(_, under)| *under);
                let mut cycle = vec![((end, begin), under)];
                cycle.extend(path.into_iter().map(|arc| (arc, None)));
                best = Some(cycle);
            }
        }
        best.unwrap_or_default()
    }

    /// The cycles that show that a read did not see a version: one that closes if it did, and where
    /// another version overwrote it, the one that closes if that was the earlier one. None if it is
    /// because the writer is not there.
    fn rejection(&self, candidate: Candidate, round: u32) -> Vec<Vec<CycleArc>> {
        let (sources, layout) = (&self.problem.sources, self.problem.layout);
        let OpenRead { reader, key, .. } = sources.read(sources.read_of(candidate));
        let start = layout.start(reader);
        let source = Some(candidate);
        let closed = |arc: Arc, order: Option<Precedes>, path: Vec<Arc>| {
            let mut cycle = vec![(arc, Some(Under { order, source }))];
            cycle.extend(path.into_iter().map(|arc| (arc, None)));
            cycle
        };
        let commit = |version| layout.commit(self.problem.versions.writer(version));
        let Some(version) = sources.version(candidate) else {
            let closing = self.problem.source_arcs(candidate).find_map(|(from, to)| {
                let path = self.arcs.path(to, |node| node == from, round)?;
                Some(closed((from, to), None, path))
            });
            return closing.into_iter().collect();
        };
        if let Some(path) = self.arcs.path(start, |node| node == commit(version), round) {
            return vec![closed((commit(version), start), None, path)];
        }
        let after = self.arcs.reached(commit(version), round);
        let is_later = |other: &Version| {
            *other != version
                && self.problem.versions.writer(*other) != reader
                && after[commit(*other) as usize]
        };
        let overwriting = self.problem.versions.of(key).filter(is_later).filter_map(|other| {
            Some((other, self.arcs.path(commit(other), |node| node == start, round)?))
        });
        let Some((other, path)) = overwriting.min_by_key(|(_, path)| path.len()) else {
            return Vec::new();
        };
        let precedes = Precedes { first: version, second: other };
        let missed = closed((start, commit(other)), Some(precedes), path);
        let opposite = precedes.opposite();
        let back = self.problem.arcs(opposite).next().unwrap_or((commit(other), commit(version)));
        let way = self.arcs.path(back.1, |node| node == back.0, round).unwrap_or_default();
        let mut later = vec![(back, Some(Under { order: Some(opposite), source: None }))];
        later.extend(way.into_iter().map(|arc| (arc, None)));
        vec![later, missed]
    }

    /// What a cycle assumes beyond the lemmas.
    fn assumptions(&self, cycle: &[CycleArc]) -> Vec<Precedes> {
        let orders = cycle.iter().filter_map(|(_, choice)| choice.and_then(|under| under.order));
        let mut open: Vec<Precedes> = orders.collect();
        open.retain(|choice| !self.by_choice.contains_key(choice) && !self.is_read(*choice));
        open.sort_unstable();
        open.dedup();
        open
    }

    fn add_lemma(&mut self, precedes: Precedes, cycle: &[CycleArc]) {
        if !self.by_choice.contains_key(&precedes) {
            let cycle = self.caused(cycle);
            self.by_choice.insert(precedes, self.list.len());
            self.list.push(Lemma { cycle, settles: Some(precedes) });
        }
    }

    fn given(&self, fact: u32) -> Option<Cause> {
        let known = self.settled.given.get(fact as usize)?;
        Some(Cause::Given(self.settled.facts[fact as usize], *known))
    }

    fn caused(&self, cycle: &[CycleArc]) -> Vec<Step> {
        let step = |(arc, choice): &CycleArc| Step {
            arc: *arc,
            cause: self.cause(*arc, *choice),
            source: self.source(*arc, *choice),
        };
        cycle.iter().map(step).collect()
    }

    fn cause(&self, arc: Arc, choice: Option<Under>) -> Cause {
        let settled = |precedes| match self.is_read(precedes) {
            true => Cause::Read(precedes),
            false => Cause::Assumed(precedes),
        };
        match choice {
            Some(Under { order: None, .. }) => Cause::Seen,
            Some(Under { order: Some(precedes), .. }) => match self.by_choice.get(&precedes) {
                Some(lemma) => Cause::Lemma(precedes, *lemma),
                None => settled(precedes),
            },
            None => match self.arcs.origin(arc) {
                Some(Origin::Fact(fact)) => {
                    let precedes = self.settled.facts[fact as usize];
                    match self.by_fact.get(&fact) {
                        Some(lemma) => Cause::Lemma(precedes, *lemma),
                        None => self.given(fact).unwrap_or_else(|| settled(precedes)),
                    }
                }
                _ => Cause::Seen,
            },
        }
    }
}
