//! Clients of the store: they run their plans, and tell what they saw.

use isolario_model::{Clock, Initial, Meta, Outcome, SinkError, Stamp, TxnSink, Value};
use isolario_workload::{AttemptedTxn, Rng, RowValues, TableOp, TablePlanner, ValueRange};

use super::config::{TableAnomaly, TableConfig};
use super::plant;
use super::report::RowReporter;
use super::store::{TableStore, TableTxn};
use super::{TableChronicle, VersionSet};
use crate::config::Summary;
use crate::ending::{Ending, Mishaps};
use crate::interleave::{Clients, Phase, Planted};

/// What an operation returned.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Nothing but that it is done.
    Done,
    /// What a row held; for a write, before it.
    Row(Option<RowValues>),
    /// The rows of a range, as they are after the operation; none for those that it deleted.
    Rows(Vec<(u32, Option<RowValues>)>, Stamp),
    /// The value of a function.
    Value(Option<i64>, Stamp),
}

impl Answer {
    /// The snapshot of an operation by range.
    pub(super) fn snapshot(&self) -> Option<Stamp> {
        match self {
            Answer::Rows(_, snapshot) | Answer::Value(_, snapshot) => Some(*snapshot),
            Answer::Done | Answer::Row(_) => None,
        }
    }
}

/// A transaction in progress. Each step is one call to the store.
#[derive(Debug, Default)]
pub(super) struct TableFlight {
    place: Option<AttemptedTxn>,
    /// What it is called.
    pub(super) name: u64,
    pub(super) plan: Vec<TableOp>,
    pub(super) answers: Vec<Answer>,
    txn: TableTxn,
    pub(super) start: i64,
    pub(super) outcome: Option<Outcome>,
    /// Its snapshot and its place in the true commit order, if it committed and they are known.
    pub(super) stamps: (Option<Stamp>, Option<Stamp>),
    reran: bool,
}

impl TableFlight {
    fn step(&mut self, store: &mut TableStore, mishaps: &Mishaps, rng: &mut Rng) {
        match self.plan.get(self.answers.len()) {
            Some(op) => {
                let answer = self.run(*op, store, rng);
                self.answers.push(answer);
            }
            None => self.outcome = Some(self.finish(store, mishaps, rng)),
        }
    }

    fn run(&mut self, op: TableOp, store: &mut TableStore, rng: &mut Rng) -> Answer {
        let txn = &mut self.txn;
        match op {
            TableOp::Insert { key, held } => {
                store.write(txn, key, Some(held));
                Answer::Done
            }
            TableOp::Read { key } => Answer::Row(store.read(txn, key)),
            TableOp::Update { key, held } => {
                let before = store.read(txn, key);
                if before.is_some() {
                    store.write(txn, key, Some(held));
                }
                Answer::Row(before)
            }
            TableOp::Increment { key, version } => {
                let before = store.read(txn, key);
                if let Some(before) = before {
                    store.write(txn, key, Some(before.incremented(version)));
                }
                Answer::Row(before)
            }
            TableOp::RangeRead { range } => {
                let (rows, snapshot) = store.scan(txn, range, rng);
                let rows = rows.into_iter().map(|(key, held)| (key, Some(held)));
                Answer::Rows(rows.collect(), snapshot)
            }
            TableOp::RangeUpdate { range, b, version } => {
                self.write_range(range, |held| Some(RowValues { b, version, ..held }), store, rng)
            }
            TableOp::Delete { range, .. } => self.write_range(range, |_| None, store, rng),
            TableOp::Aggregate { function, range } => {
                let (rows, snapshot) = store.scan(txn, range, rng);
                Answer::Value(function.over(rows.iter().map(|(_, held)| held)), snapshot)
            }
        }
    }

    fn write_range(
        &mut self,
        range: ValueRange,
        new: impl Fn(RowValues) -> Option<RowValues>,
        store: &mut TableStore,
        rng: &mut Rng,
    ) -> Answer {
        let (rows, snapshot) = store.scan(&mut self.txn, range, rng);
        let rows: Vec<_> = rows.into_iter().map(|(key, held)| (key, new(held))).collect();
        rows.iter().for_each(|(key, held)| store.write(&mut self.txn, *key, *held));
        Answer::Rows(rows, snapshot)
    }
}

impl Ending<TableStore> for TableFlight {
    fn try_commit(&mut self, store: &mut TableStore, rng: &mut Rng) -> bool {
        let snapshot = store.snapshot(&self.txn);
        let committed = store.commit(&mut self.txn, rng).ok();
        self.stamps = (snapshot.filter(|_| committed.is_some()), committed);
        committed.is_some()
    }

    fn run_again(&mut self, store: &mut TableStore, rng: &mut Rng) {
        let Some(place) = self.place else { return };
        self.reran = true;
        store.begin(&mut self.txn, place.session);
        for at in 0..self.plan.len() {
            self.answers[at] = self.run(self.plan[at], store, rng);
        }
    }

    fn roll_back(&mut self, store: &mut TableStore) {
        store.rollback(&mut self.txn);
    }
}

/// The clients of a store with a table.
pub(super) struct Tables<'a> {
    planner: TablePlanner,
    reporter: RowReporter<'a>,
    chronicle: &'a mut dyn TableChronicle,
    store: TableStore,
    mishaps: Mishaps,
    flights: Vec<TableFlight>,
    /// How many transactions have begun: the name of the last one.
    begun: u64,
    summary: Summary,
}

impl<'a> Tables<'a> {
    pub(super) fn new(
        config: &TableConfig,
        planner: TablePlanner,
        sink: &'a mut dyn TxnSink,
        chronicle: &'a mut dyn TableChronicle,
    ) -> Result<Self, SinkError> {
        sink.meta(&Meta { initial: Initial::Value(Value::Nil), clock: Clock::Nanoseconds })?;
        Ok(Tables {
            planner,
            reporter: RowReporter::new(sink),
            chronicle,
            store: TableStore::new(config.level, config.sessions, config.defect),
            mishaps: Mishaps::new(config.abort_ratio, config.unknown_ratio),
            flights: (0..config.sessions).map(|_| TableFlight::default()).collect(),
            begun: 0,
            summary: Summary::default(),
        })
    }
}

impl Clients for Tables<'_> {
    type Plant = TableAnomaly;

    fn phase(&self, session: u32) -> Phase {
        let flight = &self.flights[session as usize];
        Phase::of(flight.place, flight.outcome)
    }

    fn begin(&mut self, place: AttemptedTxn, now: i64, _: &mut Rng) {
        self.begun += 1;
        let flight = &mut self.flights[place.session as usize];
        flight.plan.clear();
        flight.answers.clear();
        flight.plan.extend(self.planner.ops(place));
        self.store.begin(&mut flight.txn, place.session);
        (flight.place, flight.name, flight.start) = (Some(place), self.begun, now);
        (flight.outcome, flight.stamps, flight.reran) = (None, (None, None), false);
    }

    fn step(&mut self, session: u32, rng: &mut Rng) -> Result<(), SinkError> {
        let flight = &mut self.flights[session as usize];
        flight.step(&mut self.store, &self.mishaps, rng);
        if flight.stamps.1.is_none() {
            return Ok(());
        }
        let name = flight.name;
        flight.txn.last_writes().try_for_each(|(key, _)| self.chronicle.version(key.into(), name))
    }

    fn hear(&mut self, session: u32, now: i64, rng: &mut Rng) -> Result<(), SinkError> {
        let flight = &mut self.flights[session as usize];
        let Some(outcome) = flight.outcome else { return Ok(()) };
        let (name, committed, chronicle) = (flight.name, flight.stamps.1, &mut *self.chronicle);
        let met = |op, snapshot| match committed {
            Some(_) => chronicle.met(name, op, VersionSet::Snapshot(snapshot)),
            None => Ok(()),
        };
        let ops = self.reporter.flight(session, flight, outcome, now, rng, met)?;
        if let Some(place) = committed {
            self.chronicle.committed(name, place)?;
        }
        self.summary.operations += ops as u64;
        self.summary.reruns += u64::from(flight.reran);
        match outcome {
            Outcome::Committed => self.summary.committed += 1,
            Outcome::Aborted => self.summary.aborted += 1,
            Outcome::Unknown => self.summary.unknown += 1,
        }
        flight.place = None;
        Ok(())
    }

    fn plant(
        &mut self,
        anomaly: &TableAnomaly,
        first_session: u64,
        now: i64,
    ) -> Result<Planted, SinkError> {
        let planting = plant::Planting { first_session, first_name: self.begun + 1, now };
        let planted = plant::plant(*anomaly, planting, &mut self.reporter, self.chronicle)?;
        self.begun += planted.txns;
        self.summary.planted += planted.txns;
        self.summary.operations += planted.operations;
        Ok(Planted { sessions: planted.txns, end: planted.end })
    }

    fn summary(&self) -> Summary {
        self.summary
    }
}
