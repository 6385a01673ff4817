//! Where the search begins: a guess at the order in which things happened.

use isolario_model::{History, Stamp, TxnId};

use super::layout::Layout;
use super::problem::Problem;
use crate::resolved::{Clue, Resolved};

/// All nodes. Where start and commit are two, as far as stamps or times tell when they happened,
/// else each start just before its commit.
pub(crate) fn order(resolved: &Resolved<'_>, problem: &Problem) -> Vec<u32> {
    let (history, guess) = (resolved.dependencies.history, &resolved.guess);
    let layout = problem.layout;
    let mut nodes = match guess.clue {
        _ if !layout.is_split() => guess.commits.to_vec(),
        Clue::Stamps => by_stamps(history, layout),
        Clue::Times => by_times(history, layout),
        Clue::Places => {
            let txns = guess.commits.iter().copied().map(TxnId);
            txns.flat_map(|txn| [layout.start(txn), layout.commit(txn)]).collect()
        }
    };
    nodes.extend(layout.txn_nodes() as u32..problem.nodes as u32);
    nodes
}

fn by_times(history: &History, layout: Layout) -> Vec<u32> {
    let mut timed: Vec<(i64, u32)> = Vec::with_capacity(layout.txn_nodes());
    for txn in history.txns() {
        timed.push((history.start(txn).unwrap_or(i64::MIN), layout.start(txn)));
        timed.push((history.finish(txn).unwrap_or(i64::MAX), layout.commit(txn)));
    }
    timed.sort_unstable();
    timed.into_iter().map(|(_, node)| node).collect()
}

/// A snapshot has in it what committed at its stamp or before. A transaction without one starts
/// just before its commit.
fn by_stamps(history: &History, layout: Layout) -> Vec<u32> {
    const LAST: Stamp = Stamp { physical: u64::MAX, logical: u64::MAX };
    // Of what has the same stamp, this comes first.
    const UNSTAMPED_START: u8 = 0;
    const COMMIT: u8 = 1;
    const START: u8 = 2;
    let mut stamped: Vec<(Stamp, u8, u32)> = Vec::with_capacity(layout.txn_nodes());
    for txn in history.txns() {
        let commit = history.db_commit(txn).unwrap_or(LAST);
        stamped.push((commit, COMMIT, layout.commit(txn)));
        stamped.push(match history.db_start(txn) {
            Some(start) => (start, START, layout.start(txn)),
            None => (commit, UNSTAMPED_START, layout.start(txn)),
        });
    }
    stamped.sort_unstable();
    stamped.into_iter().map(|(.., node)| node).collect()
}
