//! Rounds on their way: while one is driven, the schema of the next one is made, and the one before is examined.
//!
//! To make a schema and to drop it is mostly to wait for the disk. On MariaDB that takes longer than the
//! transactions of a round do, and so does the comparison of a round with its transactions one after the other. So
//! each step has a thread of its own.
//!
//! A step hands a round over and waits until the next step takes it, so at most one round is with each step. A round
//! owns its namespace until it is dropped, wherever that happens. No step waits for anything but its neighbours: when
//! one of them ends, for whatever reason, its channels close, and the others end as well.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use crate::driver::Control;
use isolario_db::{DbError, SqlConnection};
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

/// A round that is ready to be driven.
struct Made<'s> {
    number: u64,
    /// Where its schema is.
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

/// Examines a round, and returns whether to go on.
pub(super) type Examine<'e, 's> = dyn FnMut(Driven<'s>) -> Result<bool, RunError> + 'e;

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

    /// Goes through rounds until there are enough transactions, the time is up, or the run is stopped. Each one is
    /// examined in the order of their numbers; the result says whether to go on.
    pub(super) fn examine_each(&self, examine: &mut Examine<'_, 's>) -> Result<(), RunError> {
        // The schema that is to be kept is that of the last round, and SQLite has no namespaces: one round
        // after the other.
        let is_alone = self.settings.keep || self.site.is_sqlite();
        let mut numbers = 0..;
        let make = || {
            let number = numbers.next().filter(|_| !self.is_done())?;
            Some(self.make(number))
        };
        let drive = |made: Result<Made<'s>, DbError>| {
            (!self.is_done()).then(|| made.and_then(|made| self.drive(made)))
        };
        let examine = |driven: Result<Driven<'s>, DbError>| {
            let next = driven.map_err(|error| self.failure(error)).and_then(&mut *examine);
            if !matches!(next, Ok(true)) {
                self.is_enough.store(true, Ordering::Relaxed);
            }
            next
        };
        if is_alone { in_turn(make, drive, examine) } else { side_by_side(make, drive, examine) }
    }

    fn failure(&self, error: DbError) -> RunError {
        RunError::Database { url: self.settings.urls.first().cloned(), error }
    }

    /// Makes the schema of a round. What it is made of, its isolation level and how many sessions it has
    /// follow from the seed.
    fn make(&self, number: u64) -> Result<Made<'s>, DbError> {
        let Rounds { settings, site, .. } = self;
        let mut rng = Rng::derive(settings.seed, &[number, 2]);
        let choices = site.isolations.len() as u64;
        let (at, plan) = self.models.plan(settings, &site.product, number, choices, &mut rng);
        let mut stage = site.at(&site.isolations[at])?;
        stage.adopt_kept();
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

/// Makes, drives and examines one thing after the other, until a step says that it is over.
fn in_turn<M, D, E>(
    mut make: impl FnMut() -> Option<M>,
    mut drive: impl FnMut(M) -> Option<D>,
    mut examine: impl FnMut(D) -> Result<bool, E>,
) -> Result<(), E> {
    while let Some(driven) = make().and_then(&mut drive) {
        if !examine(driven)? {
            break;
        }
    }
    Ok(())
}

/// The same with a thread for each step. A panic in one of them ends the others, and goes on here.
fn side_by_side<M: Send, D: Send, E>(
    mut make: impl FnMut() -> Option<M> + Send,
    mut drive: impl FnMut(M) -> Option<D> + Send,
    mut examine: impl FnMut(D) -> Result<bool, E>,
) -> Result<(), E> {
    thread::scope(|scope| {
        let (made, ready) = sync_channel(0);
        let (driven, to_examine) = sync_channel(0);
        scope.spawn(move || while make().is_some_and(|next| made.send(next).is_ok()) {});
        scope.spawn(move || {
            let mut ready = ready.into_iter();
            while ready.next().and_then(&mut drive).is_some_and(|next| driven.send(next).is_ok()) {}
        });
        for driven in to_examine {
            if !examine(driven)? {
                break;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// Something that a step owns; how many there are at a time is counted.
    struct Owned(Arc<AtomicU64>, u64);

    impl Owned {
        fn new(count: &Arc<AtomicU64>, number: u64) -> Owned {
            let before = count.fetch_add(1, Ordering::SeqCst);
            assert!(before < 3, "one is with each step at most");
            Owned(Arc::clone(count), number)
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// What happens to a step at a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Event {
        Ends,
        Panics,
    }

    /// Runs three steps, of which one ends or panics at a number; returns what was examined, and whether there was a
    /// panic.
    fn examined(step: usize, at: u64, event: Event, slow: usize) -> (u64, bool) {
        let count = Arc::new(AtomicU64::new(0));
        let happens = |here: usize, number: u64| {
            if here == slow {
                thread::sleep(Duration::from_millis(1));
            }
            let is_it = (here, number) == (step, at);
            assert!(!is_it || event != Event::Panics, "a panic of the test");
            is_it
        };
        let (mut numbers, mut examined) = (0.., 0);
        let make = || {
            let number = numbers.next()?;
            (!happens(0, number)).then(|| Owned::new(&count, number))
        };
        let drive = |owned: Owned| (!happens(1, owned.1)).then_some(owned);
        let examine = |owned: Owned| {
            examined += 1;
            Ok::<bool, ()>(!happens(2, owned.1))
        };
        let ran = catch_unwind(AssertUnwindSafe(|| side_by_side(make, drive, examine)));
        assert_eq!(count.load(Ordering::SeqCst), 0, "everything was given back");
        (examined, ran.is_err())
    }

    #[test]
    fn whatever_happens_to_a_step_ends_all_of_them() {
        let (done, over) = channel();
        thread::spawn(move || {
            for step in 0..3 {
                for (at, slow) in (0..6).flat_map(|at| (0..4).map(move |slow| (at, slow))) {
                    for event in [Event::Ends, Event::Panics] {
                        let (examined, is_panic) = examined(step, at, event, slow);
                        let what = (step, at, event, slow, examined);
                        assert_eq!(is_panic, event == Event::Panics, "{what:?}");
                        // The examiner counts the one at which it ends.
                        let most = if step == 2 { at + 1 } else { at };
                        assert!(examined <= most, "{what:?}");
                        assert!(event == Event::Panics || examined == most, "{what:?}");
                    }
                }
            }
            done.send(()).unwrap();
        });
        // A step that waits for ever would never say so.
        over.recv_timeout(Duration::from_secs(120)).unwrap();
    }

    #[test]
    fn in_turn_there_is_one_at_a_time() {
        let examined = |last: u64| {
            let (mut numbers, mut examined) = (0.., Vec::new());
            let examine = |number: u64| {
                examined.push(number);
                Ok::<bool, ()>(number < last)
            };
            let drive = |number| (number < 3).then_some(number);
            in_turn(|| numbers.next(), drive, examine).unwrap();
            examined
        };
        assert_eq!((examined(1), examined(9)), (vec![0, 1], vec![0, 1, 2]));
    }
}
