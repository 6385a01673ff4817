//! Sessions take turns, step by step.

use isolario_model::{Outcome, SinkError};
use isolario_workload::{AttemptedTxn, Rng};

use crate::config::Summary;
use crate::schedule::Schedule;

/// What the sessions do against a store, one transaction after the other.
pub(crate) trait Clients {
    /// An anomaly to plant.
    type Plant;

    /// Where a session is with its transaction.
    fn phase(&self, session: u32) -> Phase;

    /// Begins a transaction.
    fn begin(&mut self, place: AttemptedTxn, now: i64, rng: &mut Rng);

    /// Runs the next operation, or commits after the last.
    fn step(&mut self, session: u32, rng: &mut Rng) -> Result<(), SinkError>;

    /// Hears how the transaction ended, and reports it.
    fn hear(&mut self, session: u32, now: i64, rng: &mut Rng) -> Result<(), SinkError>;

    /// Plants an anomaly, after a time and in sessions from a number on.
    fn plant(
        &mut self,
        plant: &Self::Plant,
        first_session: u64,
        now: i64,
    ) -> Result<Planted, SinkError>;

    /// Every session has begun this many transactions, or one less.
    fn everybody_is_at(&mut self, _position: u64) {}

    /// What was generated.
    fn summary(&self) -> Summary;
}

/// Where a session is with its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has none.
    Idle,
    /// It has operations to run, or to commit.
    Running,
    /// It has ended, and the client has not heard how.
    Ended,
}

impl Phase {
    /// Of a session with a transaction at this place, if it has one, which ended so, if it has.
    pub(crate) fn of(place: Option<AttemptedTxn>, outcome: Option<Outcome>) -> Phase {
        match (place, outcome) {
            (None, _) => Phase::Idle,
            (Some(_), None) => Phase::Running,
            (Some(_), Some(_)) => Phase::Ended,
        }
    }
}

/// What was planted.
pub(crate) struct Planted {
    /// How many sessions it took.
    pub(crate) sessions: u64,
    /// When it was over.
    pub(crate) end: i64,
}

/// How much there is to do, and at what pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) txns: u64,
    pub(crate) sessions: u32,
    pub(crate) concurrency: f64,
    pub(crate) seed: u64,
}

/// The numbers of the scheduler's own random stream; those of plans have two.
const SCHEDULER: &[u64] = &[0];

/// Sessions in turns.
pub(crate) struct Interleaving<C: Clients> {
    clients: C,
    schedule: Schedule,
    rng: Rng,
    /// Per session, how many transactions it has begun.
    positions: Vec<u64>,
    /// Nanoseconds on the clock that all clients share.
    now: i64,
    ended: u64,
    /// What is still to be planted, the last first: after how many transactions, and what.
    plants: Vec<(u64, C::Plant)>,
    /// The first session that is free for planted anomalies.
    next_session: u64,
}

impl<C: Clients> Interleaving<C> {
    /// Anomalies come with their place, as the share of the transactions that come before.
    pub(crate) fn new(
        clients: C,
        pace: Pace,
        anomalies: impl IntoIterator<Item = (f64, C::Plant)>,
    ) -> Self {
        let after = |at: f64| ((at * pace.txns as f64) as u64).min(pace.txns);
        let mut plants: Vec<_> =
            anomalies.into_iter().map(|(at, plant)| (after(at), plant)).collect();
        plants.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        Interleaving {
            clients,
            schedule: Schedule::new(pace.sessions, pace.concurrency, pace.txns),
            rng: Rng::derive(pace.seed, SCHEDULER),
            positions: vec![0; pace.sessions as usize],
            now: 0,
            ended: 0,
            plants,
            next_session: pace.sessions.into(),
        }
    }

    pub(crate) fn run(mut self) -> Result<Summary, SinkError> {
        self.plant()?;
        while let Some(place) = self.schedule.next(&mut self.rng) {
            self.step(place)?;
        }
        Ok(self.clients.summary())
    }

    /// One step of one session: it begins a transaction, runs an operation, commits, or hears that
    /// it has committed. The last two are apart so that commits happen at any time between start
    /// and finish.
    fn step(&mut self, place: usize) -> Result<(), SinkError> {
        self.now += 1 + self.rng.below(1000) as i64;
        let session = self.schedule.session(place);
        match self.clients.phase(session) {
            Phase::Idle => {
                let position = &mut self.positions[session as usize];
                let next = AttemptedTxn::first(session, *position);
                *position += 1;
                self.clients.begin(next, self.now, &mut self.rng);
                return Ok(());
            }
            Phase::Running => return self.clients.step(session, &mut self.rng),
            Phase::Ended => self.clients.hear(session, self.now, &mut self.rng)?,
        }
        self.schedule.ended(place, &mut self.rng);
        self.ended += 1;
        if self.ended.is_multiple_of(self.positions.len() as u64) {
            self.clients.everybody_is_at(self.positions.iter().min().copied().unwrap_or(0));
        }
        self.plant()
    }

    /// Plants the anomalies whose turn it is.
    fn plant(&mut self) -> Result<(), SinkError> {
        while let Some((_, plant)) = self.plants.pop_if(|(after, _)| *after <= self.ended) {
            let planted = self.clients.plant(&plant, self.next_session, self.now)?;
            self.next_session += planted.sessions;
            self.now = planted.end;
        }
        Ok(())
    }
}
