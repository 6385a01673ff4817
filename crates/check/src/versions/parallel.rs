//! Parallel snapshot isolation; without session order, consistent view.
//!
//! No cycle has fewer than two anti-dependencies. So dependencies (session order, reads, overwrites)
//! are acyclic, and no way along them leads from whoever overwrote a version to one who read it.
//!
//! The order of the tails is [supposed](suppose). A topological order of the other dependencies suggests the first
//! one. Where it leads back somewhere, the pairs of tails on that way cannot all be as they are. Tails are short,
//! and mostly the first order will do.

use std::ops::ControlFlow;

use std::time::Instant;

use isolario_model::{Anomaly, Edge, KeyId, Level, Reason, TxnId, VersionOrder};

use super::Ordered;
use crate::cycles::{self, Explain};
use crate::graph::{components, leading_back, places, shortest_cycle};
use crate::plan::Conclusion;
use crate::resolved::{Inferred, Saturated, TailRule};
use crate::suppose::{self, Excluded, Question, Round, Supposed};

const LEVEL: Level = Level::ParallelSnapshotIsolation;

/// Two writers of a tail of a key, by number.
type Pair = (KeyId, TxnId, TxnId);

/// An order of two writers of a tail that is assumed.
#[derive(Clone, Copy)]
struct Assumed {
    before: TxnId,
    after: TxnId,
    key: KeyId,
}

impl Assumed {
    /// Candidate 0 of a pair is the order of the numbers, 1 the opposite one.
    fn new((key, first, second): Pair, candidate: u32) -> Assumed {
        let (before, after) = if candidate == 0 { (first, second) } else { (second, first) };
        Assumed { before, after, key }
    }

    fn supposition(self) -> (Pair, u32) {
        let Assumed { before, after, key } = self;
        ((key, before.min(after), before.max(after)), u32::from(before > after))
    }
}

impl Ordered<'_> {
    /// Decides the level.
    pub(super) fn parallel(&self) -> Conclusion {
        if let Some(order) = self.serial_order() {
            return Conclusion::serial(LEVEL, self.resolved.kept(order));
        }
        let known = self.known_cycles();
        if known.is_empty() && self.orders.divergences().is_empty() {
            return suppose::decide(TailQuestion(self), &self.options, Instant::now());
        }
        self.violated_by(known)
    }

    /// The cycles of what is known, whatever the order of the tails.
    fn known_cycles(&self) -> Vec<Anomaly> {
        let graph =
            Saturated { dependencies: self.dependencies(), inferred: &self.led().depending };
        let Some(order) = self.resolved.guessed_order(&graph) else {
            return cycles::cycles(&self.resolved, LEVEL, &graph, self);
        };
        let back = leading_back(&graph, &order, self.missed());
        if back.is_empty() {
            return Vec::new();
        }
        let mut found = self.single_cycles(&back);
        found.sort_by_key(|a| (a.evidence.edges().len(), cycles::clarity(a.kind), a.kind));
        found
    }

    fn missed(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.orders.anti_dependencies(TailRule::With)
    }

    /// A shortest cycle with one anti-dependency, of each component in which one leads back; the clearest by name
    /// among several.
    fn single_cycles(&self, back: &[(u32, u32)]) -> Vec<Anomaly> {
        let txns = self.dependencies().history.txn_count() as u32;
        let (missed, nodes) = self.orders.bundled_anti_dependencies(TailRule::With, txns);
        let edges = Inferred::new(nodes as usize, &[self.led().overwrites.clone(), missed]);
        let whole = Saturated { dependencies: self.dependencies(), inferred: &edges };
        let mut components = components(&whole);
        components.iter_mut().for_each(|component| component.retain(|node| *node < txns));
        let depending =
            Saturated { dependencies: self.dependencies(), inferred: &self.led().depending };
        let cycle = |nodes: &[u32]| self.single_cycle(nodes, &[]).cycle;
        let rank = |nodes: &[u32]| cycles::clarity(cycles::name(&cycle(nodes)));
        let closed = cycles::shortest_closed_by(&depending, &components, back, rank);
        closed.iter().map(|nodes| cycles::anomaly(LEVEL, cycle(nodes))).collect()
    }

    /// The edges along a path from a writer to the reader of what it overwrote, and back.
    fn single_cycle(&self, path: &[u32], assumed: &[Assumed]) -> Excluded<Pair> {
        let steps = path.windows(2).map(|step| (TxnId(step[0]), TxnId(step[1])));
        let mut excluded = self.along(steps, assumed);
        if let (Some(writer), Some(reader)) = (path.first(), path.last()) {
            excluded.cycle.extend(self.anti_dependency(TxnId(*reader), TxnId(*writer)));
        }
        excluded
    }

    /// Dependencies that are known or assumed, and what is assumed of them.
    fn along(
        &self,
        steps: impl Iterator<Item = (TxnId, TxnId)>,
        assumed: &[Assumed],
    ) -> Excluded<Pair> {
        let mut excluded = Excluded { rests_on: Vec::new(), cycle: Vec::new() };
        for (from, to) in steps {
            let is_it = |assumed: &&Assumed| (assumed.before, assumed.after) == (from, to);
            if let Some(edge) = self.dependency(from, to) {
                excluded.cycle.push(edge);
            } else if let Some(assumed) = assumed.iter().find(is_it) {
                let reason = Reason::Overwrite { key: assumed.key, known: VersionOrder::Assumed };
                excluded.cycle.push(Edge { from, to, reason });
                excluded.rests_on.push(assumed.supposition());
            }
        }
        excluded
    }

    /// The overwrites that are known and assumed.
    fn with(&self, assumed: &[Assumed]) -> Inferred {
        let assumed = assumed.iter().map(|assumed| (assumed.before.0, assumed.after.0)).collect();
        let txns = self.dependencies().history.txn_count();
        Inferred::new(txns, &[self.led().overwrites.clone(), assumed])
    }
}

/// The level where what is known is fine. Points are pairs of writers of a tail.
struct TailQuestion<'o, 'h>(&'o Ordered<'h>);

impl Question for TailQuestion<'_, '_> {
    type Point = Pair;

    /// Tries one order of the tails.
    fn decide(&mut self, supposed: &Supposed<Pair>) -> Round<Pair> {
        let ordered = self.0;
        let supposed = supposed.iter().map(|(pair, candidate)| Assumed::new(*pair, *candidate));
        let mut assumed: Vec<Assumed> = supposed.collect();
        let known = ordered.with(&assumed);
        let graph = Saturated { dependencies: ordered.dependencies(), inferred: &known };
        let Some(order) = ordered.resolved.guessed_order(&graph) else {
            let cyclic = components(&graph);
            let shortest = cyclic.iter().map(|component| shortest_cycle(&graph, component));
            let nodes = shortest.min_by_key(Vec::len).unwrap_or_default();
            let steps = nodes.iter().zip(nodes.iter().cycle().skip(1));
            let steps = steps.map(|(from, to)| (TxnId(*from), TxnId(*to)));
            return ControlFlow::Continue(vec![ordered.along(steps, &assumed)]);
        };
        let places = places(&order);
        ordered.order_tails(
            |txn| places[txn.index()],
            |key, (before, after)| assumed.push(Assumed { before, after, key }),
        );
        let chosen = ordered.with(&assumed);
        let graph = Saturated { dependencies: ordered.dependencies(), inferred: &chosen };
        let back = leading_back(&graph, &order, ordered.missed());
        let Some((reader, writer)) = back.first() else {
            return ControlFlow::Break(Conclusion::serial(LEVEL, ordered.resolved.kept(&order)));
        };
        // The way back lies between the two.
        let between = places[*writer as usize] as usize..=places[*reader as usize] as usize;
        let mut between = order[between].to_vec();
        between.sort_unstable();
        let back = [(*reader, *writer)];
        let path = cycles::shortest_closed_by(&graph, &[between], &back, |_| 0);
        let path = path.into_iter().next().unwrap_or_default();
        ControlFlow::Continue(vec![ordered.single_cycle(&path, &assumed)])
    }

    fn by_preference(&self, _pair: Pair) -> Vec<u32> {
        vec![0, 1]
    }
}
