//! Several hosts that stress one database together, each recording its own part.
//!
//! All of them have the same seed and the same number of sessions. The sessions are numbered over all
//! hosts, so no two write the same value, and the whole is a function of the seed as in any run. The first
//! host makes the tables; the others wait for it, and it waits for them. Afterwards the parts are joined,
//! with what each host knows of its clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isolario_db::{
    Access, ClockBounds, Connection, Database, DbError, ErrorClass, Hold, Layout, ObservedMarks,
    Obstacle, RegisterValue, ServerClock, SharedNodes,
};
use isolario_model::HostClock;
use isolario_workload::{AttemptedTxn, Generator, KeyNames, PlannedOp, Rendezvous, Rng};

use super::handle::Handle;
use super::settings::Settings;
use super::target::RunTarget;

/// One of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    number: u32,
    of: u32,
}

impl Host {
    /// A host by its number, from 1, and how many there are; nothing where there is no such host.
    pub fn new(number: u32, of: u32) -> Option<Host> {
        (1..=of).contains(&number).then_some(Host { number, of })
    }

    /// Which one it is, from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// The first of its sessions, where each host has so many.
    pub(super) fn first_session(self, sessions: u32) -> u32 {
        (self.number - 1) * sessions
    }

    /// The number by which the parts of a run know each other: the same for the same flags on all hosts.
    pub(super) fn group(self, settings: &Settings) -> u64 {
        let shape = [self.of, settings.sessions, settings.workload.keys].map(u64::from);
        Rng::derive(settings.seed, &shape).below(u64::MAX)
    }

    /// How many keys hosts leave word under, after those of the workload: two of each host but the first.
    pub(super) fn extra_keys(self) -> u32 {
        2 * self.of
    }
}

/// The plans of some of the sessions of a workload.
pub(super) struct SomeSessions<'g> {
    pub(super) all: &'g (dyn Generator + Sync),
    pub(super) first: u32,
}

impl SomeSessions<'_> {
    fn place(&self, place: AttemptedTxn) -> AttemptedTxn {
        AttemptedTxn { session: self.first + place.session, ..place }
    }
}

impl Generator for SomeSessions<'_> {
    fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
        self.all.plan(self.place(place), plan);
    }

    fn name(&self, place: AttemptedTxn) -> Option<i64> {
        self.all.name(self.place(place))
    }

    fn key_names(&self) -> Option<KeyNames> {
        self.all.key_names()
    }

    fn rendezvous(&self, session: u32) -> Option<Rendezvous> {
        self.all.rendezvous(self.first + session)
    }

    fn is_slow(&self, txn: AttemptedTxn) -> bool {
        self.all.is_slow(self.place(txn))
    }

    fn max_lead(&self) -> Option<u64> {
        self.all.max_lead()
    }

    fn keys(&self, positions: u64) -> Option<u64> {
        self.all.keys(positions)
    }

    fn first_key(&self, position: u64) -> u64 {
        self.all.first_key(position)
    }
}

/// How long hosts wait for each other.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a host waits before it looks again.
const GLANCE: Duration = Duration::from_millis(100);

/// Why hosts did not meet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeetingError {
    /// Some did not come.
    #[error("host {absent} of {of} did not connect within {} seconds", PATIENCE.as_secs())]
    Absent {
        /// The first that did not.
        absent: u32,
        /// How many there are.
        of: u32,
        /// What the database last said, if it was in the way.
        error: Option<DbError>,
    },
    /// The database does not let us in.
    #[error("{0}")]
    Database(#[from] DbError),
    /// Somebody did not want to wait any longer.
    #[error("interrupted")]
    Interrupted,
}

/// Makes room for the run of all hosts. Others may be looking for their tables already, and be in the way
/// for a moment.
pub(super) fn prepare_for_all(
    nodes: &[Box<dyn Database>],
    layout: &Layout,
) -> Result<(), (usize, DbError)> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match isolario_db::prepare(nodes, layout) {
            Err((_, error)) if error.class != ErrorClass::Fatal && Instant::now() < deadline => {
                std::thread::sleep(GLANCE);
            }
            done => return done,
        }
    }
}

/// Waits until all hosts are there. The tables are made by then: the first host calls after it has made
/// them.
///
/// Each of the others leaves a number that nobody can guess, again and again, since the tables that it finds
/// may be an earlier run's, and the first host answers with the same number. So an answer is about this
/// run, and whoever has it may begin.
///
/// Before a host leaves word, the mark of the database has to be that of the first host: the tables of another run
/// are left alone.
pub(super) fn meet(
    host: Host,
    target: &mut RunTarget,
    settings: &Settings,
    handle: &Handle,
) -> Result<Meeting, MeetingError> {
    let deadline = Instant::now() + PATIENCE;
    let own = nonce(host);
    let first_key = u64::from(settings.workload.standing_keys());
    let board = Board { first_key, database: target.nodes[0].as_ref() };
    let mut hosts = Joining {
        host,
        nodes: &target.nodes,
        group: host.group(settings),
        others: ObservedMarks::default(),
    };
    let mut trouble = None;
    loop {
        // A mark that was read before the answer may be that of an earlier run.
        let round = match hosts.join() {
            Ok(None) if host.number > 1 => Ok(Some(1)),
            Ok(_) => board.round(host, own),
            Err(error) => Err(error),
        };
        let absent = match round {
            Ok(None) => {
                if let Some(hold) = hosts.join()? {
                    target.hold = Some(hold);
                }
                return Ok(Meeting { host, own, first_key });
            }
            Ok(Some(absent)) => absent,
            Err(error) if is_final(&error, host) => return Err(error.into()),
            Err(error) => {
                trouble = Some(error);
                1
            }
        };
        if handle.is_interrupted() {
            return Err(MeetingError::Interrupted);
        }
        if Instant::now() > deadline {
            return Err(MeetingError::Absent { absent, of: host.of, error: trouble });
        }
        std::thread::sleep(GLANCE);
    }
}

/// Joins the hold of the first host.
struct Joining<'t> {
    host: Host,
    nodes: &'t SharedNodes,
    group: u64,
    others: ObservedMarks,
}

impl Joining<'_> {
    /// The hold; nothing for the first host, which has it, and while the first host does not have it.
    fn join(&mut self) -> Result<Option<Hold>, DbError> {
        match self.host.number {
            1 => Ok(None),
            _ => Hold::join(self.nodes, self.group, &mut self.others).map_err(|(_, error)| error),
        }
    }
}

/// Whether an error does not pass by waiting for other hosts.
fn is_final(error: &DbError, host: Host) -> bool {
    let is_in_use = error.obstacle == Some(Obstacle::InUse);
    is_in_use || (error.class == ErrorClass::Fatal && host.number == 1)
}

/// Hosts that have met.
pub(super) struct Meeting {
    host: Host,
    own: i64,
    first_key: u64,
}

impl Meeting {
    /// Says goodbye. The first host removes the tables once nobody needs them any more; where it cannot
    /// wait so long, they are left to the next run, which replaces them.
    pub(super) fn part(&self, nodes: &[Box<dyn Database>], handle: &Handle) {
        let Some(database) = nodes.first() else { return };
        let board = Board { first_key: self.first_key, database: database.as_ref() };
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match board.goodbye(self.host, self.own) {
                Ok(true) if self.host.number == 1 => return isolario_db::clear(nodes),
                Ok(true) => return,
                _ if handle.is_interrupted() => return,
                _ => std::thread::sleep(GLANCE),
            }
        }
    }
}

/// A number that another run, or another host, does not come up with.
fn nonce(host: Host) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seeds = [u64::from(host.number), u64::from(std::process::id())];
    1 + Rng::derive(now.as_nanos() as u64, &seeds).below(1 << 52) as i64
}

/// The registers under which hosts leave word for each other.
struct Board<'d> {
    first_key: u64,
    database: &'d dyn Database,
}

impl Board<'_> {
    /// Does what there is to do once, and tells the first host that is not there yet; none if all are.
    fn round(&self, host: Host, own: i64) -> Result<Option<u32>, DbError> {
        // Tables may be replaced at any time, and with them what a connection knows of them.
        let mut connection = self.database.connect()?;
        if host.number > 1 {
            if self.read(connection.as_mut(), self.call(host.number))? != Some(own) {
                self.write(connection.as_mut(), self.call(host.number), own)?;
            }
            let answer = self.read(connection.as_mut(), self.answer(host.number))?;
            return Ok((answer != Some(own)).then_some(1));
        }
        let mut calls = Vec::new();
        for other in 2..=host.of {
            match self.read(connection.as_mut(), self.call(other))? {
                Some(call) => calls.push((other, call)),
                None => return Ok(Some(other)),
            }
        }
        for (other, call) in calls {
            self.write(connection.as_mut(), self.answer(other), call)?;
        }
        Ok(None)
    }

    /// Counts up the answer that a host got, as a sign that it is done, and tells whether it may go: the
    /// first, once all others have done so.
    fn goodbye(&self, host: Host, own: i64) -> Result<bool, DbError> {
        let mut connection = self.database.connect()?;
        if host.number > 1 {
            self.write(connection.as_mut(), self.answer(host.number), own + 1)?;
            return Ok(true);
        }
        for other in 2..=host.of {
            let call = self.read(connection.as_mut(), self.call(other))?;
            let answer = self.read(connection.as_mut(), self.answer(other))?;
            if call.is_none() || answer != call.map(|call| call + 1) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn call(&self, host: u32) -> u64 {
        self.first_key + 2 * (u64::from(host) - 1)
    }

    fn answer(&self, host: u32) -> u64 {
        self.call(host) + 1
    }

    fn read(&self, connection: &mut dyn Connection, key: u64) -> Result<RegisterValue, DbError> {
        connection.begin(Access::Read)?;
        let held = connection.read(key)?;
        connection.commit()?;
        Ok(held)
    }

    fn write(&self, connection: &mut dyn Connection, key: u64, value: i64) -> Result<(), DbError> {
        connection.begin(Access::Write)?;
        connection.write(key, value)?;
        connection.commit().map(|_| ())
    }
}

/// How often the clocks are compared: often enough to see them drift.
const BETWEEN_COMPARISONS: Duration = Duration::from_secs(1);
/// How many times in a row the database is asked. The quickest answer tells the most.
const QUESTIONS: usize = 5;

/// The clock of a run beside that of its database, compared again and again.
pub(super) struct Comparison {
    clock: ServerClock,
    samples: Vec<Sample>,
}

/// What was told between two moments of our own.
#[derive(Clone, Copy, Debug)]
struct Sample {
    asked: Instant,
    told: ClockBounds,
    answered: Instant,
}

impl Comparison {
    /// Compares the clocks for the first time; nothing where the database tells no time.
    pub(super) fn begin(database: &dyn Database) -> Result<Option<Comparison>, DbError> {
        let Some(clock) = ServerClock::of(database)? else { return Ok(None) };
        let mut comparison = Comparison { clock, samples: Vec::new() };
        comparison.compare()?;
        Ok(Some(comparison))
    }

    /// Compares them once more.
    pub(super) fn compare(&mut self) -> Result<(), DbError> {
        let mut best: Option<Sample> = None;
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            let told = self.clock.now()?;
            let sample = Sample { asked, told, answered: Instant::now() };
            let took = |sample: &Sample| sample.answered - sample.asked;
            if best.as_ref().is_none_or(|best| took(&sample) < took(best)) {
                best = Some(sample);
            }
        }
        self.samples.extend(best);
        Ok(())
    }

    /// Compares them until somebody says that it is over. An error ends it: what was seen by then counts.
    pub(super) fn go_on(&mut self, is_over: impl Fn() -> bool) {
        let mut next = Instant::now() + BETWEEN_COMPARISONS;
        while !is_over() {
            std::thread::sleep(Duration::from_millis(20));
            if Instant::now() >= next {
                if self.compare().is_err() {
                    return;
                }
                next = Instant::now() + BETWEEN_COMPARISONS;
            }
        }
        let _ = self.compare();
    }

    /// How the clocks compare, where ours begins at `epoch`.
    pub(super) fn result(&self, epoch: Instant) -> HostClock {
        let since = |moment: Instant| {
            let ahead = moment.saturating_duration_since(epoch).as_micros() as i64;
            ahead - epoch.saturating_duration_since(moment).as_micros() as i64
        };
        // Moments are cut to whole microseconds.
        let ranges = self.samples.iter().map(|sample| {
            (sample.told.0 - since(sample.answered) - 1, sample.told.1 - since(sample.asked) + 1)
        });
        offset(ranges)
    }
}

/// The offset in the middle of these ranges, each of which holds the true one of its own time, and how far it
/// may be off at any of these times.
///
/// A clock that drifts, or is set, moves the ranges apart and makes the bound larger: fewer transactions
/// are known to have come one after the other then, and none is thought so that did not.
fn offset(ranges: impl Iterator<Item = (i64, i64)>) -> HostClock {
    let mut samples = 0;
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for (from, to) in ranges {
        samples += 1;
        (least, most) = (least.min(from), most.max(to));
    }
    if samples == 0 {
        return HostClock { offset_us: 0, bound_us: u64::MAX, samples };
    }
    let offset_us = least + (most - least) / 2;
    HostClock {
        offset_us,
        bound_us: most.abs_diff(offset_us).max(least.abs_diff(offset_us)),
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_number_from_one_up_to_how_many_there_are() {
        assert_eq!(Host::new(0, 3), None);
        assert_eq!(Host::new(4, 3), None);
        let hosts: Vec<u32> =
            (1..=3).map(|number| Host::new(number, 3).unwrap().first_session(5)).collect();
        assert_eq!(hosts, [0, 5, 10]);
    }

    #[test]
    fn the_offset_is_within_its_bound_of_all_that_was_seen() {
        let clock = |ranges: &[(i64, i64)]| {
            let HostClock { offset_us, bound_us, .. } = offset(ranges.iter().copied());
            (offset_us, bound_us)
        };
        assert_eq!(clock(&[(100, 110)]), (105, 5));
        // One slow answer does not narrow what the quick one tells, nor the other way round.
        assert_eq!(clock(&[(100, 110), (50, 160)]), (105, 55));
        // The clock was set back by a second in between.
        assert_eq!(clock(&[(1_000_100, 1_000_110), (100, 110)]), (500_105, 500_005));
        assert_eq!(clock(&[]), (0, u64::MAX));
    }

    #[test]
    fn sessions_are_numbered_over_all_hosts() {
        struct Echo;
        impl Generator for Echo {
            fn plan(&self, place: AttemptedTxn, plan: &mut Vec<PlannedOp>) {
                plan.push(PlannedOp::Read { key: u64::from(place.session) });
            }
        }
        let second = SomeSessions { all: &Echo, first: 8 };
        let mut plan = Vec::new();
        second.plan(AttemptedTxn::first(3, 0), &mut plan);
        assert_eq!(plan, [PlannedOp::Read { key: 11 }]);
    }
}
