//! The chains of a problem.

use super::problem::Problem;
pub(super) use crate::graph::Chains;
use crate::resolved::Dependencies;

/// The sessions, which are ordered, and the moments of real time.
pub(super) fn session_chains(dependencies: &Dependencies<'_>, problem: &Problem) -> Chains {
    let layout = problem.layout;
    let mut chains = Chains::of_sessions(
        dependencies.history,
        problem.nodes,
        |txn| {
            dependencies.reads.is_kept(txn) || problem.sources.maybe().binary_search(&txn).is_ok()
        },
        |chains, txn, chain, position| {
            chains.place(layout.start(txn), chain, 2 * position);
            chains.place(layout.commit(txn), chain, 2 * position + 1);
        },
    );
    if !problem.moments.is_empty() {
        let chain = chains.open();
        let first = layout.txn_nodes() as u32;
        (0..problem.moments.len() as u32).for_each(|at| chains.place(first + at, chain, at));
    }
    chains
}
