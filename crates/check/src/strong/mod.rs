//! Serializable, snapshot isolation and their kin for any history of registers, by search.
//!
//! Whether a history with blind writes is serializable is NP-complete. The plan: lower the level to
//! a graph with known edges and choices ([`problem`]), settle what follows without trying anything
//! ([`saturate`]), and search for the rest ([`search`]), beginning with a guess at the order of
//! commits. Often the guess is the answer, and nothing else has to be done.

mod chains;
mod dump;
mod explain;
mod graph;
mod guess;
mod layout;
mod limits;
mod lower;
mod open;
mod order;
mod problem;
mod reach;
mod registers;
#[cfg(test)]
mod sat;
mod saturate;
mod search;
#[cfg(test)]
mod tests;

use std::io;

use isolario_model::{Findings, Inapplicable, Level, Point, TxnId, Verdict, Witness};

use crate::Options;
use crate::graph::{components, shortest_cycle, topological_order};
use crate::weak::{Dependencies, Weak};
use chains::Chains;
use explain::Explainer;
use graph::Graph;
use layout::Layout;
use limits::{Limit, Limits};
use order::{Labelled, Order};
use problem::{Arc, Precedes, Problem};
use reach::Reach;
use registers::Version;
use saturate::Settled;
use search::{Found, Literal, Search};

/// How many conflicts the search may take that comes before saturation.
const SHORT_SEARCH: u64 = 500;

/// More chains than this are not worth their memory.
const MOST_CHAINS: usize = 1_000;

/// Decides a level of a history without wrong, ambiguous or non-repeatable reads.
pub(crate) fn check(weak: &Weak<'_>, level: Level, options: &Options) -> Verdict {
    check_with(weak, level, options, true)
}

/// As [`check`]. Without saturation, all is left to search: never better, but another way.
fn check_with(weak: &Weak<'_>, level: Level, options: &Options, saturate: bool) -> Verdict {
    let dependencies = weak.dependencies;
    let Some(layout) = Layout::of(level, dependencies.history.txn_count()) else {
        let reason = format!("the solver does not know {level}");
        return Verdict::NotApplicable(Inapplicable::Other(reason));
    };
    let problem = lower::lower(dependencies, layout, options.clock_skew);
    Solver { commits: &weak.guess, dependencies, options, problem, saturate }.solve()
}

/// Writes down the problem of a level; false if the level makes none.
pub(crate) fn dump(
    dependencies: &Dependencies<'_>,
    level: Level,
    options: &Options,
    out: &mut dyn io::Write,
) -> io::Result<bool> {
    let Some(layout) = Layout::of(level, dependencies.history.txn_count()) else {
        return Ok(false);
    };
    let problem = lower::lower(dependencies, layout, options.clock_skew);
    dump::write(dependencies, &problem, out)?;
    Ok(true)
}

struct Solver<'a> {
    /// A guess at the order of commits.
    commits: &'a [u32],
    dependencies: &'a Dependencies<'a>,
    options: &'a Options,
    problem: Problem,
    saturate: bool,
}

impl Solver<'_> {
    fn solve(&self) -> Verdict {
        let limits = Limits::new(self.options);
        let guess = guess::order(self.dependencies.history, self.commits, &self.problem);
        if let Some(witness) = self.hinted_search(&guess, &limits) {
            return Verdict::Satisfied(witness);
        }
        let mut settled = Settled::default();
        if self.options.trust_version_order {
            settled = Settled::stated(&self.problem, &self.stated());
        }
        let graph = self.graph(&settled);
        let Some(nodes) = topological_order(&graph, &guess) else {
            return self.contradiction(&graph, &settled);
        };
        if self.saturate
            && let Some(witness) = self.short_search(&graph, nodes.clone(), &limits)
        {
            return Verdict::Satisfied(witness);
        }
        if let Some(limit) = limits.reached(0) {
            return undecided(Some(limit), settled.facts.len(), None);
        }
        match self.settle(graph, nodes, settled, &guess, &limits) {
            Outcome::Contradiction(graph, settled) => self.contradiction(&graph, &settled),
            Outcome::Stopped(limit, settled) => undecided(Some(limit), settled.facts.len(), None),
            Outcome::Settled(graph, nodes, settled) => {
                let mut search = self.search(&graph, nodes);
                match search.run(&limits, None) {
                    Found::Solution => Verdict::Satisfied(self.witness(search.order.nodes())),
                    Found::Refutation(cycles) => {
                        Verdict::Violated(self.refutation(&settled, &search, cycles))
                    }
                    Found::Stopped(limit) => undecided(limit, settled.facts.len(), Some(&search)),
                }
            }
        }
    }

    /// The stated orders of two versions, with where they are stated.
    fn stated(&self) -> Vec<(Precedes, u64)> {
        let mut stated = Vec::new();
        for order in &self.options.version_order {
            let version = |writer: &TxnId| self.problem.registers.version(order.key, *writer);
            let versions: Vec<Version> = order.writers.iter().filter_map(version).collect();
            for pair in versions.windows(2).filter(|pair| pair[0] != pair[1]) {
                stated.push((Precedes { first: pair[0], second: pair[1] }, order.at));
            }
        }
        stated
    }

    /// What is known and settled.
    fn graph(&self, settled: &Settled) -> Graph {
        let arcs = [self.problem.known.as_slice(), settled.arcs.as_slice()].concat();
        Graph::new(self.problem.nodes, &arcs)
    }

    /// Takes stated orders for granted. What comes out is a solution with or without them.
    fn hinted_search(&self, guess: &[u32], limits: &Limits<'_>) -> Option<Witness> {
        if self.options.version_order.is_empty() {
            return None;
        }
        let graph = self.graph(&Settled::stated(&self.problem, &self.stated()));
        let mut search = self.search(&graph, topological_order(&graph, guess)?);
        let found = search.run(limits, Some(SHORT_SEARCH));
        matches!(found, Found::Solution).then(|| self.witness(search.order.nodes()))
    }

    /// Where the guess is good, a short search mends it, and nothing else has to be done. Without
    /// session order, little is known, and a search for points wanders; that for a serial order is
    /// the easier one, and a serial order satisfies the snapshot levels, too.
    fn short_search(&self, graph: &Graph, nodes: Vec<u32>, limits: &Limits<'_>) -> Option<Witness> {
        let mut search = self.search(graph, nodes);
        if let Found::Solution = search.run(limits, Some(SHORT_SEARCH)) {
            return Some(self.witness(search.order.nodes()));
        }
        let is_hard = !self.dependencies.session_order
            && !self.options.trust_version_order
            && limits.reached(0).is_none();
        let layout = self.problem.layout.serial().filter(|_| is_hard)?;
        let serial = Solver {
            problem: lower::lower(self.dependencies, layout, self.options.clock_skew),
            ..*self
        };
        let guess = guess::order(self.dependencies.history, self.commits, &serial.problem);
        let graph = Graph::new(serial.problem.nodes, &serial.problem.known);
        let mut search = serial.search(&graph, topological_order(&graph, &guess)?);
        let found = search.run(limits, Some(SHORT_SEARCH));
        matches!(found, Found::Solution).then(|| self.serial_witness(&serial, search.order.nodes()))
    }

    /// A serial order of transactions as start and commit points.
    fn serial_witness(&self, serial: &Solver<'_>, nodes: &[u32]) -> Witness {
        let kept = |txn: &TxnId| self.dependencies.reads.is_kept(*txn);
        let txns = nodes.iter().filter_map(|node| serial.problem.layout.txn(*node)).filter(kept);
        Witness::Points(txns.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect())
    }

    fn search<'s>(&'s self, graph: &'s Graph, nodes: Vec<u32>) -> Search<'s, 's> {
        Search::new(&self.problem, self.dependencies.history, Order::new(graph, nodes))
    }

    /// Saturates as far as chains allow.
    fn settle(
        &self,
        mut graph: Graph,
        mut nodes: Vec<u32>,
        mut settled: Settled,
        guess: &[u32],
        limits: &Limits<'_>,
    ) -> Outcome {
        let chains = Chains::new(self.dependencies, &self.problem, &graph, &nodes, MOST_CHAINS);
        let Some(chains) = chains.filter(|_| self.saturate) else {
            return Outcome::Settled(graph, nodes, settled);
        };
        let mut arcs: Vec<Arc> = [self.problem.known.as_slice(), &settled.arcs].concat();
        loop {
            let before = settled.arcs.len();
            let reach = Reach::new(&chains, &graph, &nodes);
            if !settled.round(&self.problem, &chains, &reach) {
                return Outcome::Settled(graph, nodes, settled);
            }
            drop(reach);
            arcs.extend_from_slice(&settled.arcs[before..]);
            graph = Graph::new(self.problem.nodes, &arcs);
            match topological_order(&graph, guess) {
                Some(order) => nodes = order,
                None => return Outcome::Contradiction(graph, settled),
            }
            let bytes = (nodes.len() * chains.len() * 4 + arcs.len() * 16) as u64;
            if let Some(limit) = limits.reached(bytes) {
                return Outcome::Stopped(limit, settled);
            }
        }
    }

    fn refutation(
        &self,
        settled: &Settled,
        search: &Search<'_, '_>,
        cycles: Vec<Vec<Labelled>>,
    ) -> Findings {
        let choice = |label: u32| search.variables.precedes(Literal(label));
        let told = cycles
            .into_iter()
            .map(|cycle| cycle.into_iter().map(|(arc, label)| (arc, label.map(choice))).collect());
        self.explainer(settled).refutation(told.collect())
    }

    fn explainer<'s>(&'s self, settled: &'s Settled) -> Explainer<'s> {
        let (dependencies, problem) = (self.dependencies, &self.problem);
        Explainer { dependencies, problem, settled }
    }

    /// The settled edges alone have a cycle.
    fn contradiction(&self, graph: &Graph, settled: &Settled) -> Verdict {
        let components = components(graph);
        let cycles: Vec<Vec<u32>> =
            components.iter().map(|component| shortest_cycle(graph, component)).collect();
        Verdict::Violated(self.explainer(settled).cycles(&cycles))
    }

    fn witness(&self, nodes: &[u32]) -> Witness {
        let (layout, reads) = (self.problem.layout, self.dependencies.reads);
        let is_kept = |node: &u32| layout.txn(*node).is_some_and(|txn| reads.is_kept(txn));
        let kept = nodes.iter().copied().filter(is_kept);
        if layout.is_split() {
            Witness::Points(kept.filter_map(|node| layout.point(node)).collect())
        } else {
            Witness::CommitOrder(kept.map(TxnId).collect())
        }
    }
}

/// How far saturation came.
enum Outcome {
    /// Nothing more follows.
    Settled(Graph, Vec<u32>, Settled),
    /// What follows has a cycle.
    Contradiction(Graph, Settled),
    Stopped(Limit, Settled),
}

fn undecided(limit: Option<Limit>, settled: usize, search: Option<&Search<'_, '_>>) -> Verdict {
    let limit = limit.map_or_else(|| "a limit was reached".to_owned(), |limit| limit.to_string());
    let mut reason = format!("{limit}; {settled} orders of two writes were settled");
    if let Some(search) = search {
        let (choices, open) = search.progress();
        reason +=
            &format!("; of {choices} more, {open} are open after {} conflicts", search.conflicts);
    }
    Verdict::Undecided { reason }
}
