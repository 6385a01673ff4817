//! Live runs as a test calls them: what they find, how they end, what they leave behind.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolario::Level;
use isolario::db::{
    self, Access, Claim, Connection, Database, DbError, Layout, Receipt, RegisterValue,
    RunProgress, Traits,
};
use isolario::model::{RunVerdict, StopReason, VerdictKind};
use isolario::run::{
    Ask, Handle, Judgement, Observer, RunError, RunOutcome, Settings, Stage, run, run_against,
};
use isolario::workload::Kind;

/// A store behind one lock, which refuses or goes away as it is told.
#[derive(Clone, Default)]
struct Store {
    registers: Arc<Mutex<HashMap<u64, i64>>>,
    refuses: bool,
    /// After so many commits it is gone.
    lives: Option<u64>,
    commits: Arc<Mutex<u64>>,
}

struct Client(Store, Vec<(u64, i64)>);

impl Store {
    fn is_gone(&self) -> bool {
        self.lives.is_some_and(|lives| *self.commits.lock().unwrap() >= lives)
    }
}

impl Database for Store {
    fn name(&self) -> &str {
        "store"
    }
    fn version(&self) -> Result<String, DbError> {
        Ok("Store 1".to_owned())
    }
    fn traits(&self) -> Traits<'_> {
        Traits { isolation: "serializable", workloads: &[Kind::Mini], ..Traits::default() }
    }
    fn claim(&self, _: Kind, _: usize) -> Claim {
        Claim { levels: vec![Level::ReadCommitted], source: "its page".to_owned() }
    }
    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        Ok(())
    }
    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        match self.is_gone() {
            true => Err(DbError::retryable("connection refused").disconnected()),
            false => Ok(Box::new(Client(self.clone(), Vec::new()))),
        }
    }
}

impl Connection for Client {
    fn begin(&mut self, _: Access) -> Result<(), DbError> {
        self.1.clear();
        Ok(())
    }
    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        let own = self.1.iter().rev().find(|(written, _)| *written == key);
        Ok(own
            .map(|(_, value)| *value)
            .or_else(|| self.0.registers.lock().unwrap().get(&key).copied()))
    }
    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.1.push((key, value));
        Ok(())
    }
    fn commit(&mut self) -> Result<Receipt, DbError> {
        if self.0.is_gone() {
            return Err(DbError::retryable("gone").disconnected());
        }
        if self.0.refuses {
            return Err(DbError::aborted("this server is read-only"));
        }
        self.0.registers.lock().unwrap().extend(self.1.drain(..));
        *self.0.commits.lock().unwrap() += 1;
        Ok(Receipt::default())
    }
    fn rollback(&mut self) -> Result<(), DbError> {
        self.1.clear();
        Ok(())
    }
}

fn settings(out: &Path) -> Settings {
    Settings::new(Kind::Mini).with_txns(200).with_sessions(3).with_out(out)
}

#[test]
fn a_run_in_which_nothing_committed_satisfies_nothing() {
    let out = tempfile::tempdir().unwrap();
    let store = Store { refuses: true, ..Store::default() };
    let settings = settings(out.path()).with_duration(Duration::from_millis(100));
    let outcome = run_against(&settings, vec![Box::new(store)], &Handle::new(), &mut ()).unwrap();
    assert_eq!(outcome.judgement(), Judgement::NothingToCheck);
    assert_eq!((outcome.record.counts.committed, outcome.record.conflicted), (0, None));
    let said = outcome.promise().to_string();
    assert_eq!(said, "Store 1 committed nothing in this run, so there is nothing to check");
    let reasons = &outcome.record.abort_reasons;
    assert_eq!((reasons.len(), reasons[0].count), (1, outcome.record.counts.aborted));
}

#[test]
fn a_node_that_was_gone_at_the_end_is_named() {
    let out = tempfile::tempdir().unwrap();
    let nodes: Vec<Box<dyn Database>> =
        vec![Box::new(Store { lives: Some(20), ..Store::default() }), Box::new(Store::default())];
    let settings = settings(out.path()).with_duration(Duration::from_millis(400));
    let outcome = run_against(&settings, nodes, &Handle::new(), &mut ()).unwrap();
    assert_eq!(outcome.record.stopped, StopReason::Done);
    let gone: Vec<_> = outcome.record.gone.iter().map(|node| &*node.error).collect();
    assert_eq!(gone, ["connection refused"]);
}

#[test]
fn a_run_that_is_interrupted_before_it_begins_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let handle = Handle::new();
    assert_eq!(handle.interrupt(), Stage::Idle);
    let settings = settings(&out).with_url("sim:serializable").unwrap();
    let error = run(&settings, &handle, &mut ()).unwrap_err();
    assert!(matches!(error, RunError::Interrupted), "{error}");
    assert!(!out.exists());
}

/// Interrupts the run once something has committed, and writes down what it was told.
struct Impatient {
    handle: Handle,
    told: Vec<&'static str>,
}

impl Observer for Impatient {
    fn opened(&mut self, _: &isolario::run::RunTarget) {
        self.told.push("opened");
    }
    fn recording(&mut self, _: &Path) {
        self.told.push("recording");
    }
    fn driving(&mut self, progress: &RunProgress) {
        if progress.counts.committed > 0 {
            assert_eq!(self.handle.interrupt(), Stage::Driving);
        }
    }
    fn driven(&mut self, outcome: &db::WorkloadOutcome) {
        assert_eq!(outcome.stopped, StopReason::Interrupted);
        self.told.push("driven");
    }
    fn checking(&mut self, _: &mut isolario::check::CheckOptions) {
        self.told.push("checking");
    }
    fn checked(&mut self) {
        self.told.push("checked");
    }
}

#[test]
fn a_run_that_is_interrupted_is_checked() {
    let out = tempfile::tempdir().unwrap();
    let settings = settings(out.path()).with_duration(Duration::from_secs(3600));
    let handle = Handle::new();
    let mut observer = Impatient { handle: handle.clone(), told: Vec::new() };
    let nodes: Vec<Box<dyn Database>> = vec![Box::new(Store::default())];
    let outcome = run_against(&settings, nodes, &handle, &mut observer).unwrap();
    assert_eq!(outcome.judgement(), Judgement::Satisfied);
    assert_eq!(observer.told, ["opened", "recording", "driven", "checking", "checked"]);
    let said = outcome.promise().to_string();
    assert!(said.starts_with("Store 1 kept its promise, read committed, in this run of"), "{said}");
    assert!(outcome.record.overlapped.is_some() && outcome.unwritten.is_empty());
}

/// A simulated store at read committed, until it has shown that it gives no more.
fn at_read_committed(ask: &Ask) -> RunOutcome {
    let run_of = |seed: u64| {
        let out = tempfile::tempdir().unwrap();
        let settings = Settings::new(Kind::Mini).with_url("sim:rc").unwrap();
        let mut settings = settings.with_txns(500 * seed).with_seed(seed).with_out(out.path());
        (settings.workload.keys, settings.ask) = (3, ask.clone());
        run(&settings, &Handle::new(), &mut ()).unwrap()
    };
    let shows = |outcome: &RunOutcome| {
        let violated = |level| {
            let of_level = |answer: &&RunVerdict| answer.level == level;
            let answer = outcome.record.verdicts.iter().find(of_level);
            answer.is_some_and(|answer| answer.verdict == VerdictKind::Violated)
        };
        violated(Level::SnapshotIsolation) && violated(Level::Serializable)
    };
    (1..=30).map(run_of).find(shows).unwrap()
}

#[test]
fn a_sentence_accuses_of_nothing_but_what_is_violated() {
    let outcome = at_read_committed(&Ask::all());
    assert_eq!(outcome.judgement(), Judgement::Satisfied);
    assert!(!outcome.is_broken());
    let said = outcome.promise().to_string();
    assert!(said.contains(" kept its promise, read committed, "), "{said}");
    let levels = [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable];
    let outcome = at_read_committed(&Ask::levels(levels));
    assert_eq!(outcome.judgement(), Judgement::Violated);
    let said = outcome.promise().to_string();
    assert!(said.contains(" did not give snapshot isolation and serializability in "), "{said}");
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let settings = Settings::new(Kind::Append).with_out(&out);
    let nodes: Vec<Box<dyn Database>> = vec![Box::new(Store::default())];
    let error = run_against(&settings, nodes, &Handle::new(), &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "store cannot run the append workload");
    let error = run(&settings, &Handle::new(), &mut ()).unwrap_err();
    assert!(matches!(error, RunError::Nothing("databases")), "{error}");
    assert!(!out.exists());
    std::fs::write(dir.path().join("file"), "mine").unwrap();
    let taken = Settings::new(Kind::Mini).with_out(dir.path());
    let nodes: Vec<Box<dyn Database>> = vec![Box::new(Store::default())];
    let error = run_against(&taken, nodes, &Handle::new(), &mut ()).unwrap_err();
    assert!(matches!(error, RunError::NotEmpty { .. }), "{error}");
}
