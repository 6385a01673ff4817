//! Serializable, snapshot isolation and their kin for any history of registers or lists, by search.
//!
//! Whether a history with blind writes is serializable is NP-complete. The plan: mend a guess at the
//! order of commits window by window ([`windows`]). Often that is the answer, and nothing else has to
//! be done. Where it is not, lower the level to a graph with known edges and choices ([`problem`]),
//! settle what follows without trying anything ([`saturate`]), and search for the rest ([`search`]),
//! beginning with the same guess.

mod chains;
mod explain;
mod graph;
mod guess;
mod incarnations;
mod layout;
mod limits;
mod lower;
mod order;
mod parts;
mod problem;
mod pruned;
mod reach;
#[cfg(test)]
mod sat;
mod saturate;
mod search;
mod solve_parts;
mod sources;
#[cfg(test)]
mod tests;
mod undecided;
mod windows;

use std::time::Instant;

use isolario_model::{Inapplicable, Level, Point, TxnId, Witness};

use crate::CheckOptions;
use crate::graph::{components, shortest_cycle, topological_order};
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, KnownBy, Resolved, Version, VersionEdge};
use chains::{Chains, session_chains};
use explain::Explainer;
use graph::Graph;
use layout::Layout;
use limits::{Limits, SoFar};
use order::Order;
use parts::Part;
use problem::{Precedes, Problem};
use reach::Reach;
use saturate::{Saturation, Settled, edges, saturate};
use search::{Search, SearchEnd};
use solve_parts::{Solved, solve_parts};

/// How many conflicts the search may take that comes before saturation.
const SHORT_SEARCH: u64 = 500;

/// More chains than this are not worth their memory.
const MOST_CHAINS: usize = 1_000;

/// Nor is a bit per pair of nodes worth more bytes than these.
const MOST_BYTES: usize = 2 << 30;

/// With a larger share of the order in windows, all of it may as well be looked at, at once.
const WIDEST_PERCENT: usize = 50;

/// Decides a level of a history without wrong, ambiguous or non-repeatable reads: by segments, else by a
/// search.
pub(crate) fn check(resolved: &Resolved<'_>, level: Level, options: &CheckOptions) -> Conclusion {
    let began = Instant::now();
    by_segments(resolved, level, options, began)
        .or(|| search(resolved, level, options, began, Steps::ALL))
}

/// Decides a level by solving the segments of an order, if no more of it than a share is in some segment.
pub(crate) fn by_segments(
    resolved: &Resolved<'_>,
    level: Level,
    options: &CheckOptions,
    began: Instant,
) -> Conclusion {
    windows::decide(resolved, &Limits::new(options, level, began), WIDEST_PERCENT)
}

/// Decides a level by a search over the whole history.
pub(crate) fn search(
    resolved: &Resolved<'_>,
    level: Level,
    options: &CheckOptions,
    began: Instant,
    steps: Steps,
) -> Conclusion {
    let dependencies = &resolved.dependencies;
    let Some(layout) = Layout::of(level, dependencies.history.txn_count()) else {
        return Inapplicable::NoChecker.into();
    };
    let problem = lower::lower(resolved, layout, options.by_incarnation);
    let solver = Solver { resolved, dependencies, options, problem, steps };
    solver.solve(&Limits::new(options, level, began))
}

/// What is done before the search. It never changes the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// Whether a short search mends the guess.
    short_search: bool,
    /// Whether what follows is settled.
    saturation: bool,
    /// With how many chains at most; with more, every node is one.
    most_chains: usize,
}

impl Steps {
    pub(crate) const ALL: Steps =
        Steps { short_search: true, saturation: true, most_chains: MOST_CHAINS };
}

struct Solver<'a, 'h> {
    resolved: &'a Resolved<'h>,
    dependencies: &'a Dependencies<'a>,
    options: &'a CheckOptions,
    problem: Problem,
    steps: Steps,
}

impl Solver<'_, '_> {
    fn solve(&self, limits: &Limits<'_>) -> Conclusion {
        let guess = guess::order(self.resolved, &self.problem);
        if let Some(witness) = self.hinted_search(&guess, limits) {
            return Conclusion::Holds(witness);
        }
        let settled = self.given();
        let graph = self.graph(&settled);
        let Some(nodes) = topological_order(&graph, &guess) else {
            return self.contradiction(&graph, &settled);
        };
        if self.steps.short_search
            && let Some(witness) = self.short_search(&graph, nodes.clone(), limits)
        {
            return Conclusion::Holds(witness);
        }
        let mut so_far = SoFar { pairs: self.problem.versions.pairs(), ..SoFar::default() };
        if let Some(limit) = limits.reached(0) {
            return so_far.undecided(limit);
        }
        match self.saturate(graph, nodes, settled, &guess, limits) {
            Saturation::Contradiction(graph, settled) => self.contradiction(&graph, &settled),
            Saturation::NoSource(read, settled) => {
                Conclusion::Refuted(self.explainer(&settled).no_source(read))
            }
            Saturation::Stopped(limit, settled) => {
                so_far.decided = Some(settled.decided);
                so_far.undecided(limit)
            }
            Saturation::Settled { graph, nodes, settled, parts } => {
                let Some(parts) = parts else {
                    return self.solve_whole(&graph, nodes, &settled, so_far, limits);
                };
                so_far.decided = Some(settled.decided);
                so_far.count(&self.problem, &parts, |_| true);
                match parts.len() {
                    0 | 1 => self.solve_whole(&graph, nodes, &settled, so_far, limits),
                    _ => self.solve_parts(&graph, &nodes, &settled, &parts, so_far, limits),
                }
            }
        }
    }

    /// Solves what saturation left open as one.
    fn solve_whole(
        &self,
        graph: &Graph,
        nodes: Vec<u32>,
        settled: &Settled,
        mut so_far: SoFar,
        limits: &Limits<'_>,
    ) -> Conclusion {
        let mut search = self.search(graph, nodes).without(&settled.pruned.gone);
        match search.run(limits, None) {
            SearchEnd::Solution => Conclusion::Holds(self.witness(&search)),
            SearchEnd::Refutation(refutation) => {
                let told = |(arc, label)| Some((arc, Some(search.variables.under(label))));
                let refutation = refutation.told(told, |read| read);
                Conclusion::Refuted(self.explainer(settled).refutation(refutation))
            }
            SearchEnd::Stopped(limit) => {
                so_far.conflicts = Some(search.conflicts);
                so_far.undecided(limit)
            }
        }
    }

    /// Solves what saturation left open part by part. The orders of all parts and the settled edges
    /// have no cycle together, and what a read saw in the order of its part, it can see in that of the
    /// whole. Who comes after it of other parts is left to a search, which has nothing to try.
    fn solve_parts(
        &self,
        graph: &Graph,
        nodes: &[u32],
        settled: &Settled,
        parts: &[Part],
        mut so_far: SoFar,
        limits: &Limits<'_>,
    ) -> Conclusion {
        match solve_parts(&self.problem, &settled.pruned, (graph, nodes), parts, limits) {
            Solved::Orders(orders) => {
                let mut arcs = edges(&self.problem, settled);
                arcs.extend(orders.iter().flat_map(|o| o.windows(2).map(|two| (two[0], two[1]))));
                let ordered = Graph::new(self.problem.nodes, &arcs);
                let found = topological_order(&ordered, nodes).and_then(|nodes| {
                    let mut search = self.search(&ordered, nodes).without(&settled.pruned.gone);
                    let found = search.run(limits, Some(SHORT_SEARCH));
                    matches!(found, SearchEnd::Solution).then(|| self.witness(&search))
                });
                match found {
                    Some(witness) => Conclusion::Holds(witness),
                    None => self.solve_whole(graph, nodes.to_vec(), settled, so_far, limits),
                }
            }
            Solved::Refutation(refutation) => {
                Conclusion::Refuted(self.explainer(settled).refutation(refutation))
            }
            Solved::Stopped { limit, unsolved, conflicts } => {
                so_far.conflicts = Some(conflicts);
                so_far.count(&self.problem, parts, |part| unsolved.binary_search(&part).is_ok());
                so_far.undecided(limit)
            }
        }
    }

    /// The orders of versions that lists show and that are stated, as part of what is asked.
    fn given(&self) -> Settled {
        Settled::given(&self.problem, &self.known_orders())
    }

    fn known_orders(&self) -> Vec<(Precedes, KnownBy)> {
        let known = |edge: &VersionEdge| {
            let version = |writer| self.problem.versions.version(edge.key, writer);
            let (first, second) = (version(edge.before)?, version(edge.after)?);
            Some((Precedes { first, second }, edge.known))
        };
        self.dependencies.reads.version_order.iter().filter_map(known).collect()
    }

    /// The same, and orders that are stated as mere hints. Those that are part of what is asked are among
    /// the known ones.
    fn hinted(&self) -> Settled {
        let mut orders = self.known_orders();
        let hints = self.options.version_order.iter().filter(|_| !self.options.trusts_orders());
        for order in hints {
            let version = |writer: &TxnId| self.problem.versions.version(order.key, *writer);
            let versions: Vec<Version> = order.writers.iter().filter_map(version).collect();
            for pair in versions.windows(2).filter(|pair| pair[0] != pair[1]) {
                let precedes = Precedes { first: pair[0], second: pair[1] };
                orders.push((precedes, KnownBy::Stated { at: order.at }));
            }
        }
        Settled::given(&self.problem, &orders)
    }

    /// What is known and settled.
    fn graph(&self, settled: &Settled) -> Graph {
        Graph::new(self.problem.nodes, &edges(&self.problem, settled))
    }

    /// Takes stated orders for granted. What comes out is a solution with or without them.
    fn hinted_search(&self, guess: &[u32], limits: &Limits<'_>) -> Option<Witness> {
        if self.options.version_order.is_empty() {
            return None;
        }
        let graph = self.graph(&self.hinted());
        let mut search = self.search(&graph, topological_order(&graph, guess)?);
        let found = search.run(limits, Some(SHORT_SEARCH));
        matches!(found, SearchEnd::Solution).then(|| self.witness(&search))
    }

    /// Where the guess is good, a short search mends it, and nothing else has to be done. Without
    /// session order, little is known, and a search for points wanders; that for a serial order is
    /// the easier one, and a serial order satisfies the snapshot levels, too.
    fn short_search(&self, graph: &Graph, nodes: Vec<u32>, limits: &Limits<'_>) -> Option<Witness> {
        let mut search = self.search(graph, nodes);
        if let SearchEnd::Solution = search.run(limits, Some(SHORT_SEARCH)) {
            return Some(self.witness(&search));
        }
        let is_hard = !self.dependencies.session_order && limits.reached(0).is_none();
        let layout = self.problem.layout.serial().filter(|_| is_hard)?;
        let serial = Solver { problem: lower::lower(self.resolved, layout, false), ..*self };
        let guess = guess::order(self.resolved, &serial.problem);
        let graph = serial.graph(&serial.given());
        let mut search = serial.search(&graph, topological_order(&graph, &guess)?);
        let found = search.run(limits, Some(SHORT_SEARCH));
        matches!(found, SearchEnd::Solution).then(|| self.serial_witness(&serial, &search))
    }

    /// A serial order of transactions as start and commit points.
    fn serial_witness(&self, serial: &Solver<'_, '_>, search: &Search<'_, '_>) -> Witness {
        let kept = |txn: &TxnId| self.dependencies.reads.is_kept(*txn) || search.has(*txn);
        let nodes = search.order.nodes().iter();
        let txns = nodes.filter_map(|node| serial.problem.layout.txn(*node)).filter(kept);
        Witness::Points(txns.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect())
    }

    fn search<'s>(&'s self, graph: &'s Graph, nodes: Vec<u32>) -> Search<'s, 's> {
        Search::new(&self.problem, Order::new(graph, nodes))
    }

    /// Saturates as far as chains allow.
    fn saturate(
        &self,
        graph: Graph,
        nodes: Vec<u32>,
        settled: Settled,
        guess: &[u32],
        limits: &Limits<'_>,
    ) -> Saturation {
        if !self.steps.saturation {
            return Saturation::Settled { graph, nodes, settled, parts: None };
        }
        let chains = if self.dependencies.session_order {
            session_chains(self.dependencies, &self.problem)
        } else {
            let (layout, reads) = (self.problem.layout, &self.dependencies.reads);
            let maybe = self.problem.sources.maybe();
            let counts = |txn| reads.is_kept(txn) || maybe.binary_search(&txn).is_ok();
            let is_kept = |node| layout.txn(node).is_none_or(counts);
            Chains::of_paths(&graph, &nodes, is_kept)
        };
        let chains = Some(chains).filter(|chains| chains.len() <= self.steps.most_chains);
        match chains.or_else(|| single_chains(self.problem.nodes)) {
            Some(chains) => {
                saturate(&self.problem, &chains, (graph, nodes), settled, guess, limits)
            }
            None => Saturation::Settled { graph, nodes, settled, parts: None },
        }
    }

    fn explainer<'s>(&'s self, settled: &'s Settled) -> Explainer<'s> {
        let (dependencies, problem) = (self.dependencies, &self.problem);
        Explainer { dependencies, problem, settled }
    }

    /// The settled edges alone have a cycle.
    fn contradiction(&self, graph: &Graph, settled: &Settled) -> Conclusion {
        Conclusion::Refuted(self.explainer(settled).cycles(&shortest_cycles(graph)))
    }

    /// The order of the nodes of those that count.
    fn witness(&self, search: &Search<'_, '_>) -> Witness {
        let (layout, reads) = (self.problem.layout, &self.dependencies.reads);
        let counts = |txn| reads.is_kept(txn) || search.has(txn);
        let is_kept = |node: &u32| layout.txn(*node).is_some_and(counts);
        let kept = search.order.nodes().iter().copied().filter(is_kept);
        if layout.is_split() {
            Witness::Points(kept.filter_map(|node| layout.point(node)).collect())
        } else {
            Witness::CommitOrder(kept.map(TxnId).collect())
        }
    }
}

/// Every node as a chain, where that is not too much.
fn single_chains(nodes: usize) -> Option<Chains> {
    let chains = Chains::of_nodes(nodes);
    (Reach::bytes(&chains, nodes) <= MOST_BYTES).then_some(chains)
}

/// A shortest cycle of each component that has one.
fn shortest_cycles(graph: &Graph) -> Vec<Vec<u32>> {
    components(graph).iter().map(|component| shortest_cycle(graph, component)).collect()
}
