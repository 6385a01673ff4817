//! Sessions that keep step, so that their transactions overlap.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isolario_workload::Rendezvous;

/// How long a session waits for others to begin with. One of them may be waiting for a lock, or for a
/// server that is down.
const TO_BEGIN: Duration = Duration::from_millis(20);
/// How long it waits on its way. Where transactions lock what they read, the others cannot come before it
/// has ended.
const ON_THE_WAY: Duration = Duration::from_millis(2);

/// Where the sessions of a run meet.
///
/// Every wait has a limit, and nobody holds a lock of ours while waiting for the database: so there is no
/// deadlock, whatever the database and the other sessions do.
pub(super) struct Meetings {
    /// How each session keeps step, by its number.
    sessions: Vec<Option<Rendezvous>>,
    groups: BTreeMap<u32, Group>,
}

#[derive(Default)]
struct Group {
    begin: Meeting,
    on_the_way: Meeting,
}

impl Meetings {
    pub(super) fn new(sessions: u32, of: impl Fn(u32) -> Option<Rendezvous>) -> Meetings {
        let sessions: Vec<_> = (0..sessions).map(of).collect();
        let mut groups: BTreeMap<u32, Group> = BTreeMap::new();
        for rendezvous in sessions.iter().flatten() {
            let group = groups.entry(rendezvous.group).or_default();
            group.begin.join();
            group.on_the_way.join();
        }
        Meetings { sessions, groups }
    }

    /// A session as a member of its group, if it has one. It leaves when the value is dropped.
    pub(super) fn member(&self, session: u32) -> Option<Member<'_>> {
        let rendezvous = (*self.sessions.get(session as usize)?)?;
        Some(Member { group: self.groups.get(&rendezvous.group)?, rendezvous })
    }
}

/// A session in its group.
pub(super) struct Member<'r> {
    group: &'r Group,
    rendezvous: Rendezvous,
}

impl Member<'_> {
    /// Waits until the others are about to begin a transaction, too.
    pub(super) fn begin(&self) {
        self.group.begin.wait(TO_BEGIN);
    }

    /// Called before each operation: meets the others if this is the place.
    pub(super) fn meet_before(&self, op: usize) {
        if op == self.rendezvous.before {
            self.group.on_the_way.wait(ON_THE_WAY);
            std::thread::sleep(self.rendezvous.pause);
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.group.begin.leave();
        self.group.on_the_way.leave();
    }
}

/// All sessions meet in one transaction in this many, at the beginning of a run and later: a short run
/// shows something, and a long one does not take much longer.
const GATHER_EVERY: [u64; 2] = [4, 32];
/// The position of each session at which its beginning is over.
const BEGINNING: u64 = 256;
/// The longest wait of a session within a transaction. On a busy machine, a thread may get its
/// turn only after tens of milliseconds.
const TO_GATHER: Duration = Duration::from_millis(50);
/// Number of gatherings that may fail before no more are tried; each that succeeds allows for one more.
/// In a store that locks what transactions read, the others cannot come.
const FAILURES: u32 = 16;

/// The point at which the sessions of a run wait for each other, each in a transaction, so that these overlap however
/// busy the machine is.
pub(super) struct Gathering {
    sessions: u32,
    meeting: Meeting,
    /// For gatherings after begins, and before commits.
    credit: [Credit; 2],
}

/// Number of waits that may still be futile before no session waits any more. It changes with what came
/// of each.
pub(super) struct Credit {
    left: AtomicU32,
    most: u32,
}

impl Credit {
    /// Allows for `first` futile waits, and for `most` of them after others succeeded.
    pub(super) fn new(first: u32, most: u32) -> Credit {
        Credit { left: AtomicU32::new(first), most }
    }

    /// Whether it is worth while to wait.
    pub(super) fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) > 0
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes one away for a wait that was futile, and adds one for a wait that was not.
    pub(super) fn settle(&self, succeeded: bool) {
        let change = |left: u32| match succeeded {
            true => Some((left + 1).min(self.most)),
            false => left.checked_sub(1),
        };
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

/// The point of a transaction at which a session waits for the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// It has begun.
    Begun,
    /// It is about to commit.
    Done,
}

impl Gathering {
    pub(super) fn new(sessions: u32) -> Gathering {
        let meeting = Meeting::default();
        (0..sessions).for_each(|_| meeting.join());
        Gathering { sessions, meeting, credit: [FAILURES; 2].map(|most| Credit::new(most, most)) }
    }

    /// A session as a member, if it is one. It leaves when the value is dropped.
    pub(super) fn member(&self, session: u32) -> Option<Gatherer<'_>> {
        (session < self.sessions).then(|| Gatherer { gathering: self, stops_at: None })
    }

    fn wait(&self, point: Point, limit: Duration) {
        let credit = &self.credit[point as usize];
        if credit.is_left() {
            credit.settle(self.meeting.wait(limit));
        }
    }
}

/// A session that gathers with the others.
pub(super) struct Gatherer<'r> {
    gathering: &'r Gathering,
    /// The point at which the transaction under way waits for the others, if it does.
    stops_at: Option<Point>,
}

impl Gatherer<'_> {
    /// An attempt at the transaction at this position of the session begins. A later attempt waits for no
    /// session: the others may wait for what it holds.
    pub(super) fn begin(&mut self, position: u64, attempt: u32) {
        let every = GATHER_EVERY[usize::from(position >= BEGINNING)];
        let point = if (position / every).is_multiple_of(2) { Point::Begun } else { Point::Done };
        let stops = attempt == 0 && position.is_multiple_of(every);
        self.stops_at = stops.then_some(point);
    }

    /// Waits for the others if this is the point.
    pub(super) fn reach(&self, point: Point) {
        if self.stops_at == Some(point) {
            self.gathering.wait(point, TO_GATHER);
        }
    }
}

impl Drop for Gatherer<'_> {
    fn drop(&mut self) {
        self.gathering.meeting.leave();
    }
}

/// A barrier with members that come and go. (That of the standard library waits for a fixed number of
/// threads, for ever.)
#[derive(Default)]
struct Meeting {
    state: Mutex<State>,
    all_here: Condvar,
}

#[derive(Default)]
struct State {
    members: u32,
    waiting: u32,
    /// How often all were there.
    round: u64,
}

impl Meeting {
    fn join(&self) {
        self.state().members += 1;
    }

    fn leave(&self) {
        let mut state = self.state();
        state.members -= 1;
        self.go_on(&mut state);
    }

    /// Waits until all members are here, but no longer than this. Tells whether they were.
    fn wait(&self, limit: Duration) -> bool {
        let mut state = self.state();
        let round = state.round;
        state.waiting += 1;
        self.go_on(&mut state);
        let waited = self.all_here.wait_timeout_while(state, limit, |state| state.round == round);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let all_were_here = state.round != round;
        if !all_were_here {
            state.waiting -= 1;
        }
        all_were_here
    }

    fn go_on(&self, state: &mut State) {
        if state.waiting > 0 && state.waiting >= state.members {
            state.waiting = 0;
            state.round += 1;
            self.all_here.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn meeting_of(members: u32) -> Meeting {
        let meeting = Meeting::default();
        (0..members).for_each(|_| meeting.join());
        meeting
    }

    #[test]
    fn nobody_goes_on_before_all_are_here_round_after_round() {
        let (meeting, arrived) = (meeting_of(3), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=100 {
                        arrived.fetch_add(1, Ordering::SeqCst);
                        assert!(meeting.wait(LONG));
                        assert!(arrived.load(Ordering::SeqCst) >= 3 * round);
                        assert!(meeting.wait(LONG), "until all have looked");
                    }
                });
            }
        });
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let meeting = meeting_of(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| meeting.wait(LONG));
            meeting.leave();
            assert!(waiting.join().unwrap());
        });
        assert!(meeting.wait(LONG), "alone, one waits for nobody");
    }

    #[test]
    fn who_is_late_is_waited_for_only_for_a_moment() {
        let meeting = meeting_of(2);
        assert!(!meeting.wait(Duration::from_millis(1)));
        // Whoever gave up does not count as being here.
        assert!(!meeting.wait(Duration::from_millis(1)));
    }

    #[test]
    fn sessions_gather_in_some_transactions() {
        let (gathering, inside) = (Gathering::new(3), AtomicU32::new(0));
        let gathered = AtomicU32::new(0);
        thread::scope(|scope| {
            for session in 0..3 {
                let mut member = gathering.member(session).unwrap();
                let (inside, gathered) = (&inside, &gathered);
                scope.spawn(move || {
                    for position in 0..BEGINNING + 64 {
                        member.begin(position, 0);
                        let Some(point) = member.stops_at else { continue };
                        let round = inside.fetch_add(1, Ordering::SeqCst) / 3;
                        member.gathering.wait(point, LONG);
                        assert!(inside.load(Ordering::SeqCst) >= 3 * (round + 1));
                        gathered.fetch_add(1, Ordering::SeqCst);
                        member.begin(position, 1);
                        assert!(member.stops_at.is_none(), "another attempt waits for no session");
                    }
                });
            }
        });
        assert_eq!(gathered.into_inner(), 3 * (256 / 4 + 64 / 32));
        assert_eq!(gathering.meeting.state().members, 0);
        assert!(gathering.member(3).is_none());
    }

    #[test]
    fn gatherings_that_keep_failing_are_given_up() {
        let gathering = Gathering::new(2);
        for _ in 0..FAILURES {
            gathering.wait(Point::Done, Duration::from_millis(1));
        }
        // It would take a minute.
        gathering.wait(Point::Done, LONG);
        // Another point has its own limit, and success allows for more failures.
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gathering.wait(Point::Begun, LONG));
            gathering.wait(Point::Begun, LONG);
            waiting.join().unwrap();
        });
        assert_eq!(gathering.credit[0].left(), FAILURES);
    }

    #[test]
    fn sessions_leave_when_they_end() {
        let of = |session| {
            let pause = Duration::ZERO;
            (session < 3).then_some(Rendezvous { group: session / 2, before: 1, pause })
        };
        let meetings = Meetings::new(4, of);
        let members: Vec<_> = (0..2).filter_map(|session| meetings.member(session)).collect();
        assert_eq!(meetings.groups[&0].begin.state().members, 2);
        drop(members);
        assert_eq!(meetings.groups[&0].on_the_way.state().members, 0);
        assert!(meetings.member(2).is_some(), "a group may have one member");
        assert!(meetings.member(3).is_none() && meetings.member(4).is_none());
    }
}
