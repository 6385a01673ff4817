//! Saturation to the end: rules are applied until nothing more follows.

use super::chains::Chains;
use super::graph::Graph;
use super::limits::Limits;
use super::parts::{Part, parts};
use super::problem::{Arc, Problem};
use super::reach::Reach;
use super::saturate::Settled;
use crate::Phase;
use crate::graph::topological_order;
use isolario_model::Limit;

/// How far saturation came.
pub(crate) enum Outcome {
    /// Nothing more follows. The parts that are left are known where saturation looked at them.
    Settled {
        graph: Graph,
        nodes: Vec<u32>,
        settled: Settled,
        parts: Option<Vec<Part>>,
    },
    /// What follows has a cycle.
    Contradiction(Graph, Settled),
    Stopped(Limit, Settled),
}

/// What is known and settled, as edges.
pub(crate) fn edges(problem: &Problem, settled: &Settled) -> Vec<Arc> {
    let taken = settled.taken.arcs.iter().map(|(arc, _)| arc);
    problem.known.iter().chain(&settled.arcs).chain(taken).copied().collect()
}

/// Settles what follows from the known edges. `nodes` is a topological order of the graph, and
/// those of later graphs are to be close to `guess`.
pub(crate) fn settle(
    problem: &Problem,
    chains: &Chains,
    (mut graph, mut nodes): (Graph, Vec<u32>),
    mut settled: Settled,
    guess: &[u32],
    limits: &Limits<'_>,
) -> Outcome {
    let pairs = problem.versions.pairs();
    loop {
        let bytes = Reach::bytes(chains, nodes.len()) + settled.bytes() + graph.bytes();
        if let Some(limit) = limits.reached(bytes as u64 + problem.bytes()) {
            return Outcome::Stopped(limit, settled);
        }
        let reach = Reach::new(chains, &graph, &nodes);
        let is_new = settled.round(problem, chains, &reach);
        if !(settled.taken.round(&problem.choices, &reach) || is_new) {
            // A choice that is written down may tie any nodes together.
            let is_plain = problem.choices.len() == 0;
            let parts = is_plain.then(|| parts(problem, &graph, chains, &reach, &nodes));
            return Outcome::Settled { graph, nodes, settled, parts };
        }
        drop(reach);
        limits.tell(Phase::Settling, settled.decided, pairs, 0);
        graph = Graph::new(problem.nodes, &edges(problem, &settled));
        match topological_order(&graph, guess) {
            Some(order) => nodes = order,
            None => return Outcome::Contradiction(graph, settled),
        }
    }
}
