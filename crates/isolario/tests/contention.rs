//! Stores in the process of the test: transactions overlap by default, and an assertion fails where they
//! do not.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolario::Level;
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{Access, DbError};
use isolario::run::{Handle, Judgement, RunOutcome, Settings, run_against};
use isolario::workload::Kind;

/// A value, and how often it was replaced.
type Versioned = (u64, Vec<u8>);

/// Optimistic: a transaction reads what is committed, and commits if what it read is still there.
#[derive(Clone, Default)]
struct Optimistic {
    committed: Arc<Mutex<BTreeMap<Vec<u8>, Versioned>>>,
    /// The planted bug: only the first key that a transaction read is validated.
    validates_first_only: bool,
}

struct Attempt {
    store: Optimistic,
    read: Vec<(Vec<u8>, u64)>,
    written: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Store for Optimistic {
    type Transaction = Attempt;

    fn begin(&self, _: Access) -> Result<Attempt, DbError> {
        Ok(Attempt { store: self.clone(), read: Vec::new(), written: BTreeMap::new() })
    }
}

impl Transaction for Attempt {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        if let Some(own) = self.written.get(key) {
            return Ok(Some(own.clone()));
        }
        let found = self.store.committed.lock().unwrap().get(key).cloned();
        self.read.push((key.to_vec(), found.as_ref().map_or(0, |(version, _)| *version)));
        Ok(found.map(|(_, value)| value))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.written.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        let mut committed = self.store.committed.lock().unwrap();
        let validated = if self.store.validates_first_only { 1 } else { self.read.len() };
        let is_current = |(key, version): &(Vec<u8>, u64)| {
            committed.get(key).map_or(0, |(version, _)| *version) == *version
        };
        if !self.read.iter().take(validated).all(is_current) {
            return Err(DbError::retryable("what it read was replaced"));
        }
        for (key, value) in self.written {
            let version = committed.get(&key).map_or(0, |(version, _)| *version);
            committed.insert(key, (version + 1, value));
        }
        Ok(())
    }
}

fn outcome(store: Optimistic, settings: Settings) -> RunOutcome {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings.with_out(directory.path().join("run"));
    let store = EmbeddedDatabase::new("optimistic", store).claiming([Level::Serializable]);
    run_against(&settings, vec![Box::new(store)], &Handle::new(), &mut ()).unwrap()
}

#[test]
fn a_planted_bug_is_found_with_the_defaults() {
    for seed in 1..=3 {
        let broken = Optimistic { validates_first_only: true, ..Optimistic::default() };
        let found = outcome(broken, Settings::new(Kind::Mini).with_seed(seed));
        let contention = found.examination.contention.unwrap();
        assert_eq!(found.judgement(), Judgement::Violated, "seed {seed}: {contention:?}");
        let failed = catch_unwind(AssertUnwindSafe(|| found.assert_kept()));
        let words = *failed.unwrap_err().downcast::<String>().unwrap();
        assert!(words.contains("broke its promise, serializability"), "{words}");
    }
    let right = outcome(Optimistic::default(), Settings::new(Kind::Mini).with_txns(2000));
    right.assert_kept();
}

/// As in the recipe of the book: few transactions of every workload.
#[test]
fn the_recipe_finds_a_planted_bug_and_passes_without_it() {
    let recipe = |store: &Optimistic| {
        let runs = Kind::KEYED.into_iter();
        let runs = runs.map(|kind| outcome(store.clone(), Settings::new(kind).with_txns(500)));
        runs.collect::<Vec<_>>()
    };
    let broken = Optimistic { validates_first_only: true, ..Optimistic::default() };
    let is_violated = |run: &RunOutcome| run.judgement() == Judgement::Violated;
    assert!(recipe(&broken).iter().any(is_violated));
    for run in recipe(&Optimistic::default()) {
        run.assert_kept();
        // Sessions that gather overlap, whatever else the machine does.
        let contention = run.examination.contention.unwrap();
        assert!(contention.overlapped * 5 > contention.committed, "{contention:?}");
    }
}

#[test]
fn a_run_without_overlap_is_no_success() {
    let settings = Settings::new(Kind::Mini).with_txns(200).with_sessions(1);
    let alone = outcome(Optimistic::default(), settings.with_think(Duration::ZERO));
    assert_eq!(alone.judgement(), Judgement::Satisfied);
    let failed = catch_unwind(AssertUnwindSafe(|| alone.assert_kept()));
    let words = *failed.unwrap_err().downcast::<String>().unwrap();
    assert!(
        words.starts_with("0 of 200 transactions overlapped another one, and 0 did"),
        "{words}"
    );
}
