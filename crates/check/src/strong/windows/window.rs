//! Some transactions as a problem of their own.
//!
//! In a *window* of an order, what comes before it and after it stays where it is. So whoever read a version from
//! before the window comes before everybody in it who wrote the key, and of the versions in it that
//! somebody after it read, each stays the last one of its key. These are assumptions: an order of the window with them
//! is one for its place in the whole, but that there is none may be their fault.
//!
//! As a *part*, the same transactions, with those that they read from, are not in any place, and nothing is
//! assumed. All that is asked of them is asked in the whole, too. So if a part has no order, neither
//! has the whole.

use std::ops::Range;

use isolario_model::TxnId;

use super::few::Few;
use super::{Question, WrittenBy};
use crate::graph::topological_order;
use crate::resolved::VersionEdge;
use crate::strong::SHORT_SEARCH;
use crate::strong::graph::Graph;
use crate::strong::limits::Limits;
use crate::strong::order::Order;
use crate::strong::problem::Problem;
use crate::strong::search::{Search, SearchEnd};

/// A window of an order.
pub(super) struct Window<'a> {
    pub(super) range: Range<usize>,
    /// The nodes in it.
    pub(super) nodes: &'a [u32],
    /// The versions in it that somebody after it read.
    pub(super) read_later: &'a [WrittenBy],
    /// The orders of versions in it that are known.
    pub(super) ordered: &'a [VersionEdge],
}

/// What came of a window or a part.
pub(super) enum Answer {
    /// Its nodes in an order that is right.
    Order(Vec<u32>),
    /// There is none.
    None,
    /// Nobody knows.
    Stopped,
}

/// The order of all nodes that windows are cut from.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) places: &'a [u32],
    /// Per open read, whose version the order shows it.
    pub(super) saw: &'a [Option<TxnId>],
}

/// Solves a window.
pub(super) fn solve(
    question: &Question<'_>,
    row: Row<'_>,
    window: &Window<'_>,
    limits: &Limits<'_>,
) -> Answer {
    let place = |node: u32| row.places[node as usize];
    let is_inside = |node: u32| window.range.contains(&(place(node) as usize));
    let mut few = Few::new(question, question.kept(window.nodes).collect(), is_inside);
    few.pin_outside();
    if !few.know_in(row.saw) {
        return Answer::None;
    }
    let last = window.read_later.iter().flat_map(|(key, writer)| few.before_last(*key, *writer));
    let known = window.ordered.iter().filter_map(|edge| few.precedes(edge));
    let settled = last.chain(known).collect::<Vec<_>>();
    let (problem, txns) = few.problem(&settled);
    let nodes = txns.in_order(&problem, place);
    match search(&problem, &nodes, limits) {
        Answer::Order(nodes) => {
            let counted = nodes.into_iter().filter_map(|node| txns.whole(node));
            // Whoever does not count may be anywhere.
            let others = window.nodes.iter().copied().filter(|node| !question.counts(*node));
            Answer::Order(counted.filter(|node| is_inside(*node)).chain(others).collect())
        }
        other => other,
    }
}

/// Whether some transactions have no order, whatever the others do.
pub(super) fn has_no_order(
    question: &Question<'_>,
    places: &[u32],
    txns: Vec<TxnId>,
    ordered: &[VersionEdge],
    limits: &Limits<'_>,
) -> bool {
    let mut few = Few::new(question, txns, |_| true);
    few.know();
    let settled = ordered.iter().filter_map(|edge| few.precedes(edge)).collect::<Vec<_>>();
    let (problem, txns) = few.problem(&settled);
    let nodes = txns.in_order(&problem, |node| places[node as usize]);
    matches!(search(&problem, &nodes, limits), Answer::None)
}

/// The transactions of a window, and those that they read from.
pub(super) fn with_writers(question: &Question<'_>, nodes: &[u32]) -> Vec<TxnId> {
    let mut txns: Vec<TxnId> = question.kept(nodes).collect();
    for at in 0..txns.len() {
        let reader = txns[at];
        let ops = question.history().op_range(reader);
        question.reads().for_each_writer(ops, |_, writer| txns.push(writer));
        txns.extend(question.open_reads(reader).flat_map(|read| question.candidates(read)));
    }
    txns.retain(|txn| !txn.is_init());
    txns.sort_unstable();
    txns.dedup();
    txns
}

/// Searches for a while, beginning with some order of the nodes.
fn search(problem: &Problem, nodes: &[u32], limits: &Limits<'_>) -> Answer {
    let graph = Graph::new(problem.nodes, &problem.known);
    let Some(order) = topological_order(&graph, nodes) else { return Answer::None };
    let mut search = Search::new(problem, Order::new(&graph, order));
    match search.run(limits, Some(SHORT_SEARCH)) {
        SearchEnd::Solution => Answer::Order(search.order.nodes().to_vec()),
        SearchEnd::Refutation(_) => Answer::None,
        SearchEnd::Stopped(_) => Answer::Stopped,
    }
}
