//! Serializable, snapshot isolation and their kin for any history of registers, by search.
//!
//! Whether a history with blind writes is serializable is NP-complete. The plan: lower the level to
//! a graph with known edges and choices ([`problem`]), settle what follows without trying anything
//! ([`saturate`]), and search for the rest ([`search`]), beginning with a guess at the order of
//! commits. Often the guess is the answer, and nothing else has to be done.

mod chains;
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
mod saturate;
mod search;
#[cfg(test)]
mod tests;

use isolario_model::{Inapplicable, KeyId, Level, TxnId, Verdict, Witness};

use crate::Options;
use crate::graph::{components, shortest_cycle, topological_order};
use crate::weak::{Dependencies, Weak};
use chains::Chains;
use explain::Explainer;
use graph::Graph;
use layout::Layout;
use limits::{Limit, Limits};
use open::open_choices;
use order::Order;
use problem::{Arc, Problem};
use reach::Reach;
use saturate::Settled;
use search::{Found, Literal, Search};

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
        let mut settled = Settled::default();
        let mut graph = Graph::new(self.problem.nodes, &self.problem.known);
        let Some(mut nodes) = topological_order(&graph, &guess) else {
            return self.contradiction(&graph, &settled);
        };
        let all: Vec<KeyId> = (0..self.problem.registers.key_count()).map(KeyId::at).collect();
        let order = Order::new(&graph, nodes.clone());
        if open_choices(&self.problem, &order, &all).is_empty() {
            return Verdict::Satisfied(self.witness(&nodes));
        }
        drop(order);
        let chains = Chains::new(self.dependencies, &self.problem, &graph, &nodes, MOST_CHAINS);
        if let Some(chains) = chains.filter(|_| self.saturate) {
            let mut arcs: Vec<Arc> = self.problem.known.clone();
            loop {
                let reach = Reach::new(&chains, &graph, &nodes);
                let before = settled.arcs.len();
                if !settled.round(&self.problem, &chains, &reach) {
                    break;
                }
                drop(reach);
                arcs.extend_from_slice(&settled.arcs[before..]);
                graph = Graph::new(self.problem.nodes, &arcs);
                match topological_order(&graph, &guess) {
                    Some(order) => nodes = order,
                    None => return self.contradiction(&graph, &settled),
                }
            }
        }
        let order = Order::new(&graph, nodes);
        let mut search = Search::new(&self.problem, self.dependencies.history, order);
        match search.run(&limits) {
            Found::Solution => Verdict::Satisfied(self.witness(search.order.nodes())),
            Found::Refutation(cycles) => {
                let choice = |label: u32| search.variables.precedes(Literal(label));
                let told = cycles.into_iter().map(|cycle| {
                    cycle.into_iter().map(|(arc, label)| (arc, label.map(choice))).collect()
                });
                Verdict::Violated(self.explainer(&settled).refutation(told.collect()))
            }
            Found::Stopped(limit) => undecided(limit, &search),
        }
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

fn undecided(limit: Limit, search: &Search<'_, '_>) -> Verdict {
    let (choices, open) = search.progress();
    let limit = match limit {
        Limit::Time(timeout) => format!("the time limit of {} s", timeout.as_secs_f64()),
        Limit::Memory(bytes) => format!("the memory limit of {bytes} bytes"),
    };
    let reason = format!(
        "{limit} was reached after {} conflicts, with {open} of {choices} pairs of writes not ordered",
        search.conflicts
    );
    Verdict::Undecided { reason }
}
