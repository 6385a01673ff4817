//! Parallel snapshot isolation; without session order, consistent view.
//!
//! No cycle has fewer than two anti-dependencies. So dependencies (session order, reads, overwrites)
//! are acyclic, and no way along them leads from whoever overwrote a version to one who read it.
//!
//! The order of the tails is a choice. A topological order of the other dependencies is tried first.
//! Where it leads back somewhere, one of the pairs of a tail on that way must be the other way round:
//! each is tried, with those before it as they were. Every case ends with an order that leads nowhere
//! back, or with a cycle of what is known and assumed; these cycles together are the argument that
//! there is no order. Tails are short, and mostly the first order will do.

use std::time::Instant;

use isolario_model::{Anomaly, Edge, KeyId, Level, Limit, Reason, TxnId, VersionOrder};

use super::Ordered;
use crate::cycles::{self, Explain};
use crate::graph::{
    BUDGET, InEdges, Rows, Search, Subgraph, components, leading_back, places, shortest_cycle,
};
use crate::plan::Conclusion;
use crate::resolved::{Inferred, Saturated, TailRule};

const LEVEL: Level = Level::ParallelSnapshotIsolation;

/// An order of two writers of a tail that is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Assumed {
    before: TxnId,
    after: TxnId,
    key: KeyId,
}

/// How one case ends.
enum Ending {
    /// With an order that leads nowhere back.
    Order(Vec<u32>),
    /// With a cycle, and what it assumes beyond the case.
    Cycle(Vec<Edge>, Vec<Assumed>),
}

impl Ordered<'_> {
    /// Decides the level.
    pub(super) fn parallel(&self) -> Conclusion {
        if let Some(order) = self.serial_order() {
            return Conclusion::serial(LEVEL, self.resolved.kept(order));
        }
        let known = self.known_cycles();
        if known.is_empty() && self.orders.divergences().is_empty() {
            return self.try_cases();
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

    /// A shortest cycle with one anti-dependency, of each component in which one leads back.
    fn single_cycles(&self, back: &[(u32, u32)]) -> Vec<Anomaly> {
        let txns = self.dependencies().history.txn_count();
        let (missed, nodes) = self.orders.bundled_anti_dependencies(TailRule::With, txns as u32);
        let edges = Inferred::new(nodes as usize, &[self.led().overwrites.clone(), missed]);
        let whole = Saturated { dependencies: self.dependencies(), inferred: &edges };
        let components = components(&whole);
        let mut component_of = vec![0u32; nodes as usize];
        for (number, component) in (0..).zip(&components) {
            component.iter().for_each(|node| component_of[*node as usize] = number);
        }
        let by_component = back.iter().map(|pair| (component_of[pair.0 as usize], *pair));
        let by_component = Rows::group(components.len(), by_component);
        let with_pairs = (0..components.len()).filter(|at| !by_component.get(*at).is_empty());
        let of_txns = |at: usize| {
            let component = &components[at];
            &component[..component.partition_point(|node| (*node as usize) < txns)]
        };
        let cycles = with_pairs.map(|at| self.shortest(of_txns(at), by_component.get(at)));
        cycles.map(|edges| cycles::anomaly(LEVEL, edges)).collect()
    }

    /// The shortest cycle through one of these anti-dependencies, the clearest by name among several;
    /// in a large component, the shortest that a bounded search finds.
    fn shortest(&self, component: &[u32], back: &[(u32, u32)]) -> Vec<Edge> {
        let depending =
            Saturated { dependencies: self.dependencies(), inferred: &self.led().depending };
        let inside = Subgraph::new(&depending, component);
        let mut search = Search::new(&inside);
        let mut best: Vec<Edge> = Vec::new();
        let rank = |cycle: &[Edge]| (cycle.len(), cycles::clarity(cycles::name(cycle)));
        for (reader, writer) in back {
            let ends = inside.number(*reader).zip(inside.number(*writer));
            let limit = if best.is_empty() { usize::MAX } else { best.len() - 1 };
            let path =
                ends.and_then(|(target, start)| search.path_to(target, limit, |at| at == start));
            let nodes: Vec<u32> = path.into_iter().flatten().map(|at| inside.node(at)).collect();
            let cycle = self.single_cycle(&nodes, &[]);
            if !cycle.is_empty() && (best.is_empty() || rank(&cycle) < rank(&best)) {
                best = cycle;
            }
            if search.edges_seen > BUDGET {
                break;
            }
        }
        best
    }

    /// The edges along a path from a writer to the reader of what it overwrote, and back.
    fn single_cycle(&self, path: &[u32], assumed: &[Assumed]) -> Vec<Edge> {
        let (Some(writer), Some(reader)) = (path.first(), path.last()) else { return Vec::new() };
        let steps = path.windows(2);
        let forth = steps.filter_map(|step| self.step(TxnId(step[0]), TxnId(step[1]), assumed));
        forth.chain(self.anti_dependency(TxnId(*reader), TxnId(*writer))).collect()
    }

    /// A dependency that is known or assumed.
    fn step(&self, from: TxnId, to: TxnId, assumed: &[Assumed]) -> Option<Edge> {
        self.dependency(from, to).or_else(|| {
            let is_it = |a: &&Assumed| (a.before, a.after) == (from, to);
            let key = assumed.iter().find(is_it)?.key;
            let reason = Reason::Overwrite { key, known: VersionOrder::Assumed };
            Some(Edge { from, to, reason })
        })
    }

    /// Goes through all orders of the tails that make a difference.
    fn try_cases(&self) -> Conclusion {
        let until = self.options.timeout.map(|limit| (Instant::now() + limit, limit));
        let mut cycles: Vec<Vec<Edge>> = Vec::new();
        let mut cases: Vec<Vec<Assumed>> = vec![Vec::new()];
        while let Some(case) = cases.pop() {
            match self.case(&case) {
                Ending::Order(order) => {
                    return Conclusion::serial(LEVEL, self.resolved.kept(&order));
                }
                Ending::Cycle(cycle, chosen) => {
                    cycles.push(cycle);
                    for (at, wrong) in chosen.iter().enumerate() {
                        let reversed =
                            Assumed { before: wrong.after, after: wrong.before, ..*wrong };
                        cases.push([&case[..], &chosen[..at], &[reversed]].concat());
                    }
                }
            }
            if let Some((_, limit)) = until.filter(|(end, _)| Instant::now() >= *end) {
                return Conclusion::limit(Limit::Time(limit));
            }
            if self.options.stop.is_asked() {
                return Conclusion::limit(Limit::Interrupted);
            }
        }
        cycles.sort_by_key(Vec::len);
        Conclusion::by_cases(cycles)
    }

    /// Tries one order of the tails, with some pairs as they are assumed to be.
    fn case(&self, case: &[Assumed]) -> Ending {
        let known = self.with(case);
        let graph = Saturated { dependencies: self.dependencies(), inferred: &known };
        let Some(order) = self.resolved.guessed_order(&graph) else {
            let cyclic = components(&graph);
            let shortest = cyclic.iter().map(|component| shortest_cycle(&graph, component));
            let nodes = shortest.min_by_key(Vec::len).unwrap_or_default();
            let steps = nodes.iter().zip(nodes.iter().cycle().skip(1));
            let edge = |(from, to): (&u32, &u32)| self.step(TxnId(*from), TxnId(*to), case);
            return Ending::Cycle(steps.filter_map(edge).collect(), Vec::new());
        };
        let places = places(&order);
        let mut all = case.to_vec();
        self.order_tails(
            |txn| places[txn.index()],
            |key, (before, after)| all.push(Assumed { before, after, key }),
        );
        let chosen = self.with(&all);
        let graph = Saturated { dependencies: self.dependencies(), inferred: &chosen };
        let back = leading_back(&graph, &order, self.missed());
        let Some((reader, writer)) = back.first() else { return Ending::Order(order) };
        let path = path_between(&graph, &order, &places, *writer, *reader);
        let is_free = |step: &[u32]| {
            let (from, to) = (TxnId(step[0]), TxnId(step[1]));
            let is_it = |a: &&Assumed| (a.before, a.after) == (from, to);
            let is_known = case.iter().any(|a| is_it(&a)) || self.dependency(from, to).is_some();
            all[case.len()..].iter().find(is_it).copied().filter(|_| !is_known)
        };
        let free = path.windows(2).filter_map(is_free).collect();
        Ending::Cycle(self.single_cycle(&path, &all), free)
    }

    /// The overwrites that are known and assumed.
    fn with(&self, assumed: &[Assumed]) -> Inferred {
        let assumed = assumed.iter().map(|assumed| (assumed.before.0, assumed.after.0)).collect();
        let txns = self.dependencies().history.txn_count();
        Inferred::new(txns, &[self.led().overwrites.clone(), assumed])
    }
}

/// A shortest path from one node to another that comes later in a topological order.
fn path_between(
    graph: &impl InEdges,
    order: &[u32],
    places: &[u32],
    start: u32,
    end: u32,
) -> Vec<u32> {
    let mut between =
        order[places[start as usize] as usize..=places[end as usize] as usize].to_vec();
    between.sort_unstable();
    let inside = Subgraph::new(graph, &between);
    let ends = inside.number(end).zip(inside.number(start));
    let path = ends.and_then(|(target, start)| {
        Search::new(&inside).path_to(target, usize::MAX, |node| node == start)
    });
    path.into_iter().flatten().map(|number| inside.node(number)).collect()
}
