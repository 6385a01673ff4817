//! Real time as a chain.
//!
//! A transaction precedes another if it had finished before the other started. That may be n² pairs,
//! but they hang together: put one helper node per finished transaction into a chain, by finish
//! time; let every transaction lead to its own helper, and let the last helper whose finish is
//! strictly before a transaction's start lead to that transaction.
//!
//! The chain says exactly what the pairs say. If A finished before B started, A's helper is that
//! last one or comes before it in the chain, so A leads to B. The other way round, helpers are
//! entered only from their own transactions and from earlier helpers: a path from A through the
//! chain to B leaves it at a helper that finished no earlier than A and before B started. So a cycle
//! with the chain is a cycle with the pairs, in O(n) edges after sorting.

use isolario_model::{History, Outcome, TxnId};
use rayon::prelude::*;

use super::InEdges;

/// A graph whose nodes are moments in the lives of transactions: one for each, unless it says
/// otherwise.
pub(crate) trait Moments: InEdges {
    /// Number of chains that were added to the graph.
    const CHAINS: u32 = 0;

    /// The transaction that begins with a node.
    #[inline]
    fn begins(&self, node: u32) -> Option<TxnId> {
        Some(TxnId(node))
    }

    /// The transaction that ends with a node.
    #[inline]
    fn ends(&self, node: u32) -> Option<TxnId> {
        Some(TxnId(node))
    }

    /// The node with which a transaction ends.
    #[inline]
    fn end_of(&self, txn: TxnId) -> u32 {
        txn.0
    }
}

/// A finish, widened by the skew of both clocks, to be compared with starts.
///
/// The comparison `widened(finish, skew) < start` is exact for all times and all skews. A sum beyond the
/// last time becomes that time, and no start is later than either. A skew of which the double does not
/// fit into 64 bits is longer than half of all time: then every sum is beyond the last time.
fn widened(finish: i64, clock_skew: u64) -> i64 {
    finish.saturating_add_unsigned(clock_skew.saturating_mul(2))
}

/// When a transaction had surely ended; never where its outcome is unknown.
fn finish(history: &History, txn: TxnId) -> Option<i64> {
    history.finish(txn).filter(|_| history.outcome(txn) == Outcome::Committed)
}

/// When a transaction started and had surely ended, as far as it is known, so that one that ended before
/// another started did so however the clocks may differ.
pub(crate) fn interval(
    history: &History,
    clock_skew: u64,
    txn: TxnId,
) -> (Option<i64>, Option<i64>) {
    let ended = finish(history, txn).map(|finish| widened(finish, clock_skew));
    (history.start(txn), ended)
}

/// Whether a transaction had finished before another started, however the clocks may differ.
pub(crate) fn precedes(history: &History, clock_skew: u64, before: TxnId, after: TxnId) -> bool {
    let (Some(finish), Some(start)) = (finish(history, before), history.start(after)) else {
        return false;
    };
    widened(finish, clock_skew) < start
}

/// Whether an order of transactions agrees with real time.
///
/// It does unless somebody comes before a transaction that had finished first: going through the
/// order from its end, the earliest finish so far is enough to know. Parts of the order are looked
/// at by themselves, and then beside the earliest finish of all that come after.
pub(crate) fn agrees(history: &History, clock_skew: u64, order: &[u32]) -> bool {
    let look = |part: &[u32]| Part::of(history, clock_skew, part);
    let parts: Vec<Part> = order.par_chunks(TXNS_PER_TASK).map(look).collect();
    let mut earliest = i64::MAX;
    parts.iter().rev().all(|part| {
        let in_time = part.agrees && earliest >= part.latest_start;
        earliest = earliest.min(part.earliest_finish);
        in_time
    })
}

/// Transactions per task.
const TXNS_PER_TASK: usize = 1 << 16;

/// What matters of a part of an order.
struct Part {
    /// Whether it agrees with real time by itself.
    agrees: bool,
    latest_start: i64,
    earliest_finish: i64,
}

impl Part {
    fn of(history: &History, clock_skew: u64, order: &[u32]) -> Part {
        let mut part = Part { agrees: true, latest_start: i64::MIN, earliest_finish: i64::MAX };
        for txn in order.iter().rev().map(|txn| TxnId(*txn)) {
            if let Some(start) = history.start(txn) {
                part.agrees &= part.earliest_finish >= start;
                part.latest_start = part.latest_start.max(start);
            }
            if let Some(finish) = finish(history, txn) {
                part.earliest_finish = part.earliest_finish.min(widened(finish, clock_skew));
            }
        }
        part
    }
}

/// The chain.
pub(crate) struct RealTime {
    /// The finished transactions, by finish time: helper i is that of the i-th.
    finished: Vec<TxnId>,
    /// Per transaction, how many of them had finished before it started.
    before: Vec<u32>,
}

impl RealTime {
    /// The chain of the transactions that `is_kept` tells to take part.
    pub(crate) fn new(
        history: &History,
        clock_skew: u64,
        is_kept: impl Fn(TxnId) -> bool + Sync,
    ) -> Self {
        let timed = |txn: TxnId| Some((finish(history, txn).filter(|_| is_kept(txn))?, txn));
        let mut finished: Vec<(i64, TxnId)> = history.txns().filter_map(timed).collect();
        finished.par_sort_unstable();
        let finished_before = |txn: usize| {
            let start = history.start(TxnId::at(txn)).unwrap_or(i64::MIN);
            finished.partition_point(|(finish, _)| widened(*finish, clock_skew) < start) as u32
        };
        let before = (0..history.txn_count()).into_par_iter().map(finished_before).collect();
        RealTime { finished: finished.into_iter().map(|(_, txn)| txn).collect(), before }
    }

    /// The chain of another order of this kind: transactions by when they had ended, and per transaction
    /// how many of them had ended when it began.
    pub(crate) fn of_ends(finished: Vec<TxnId>, before: Vec<u32>) -> Self {
        RealTime { finished, before }
    }

    /// The finished transactions, by finish time.
    pub(crate) fn finished(&self) -> &[TxnId] {
        &self.finished
    }

    /// How many of them had finished before a transaction started.
    pub(crate) fn finished_before(&self, txn: TxnId) -> usize {
        self.before[txn.index()] as usize
    }
}

/// A graph with real time added to it. Helpers are numbered after its own nodes.
pub(crate) struct InTime<'g, G> {
    pub(crate) graph: &'g G,
    pub(crate) time: &'g RealTime,
}

impl<G: Moments> InTime<'_, G> {
    /// The given order of the graph's own nodes, with the helpers after them.
    pub(crate) fn and_helpers(&self, mut order: Vec<u32>) -> Vec<u32> {
        order.extend(self.graph.node_count() as u32..self.node_count() as u32);
        order
    }

    /// Whether a node is one of the graph itself.
    #[inline]
    pub(crate) fn is_own(&self, node: u32) -> bool {
        (node as usize) < self.graph.node_count()
    }

    fn next_before_helper(&self, helper: u32, cursor: &mut u32) -> Option<u32> {
        *cursor += 1;
        match *cursor {
            1 => Some(self.graph.end_of(self.time.finished[helper as usize])),
            2 if helper > 0 => Some(self.graph.node_count() as u32 + helper - 1),
            _ => None,
        }
    }
}

impl<G: Moments> InTime<'_, G> {
    /// A cursor past the graph's own edges and past this chain. A graph with a chain may be given a second
    /// one, so each has a number of its own.
    const DONE: u32 = u32::MAX - G::CHAINS;
}

impl<G: Moments> InEdges for InTime<'_, G> {
    fn node_count(&self) -> usize {
        self.graph.node_count() + self.time.finished.len()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let own = self.graph.node_count() as u32;
        if node >= own {
            return self.next_before_helper(node - own, cursor);
        }
        if *cursor == Self::DONE {
            return None;
        }
        if let Some(before) = self.graph.next_in(node, cursor) {
            return Some(before);
        }
        *cursor = Self::DONE;
        let finished = self.time.before[self.graph.begins(node)?.index()];
        (finished > 0).then(|| own + finished - 1)
    }
}

/// Helpers are moments of nobody.
impl<G: Moments> Moments for InTime<'_, G> {
    const CHAINS: u32 = G::CHAINS + 1;

    fn begins(&self, node: u32) -> Option<TxnId> {
        self.is_own(node).then(|| self.graph.begins(node))?
    }

    fn ends(&self, node: u32) -> Option<TxnId> {
        self.is_own(node).then(|| self.graph.ends(node))?
    }

    fn end_of(&self, txn: TxnId) -> u32 {
        self.graph.end_of(txn)
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, TxnEnd, TxnSink, TxnStart};

    use super::super::Rows;
    use super::super::components;
    use super::*;

    fn history(times: &[(i64, i64)]) -> History {
        let mut batch = Batch::new();
        for (number, (start, finish)) in (0i64..).zip(times) {
            let session = number.into();
            batch.begin(&TxnStart { session, id: None, line: None }).unwrap();
            let (start, finish) = (Some(*start), Some(*finish));
            let end = TxnEnd { start, finish, ..TxnEnd::new(Outcome::Committed) };
            batch.end(&end).unwrap();
        }
        batch.build().unwrap()
    }

    impl Moments for Rows<u32> {
        fn begins(&self, node: u32) -> Option<TxnId> {
            Some(TxnId(node))
        }

        fn ends(&self, node: u32) -> Option<TxnId> {
            Some(TxnId(node))
        }

        fn end_of(&self, txn: TxnId) -> u32 {
            txn.0
        }
    }

    #[test]
    fn the_chain_orders_what_the_pairs_order() {
        let times = [(0, 3), (1, 5), (3, 4), (4, 9), (5, 6), (6, 8), (7, 7), (0, 9)];
        let history = history(&times);
        let count = times.len();
        for skew in [0, 1] {
            let time = RealTime::new(&history, skew, |_| true);
            for after in 0..count as u32 {
                for before in (0..count as u32).filter(|before| *before != after) {
                    // An edge back closes a cycle exactly where there is a way forth.
                    let back = Rows::graph(count, &[(after, before)]);
                    let cyclic = !components(&InTime { graph: &back, time: &time }).is_empty();
                    let (before, after) = (TxnId(before), TxnId(after));
                    assert_eq!(
                        cyclic,
                        precedes(&history, skew, before, after),
                        "{before:?} {after:?}"
                    );
                }
            }
        }
    }

    /// Each chain has a step into the third transaction, and only the outer one leads back.
    #[test]
    fn a_chain_around_another_one_keeps_both() {
        let chain = |finished: u32, before: [u32; 3]| {
            RealTime::of_ends(vec![TxnId(finished)], before.to_vec())
        };
        let graph = Rows::graph(3, &[(2, 1)]);
        let (inner, outer) = (chain(0, [0, 0, 1]), chain(1, [0, 0, 1]));
        let once = InTime { graph: &graph, time: &inner };
        assert!(components(&once).is_empty());
        assert_eq!(components(&InTime { graph: &once, time: &outer }).len(), 1);
    }

    #[test]
    fn an_order_agrees_unless_somebody_comes_before_what_had_finished() {
        let history = history(&[(0, 3), (3, 4), (5, 6)]);
        assert!(agrees(&history, 0, &[0, 1, 2]));
        assert!(agrees(&history, 0, &[1, 0, 2]));
        assert!(!agrees(&history, 0, &[0, 2, 1]));
        assert!(agrees(&history, 1, &[0, 2, 1]));
    }
}
