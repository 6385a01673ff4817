//! Where the search begins: a guess at the order in which things happened.

use isolario_model::{History, TxnId};

use super::problem::Problem;

/// All nodes, as far as times tell when they happened, else transactions in the order in which
/// they seem to have committed, each with its start just before its commit.
pub(crate) fn order(history: &History, commits: &[u32], problem: &Problem) -> Vec<u32> {
    let layout = problem.layout;
    let mut nodes: Vec<u32> = Vec::with_capacity(problem.nodes);
    if layout.is_split() && history.has_times() {
        let mut timed: Vec<(i64, u32)> = Vec::with_capacity(layout.txn_nodes());
        for txn in history.txns() {
            timed.push((history.start(txn).unwrap_or(i64::MIN), layout.start(txn)));
            timed.push((history.finish(txn).unwrap_or(i64::MAX), layout.commit(txn)));
        }
        timed.sort_unstable();
        nodes.extend(timed.into_iter().map(|(_, node)| node));
    } else {
        for txn in commits.iter().copied().map(TxnId) {
            if layout.is_split() {
                nodes.push(layout.start(txn));
            }
            nodes.push(layout.commit(txn));
        }
    }
    nodes.extend(layout.txn_nodes() as u32..problem.nodes as u32);
    nodes
}
