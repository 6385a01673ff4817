//! Saturation: what follows from the known edges without trying anything.
//!
//! The order of two versions is settled once one alternative closes a cycle. With `u` and `v`
//! versions of one key, there are two ways to see that `u` comes first:
//!
//! - `u`'s writer comes before `v`'s: the other alternative's edge between the writers would lead
//!   back;
//! - `u`'s writer comes before a reader of `v`: with `v` first, that reader would come before `u`.
//!
//! It is enough to look at the last such `u` of every chain. Earlier ones of the chain come before
//! it, so that their edges to `v` are implied by what the rules say about the chain itself.
//! No pair of versions is ever written down that is not settled in this way.

use isolario_model::{KeyId, Limit, TxnId};
use rayon::prelude::*;

use super::chains::Chains;
use super::graph::Graph;
use super::limits::Limits;
use super::parts::{Part, parts};
use super::problem::{Arc, Precedes, Problem};
use super::pruned::{NoSource, Pruned};
use super::reach::{Reach, Row};

use crate::Phase;
use crate::graph::topological_order;
use crate::resolved::{KnownBy, Version};

/// Keys per task.
const KEYS_PER_TASK: usize = 256;

/// How far saturation came.
pub(crate) enum Saturation {
    /// Nothing more follows. The parts that are left are known where saturation looked at them.
    Settled {
        graph: Graph,
        nodes: Vec<u32>,
        settled: Settled,
        parts: Option<Vec<Part>>,
    },
    /// What follows has a cycle.
    Contradiction(Graph, Settled),
    /// A read has no candidate left.
    NoSource(u32, Settled),
    Stopped(Limit, Settled),
}

/// What is known and settled, as edges.
pub(crate) fn edges(problem: &Problem, settled: &Settled) -> Vec<Arc> {
    let sources = settled.pruned.arcs.iter().map(|(arc, _)| arc);
    problem.known.iter().chain(&settled.arcs).chain(sources).copied().collect()
}

/// Settles what follows from the known edges. `nodes` is a topological order of the graph, and
/// those of later graphs are to be close to `guess`.
pub(crate) fn saturate(
    problem: &Problem,
    chains: &Chains,
    (mut graph, mut nodes): (Graph, Vec<u32>),
    mut settled: Settled,
    guess: &[u32],
    limits: &Limits<'_>,
) -> Saturation {
    let pairs = problem.versions.pairs();
    loop {
        let bytes = Reach::bytes(chains, nodes.len()) + settled.bytes() + graph.bytes();
        if let Some(limit) = limits.reached(bytes as u64 + problem.bytes()) {
            return Saturation::Stopped(limit, settled);
        }
        let is_over = || limits.reached(0).is_some();
        let reach = Reach::new(chains, &graph, &nodes, &is_over);
        if let Some(limit) = limits.reached(0) {
            return Saturation::Stopped(limit, settled);
        }
        // Sources first: who is found to have read a version comes before those who overwrote it in
        // the same round.
        let found_source = match settled.pruned.round(problem, chains, &reach, &is_over) {
            Ok(found) => found,
            Err(NoSource(read)) => return Saturation::NoSource(read, settled),
        };
        let is_new = settled.round(problem, chains, &reach, &is_over) || found_source;
        if let Some(limit) = limits.reached(0) {
            return Saturation::Stopped(limit, settled);
        }
        if !is_new {
            let whole = (&graph, nodes.as_slice());
            let parts = Some(parts(problem, &settled.pruned, whole, chains, &reach));
            return Saturation::Settled { graph, nodes, settled, parts };
        }
        drop(reach);
        limits.tell(Phase::Settling, settled.decided, pairs, 0);
        graph = Graph::new(problem.nodes, &edges(problem, &settled));
        match topological_order(&graph, guess) {
            Some(order) => nodes = order,
            None => return Saturation::Contradiction(graph, settled),
        }
    }
}

/// Settled orders of versions and the edges they add.
#[derive(Default)]
pub(crate) struct Settled {
    /// Each follows from the known edges and those of the facts of earlier rounds.
    pub(crate) facts: Vec<Precedes>,
    pub(crate) arcs: Vec<Arc>,
    /// Per edge, the fact that adds it.
    pub(crate) fact_of: Vec<u32>,
    /// How many facts there were after each round.
    pub(crate) rounds: Vec<u32>,
    /// How the first facts are known, which follow from nothing else.
    pub(crate) given: Vec<KnownBy>,
    /// What is known of the sources of reads.
    pub(crate) pruned: Pruned,
    /// How many pairs of versions the last round found in an order.
    pub(crate) decided: u64,
}

impl Settled {
    /// Begins with orders that are known.
    pub(crate) fn given(problem: &Problem, given: &[(Precedes, KnownBy)]) -> Self {
        let mut settled = Settled { pruned: Pruned::new(problem), ..Settled::default() };
        for (number, (fact, known)) in (0..).zip(given) {
            settled.facts.push(*fact);
            settled.given.push(*known);
            settled.arcs.extend(problem.arcs(*fact));
            settled.fact_of.resize(settled.arcs.len(), number);
        }
        settled.rounds.push(settled.facts.len() as u32);
        settled
    }

    /// The round in which a fact was settled; zero for those that are given.
    pub(crate) fn round_of(&self, fact: u32) -> u32 {
        self.rounds.partition_point(|end| *end <= fact) as u32
    }

    fn add(&mut self, found: Settled) {
        let base = self.facts.len() as u32;
        self.facts.extend(found.facts);
        self.arcs.extend(found.arcs);
        self.fact_of.extend(found.fact_of.into_iter().map(|fact| base + fact));
        self.decided += found.decided;
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.facts.capacity() * size_of::<Precedes>()
            + self.arcs.capacity() * size_of::<(Arc, u32)>()
            + self.pruned.bytes()
    }

    /// Applies the rules once to every key. Returns whether they said anything new.
    pub(crate) fn round(
        &mut self,
        problem: &Problem,
        chains: &Chains,
        reach: &Reach<'_>,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> bool {
        let starts: Vec<usize> = (0..problem.versions.key_count()).step_by(KEYS_PER_TASK).collect();
        let pruned = &self.pruned;
        let found: Vec<Settled> = starts
            .into_par_iter()
            .map(|start| {
                let end = (start + KEYS_PER_TASK).min(problem.versions.key_count());
                let mut rules = Rules::new(problem, chains, reach, pruned);
                if !is_over() {
                    (start..end).for_each(|key| rules.apply(KeyId::at(key)));
                }
                rules.settled
            })
            .collect();
        let before = self.facts.len();
        self.decided = 0;
        found.into_iter().for_each(|found| self.add(found));
        self.rounds.push(self.facts.len() as u32);
        self.facts.len() > before
    }
}

/// A version where its writer's start or commit is in a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    chain: u32,
    position: u32,
    version: Version,
}

struct Rules<'a> {
    problem: &'a Problem,
    chains: &'a Chains,
    reach: &'a Reach<'a>,
    pruned: &'a Pruned,
    /// The versions of the key, by chain and position of the writer's commit.
    commits: Vec<Member>,
    /// By those of its start, where writers may not overlap.
    starts: Vec<Member>,
    facts: Vec<Precedes>,
    settled: Settled,
}

impl<'a> Rules<'a> {
    fn new(
        problem: &'a Problem,
        chains: &'a Chains,
        reach: &'a Reach<'a>,
        pruned: &'a Pruned,
    ) -> Self {
        Rules {
            problem,
            chains,
            reach,
            pruned,
            commits: Vec::new(),
            starts: Vec::new(),
            facts: Vec::new(),
            settled: Settled::default(),
        }
    }

    fn apply(&mut self, key: KeyId) {
        let versions = &self.problem.versions;
        if versions.of(key).len() < 2 {
            return;
        }
        self.collect(key);
        for version in versions.of(key) {
            self.before_writer(version);
            self.before_readers(version);
        }
        self.facts.sort_unstable();
        self.facts.dedup();
        for fact in std::mem::take(&mut self.facts) {
            self.settle(fact);
        }
    }

    fn collect(&mut self, key: KeyId) {
        let (problem, layout) = (self.problem, self.problem.layout);
        members(problem, self.chains, key, |txn| layout.commit(txn), &mut self.commits);
        if layout.is_exclusive() {
            members(problem, self.chains, key, |txn| layout.start(txn), &mut self.starts);
        }
    }

    /// Whoever comes before the writer of a version wrote an earlier version. Where writers may not
    /// overlap, it is enough that they started before it committed.
    fn before_writer(&mut self, version: Version) {
        let layout = self.problem.layout;
        let row = self.reach.row(layout.commit(self.problem.versions.writer(version)));
        let incarnations = self.problem.incarnations.as_ref();
        let excludes = layout.is_exclusive() && incarnations.is_none_or(|i| i.is_immortal(version));
        let members = if excludes { &self.starts } else { &self.commits };
        let mut facts = std::mem::take(&mut self.facts);
        let reached = last_members(
            members,
            row,
            |other| other == version,
            |first| {
                let fact = Precedes { first, second: version };
                if self.arcs(fact).any(|(from, to)| !self.reach.reaches(from, to)) {
                    facts.push(fact);
                }
            },
        );
        self.facts = facts;
        // The version itself is one of them.
        self.settled.decided += reached.saturating_sub(1) as u64;
    }

    /// Whoever comes before a reader of a version wrote an earlier version.
    fn before_readers(&mut self, version: Version) {
        let (layout, versions) = (self.problem.layout, &self.problem.versions);
        let mut facts = std::mem::take(&mut self.facts);
        for reader in versions.readers(version).iter().chain(self.pruned.readers(version)) {
            let row = self.reach.row(layout.start(reader.txn));
            last_members(
                &self.commits,
                row,
                |other| versions.writer(other) == reader.txn,
                |first| {
                    let fact = Precedes { first, second: version };
                    let target = || self.problem.overwrite(fact);
                    let implied =
                        || self.reach.reaches(layout.commit(versions.writer(first)), target());
                    if first != version && !implied() {
                        facts.push(fact);
                    }
                },
            );
        }
        self.facts = facts;
    }

    /// The edges of an order of versions, with those of readers that are known by now.
    fn arcs(&self, fact: Precedes) -> impl Iterator<Item = Arc> + use<'a> {
        self.problem.arcs(fact).chain(self.pruned.joint_arcs(self.problem, fact))
    }

    /// Adds the edges of a fact that are not implied.
    fn settle(&mut self, fact: Precedes) {
        let before = self.settled.arcs.len();
        let new = self.arcs(fact).filter(|(from, to)| !self.reach.reaches(*from, *to));
        self.settled.arcs.extend(new);
        let added = self.settled.arcs.len() - before;
        if added > 0 {
            let number = self.settled.facts.len() as u32;
            self.settled.facts.push(fact);
            self.settled.fact_of.extend(std::iter::repeat_n(number, added));
        }
    }
}

/// The versions of a key where a moment of their writers is in a chain, by chain and position.
pub(crate) fn members(
    problem: &Problem,
    chains: &Chains,
    key: KeyId,
    moment: impl Fn(TxnId) -> u32,
    found: &mut Vec<Member>,
) {
    let versions = &problem.versions;
    found.clear();
    found.extend(versions.of(key).map(|version| {
        let (chain, position) = chains.at(moment(versions.writer(version)));
        Member { chain, position, version }
    }));
    found.sort_unstable();
}

/// Per chain, the last member for which a premise holds that holds for all before it. Returns for how
/// many members it holds.
pub(crate) fn last_members(
    members: &[Member],
    row: Row<'_>,
    skip: impl Fn(Version) -> bool,
    mut each: impl FnMut(Version),
) -> usize {
    let mut all = 0;
    for members in members.chunk_by(|a, b| a.chain == b.chain) {
        let reached = row.reached(members[0].chain);
        let count = members.partition_point(|member| member.position < reached);
        all += count;
        if let Some(last) = members[..count].iter().rev().find(|member| !skip(member.version)) {
            each(last.version);
        }
    }
    all
}
