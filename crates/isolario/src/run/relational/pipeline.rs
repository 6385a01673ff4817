//! Rounds on their way: while one is driven, the schema of the next one is made, and the one before is examined.
//!
//! To make a schema and to drop it is mostly to wait for the disk. On MariaDB that takes longer than the
//! transactions of a round do, and so does the comparison of a round with its transactions one after the other. So each
//! step has a thread of its own, and each round a namespace, until it was examined. A few namespaces go
//! round, which is also what keeps rounds from piling up where one step takes longer than the others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Instant;

use isolario_db::{Control, DbError, SqlConnection};
use isolario_model::Outcome;
use isolario_sql::{Aux, Instrument, Planner, Round, Schema};
use isolario_workload::Rng;

use super::client::Shared;
use super::models::{Models, Plan};
use super::replay::replay;
use super::round::Drive;
use super::settings::Settings;
use super::site::{Site, Stage};
use crate::run::RunError;

/// One that is made, one that is driven, and one that is examined.
const NAMESPACES: u32 = 3;

/// A round that is ready to be driven.
struct Made<'s> {
    number: u64,
    stage: Stage<'s>,
    plan: Plan<'s>,
    /// A connection per session of a random round, if its schema was understood. Scripts are replayed on a schema
    /// that is made for it.
    connections: Result<Vec<Box<dyn SqlConnection>>, DbError>,
}

/// A round that was driven.
pub(super) struct Driven<'s> {
    pub(super) number: u64,
    /// Where its schema still is.
    pub(super) stage: Stage<'s>,
    pub(super) schema: Schema,
    pub(super) round: Round,
    /// Why there is nothing in it, if its schema was refused.
    pub(super) refused: Option<DbError>,
}

/// The rounds of a run.
pub(super) struct Rounds<'s> {
    settings: &'s Settings,
    models: &'s Models,
    site: &'s Site<'s>,
    control: &'s Control,
    begun: Instant,
    /// How many rounds were driven.
    driven: AtomicU64,
    /// How many transactions have committed in them.
    committed: AtomicU64,
    /// Whether nobody wants to see another one.
    is_enough: AtomicBool,
}

impl<'s> Rounds<'s> {
    pub(super) fn new(
        settings: &'s Settings,
        models: &'s Models,
        site: &'s Site<'s>,
        control: &'s Control,
        begun: Instant,
    ) -> Rounds<'s> {
        Rounds {
            settings,
            models,
            site,
            control,
            begun,
            driven: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            is_enough: AtomicBool::new(false),
        }
    }

    /// Goes through rounds until there are enough transactions, the time is up, or somebody stops it. Each one is
    /// examined in the order of their numbers; that tells whether to go on.
    pub(super) fn examine_each(
        &self,
        examine: &mut dyn FnMut(Driven<'s>) -> Result<bool, RunError>,
    ) -> Result<(), RunError> {
        // The schema that is to be kept is that of the last round, and SQLite has no namespaces: one round
        // after the other.
        let is_alone = self.settings.keep || self.site.is_sqlite();
        let namespaces = if is_alone { 1 } else { NAMESPACES };
        thread::scope(|scope| {
            let (give_back, free) = channel();
            let (made, ready) = sync_channel(1);
            let (driven, to_examine) = sync_channel(1);
            for namespace in 0..namespaces {
                let _ = give_back.send(namespace);
            }
            scope.spawn(move || self.make_all(&free, &made));
            scope.spawn(move || self.drive_all(&ready, &driven));
            let examined = self.examine_all(&to_examine, &give_back, examine);
            self.is_enough.store(true, Ordering::Relaxed);
            drop(give_back);
            // Nobody examines what was driven in the meantime, and whether it can be dropped is of no interest either.
            for Driven { stage, schema, .. } in to_examine.into_iter().flatten() {
                let _ = stage.clear(&schema);
            }
            examined
        })
    }

    /// Examines rounds as they come, and gives their namespaces back.
    fn examine_all(
        &self,
        driven: &Receiver<Result<Driven<'s>, DbError>>,
        give_back: &Sender<u32>,
        examine: &mut dyn FnMut(Driven<'s>) -> Result<bool, RunError>,
    ) -> Result<(), RunError> {
        for driven in driven {
            let url = self.settings.urls.first().cloned();
            let driven = driven.map_err(|error| RunError::Database { url, error })?;
            let namespace = driven.stage.namespace;
            if !examine(driven)? {
                break;
            }
            // Nobody needs it if no other round is made.
            let _ = give_back.send(namespace);
        }
        Ok(())
    }

    /// Makes the schemas of rounds for as long as there are namespaces.
    fn make_all(&self, free: &Receiver<u32>, made: &SyncSender<Result<Made<'s>, DbError>>) {
        let mut last = None;
        for number in 0.. {
            let Ok(namespace) = free.recv() else { return };
            if self.is_done() {
                return;
            }
            let next = self.make(number, namespace, last.as_ref());
            last = next.as_ref().ok().map(|made| made.plan.schema().clone());
            if made.send(next).is_err() {
                return;
            }
        }
    }

    /// Makes the schema of a round. What it is made of, its isolation level and how many sessions it has
    /// follow from the seed. The schema of the last round is there until then, if it is kept.
    fn make(
        &self,
        number: u64,
        namespace: u32,
        last: Option<&Schema>,
    ) -> Result<Made<'s>, DbError> {
        let Rounds { settings, site, .. } = self;
        let mut rng = Rng::derive(settings.seed, &[number, 2]);
        let choices = site.isolations.len() as u64;
        let (at, plan) = self.models.plan(settings, &site.product, number, choices, &mut rng);
        let stage = site.at_namespace(&site.isolations[at], namespace)?;
        if let Some(last) = last.filter(|_| settings.keep) {
            stage.clear(last)?;
        }
        let connections = match &plan {
            Plan::Script(_) => Ok(Vec::new()),
            Plan::Random { schema, models } => {
                let sessions = settings.sessions.unwrap_or(2 + rng.below(4) as u32);
                let longest = models.iter().map(Vec::len).max().unwrap_or(0);
                let longest = longest.max(settings.style.statements);
                let aux = Aux::avoiding(schema).with_room_for(settings.round as usize * longest);
                stage
                    .make(schema, settings.instrumented.then_some(&aux))
                    .and_then(|()| (0..sessions).map(|session| stage.connect(session)).collect())
            }
        };
        Ok(Made { number, stage, plan, connections })
    }

    /// Drives rounds. When it is done, what was made in the meantime is dropped.
    fn drive_all(
        &self,
        ready: &Receiver<Result<Made<'s>, DbError>>,
        driven: &SyncSender<Result<Driven<'s>, DbError>>,
    ) {
        for made in ready {
            if self.is_done() {
                let _ = made.map(Made::clear);
                continue;
            }
            if driven.send(made.and_then(|made| self.drive(made))).is_err() {
                return;
            }
        }
    }

    fn drive(
        &self,
        Made { number, stage, plan, connections }: Made<'s>,
    ) -> Result<Driven<'s>, DbError> {
        let (schema, driven) = match plan {
            Plan::Script(script) => (script.schema.clone(), replay(self.site, &stage, script)),
            Plan::Random { schema, models } => {
                let driven = connections
                    .and_then(|sessions| self.random(&stage, number, &schema, &models, sessions));
                (schema, driven)
            }
        };
        let (round, refused) = match driven {
            Ok(round) => (round, None),
            // A schema that came from another database may not be understood by this one.
            Err(error) if self.settings.templates.is_some() && error.code.is_some() => {
                (Round::default(), Some(error))
            }
            Err(error) => return Err(error),
        };
        let txns = round.transactions.iter().filter(|txn| !txn.is_final);
        let committed = txns.filter(|txn| txn.outcome == Outcome::Committed).count();
        self.committed.fetch_add(committed as u64, Ordering::Relaxed);
        self.driven.fetch_add(1, Ordering::Relaxed);
        Ok(Driven { number, stage, schema, round, refused })
    }

    /// Drives random transactions over a schema.
    fn random(
        &self,
        stage: &Stage<'_>,
        number: u64,
        schema: &Schema,
        models: &[Vec<String>],
        connections: Vec<Box<dyn SqlConnection>>,
    ) -> Result<Round, DbError> {
        let Settings { seed, style, round: txns, instrumented, .. } = self.settings;
        let product = &self.site.product;
        let aux = Aux::avoiding(schema);
        let instrument = instrumented.then_some(Instrument { product, schema, aux: &aux });
        let companion = stage.companion();
        let shared = Shared::new(product, instrument).with_companion(companion);
        let mut style = style.clone();
        if companion.is_some() {
            style.mix = style.mix.without_savepoints();
        }
        let style = &style;
        let planner = Planner { schema, product, style, models, seed: *seed, round: number };
        let stop = || self.is_stopped() || self.is_time_up();
        Drive { stage, shared: &shared, planner, txns: *txns }.round(connections, &stop)
    }

    /// Whether no other round is to be driven. Without any limit, one is enough.
    fn is_done(&self) -> bool {
        let driven = self.driven.load(Ordering::Relaxed);
        let committed = self.committed.load(Ordering::Relaxed);
        let is_enough = match (self.settings.txns, self.settings.duration) {
            (Some(txns), _) => committed >= txns,
            (None, Some(_)) => false,
            (None, None) => driven > 0,
        };
        // A database that commits nothing would go on for ever.
        let is_stuck = self.settings.duration.is_none() && driven >= 50 && committed == 0;
        is_enough || is_stuck || self.is_stopped() || self.is_time_up()
    }

    fn is_stopped(&self) -> bool {
        self.control.is_stopped() || self.is_enough.load(Ordering::Relaxed)
    }

    fn is_time_up(&self) -> bool {
        self.settings.duration.is_some_and(|duration| self.begun.elapsed() >= duration)
    }
}

impl Made<'_> {
    /// Drops the schema.
    fn clear(self) -> Result<(), DbError> {
        match self.plan {
            Plan::Script(_) => Ok(()),
            Plan::Random { schema, .. } => self.stage.clear(&schema),
        }
    }
}
