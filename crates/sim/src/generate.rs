//! Runs sessions against the store of registers and lists, and streams what they saw.

use isolario_model::{SinkError, TxnSink};
use isolario_workload::{AttemptedTxn, Generator, Planner, Rng};

use crate::chronicle::{Chronicle, Unheard};
use crate::config::{Config, ConfigError, GenerateError, Plant, Summary};
use crate::ending::Mishaps;
use crate::flight::Flight;
use crate::interleave::{Clients, Interleaving, Phase, Planted};
use crate::plant;
use crate::report::Reporter;
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
    let clients = Registers {
        generator: &planner,
        reporter,
        chronicle,
        store: Store::new(config.level, config.sessions),
        mishaps: Mishaps::new(config.abort_ratio, config.unknown_ratio),
        flights: (0..config.sessions).map(|_| Flight::default()).collect(),
    };
    let anomalies = config.anomalies.iter().map(|plant| (plant.at, *plant));
    Ok(Interleaving::new(clients, config.pace(), anomalies).run()?)
}

/// Clients of a store of registers and lists.
struct Registers<'a> {
    generator: &'a dyn Generator,
    reporter: Reporter<'a>,
    chronicle: &'a mut dyn Chronicle,
    store: Store,
    mishaps: Mishaps,
    flights: Vec<Flight>,
}

impl Clients for Registers<'_> {
    type Plant = Plant;

    fn phase(&self, session: u32) -> Phase {
        let flight = &self.flights[session as usize];
        Phase::of(flight.place, flight.outcome)
    }

    fn begin(&mut self, place: AttemptedTxn, now: i64, rng: &mut Rng) {
        let flight = &mut self.flights[place.session as usize];
        flight.begin(place, now, self.generator, &mut self.store, rng);
    }

    fn step(&mut self, session: u32, rng: &mut Rng) -> Result<(), SinkError> {
        let flight = &mut self.flights[session as usize];
        flight.step(&mut self.store, &self.mishaps, rng);
        flight.versions().try_for_each(|(key, value)| self.chronicle.version(key, value))
    }

    fn hear(&mut self, session: u32, now: i64, rng: &mut Rng) -> Result<(), SinkError> {
        let flight = &mut self.flights[session as usize];
        let Some(outcome) = flight.outcome else { return Ok(()) };
        self.reporter.flight(session, flight, outcome, now, &self.store, rng)?;
        if let (_, Some(place)) = flight.stamps {
            self.chronicle.committed(self.reporter.txns, place)?;
        }
        flight.place = None;
        Ok(())
    }

    fn plant(&mut self, plant: &Plant, session: u64, now: i64) -> Result<Planted, SinkError> {
        plant::plant(plant.kind, session, now, &mut self.reporter)
    }

    /// Lets the store forget the keys that no session will use again. A session that has begun
    /// position n - 1 may still be there.
    fn everybody_is_at(&mut self, position: u64) {
        self.store.forget_below(self.generator.first_key(position.saturating_sub(1)));
    }

    fn summary(&self) -> Summary {
        self.reporter.summary
    }
}
