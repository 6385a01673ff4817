//! The transactions that take part in a replay, and their order.

use isolario_model::{History, Inapplicable, Outcome, Point, PromisedOrder, TxnId};

use super::TxnPoints;
use super::operation::{has_open_effect, is_unobserved_write};
use crate::rows::written_rows;

/// The points of a replay, and the transactions without a position among them.
pub(super) struct ReplaySchedule<'h> {
    pub(super) history: &'h History,
    pub(super) moments: TxnPoints,
    /// By timestamp; within one, in the order of the transactions, which is that of their sessions. A
    /// transaction with one point has its commit.
    points: Vec<(u32, Point)>,
    /// Transactions that only read, without a position.
    pub(super) unplaced: Vec<TxnId>,
    /// The first transaction of unknown outcome that may have written and has no position. The order is
    /// complete without it, unless something does not come out right.
    pub(super) left_out: Option<TxnId>,
}

/// The transaction of a point.
pub(super) fn txn_of(point: Point) -> TxnId {
    point_key(&point).0
}

/// Points by transaction, each start before its commit.
pub(super) fn point_key(point: &Point) -> (TxnId, u8) {
    match *point {
        Point::Start(txn) => (txn, 0),
        Point::Commit(txn) => (txn, 1),
    }
}

/// The transactions that commit at some points.
pub(crate) fn commits(points: &[Point]) -> impl Iterator<Item = TxnId> {
    let commit = |point: &Point| match *point {
        Point::Commit(txn) => Some(txn),
        Point::Start(_) => None,
    };
    points.iter().filter_map(commit)
}

impl<'h> ReplaySchedule<'h> {
    /// Fails if a transaction lacks a position that it needs: it wrote, or real time counts.
    pub(super) fn new(
        history: &'h History,
        order: &PromisedOrder,
        moments: TxnPoints,
        real_time: bool,
    ) -> Result<Self, Inapplicable> {
        let (mut points, mut unplaced, mut left_out) = (Vec::new(), Vec::new(), None);
        let writes = |txn| {
            let mut ops = history.txn_ops(txn);
            ops.any(|op| {
                is_unobserved_write(history, op) || written_rows(history, op).next().is_some()
            })
        };
        for txn in history.txns() {
            match (history.outcome(txn), order.points(txn)) {
                (Outcome::Aborted, _) => {}
                (_, Some(at)) if moments == TxnPoints::One => {
                    points.push((at.commit, Point::Commit(txn)));
                }
                (_, Some(at)) => {
                    // A transaction that wrote nothing leaves nothing behind: all of it happens at its start.
                    let commit = if writes(txn) { at.commit } else { at.start };
                    points.extend([(at.start, Point::Start(txn)), (commit, Point::Commit(txn))]);
                }
                (Outcome::Committed, None) if !real_time && !writes(txn) => unplaced.push(txn),
                (Outcome::Committed, None) => return Err(Inapplicable::NotInPromisedOrder { txn }),
                (Outcome::Unknown, None) if left_out.is_none() && writes(txn) => {
                    left_out = Some(txn);
                }
                (Outcome::Unknown, None) => {}
            }
        }
        points.sort_unstable_by_key(|(at, point)| (*at, point_key(point)));
        Ok(ReplaySchedule { history, moments, points, unplaced, left_out })
    }

    /// The points of one timestamp after the other.
    pub(super) fn by_timestamp(&self) -> impl Iterator<Item = &[(u32, Point)]> {
        self.points.chunk_by(|a, b| a.0 == b.0)
    }

    /// Whether what a transaction wrote depends on the state as of its start.
    pub(super) fn has_open_effects(&self, txn: TxnId) -> bool {
        self.moments != TxnPoints::One
            && self.history.has_conditionals()
            && self.history.txn_ops(txn).any(|op| has_open_effect(self.history, op))
    }

    pub(super) fn point_count(&self) -> usize {
        self.points.len()
    }
}
