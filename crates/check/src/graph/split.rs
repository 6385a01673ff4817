//! The split graph: every transaction as two moments, its start and its commit.
//!
//! Under snapshot isolation a transaction reads as of its start and writes as of its commit. What
//! it waits for (its session, the writers it read from, whoever it overwrote) had committed when
//! it started; what overtakes it (whoever overwrote what it read) committed after it started.
//! Every transaction starts before it commits. A cycle of these moments is exactly a cycle of
//! dependencies in which no two anti-dependencies are adjacent: after an anti-dependency one is at
//! a commit, and only something that waits for that commit leads on.

use isolario_model::{Point, TxnId};

use super::{InEdges, Moments};

/// The moment a transaction takes its snapshot.
#[inline]
pub(crate) fn start_of(txn: u32) -> u32 {
    2 * txn
}

/// The moment a transaction commits.
#[inline]
pub(crate) fn commit_of(txn: u32) -> u32 {
    2 * txn + 1
}

/// The transaction of a moment.
#[inline]
pub(crate) fn txn_of(moment: u32) -> u32 {
    moment / 2
}

/// Whether a moment is a commit.
#[inline]
pub(crate) fn is_commit(moment: u32) -> bool {
    moment % 2 == 1
}

/// The moments of those transactions that count, in the same order, as a witness tells them.
pub(crate) fn points(moments: &[u32], counts: impl Fn(TxnId) -> bool) -> Vec<Point> {
    let point = |moment: &u32| {
        let txn = TxnId(txn_of(*moment));
        let point = if is_commit(*moment) { Point::Commit(txn) } else { Point::Start(txn) };
        counts(txn).then_some(point)
    };
    moments.iter().filter_map(point).collect()
}

/// The split graph of two relations between transactions.
pub(crate) struct Split<'g, W, O> {
    /// Edges from the commit of the one to the start of the other.
    pub(crate) waits: &'g W,
    /// Edges from the start of the one to the commit of the other.
    pub(crate) overtaken: &'g O,
}

impl<W: InEdges, O: InEdges> InEdges for Split<'_, W, O> {
    fn node_count(&self) -> usize {
        2 * self.waits.node_count()
    }

    /// The cursor is that of the relation; for a commit, one more, since its own start comes first.
    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let txn = txn_of(node);
        if !is_commit(node) {
            return self.waits.next_in(txn, cursor).map(commit_of);
        }
        if *cursor == 0 {
            *cursor = 1;
            return Some(start_of(txn));
        }
        let mut inner = *cursor - 1;
        let found = self.overtaken.next_in(txn, &mut inner).map(start_of);
        *cursor = inner + 1;
        found
    }
}

impl<W: InEdges, O: InEdges> Moments for Split<'_, W, O> {
    fn begins(&self, node: u32) -> Option<TxnId> {
        (!is_commit(node)).then(|| TxnId(txn_of(node)))
    }

    fn ends(&self, node: u32) -> Option<TxnId> {
        is_commit(node).then(|| TxnId(txn_of(node)))
    }

    fn end_of(&self, txn: TxnId) -> u32 {
        commit_of(txn.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::super::topological_order;
    use super::*;

    fn is_acyclic(waits: &[(u32, u32)], overtaken: &[(u32, u32)]) -> bool {
        let (waits, overtaken) = (Rows::graph(3, waits), Rows::graph(3, overtaken));
        let split = Split { waits: &waits, overtaken: &overtaken };
        topological_order(&split, &[0, 1, 2, 3, 4, 5]).is_some()
    }

    #[test]
    fn two_transactions_that_wait_for_each_other_are_a_cycle() {
        // Without the edge from each start to its commit, there would be none.
        assert!(!is_acyclic(&[(0, 1), (1, 0)], &[]));
    }

    #[test]
    fn adjacent_anti_dependencies_close_no_cycle_and_others_do() {
        assert!(is_acyclic(&[], &[(0, 1), (1, 0)]));
        assert!(is_acyclic(&[(2, 0)], &[(0, 1), (1, 2)]));
        assert!(!is_acyclic(&[(1, 0)], &[(0, 1)]));
        assert!(!is_acyclic(&[(1, 2), (2, 0)], &[(0, 1)]));
    }
}
