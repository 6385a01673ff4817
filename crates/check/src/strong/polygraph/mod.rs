//! The problem on its own: nodes, edges that are known, and choices between sets of edges.
//!
//! Papadimitriou called a graph with such choices a *polygraph*. Whether one alternative of every
//! choice can be taken so that there is no cycle is NP-complete. Levels of histories are decided by
//! asking just that; whatever else can be put in this way can be asked here.

mod argument;
#[cfg(test)]
mod tests;

use std::io;

use isolario_model::{Level, Limit};

use super::chains::Chains;
use super::choices::Choices;
use super::graph::Graph;
use super::layout::Layout;
use super::limits::Limits;
use super::order::{Chosen, Order};
use super::problem::Problem;
use super::saturate::{Saturation, Settled, saturate};
use super::search::{Search, SearchEnd};
use super::sources::Sources;
use super::{Steps, dump, shortest_cycles, single_chains};
use crate::Options;
use crate::graph::topological_order;
use crate::resolved::Versions;
use argument::Argument;

/// Nodes, known edges and choices.
///
/// ```
/// use isolario_check::{Options, Polygraph, Solution};
///
/// // After 0 comes 1; and 2 is not between them.
/// let mut polygraph = Polygraph::new(3);
/// polygraph.edge(0, 1);
/// polygraph.choice([("before both", vec![(2, 0)]), ("after both", vec![(1, 2)])]);
/// let Solution::Order(order) = polygraph.solve(&Options::default()) else { panic!("there is one") };
/// assert!(order == [2, 0, 1] || order == [0, 1, 2]);
///
/// // But it is.
/// polygraph.edge(0, 2);
/// polygraph.edge(2, 1);
/// let Solution::None(cycles) = polygraph.solve(&Options::default()) else { panic!("there is none") };
/// assert_eq!(cycles.len(), 2);
/// ```
pub struct Polygraph {
    problem: Problem,
}

/// An edge of a cycle: where it leads from and to, and for which alternative it was taken; none for
/// known edges. The alternatives of all choices are counted from zero in the order they were added.
pub type CycleEdge = ((u32, u32), Option<u32>);

/// What came of a polygraph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Solution {
    /// All nodes, in an order in which one alternative of each choice has all its edges forward,
    /// and so have all known edges.
    Order(Vec<u32>),
    /// There is none: whatever is chosen, one of these cycles is closed.
    None(Vec<Vec<CycleEdge>>),
    /// A limit was reached first, and what was known by then, in words.
    Undecided(Limit),
}

impl Polygraph {
    /// Nodes without edges.
    pub fn new(nodes: u32) -> Self {
        // No node stands for a transaction.
        let problem = Problem {
            layout: Layout::plain(),
            nodes: nodes as usize,
            known: Vec::new(),
            versions: Versions::none().into(),
            moments: Vec::new(),
            choices: Choices::default(),
            sources: Sources::default(),
            incarnations: None,
        };
        Polygraph { problem }
    }

    /// Adds an edge that holds whatever is chosen.
    pub fn edge(&mut self, from: u32, to: u32) {
        self.make_room(from, to);
        self.problem.known.push((from, to));
    }

    /// Adds a choice: alternatives, each with what it means and its edges.
    pub fn choice<R: Into<String>>(
        &mut self,
        alternatives: impl IntoIterator<Item = (R, Vec<(u32, u32)>)>,
    ) {
        let alternatives: Vec<(String, Vec<(u32, u32)>)> =
            alternatives.into_iter().map(|(reason, edges)| (reason.into(), edges)).collect();
        for (from, to) in alternatives.iter().flat_map(|(_, edges)| edges) {
            self.make_room(*from, *to);
        }
        self.problem.choices.add(alternatives);
    }

    fn make_room(&mut self, from: u32, to: u32) {
        self.problem.nodes = self.problem.nodes.max(from.max(to) as usize + 1);
    }

    /// What an alternative means.
    pub fn reason(&self, alternative: u32) -> Option<&str> {
        self.problem.choices.reason(alternative)
    }

    /// Writes it down, in the form in which the problems of levels are written down.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        dump::write_polygraph(&self.problem, out)
    }

    /// Looks for an order of the nodes. Of the options, only the limits count.
    pub fn solve(&self, options: &Options) -> Solution {
        self.solve_with(options, Steps::ALL)
    }

    fn solve_with(&self, options: &Options, steps: Steps) -> Solution {
        let problem = &self.problem;
        let limits = Limits::new(options, Level::Serializable);
        if problem.choices.has_empty() {
            return Solution::None(Vec::new());
        }
        let guess: Vec<u32> = (0..problem.nodes as u32).collect();
        let graph = Graph::new(problem.nodes, &problem.known);
        let Some(nodes) = topological_order(&graph, &guess) else {
            return self.contradiction(&graph, &Settled::default());
        };
        let chains = Chains::of_paths(&graph, &nodes, |_| true, steps.most_chains);
        let chains = chains.or_else(|| single_chains(problem.nodes));
        let outcome = match chains.filter(|_| steps.saturation) {
            Some(chains) => {
                saturate(problem, &chains, (graph, nodes), Settled::default(), &guess, &limits)
            }
            None => Saturation::Settled { graph, nodes, settled: Settled::default(), parts: None },
        };
        match outcome {
            Saturation::Contradiction(graph, settled) => self.contradiction(&graph, &settled),
            Saturation::NoSource(..) => Solution::None(Vec::new()),
            Saturation::Stopped(limit, _) => Solution::Undecided(limit),
            Saturation::Settled { graph, nodes, settled, .. } => {
                self.search(&graph, nodes, &settled, &limits)
            }
        }
    }

    fn search(
        &self,
        graph: &Graph,
        nodes: Vec<u32>,
        settled: &Settled,
        limits: &Limits<'_>,
    ) -> Solution {
        let mut search = Search::new(&self.problem, Order::new(graph, nodes));
        match search.run(limits, None) {
            SearchEnd::Solution => Solution::Order(search.order.nodes().to_vec()),
            SearchEnd::Refutation(refutation) => {
                let told =
                    |(arc, label): Chosen| Some((arc, search.variables.listed(label.first())?));
                let cycles = refutation.told(told, |read| read).cycles;
                Solution::None(Argument::new(&self.problem, settled).of_choices(cycles))
            }
            SearchEnd::Stopped(limit) => Solution::Undecided(limit),
        }
    }

    /// What is settled has a cycle.
    fn contradiction(&self, graph: &Graph, settled: &Settled) -> Solution {
        let shortest = shortest_cycles(graph).into_iter().min_by_key(Vec::len).unwrap_or_default();
        Solution::None(Argument::new(&self.problem, settled).of_nodes(&shortest))
    }
}
