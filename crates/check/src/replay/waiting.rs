//! Transactions that only read and have no position in the promised order: each goes where it fits, as
//! early as it can.
//!
//! Early is best: it leaves more room for later transactions of the same session. A transaction that does
//! not fit waits for a change of what kept it out, and is not tried before.

use isolario_model::{Evidence, History, Inapplicable, KeyId, Outcome, Point, TxnId};
use rustc_hash::FxHashMap;

use super::schedule::{Schedule, commits, txn_of};
use super::state::State;
use super::{Found, Moments};

pub(super) struct Waiting<'h> {
    history: &'h History,
    moments: Moments,
    lanes: Vec<Lane>,
    /// Per transaction, its lane; none if no transaction waits in it.
    lane_of: Vec<Option<u32>>,
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
    members: Vec<Member>,
    /// The first one that has not committed, nor been given up.
    next: usize,
}

#[derive(Clone, Copy)]
struct Member {
    txn: TxnId,
    has_position: bool,
    is_done: bool,
}

impl Lane {
    /// The next one, unless others with a position have to commit first.
    fn waiting(&mut self) -> Option<TxnId> {
        while self.members.get(self.next).is_some_and(|member| member.is_done) {
            self.next += 1;
        }
        let next = self.members.get(self.next)?;
        (!next.has_position).then_some(next.txn)
    }
}

impl<'h> Waiting<'h> {
    pub(super) fn new(schedule: &Schedule<'h>, session_order: bool) -> Self {
        let history = schedule.history;
        let mut waiting = Waiting {
            history,
            moments: schedule.moments,
            lanes: Vec::new(),
            lane_of: vec![None; if schedule.unplaced.is_empty() { 0 } else { history.txn_count() }],
            for_key: FxHashMap::default(),
            for_any: Vec::new(),
            tie: None,
        };
        for (at, txn) in schedule.unplaced.iter().enumerate() {
            let session = history.session_of(*txn);
            match session_order {
                false => waiting.add_lane([(*txn, false)]),
                true if at > 0 && history.session_of(schedule.unplaced[at - 1]) == session => {}
                true => {
                    let txns = history.session_txns(session);
                    let committed = txns.filter(|txn| history.outcome(*txn) == Outcome::Committed);
                    let has_position = |txn| schedule.unplaced.binary_search(&txn).is_err();
                    waiting.add_lane(committed.map(|txn| (txn, has_position(txn))));
                    // One of unknown outcome follows those before it, and none follows it.
                    let lane = waiting.lane_of[txn.index()];
                    history
                        .session_txns(session)
                        .for_each(|txn| waiting.lane_of[txn.index()] = lane);
                }
            }
        }
        waiting
    }

    fn add_lane(&mut self, members: impl IntoIterator<Item = (TxnId, bool)>) {
        let lane = self.lanes.len() as u32;
        let member = |(txn, has_position)| Member { txn, has_position, is_done: false };
        let members: Vec<_> = members.into_iter().map(member).collect();
        members.iter().for_each(|member| self.lane_of[member.txn.index()] = Some(lane));
        self.lanes.push(Lane { members, next: 0 });
    }

    /// Notes the transactions that commit at one timestamp.
    pub(super) fn note_tie(&mut self, order: &[Point]) {
        let mut commits = commits(order);
        let first_two = commits.next().zip(commits.next());
        self.tie = self.tie.or(first_two);
    }

    /// Executes the transactions that fit before everything else.
    pub(super) fn begin(
        &mut self,
        state: &mut State<'_>,
        points: &mut Vec<Point>,
    ) -> Result<(), Inapplicable> {
        (0..self.lanes.len() as u32).try_for_each(|lane| self.advance(lane, state, points))
    }

    /// Gives up the transactions that wait and come before a point in its session: they did not fit in time.
    pub(super) fn expect(
        &mut self,
        point: Point,
        state: &mut State<'_>,
        found: &mut Found,
    ) -> Result<(), Inapplicable> {
        if self.lanes.is_empty() {
            return Ok(());
        }
        let lane = self.lane_of.get(txn_of(point).index()).copied().flatten();
        match lane {
            Some(lane) => self.give_up(lane, |txn| txn < txn_of(point), state, found),
            None => Ok(()),
        }
    }

    /// Gives up the transactions that still wait at the end.
    pub(super) fn close(
        &mut self,
        state: &mut State<'_>,
        found: &mut Found,
    ) -> Result<(), Inapplicable> {
        (0..self.lanes.len() as u32).try_for_each(|lane| self.give_up(lane, |_| true, state, found))
    }

    fn give_up(
        &mut self,
        lane: u32,
        is_late: impl Fn(TxnId) -> bool,
        state: &mut State<'_>,
        found: &mut Found,
    ) -> Result<(), Inapplicable> {
        let lane = &mut self.lanes[lane as usize];
        for member in &mut lane.members[lane.next..] {
            if !is_late(member.txn) {
                break;
            }
            if member.has_position || std::mem::replace(&mut member.is_done, true) {
                continue;
            }
            if let Some(difference) = first_difference(self.history, member.txn, state)? {
                if let Some((first, second)) = self.tie {
                    return Err(Inapplicable::TiedInPromisedOrder { first, second });
                }
                found.add_result(difference);
            }
        }
        Ok(())
    }

    /// Advances the lanes that wait for this point, or for a key that has changed since the mark.
    pub(super) fn wake(
        &mut self,
        mark: usize,
        point: Point,
        state: &mut State<'_>,
        points: &mut Vec<Point>,
    ) -> Result<(), Inapplicable> {
        if self.lanes.is_empty() {
            return Ok(());
        }
        let mut awake = Vec::new();
        let mut has_changed = false;
        for key in state.changed_since(mark) {
            has_changed = true;
            awake.extend(self.for_key.remove(&key).unwrap_or_default());
        }
        if has_changed {
            awake.append(&mut self.for_any);
        }
        if let Point::Commit(txn) = point
            && let Some(lane) = self.lane_of[txn.index()]
        {
            let members = &mut self.lanes[lane as usize].members;
            if let Ok(at) = members.binary_search_by_key(&txn, |member| member.txn) {
                members[at].is_done = true;
                awake.push(lane);
            }
        }
        awake.sort_unstable();
        awake.dedup();
        awake.into_iter().try_for_each(|lane| self.advance(lane, state, points))
    }

    /// Executes the next transactions of a lane as far as they fit now.
    fn advance(
        &mut self,
        lane: u32,
        state: &mut State<'_>,
        points: &mut Vec<Point>,
    ) -> Result<(), Inapplicable> {
        while let Some(txn) = self.lanes[lane as usize].waiting() {
            match first_difference(self.history, txn, state)? {
                None => {
                    if self.moments != Moments::One {
                        points.push(Point::Start(txn));
                    }
                    points.push(Point::Commit(txn));
                    let lane = &mut self.lanes[lane as usize];
                    lane.members[lane.next].is_done = true;
                }
                Some(difference) => {
                    self.watch(lane, &difference);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Makes a lane wait for a change of what makes the difference.
    fn watch(&mut self, lane: u32, difference: &Evidence) {
        let single = match difference {
            Evidence::Unexpected { op, expected, .. } => {
                expected.first().filter(|_| self.history.op_predicate(*op).is_none())
            }
            _ => None,
        };
        match single {
            Some(version) => self.for_key.entry(version.key).or_default().push(lane),
            None => self.for_any.push(lane),
        }
    }
}

/// The first wrong result if a transaction runs now. Nothing is left behind.
fn first_difference(
    history: &History,
    txn: TxnId,
    state: &mut State<'_>,
) -> Result<Option<Evidence>, Inapplicable> {
    let mark = state.mark();
    let mut difference = Ok(None);
    for op in history.txn_ops(txn) {
        difference = state.execute(op);
        if !matches!(difference, Ok(None)) {
            break;
        }
    }
    state.take_back(mark);
    difference
}
