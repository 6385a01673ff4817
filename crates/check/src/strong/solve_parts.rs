//! One part of a problem as a problem of its own, and all parts on all cores.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use isolario_model::{KeyId, Limit, TxnId};
use rayon::prelude::*;

use super::explain::CycleArc;
use super::graph::Graph;
use super::incarnations::Incarnations;
use super::limits::Limits;
use super::order::{Chosen, Order};
use super::parts::Part;
use super::problem::{Arc, Precedes, Problem, Under};
use super::pruned::Pruned;
use super::search::{Refutation, Search, SearchEnd};
use super::sources::Candidate;
use crate::graph::places;
use crate::resolved::{SharedVersions, Version};

/// What came of solving parts.
pub(crate) enum Solved {
    /// The nodes of each part in order.
    Orders(Vec<Vec<u32>>),
    /// One of them has none.
    Refutation(Refutation<CycleArc>),
    /// A limit was reached with these parts unsolved, after so many conflicts in all.
    Stopped { limit: Limit, unsolved: Vec<usize>, conflicts: u64 },
}

/// What came of one part.
enum Answer {
    Order(Vec<u32>),
    Refutation(Refutation<CycleArc>),
    Stopped(Limit, u64),
}

/// Solves parts, small ones first; `nodes` is a topological order of the graph. The first part
/// that has no order is the one that is told about, however many threads there are: those before
/// it are solved, those after it are abandoned.
pub(crate) fn solve_parts(
    problem: &Problem,
    pruned: &Pruned,
    (graph, nodes): (&Graph, &[u32]),
    parts: &[Part],
    limits: &Limits<'_>,
) -> Solved {
    let rank = places(nodes);
    let mut turns: Vec<usize> = (0..parts.len()).collect();
    turns.sort_by_key(|part| parts[*part].nodes.len());
    let answers: Vec<OnceLock<Answer>> = parts.iter().map(|_| OnceLock::new()).collect();
    let refuted = AtomicUsize::new(usize::MAX);
    turns.par_iter().enumerate().with_max_len(1).for_each(|(turn, part)| {
        if refuted.load(Ordering::Relaxed) < turn {
            return;
        }
        let limits = limits.for_turn(turn, &refuted);
        let problem = PartProblem::new((problem, pruned), graph, &rank, &parts[*part]);
        let answer = problem.solve(&limits);
        if matches!(answer, Answer::Refutation(_)) {
            refuted.fetch_min(turn, Ordering::Relaxed);
        }
        let _ = answers[*part].set(answer);
    });
    let first = turns.get(refuted.into_inner()).copied();
    conclude(answers.into_iter().map(OnceLock::into_inner).collect(), first)
}

/// Puts the answers together; `refuted` is the part to tell about.
fn conclude(answers: Vec<Option<Answer>>, refuted: Option<usize>) -> Solved {
    let (mut orders, mut unsolved) = (Vec::new(), Vec::new());
    let (mut limit, mut conflicts) = (None, 0);
    for (part, answer) in answers.into_iter().enumerate() {
        match answer {
            Some(Answer::Order(order)) => orders.push(order),
            Some(Answer::Refutation(refutation)) if refuted == Some(part) => {
                return Solved::Refutation(refutation);
            }
            Some(Answer::Stopped(reached, after)) => {
                limit = limit.or(Some(reached));
                conflicts += after;
                unsolved.push(part);
            }
            Some(Answer::Refutation(_)) | None => unsolved.push(part),
        }
    }
    match unsolved.is_empty() {
        true => Solved::Orders(orders),
        // Parts are abandoned only where another one was refuted, or stopped.
        false => {
            let limit = limit.unwrap_or(Limit::Interrupted);
            Solved::Stopped { limit, unsolved, conflicts }
        }
    }
}

/// A part with its own numbers for transactions, nodes and versions.
struct PartProblem {
    problem: Problem,
    graph: Graph,
    /// The node of the whole that each node is; none where the part does not have it.
    whole_nodes: Vec<Option<u32>>,
    whole_versions: Vec<Version>,
    whole_reads: Vec<u32>,
    whole_candidates: Vec<Candidate>,
    /// Where the search begins.
    order: Vec<u32>,
}

impl PartProblem {
    fn new((whole, pruned): (&Problem, &Pruned), graph: &Graph, rank: &[u32], part: &Part) -> Self {
        let mut txns: Vec<TxnId> = part.nodes.iter().filter_map(|n| whole.layout.txn(*n)).collect();
        txns.dedup();
        let layout = whole.layout.with_txns(txns.len());
        let first_moment = whole.layout.txn_nodes() as u32;
        let moments = &part.nodes[part.nodes.partition_point(|node| *node < first_moment)..];
        let of_txn = |txn: TxnId| txns.binary_search(&txn).ok().map(TxnId::at);
        let of_node = |node: u32| match whole.layout.txn(node) {
            Some(txn) if whole.layout.start(txn) == node => of_txn(txn).map(|t| layout.start(t)),
            Some(txn) => of_txn(txn).map(|t| layout.commit(t)),
            None => moments.binary_search(&node).ok().map(|at| (layout.txn_nodes() + at) as u32),
        };
        let nodes = layout.txn_nodes() + moments.len();
        let mut whole_nodes: Vec<Option<u32>> = vec![None; nodes];
        let mut known: Vec<Arc> = Vec::new();
        for node in &part.nodes {
            let Some(own) = of_node(*node) else { continue };
            whole_nodes[own as usize] = Some(*node);
            let is_inside = |from: &&u32| part.nodes.binary_search(from).is_ok();
            let inside = graph.before(*node).iter().filter(is_inside);
            known.extend(inside.filter_map(|from| of_node(*from)).map(|from| (from, own)));
        }
        let reads: Vec<(u32, KeyId)> =
            part.reads.iter().map(|(read, group)| (*read, KeyId::at(*group))).collect();
        let readers = reads.iter().map(|(read, key)| (whole.sources.read(*read).reader, *key));
        let versions: SharedVersions =
            whole.versions.restricted(&part.groups, readers, txns.len(), of_txn).into();
        let whole_versions = part.groups.concat();
        let (sources, whole_candidates) = match &reads[..] {
            [] => Default::default(),
            reads => {
                let of_version = numbers(&whole_versions);
                whole.sources.restricted(pruned, reads, &versions, (of_txn, of_version))
            }
        };
        let restrict = |incarnations: &Option<Incarnations>| {
            incarnations.as_ref().map(|incarnations| incarnations.restricted(&whole_versions))
        };
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        let place = |node: &u32| whole_nodes[*node as usize].map(|node| rank[node as usize]);
        order.sort_by_key(place);
        PartProblem {
            graph: Graph::new(nodes, &known),
            problem: Problem {
                layout,
                nodes,
                known,
                versions,
                moments: Vec::new(),
                sources,
                incarnations: restrict(&whole.incarnations),
            },
            whole_nodes,
            whole_versions,
            whole_reads: reads.iter().map(|(read, _)| *read).collect(),
            whole_candidates,
            order,
        }
    }

    fn solve(&self, limits: &Limits<'_>) -> Answer {
        let order = Order::new(&self.graph, self.order.clone());
        let mut search = Search::new(&self.problem, order);
        match search.run(limits, None) {
            SearchEnd::Solution => {
                let nodes = search.order.nodes().iter();
                Answer::Order(nodes.filter_map(|node| self.whole_nodes[*node as usize]).collect())
            }
            SearchEnd::Refutation(refutation) => {
                let whole_read = |read: u32| self.whole_reads[read as usize];
                Answer::Refutation(refutation.told(|step| self.told(&search, step), whole_read))
            }
            SearchEnd::Stopped(limit) => Answer::Stopped(limit, search.conflicts),
        }
    }

    /// An edge of a cycle in terms of the whole.
    fn told(&self, search: &Search<'_, '_>, ((from, to), label): Chosen) -> Option<CycleArc> {
        let version = |version: Version| self.whole_versions[version.0 as usize];
        let arc = (self.whole_nodes[from as usize]?, self.whole_nodes[to as usize]?);
        let Under { order, source } = search.variables.under(label);
        let order = order.map(|Precedes { first, second }| Precedes {
            first: version(first),
            second: version(second),
        });
        let source = source.map(|candidate| self.whole_candidates[candidate as usize]);
        Some((arc, Some(Under { order, source })))
    }
}

/// The place of each version in a list.
fn numbers(versions: &[Version]) -> impl Fn(Version) -> Option<Version> {
    let mut places: Vec<(Version, Version)> =
        versions.iter().copied().zip((0..).map(Version)).collect();
    places.sort_unstable();
    move |version| {
        let at = places.binary_search_by_key(&version, |(other, _)| *other).ok()?;
        Some(places[at].1)
    }
}
