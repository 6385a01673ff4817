//! Sessions that stay together, and slow transactions, which let those of other sessions commit.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isolario_workload::PlannedOp;

use super::meeting::Credit;

/// Number of transactions of other sessions that a slow transaction lets commit.
const LETS_COMMIT: u64 = 20;
/// The longest wait of a slow transaction for these commits.
const FOR_COMMITS: Duration = Duration::from_millis(50);
/// A slow transaction goes on when nothing has committed for this long: the other sessions may wait for
/// its locks.
const QUIET: Duration = Duration::from_millis(5);
/// The longest wait of a session for the slowest one, which is left behind then: it may wait for a server
/// that is down.
const FOR_THE_SLOWEST: Duration = Duration::from_millis(50);
/// Number of slow transactions that may see no commit before all waiting is given up, at first and at most;
/// each that sees all its commits allows for one more.
const FAILURES: [u32; 2] = [4, 64];

/// Keeps the sessions of a run within a few positions of each other, and has slow transactions wait for
/// commits of the other sessions.
///
/// Every wait has a limit, and ends when all sessions wait. In a database that makes writers wait for a slow
/// transaction, no session waits any more after a few transactions.
pub(super) struct Lockstep {
    /// Number of positions that a session may be ahead of the slowest one.
    max_lead: u64,
    credit: Credit,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The position of each session, unless it has ended or was left behind.
    positions: Vec<Option<u64>>,
    /// The smallest of them; the largest number if there is none.
    slowest: u64,
    /// Number of sessions at that position.
    at_slowest: usize,
    /// Number of sessions that have not ended.
    members: usize,
    /// Number of sessions that wait, for either reason.
    waiting: usize,
    commits: u64,
    /// The number of commits at which a slow transaction goes on.
    wake_at: u64,
    /// Number of times that all sessions waited.
    standstills: u64,
}

impl Lockstep {
    pub(super) fn new(sessions: u32, max_lead: u64) -> Lockstep {
        let sessions = sessions as usize;
        let state = State {
            positions: vec![Some(0); sessions],
            slowest: 0,
            at_slowest: sessions,
            members: sessions,
            waiting: 0,
            commits: 0,
            wake_at: u64::MAX,
            standstills: 0,
        };
        let [first, most] = FAILURES;
        Lockstep {
            max_lead,
            credit: Credit::new(first, most),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// A session as a member, if it is one. It leaves when the value is dropped.
    pub(super) fn member(&self, session: u32) -> Option<Stepper<'_>> {
        let session = session as usize;
        let is_member = session < self.state().positions.len();
        is_member.then_some(Stepper { lockstep: self, session, waits_after: None })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that one more session waits. If all do, slow transactions go on.
    fn one_more_waits(&self, state: &mut State) {
        state.waiting += 1;
        self.notice_standstill(state);
    }

    fn notice_standstill(&self, state: &mut State) {
        if state.waiting >= state.members {
            state.standstills += 1;
            self.changed.notify_all();
        }
    }

    /// Notes the position of a session, and wakes those that waited for it.
    fn place(&self, state: &mut State, session: usize, position: Option<u64>) {
        if state.place(session, position) {
            self.changed.notify_all();
        }
    }

    /// Waits until a session at this position is not too far ahead.
    fn stay_together(&self, session: usize, position: u64, limit: Duration) {
        let mut state = self.state();
        let is_behind = state.positions[session].is_none();
        // A session that was left behind and is not back yet goes by itself.
        if !is_behind || position.saturating_add(self.max_lead) >= state.slowest {
            self.place(&mut state, session, Some(position));
        }
        let too_far = |state: &mut State| {
            position > state.slowest.saturating_add(self.max_lead) && self.credit.is_left()
        };
        if !too_far(&mut state) {
            return;
        }
        self.one_more_waits(&mut state);
        let waited = self.changed.wait_timeout_while(state, limit, too_far);
        let (mut state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        if result.timed_out() {
            let is_late = |other: &u64| other.saturating_add(self.max_lead) < position;
            for other in 0..state.positions.len() {
                if state.positions[other].as_ref().is_some_and(is_late) {
                    self.place(&mut state, other, None);
                }
            }
        }
    }

    /// Waits until this many transactions have committed, which are of other sessions, or until it is of no
    /// use to wait any longer.
    fn let_others_commit(&self, commits: u64, limit: Duration, quiet: Duration) {
        let mut state = self.state();
        let (wanted, standstills) = (state.commits + commits, state.standstills);
        let deadline = Instant::now() + limit;
        self.one_more_waits(&mut state);
        let mut is_futile = false;
        while state.commits < wanted && state.standstills == standstills && !is_futile {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.wake_at = state.wake_at.min(wanted);
            let seen = state.commits;
            let waited = self.changed.wait_timeout(state, left.min(quiet));
            let result;
            (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
            is_futile = result.timed_out() && state.commits == seen;
        }
        state.waiting -= 1;
        if is_futile || state.commits >= wanted {
            self.credit.settle(!is_futile);
        }
        if !self.credit.is_left() {
            self.changed.notify_all();
        }
    }
}

impl State {
    /// Notes the position of a session; returns whether the slowest one moved.
    fn place(&mut self, session: usize, position: Option<u64>) -> bool {
        let old = std::mem::replace(&mut self.positions[session], position);
        let slowest = self.slowest;
        self.at_slowest -= usize::from(old == Some(slowest));
        match position {
            Some(position) if position < slowest => (self.slowest, self.at_slowest) = (position, 1),
            Some(position) => self.at_slowest += usize::from(position == slowest),
            None => {}
        }
        if self.at_slowest == 0 {
            self.slowest = self.positions.iter().flatten().copied().min().unwrap_or(u64::MAX);
            let is_slowest = |position: &&Option<u64>| **position == Some(self.slowest);
            self.at_slowest = self.positions.iter().filter(is_slowest).count();
        }
        self.slowest != slowest
    }
}

/// A session that keeps step with the others.
pub(super) struct Stepper<'r> {
    lockstep: &'r Lockstep,
    session: usize,
    /// The operation after which the transaction under way lets others commit, if it is slow.
    waits_after: Option<usize>,
}

impl Stepper<'_> {
    /// A transaction is about to begin: waits until the session is not too far ahead.
    pub(super) fn begin(&self, position: u64) {
        if self.lockstep.credit.is_left() {
            self.lockstep.stay_together(self.session, position, FOR_THE_SLOWEST);
        }
    }

    /// The transaction under way has this plan, if it is slow.
    pub(super) fn set_slow(&mut self, plan: Option<&[PlannedOp]>) {
        let first_read = |plan: &[PlannedOp]| plan.iter().position(|op| !op.writes());
        self.waits_after = plan.and_then(first_read);
    }

    /// Called after each operation: lets others commit if this is the point.
    pub(super) fn done(&self, op: usize) {
        if self.waits_after == Some(op) && self.lockstep.credit.is_left() {
            self.lockstep.let_others_commit(LETS_COMMIT, FOR_COMMITS, QUIET);
        }
    }

    /// A transaction of the session has committed.
    pub(super) fn committed(&self) {
        if self.lockstep.credit.is_left() {
            let mut state = self.lockstep.state();
            state.commits += 1;
            if state.commits >= state.wake_at {
                state.wake_at = u64::MAX;
                self.lockstep.changed.notify_all();
            }
        }
    }
}

impl Drop for Stepper<'_> {
    fn drop(&mut self) {
        let mut state = self.lockstep.state();
        state.members -= 1;
        self.lockstep.place(&mut state, self.session, None);
        self.lockstep.notice_standstill(&mut state);
    }
}
