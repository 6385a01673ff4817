//! Sessions that keep step, so that their transactions overlap.

use std::collections::BTreeMap;
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
