//! Transactions that only read and have no position in the promised order: each goes where it fits, as
//! early as it can.
//!
//! Early is best: it leaves more room for later transactions of the same session. A transaction that does
//! not fit waits for a change of what kept it out, and is not tried before.

use isolario_model::{Evidence, History, Inapplicable, KeyId, Outcome, Point, TxnId};
use rustc_hash::FxHashMap;

use super::TxnPoints;
use super::run::Replay;
use super::schedule::{ReplaySchedule, commits, txn_of};

/// The transactions that wait, and what for.
pub(super) struct Waiting {
    lanes: Vec<Lane>,
    /// Per transaction, its lane, and how far it is. Empty if no transaction waits.
    lane_of: Vec<Option<u32>>,
    status: Vec<Status>,
    /// The lanes whose next transaction waits for a change of a key.
    for_key: FxHashMap<KeyId, Vec<u32>>,
    /// The lanes whose next transaction waits for any change.
    for_any: Vec<u32>,
    /// Two transactions that committed at one timestamp: in the other order, a waiting transaction might have
    /// fitted between them.
    tie: Option<(TxnId, TxnId)>,
}

/// Transactions that come one after the other: those of a session, or a single one if session order does
/// not count.
struct Lane {
    txns: Vec<TxnId>,
    /// The first one that has not committed, nor been given up.
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    HasPosition,
    Waits,
    /// It has committed, or been given up.
    Done,
}

impl Waiting {
    pub(super) fn new(schedule: &ReplaySchedule<'_>, session_order: bool) -> Self {
        let ReplaySchedule { history, unplaced, .. } = schedule;
        let txns = if unplaced.is_empty() { 0 } else { history.txn_count() };
        let (mut lane_of, mut status) = (vec![None; txns], vec![Status::HasPosition; txns]);
        unplaced.iter().for_each(|txn| status[txn.index()] = Status::Waits);
        let are_one = |a: &TxnId, b: &TxnId| {
            session_order && history.session_of(*a) == history.session_of(*b)
        };
        let is_committed = |txn: &TxnId| history.outcome(*txn) == Outcome::Committed;
        let mut lanes = Vec::new();
        for waiting in unplaced.chunk_by(are_one) {
            let mut txns = waiting.to_vec();
            if session_order {
                // One of unknown outcome follows those before it, and none follows it.
                let session = || history.session_txns(history.session_of(waiting[0]));
                session().for_each(|txn| lane_of[txn.index()] = Some(lanes.len() as u32));
                txns = session().filter(is_committed).collect();
            }
            lanes.push(Lane { txns, next: 0 });
        }
        let (for_key, for_any) = (FxHashMap::default(), Vec::new());
        Waiting { lanes, lane_of, status, for_key, for_any, tie: None }
    }

    /// Notes the transactions that commit at one timestamp.
    pub(super) fn note_tie(&mut self, order: &[Point]) {
        let mut commits = commits(order);
        let first_two = commits.next().zip(commits.next());
        self.tie = self.tie.or(first_two);
    }

    fn lane_of(&self, txn: TxnId) -> Option<u32> {
        self.lane_of.get(txn.index()).copied().flatten()
    }

    /// The next transaction of a lane, unless others with a position have to commit first.
    fn next(&mut self, lane: u32) -> Option<TxnId> {
        let Lane { txns, next } = &mut self.lanes[lane as usize];
        while txns.get(*next).is_some_and(|txn| self.status[txn.index()] == Status::Done) {
            *next += 1;
        }
        txns.get(*next).copied().filter(|txn| self.status[txn.index()] == Status::Waits)
    }

    /// Makes a lane wait for a change of what makes the difference.
    fn watch(&mut self, history: &History, lane: u32, difference: &Evidence) {
        match difference {
            Evidence::Unexpected { op, expected, .. }
                if history.op_predicate(*op).is_none() && !expected.is_empty() =>
            {
                self.for_key.entry(expected[0].key).or_default().push(lane);
            }
            _ => self.for_any.push(lane),
        }
    }
}

impl Replay<'_, '_> {
    /// Executes the transactions that fit before everything else.
    pub(super) fn begin(&mut self) -> Result<(), Inapplicable> {
        (0..self.waiting.lanes.len() as u32).try_for_each(|lane| self.advance(lane))
    }

    /// Gives up the transactions that wait and come before a point in its session: they did not fit in time.
    pub(super) fn expect(&mut self, point: Point) -> Result<(), Inapplicable> {
        let lane = self.waiting.lane_of(txn_of(point));
        lane.map_or(Ok(()), |lane| self.give_up(lane, |txn| txn < txn_of(point)))
    }

    /// Gives up the transactions that still wait at the end.
    pub(super) fn close(&mut self) -> Result<(), Inapplicable> {
        (0..self.waiting.lanes.len() as u32).try_for_each(|lane| self.give_up(lane, |_| true))
    }

    fn give_up(&mut self, lane: u32, is_late: impl Fn(TxnId) -> bool) -> Result<(), Inapplicable> {
        let Lane { txns, next } = &self.waiting.lanes[lane as usize];
        for txn in txns[*next..].iter().copied().take_while(|txn| is_late(*txn)) {
            let status = &mut self.waiting.status[txn.index()];
            if *status != Status::Waits {
                continue;
            }
            *status = Status::Done;
            if let Some(difference) = self.state.first_difference(txn)? {
                if let Some((first, second)) = self.waiting.tie {
                    return Err(Inapplicable::TiedInPromisedOrder { first, second });
                }
                self.found.add_result(difference);
            }
        }
        Ok(())
    }

    /// Advances the lanes that wait for this point, or for a key that has changed since the mark.
    pub(super) fn wake(&mut self, mark: usize, point: Point) -> Result<(), Inapplicable> {
        let waiting = &mut self.waiting;
        if waiting.lanes.is_empty() {
            return Ok(());
        }
        let mut awake = Vec::new();
        for key in self.state.changed_since(mark) {
            awake.append(&mut waiting.for_any);
            awake.extend(waiting.for_key.remove(&key).unwrap_or_default());
        }
        if let Point::Commit(txn) = point {
            waiting.status[txn.index()] = Status::Done;
            awake.extend(waiting.lane_of(txn));
        }
        awake.sort_unstable();
        awake.dedup();
        awake.into_iter().try_for_each(|lane| self.advance(lane))
    }

    /// Executes the next transactions of a lane as far as they fit now.
    fn advance(&mut self, lane: u32) -> Result<(), Inapplicable> {
        while let Some(txn) = self.waiting.next(lane) {
            if let Some(difference) = self.state.first_difference(txn)? {
                self.waiting.watch(self.schedule.history, lane, &difference);
                break;
            }
            if self.schedule.moments != TxnPoints::One {
                self.points.push(Point::Start(txn));
            }
            self.points.push(Point::Commit(txn));
            self.waiting.status[txn.index()] = Status::Done;
        }
        Ok(())
    }
}
