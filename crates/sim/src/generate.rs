//! Runs sessions against the store, interleaved, and streams what they saw.

use isolario_model::{SinkError, TxnSink};
use isolario_workload::{Chance, Generator, Place, Planner, Rng};

use crate::chronicle::{Chronicle, Unheard};
use crate::config::{Config, ConfigError, GenerateError, Plant, Summary};
use crate::flight::{Flight, Mishaps};
use crate::plant;
use crate::report::Reporter;
use crate::schedule::Schedule;
use crate::store::Store;

/// Generates a history into a sink. The same configuration gives the same history, on every
/// platform.
///
/// Transactions come in the order they finish. Sessions are numbered from 0, those of planted
/// anomalies after the others; transactions from 1.
pub fn generate(config: &Config, sink: &mut dyn TxnSink) -> Result<Summary, GenerateError> {
    generate_with(config, sink, &mut Unheard)
}

/// As [`generate`], and tells the true orders, too.
pub fn generate_with(
    config: &Config,
    sink: &mut dyn TxnSink,
    chronicle: &mut dyn Chronicle,
) -> Result<Summary, GenerateError> {
    config.validate()?;
    let planner = Planner::new(&config.workload, config.sessions, config.seed)
        .map_err(ConfigError::Workload)?;
    let reporter = Reporter::new(sink, config.workload.kind, config.stamps)?;
    Ok(Run::new(config, &planner, reporter, chronicle).run()?)
}

/// The numbers of the scheduler's own random stream; those of plans have two.
const SCHEDULER: &[u64] = &[0];

struct Run<'a> {
    generator: &'a dyn Generator,
    reporter: Reporter<'a>,
    chronicle: &'a mut dyn Chronicle,
    store: Store,
    schedule: Schedule,
    rng: Rng,
    mishaps: Mishaps,
    flights: Vec<Flight>,
    /// Per session, how many transactions it has begun.
    positions: Vec<u64>,
    /// Nanoseconds on the clock that all clients share.
    now: i64,
    ended: u64,
    /// What is still to be planted, the last first: after how many transactions, and what.
    plants: Vec<(u64, Plant)>,
    /// The first session that is free for planted anomalies.
    next_session: u64,
}

impl<'a> Run<'a> {
    fn new(
        config: &Config,
        generator: &'a dyn Generator,
        reporter: Reporter<'a>,
        chronicle: &'a mut dyn Chronicle,
    ) -> Self {
        let rest = 1.0 - config.abort_ratio;
        let unknown = if rest > 0.0 { config.unknown_ratio / rest } else { 0.0 };
        let after = |plant: &Plant| ((plant.at * config.txns as f64) as u64).min(config.txns);
        let mut plants: Vec<_> =
            config.anomalies.iter().map(|plant| (after(plant), *plant)).collect();
        plants.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        Run {
            generator,
            reporter,
            chronicle,
            store: Store::new(config.level, config.sessions),
            schedule: Schedule::new(config.sessions, config.concurrency, config.txns),
            rng: Rng::derive(config.seed, SCHEDULER),
            mishaps: Mishaps {
                abort: Chance::new(config.abort_ratio),
                unknown: Chance::new(unknown),
            },
            flights: (0..config.sessions).map(|_| Flight::default()).collect(),
            positions: vec![0; config.sessions as usize],
            now: 0,
            ended: 0,
            plants,
            next_session: config.sessions.into(),
        }
    }

    fn run(mut self) -> Result<Summary, SinkError> {
        self.plant()?;
        while let Some(place) = self.schedule.next(&mut self.rng) {
            self.step(place)?;
        }
        Ok(self.reporter.summary)
    }

    /// One step of one session: it begins a transaction, runs an operation, commits, or hears that
    /// it has committed. The last two are apart so that commits happen at any time between start
    /// and finish.
    fn step(&mut self, place: usize) -> Result<(), SinkError> {
        self.now += 1 + self.rng.below(1000) as i64;
        let session = self.schedule.session(place);
        let flight = &mut self.flights[session as usize];
        if flight.place.is_none() {
            let position = &mut self.positions[session as usize];
            let next = Place::first(session, *position);
            *position += 1;
            flight.begin(next, self.now, self.generator, &mut self.store, &mut self.rng);
            return Ok(());
        }
        let Some(outcome) = flight.outcome else {
            flight.step(&mut self.store, &self.mishaps, &mut self.rng);
            let versions = flight.versions();
            return versions.into_iter().try_for_each(|(k, v)| self.chronicle.version(k, v));
        };
        let (store, rng) = (&self.store, &mut self.rng);
        self.reporter.flight(session, flight, outcome, self.now, store, rng)?;
        if let (_, Some(place)) = flight.stamps {
            self.chronicle.committed(self.reporter.txns, place)?;
        }
        flight.place = None;
        self.schedule.ended(place, &mut self.rng);
        self.ended += 1;
        if self.ended.is_multiple_of(self.positions.len() as u64) {
            self.forget_keys();
        }
        self.plant()
    }

    /// Lets the store forget the keys that no session will use again.
    fn forget_keys(&mut self) {
        // A session that has begun position n - 1 may still be there.
        let slowest = self.positions.iter().min().map_or(0, |position| position.saturating_sub(1));
        self.store.forget_below(self.generator.first_key(slowest));
    }

    /// Plants the anomalies whose turn it is.
    fn plant(&mut self) -> Result<(), SinkError> {
        while let Some((_, plant)) = self.plants.pop_if(|(after, _)| *after <= self.ended) {
            let first_session = self.next_session;
            let planted = plant::plant(plant.kind, first_session, self.now, &mut self.reporter)?;
            self.next_session += planted.sessions;
            self.now = planted.end;
        }
        Ok(())
    }
}
