//! Embedded stores whose process is killed: what is opened again must have what was acknowledged.
//!
//! The store of these tests outlives its database, and can forget: so no process has to be killed.

#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex};

use isolario::Level;
use isolario::db::embedded::{EmbeddedDatabase, Store, Transaction};
use isolario::db::{self, Access, Database, DbError, DbUrl, Driver};
use isolario::run::{
    Fault, Handle, Judgement, LostCommits, PROOF, RunOutcome, Settings, crash_arguments,
    recorded_outages, run, run_after_crash,
};
use isolario::verify::proof::{ProofPremises, verify_proof_with};
use isolario::workload::{Application, Kind, Workload};

type Bytes = HashMap<Vec<u8>, Vec<u8>>;

/// All commits, one after the other: what is there after the first so many.
type Log = Arc<Mutex<Vec<Bytes>>>;

static STORES: LazyLock<Mutex<HashMap<String, Log>>> = LazyLock::new(Mutex::default);

static DRIVERS: &[Driver] =
    &[Driver::new(&["toy"], "toy:NAME", "a store of a test", &["serializable"], &[], open)];

fn log_of(name: &str) -> Log {
    Arc::clone(STORES.lock().unwrap().entry(name.to_owned()).or_default())
}

fn open(url: &DbUrl, _: &db::Settings) -> Result<Box<dyn Database>, DbError> {
    let store = EmbeddedDatabase::new("toy", Toy(log_of(url.rest())));
    Ok(Box::new(store.isolation("serializable").claiming([Level::StrictSerializable])))
}

struct Toy(Log);

struct Txn {
    log: Log,
    commits: usize,
    all: Bytes,
}

impl Store for Toy {
    type Transaction = Txn;

    fn begin(&self, _: Access) -> Result<Txn, DbError> {
        let log = self.0.lock().unwrap();
        let all = log.last().cloned().unwrap_or_default();
        Ok(Txn { log: Arc::clone(&self.0), commits: log.len(), all })
    }
}

impl Transaction for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DbError> {
        Ok(self.all.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), DbError> {
        self.all.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn commit(self) -> Result<(), DbError> {
        let mut log = self.log.lock().unwrap();
        if log.len() != self.commits {
            return Err(DbError::retryable("somebody else committed"));
        }
        log.push(self.all);
        Ok(())
    }
}

/// A run, then a crash in which the store forgets its last commits, then what is found when it is opened again.
fn crashed(kind: Kind, forgotten: usize) -> RunOutcome {
    crashed_as(1, &format!("{kind}-{forgotten}"), kind, forgotten)
}

/// The same under a number of its own.
fn crashed_as(run_number: u64, name: &str, kind: Kind, forgotten: usize) -> RunOutcome {
    crashed_with(Settings::new(kind), run_number, name, forgotten)
}

/// The same of any workload.
fn crashed_with(settings: Settings, run_number: u64, name: &str, forgotten: usize) -> RunOutcome {
    db::register(DRIVERS);
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings
        .with_url(&format!("toy:{name}"))
        .unwrap()
        .with_txns(200)
        .with_out(directory.path().join("run"));
    settings.to_be_killed = Some(run_number);
    let before = run(&settings, &Handle::new(), &mut ()).unwrap();
    assert_eq!(before.judgement(), Judgement::Satisfied, "{name}");
    let log = log_of(name);
    let kept = log.lock().unwrap().len() - forgotten;
    log.lock().unwrap().truncate(kept);
    let outcome = run_after_crash(&settings, Fault::Kill, &Handle::new(), &mut ()).unwrap();
    let outages = recorded_outages(&outcome.record);
    assert_eq!(LostCommits::find(&outcome.history, &outages), outcome.lost);
    let file = fs::read(outcome.directory.join(PROOF)).unwrap();
    let given = ProofPremises::default().with_outages(&outages);
    assert!(verify_proof_with(&outcome.history, given, &file).unwrap().is_right());
    assert!(outcome.history.txn_count() > before.history.txn_count(), "the last reads are there");
    assert_eq!(outcome.record.counts.committed, 200);
    outcome
}

#[test]
fn a_store_that_forgets_has_lost_commits() {
    for kind in [Kind::Mini, Kind::Append, Kind::Lwt] {
        let outcome = crashed(kind, 60);
        let lost = outcome.lost.as_ref().unwrap();
        assert!((1..=60).contains(&lost.total), "{kind}: {lost}");
        assert_eq!(outcome.judgement(), Judgement::Violated, "{kind}");
    }
}

/// Keys have names there.
#[test]
fn rows_of_an_application_are_lost_as_any_other() {
    let workload = Workload::of_application(Application::Twitter, 1);
    let settings = Settings::new(Kind::General).with_workload(workload);
    let outcome = crashed_with(settings.clone(), 1, "twitter-60", 60);
    assert!((1..=60).contains(&outcome.lost.as_ref().unwrap().total));
    assert_eq!(crashed_with(settings, 1, "twitter-0", 0).lost, None);
}

#[test]
fn a_store_that_remembers_has_none() {
    for kind in [Kind::Mini, Kind::General, Kind::Append, Kind::Lwt] {
        let outcome = crashed(kind, 0);
        assert_eq!((outcome.judgement(), &outcome.lost), (Judgement::Satisfied, &None), "{kind}");
    }
}

/// What an earlier run with the same seed has left is none of its business.
#[test]
fn a_store_may_crash_again_and_again() {
    for number in 1..4 {
        let outcome = crashed_as(number, "again", Kind::Mini, 0);
        assert_eq!(outcome.judgement(), Judgement::Satisfied, "{number}");
    }
}

#[test]
fn what_cannot_be_opened_again_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::new(Kind::Mini)
        .with_url("sim:serializable")
        .unwrap()
        .with_txns(20)
        .with_out(directory.path().join("run"));
    settings.to_be_killed = Some(1);
    run(&settings, &Handle::new(), &mut ()).unwrap();
    let refused =
        run_after_crash(&settings, Fault::Kill, &Handle::new(), &mut ()).unwrap_err().to_string();
    assert!(refused.contains("no way to resume the run of a killed process"), "{refused}");
}

#[test]
fn a_child_is_told_all_that_shapes_its_workload() {
    let mut settings = Settings::new(Kind::Append).with_url("sqlite:a file").unwrap().with_seed(7);
    settings.value_size = 100;
    settings.to_be_killed = Some(5);
    let arguments = crash_arguments(&settings).unwrap();
    for part in ["run --db 'sqlite:a file'", "--workload append", "--value-size 100", "--seed 7"] {
        assert!(arguments.contains(part), "{arguments}");
    }
    assert!(arguments.contains("--to-be-killed 5"), "{arguments}");
}
