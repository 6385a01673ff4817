//! Sessions that stay together, and slow transactions, which let those of other sessions commit.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isolario_workload::PlannedOp;

use super::control::{Control, GLANCE};
use super::meeting::Credit;

/// Number of transactions of other sessions that a slow transaction lets commit.
const LETS_COMMIT: u64 = 20;
/// The longest wait of a slow transaction for these commits.
const FOR_COMMITS: Duration = Duration::from_millis(50);
/// A slow transaction goes on when nothing has committed for the time of this many commits, within these
/// limits: the other sessions may wait for its locks.
const QUIET: u32 = 16;
const QUIET_LIMITS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];
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
    /// The smallest of them; the largest number if all sessions are gone.
    slowest: u64,
    /// Number of sessions at that position.
    at_slowest: usize,
    /// Number of sessions that have not ended.
    members: usize,
    /// Number of sessions that wait, for either reason.
    waiting: usize,
    /// Number of those that wait for the slowest one.
    ahead: usize,
    commits: u64,
    first_commit: Option<Instant>,
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
            ahead: 0,
            commits: 0,
            first_commit: None,
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
        is_member.then(|| Stepper { lockstep: self, session, waits_after: None })
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
    fn set_position(&self, state: &mut State, session: usize, position: Option<u64>) {
        if state.set_position(session, position) {
            self.changed.notify_all();
        }
    }

    /// Waits until a session at this position is not too far ahead.
    fn stay_together(&self, session: usize, position: u64, limit: Duration) {
        let mut state = self.state();
        let is_behind = state.positions[session].is_none();
        // A session that was left behind and is not back yet goes by itself.
        if !is_behind || position.saturating_add(self.max_lead) >= state.slowest {
            self.set_position(&mut state, session, Some(position));
        }
        let too_far = |state: &mut State| {
            position > state.slowest.saturating_add(self.max_lead) && self.credit.is_left()
        };
        if !too_far(&mut state) {
            return;
        }
        state.ahead += 1;
        if state.ahead == 1 {
            self.changed.notify_all();
        }
        self.one_more_waits(&mut state);
        let waited = self.changed.wait_timeout_while(state, limit, too_far);
        let (mut state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state.ahead -= 1;
        if result.timed_out() {
            let is_late = |other: &u64| other.saturating_add(self.max_lead) < position;
            for other in 0..state.positions.len() {
                if state.positions[other].as_ref().is_some_and(is_late) {
                    self.set_position(&mut state, other, None);
                }
            }
        }
    }

    /// The time without a commit after which it is of no use to wait for one, once enough have committed to
    /// know how long they take.
    fn quiet(&self) -> Option<Duration> {
        let state = self.state();
        let elapsed = state.first_commit.filter(|_| state.commits > LETS_COMMIT)?.elapsed();
        let commits = u32::try_from(state.commits).unwrap_or(u32::MAX);
        let [least, most] = QUIET_LIMITS;
        Some((elapsed / commits * QUIET).clamp(least, most))
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
    fn set_position(&mut self, session: usize, position: Option<u64>) -> bool {
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

    /// Pauses before another attempt, but not while other sessions wait for this one.
    pub(super) fn pause(&self, limit: Duration, control: &Control) {
        let deadline = Instant::now() + limit;
        let is_in_the_way =
            |state: &State| state.ahead > 0 && state.positions[self.session] == Some(state.slowest);
        let mut state = self.lockstep.state();
        while !is_in_the_way(&state) && !control.is_stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.lockstep.changed.wait_timeout(state, left.min(GLANCE));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The transaction under way has this plan, if it is slow. It waits after its first read, unless that comes
    /// last.
    pub(super) fn set_slow(&mut self, plan: Option<&[PlannedOp]>) {
        let (_, others) = plan.and_then(<[_]>::split_last).unzip();
        self.waits_after = others.and_then(|ops| ops.iter().position(|op| !op.writes()));
    }

    /// Called after each operation: lets others commit if this is the point.
    pub(super) fn done(&self, op: usize) {
        if self.waits_after == Some(op)
            && self.lockstep.credit.is_left()
            && let Some(quiet) = self.lockstep.quiet()
        {
            self.lockstep.let_others_commit(LETS_COMMIT, FOR_COMMITS, quiet);
        }
    }

    /// A transaction of the session has committed.
    pub(super) fn committed(&self) {
        if self.lockstep.credit.is_left() {
            let mut state = self.lockstep.state();
            state.commits += 1;
            state.first_commit.get_or_insert_with(Instant::now);
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
        self.lockstep.set_position(&mut state, self.session, None);
        self.lockstep.notice_standstill(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    /// Longer than any test: a wait that does not end for another reason fails it.
    const LONG: Duration = Duration::from_secs(3600);

    fn members(lockstep: &Lockstep, sessions: u32) -> Vec<Stepper<'_>> {
        (0..sessions).filter_map(|session| lockstep.member(session)).collect()
    }

    #[test]
    fn no_session_gets_too_far_ahead() {
        const SESSIONS: usize = 4;
        let lockstep = Lockstep::new(SESSIONS as u32, 3);
        let positions: [AtomicU64; SESSIONS] = Default::default();
        thread::scope(|scope| {
            for (session, member) in members(&lockstep, 4).into_iter().enumerate() {
                let (positions, lockstep) = (&positions, &lockstep);
                scope.spawn(move || {
                    // They end one after the other.
                    for position in 0..100 * (session as u64 + 1) {
                        positions[session].store(position, Ordering::SeqCst);
                        lockstep.stay_together(session, position, LONG);
                        let slowest = positions.iter().map(|at| at.load(Ordering::SeqCst)).min();
                        assert!(slowest.is_some_and(|slowest| slowest + 3 >= position));
                    }
                    positions[session].store(u64::MAX, Ordering::SeqCst);
                    drop(member);
                });
            }
        });
        assert_eq!(lockstep.state().members, 0);
        assert!(lockstep.member(4).is_none());
    }

    #[test]
    fn a_slow_transaction_lets_others_commit() {
        let (lockstep, committed) = (Lockstep::new(2, 3), AtomicU64::new(0));
        let (_first, second) = (lockstep.member(0), lockstep.member(1).unwrap());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                lockstep.let_others_commit(20, LONG, LONG);
                assert!(committed.load(Ordering::SeqCst) >= 20);
            });
            while lockstep.state().waiting == 0 {
                thread::yield_now();
            }
            for _ in 0..20 {
                committed.fetch_add(1, Ordering::SeqCst);
                second.committed();
            }
            waiting.join().unwrap();
        });
        assert_eq!(lockstep.credit.left(), FAILURES[0] + 1);
    }

    #[test]
    fn slow_transactions_go_on_when_all_sessions_wait() {
        let lockstep = Lockstep::new(3, 3);
        let members = members(&lockstep, 3);
        thread::scope(|scope| {
            let slow = [0, 1].map(|session| {
                let (lockstep, members) = (&lockstep, &members);
                scope.spawn(move || {
                    lockstep.let_others_commit(20, LONG, LONG);
                    members[session].committed();
                    lockstep.stay_together(session, 1, LONG);
                })
            });
            lockstep.stay_together(2, 4, LONG);
            slow.into_iter().for_each(|slow| slow.join().unwrap());
        });
        assert_eq!(lockstep.credit.left(), FAILURES[0], "this says nothing about the database");
        drop(members);
    }

    #[test]
    fn a_session_that_ends_is_not_waited_for() {
        let lockstep = Lockstep::new(2, 3);
        let mut members = members(&lockstep, 2);
        thread::scope(|scope| {
            let ahead = scope.spawn(|| lockstep.stay_together(1, 10, LONG));
            while lockstep.state().ahead == 0 {
                thread::yield_now();
            }
            drop(members.remove(0));
            ahead.join().unwrap();
            // Alone, a session has nothing to wait for.
            lockstep.let_others_commit(20, LONG, LONG);
        });
    }

    #[test]
    fn waits_that_are_futile_are_given_up() {
        let lockstep = Lockstep::new(2, 3);
        let mut members = members(&lockstep, 2);
        let (write, read) = (PlannedOp::Write { key: 1, value: 1 }, PlannedOp::Read { key: 1 });
        members[1].set_slow(Some(&[write, read]));
        assert_eq!(members[1].waits_after, None);
        members[1].set_slow(Some(&[write, read, read]));
        assert_eq!(members[1].waits_after, Some(1));
        assert_eq!(lockstep.quiet(), None);
        (0..=LETS_COMMIT).for_each(|_| members[0].committed());
        assert!(lockstep.quiet().is_some());
        for _ in 0..FAILURES[0] {
            lockstep.let_others_commit(20, LONG, SHORT);
        }
        // Neither would end.
        members[1].done(1);
        lockstep.stay_together(1, 10, LONG);
    }

    #[test]
    fn a_session_that_keeps_others_waiting_is_left_behind() {
        let lockstep = Lockstep::new(2, 3);
        let _members = members(&lockstep, 2);
        lockstep.stay_together(1, 10, SHORT);
        lockstep.stay_together(1, 30, LONG);
        // It goes by itself until it has caught up.
        lockstep.stay_together(0, 1, LONG);
        assert_eq!(lockstep.state().positions, [None, Some(30)]);
        lockstep.stay_together(0, 28, LONG);
        assert_eq!(lockstep.state().positions, [Some(28), Some(30)]);
        lockstep.stay_together(1, 40, SHORT);
        assert_eq!(lockstep.state().positions, [None, Some(40)]);
    }

    #[test]
    fn a_session_does_not_pause_while_others_wait_for_it() {
        let (lockstep, control) = (Lockstep::new(2, 3), Control::new());
        let members = members(&lockstep, 2);
        thread::scope(|scope| {
            let ahead = scope.spawn(|| lockstep.stay_together(1, 4, LONG));
            members[0].pause(LONG, &control);
            lockstep.stay_together(0, 1, LONG);
            ahead.join().unwrap();
        });
        // No session waits now, but the run may end.
        control.stop(isolario_model::StopReason::Interrupted, None);
        members[0].pause(LONG, &control);
    }
}
