//! The runner against a database that fails on request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use isolario_formats::read;
use isolario_model::{History, Op, Outcome as Ended, StopReason};
use isolario_workload::{Aim, Planner, Workload};
use tempfile::TempDir;

use super::*;
use isolario_db::ErrorClass;
use isolario_db::{Access, Connection, Layout, Receipt, RegisterValue};

/// What goes wrong at the how-manieth commit.
type Script = Arc<dyn Fn(u64) -> Option<DbError> + Send + Sync>;

/// One transaction at a time; each is applied at its commit.
#[derive(Clone)]
struct Fake {
    registers: Arc<Mutex<BTreeMap<u64, i64>>>,
    commits: Arc<AtomicU64>,
    script: Script,
    refuse: Option<DbError>,
    /// Whether a transaction is under way, if there can only be one at a time.
    turn: Option<Arc<(Mutex<bool>, Condvar)>>,
}

struct FakeConnection {
    fake: Fake,
    writes: Vec<(u64, i64)>,
}

impl Fake {
    fn new(script: impl Fn(u64) -> Option<DbError> + Send + Sync + 'static) -> Fake {
        Fake {
            registers: Arc::default(),
            commits: Arc::default(),
            script: Arc::new(script),
            refuse: None,
            turn: None,
        }
    }
}

impl Database for Fake {
    fn name(&self) -> &str {
        "fake"
    }
    fn version(&self) -> Result<String, DbError> {
        Ok("Fake 1".to_owned())
    }
    fn clear(&self) -> Result<(), DbError> {
        Ok(())
    }
    fn prepare(&self, _: &Layout) -> Result<(), DbError> {
        Ok(())
    }
    fn connect(&self) -> Result<Box<dyn Connection>, DbError> {
        match &self.refuse {
            Some(error) => Err(error.clone()),
            None => Ok(Box::new(FakeConnection { fake: self.clone(), writes: Vec::new() })),
        }
    }
}

impl Connection for FakeConnection {
    fn begin(&mut self, _: Access) -> Result<(), DbError> {
        assert!(self.writes.is_empty(), "the last transaction is over");
        if let Some((is_taken, free)) = self.fake.turn.as_deref() {
            *free.wait_while(is_taken.lock().unwrap(), |is_taken| *is_taken).unwrap() = true;
        }
        Ok(())
    }
    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError> {
        Ok(self.fake.registers.lock().unwrap().get(&key).copied())
    }
    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError> {
        self.writes.push((key, value));
        Ok(())
    }
    fn commit(&mut self) -> Result<Receipt, DbError> {
        self.end();
        let number = self.fake.commits.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = (self.fake.script)(number) {
            return Err(error);
        }
        self.fake.registers.lock().unwrap().extend(self.writes.drain(..));
        Ok(Receipt::default())
    }
    fn rollback(&mut self) -> Result<(), DbError> {
        self.writes.clear();
        self.end();
        Ok(())
    }
}

impl FakeConnection {
    /// Lets the next transaction begin.
    fn end(&self) {
        if let Some((is_taken, free)) = self.fake.turn.as_deref() {
            *is_taken.lock().unwrap() = false;
            free.notify_one();
        }
    }
}

struct Stage {
    dir: TempDir,
    sessions: u32,
    txns: Option<u64>,
    max_retries: u32,
    patience: Duration,
    seed: u64,
}

fn stage() -> Stage {
    let (sessions, txns, max_retries) = (2, Some(50), 3);
    let patience = Duration::from_secs(60);
    Stage { dir: TempDir::new().unwrap(), sessions, txns, max_retries, patience, seed: 7 }
}

impl Stage {
    fn path(&self) -> PathBuf {
        self.dir.path().join("history.iso")
    }

    fn run(&self, fake: Fake) -> Result<WorkloadOutcome, RunError> {
        self.run_workload(fake, &Workload { keys: 5, read_ratio: 0.0, ..Workload::default() })
    }

    fn run_workload(&self, fake: Fake, workload: &Workload) -> Result<WorkloadOutcome, RunError> {
        let planner = Planner::new(workload, self.sessions, self.seed).unwrap();
        let generator = &planner.with_attempts(self.max_retries + 1);
        let databases: [Box<dyn Database>; 1] = [Box::new(fake)];
        let plan = RunPlan {
            databases: &databases,
            generator,
            sessions: self.sessions,
            txns: self.txns,
            duration: None,
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries: self.max_retries,
            patience: self.patience,
            history: Some(&self.path()),
            memory: 0,
        };
        run(&plan, &Control::new(), &mut |_| {})
    }

    fn history(&self) -> History {
        let loaded = read(&self.path()).unwrap();
        assert!(loaded.warnings.is_empty());
        loaded.history
    }
}

fn count(history: &History, ended: Ended) -> usize {
    history.txns().filter(|txn| history.outcome(*txn) == ended).count()
}

fn written(history: &History) -> Vec<i64> {
    let mut values = Vec::new();
    for txn in history.txns() {
        for op in history.txn_ops(txn) {
            history.with_op_input(op, |op| {
                if let Op::Write { value: isolario_model::ValueRef::Int(value), .. } = op {
                    values.push(*value);
                }
            });
        }
    }
    values
}

#[test]
fn every_attempt_is_recorded_with_values_of_its_own() {
    let stage = stage();
    let outcome = stage
        .run(Fake::new(|n| (n % 3 == 1).then(|| DbError::retryable("conflict").with_code("40001"))))
        .unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 50));
    let history = stage.history();
    assert_eq!(count(&history, Ended::Committed), 50);
    assert_eq!(count(&history, Ended::Aborted) as u64, outcome.counts.aborted);
    assert_eq!(outcome.counts.aborted, outcome.counts.retries);
    assert_eq!(outcome.abort_reasons[0].code.as_deref(), Some("40001"));
    assert_eq!(outcome.abort_reasons[0].count, outcome.counts.aborted);
    let values = written(&history);
    assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len(), "no value twice");
    let failed = history.txns().find(|txn| history.outcome(*txn) == Ended::Aborted).unwrap();
    assert_eq!(history.error(failed), Some("conflict (40001)"));
}

#[test]
fn after_an_unknown_outcome_a_new_session_goes_on() {
    let stage = Stage { sessions: 1, ..stage() };
    let outcome = stage.run(Fake::new(|n| (n == 10).then(|| DbError::unknown("gone")))).unwrap();
    let counts = outcome.counts;
    assert_eq!((counts.committed, counts.unknown, counts.reconnects), (50, 1, 1));
    let history = stage.history();
    assert_eq!((history.session_count(), count(&history, Ended::Unknown)), (2, 1));
    for session in history.sessions() {
        let last = history.session_txns(session).len() - 1;
        for (at, txn) in history.session_txns(session).enumerate() {
            assert!(at == last || history.outcome(txn) != Ended::Unknown, "nothing follows it");
        }
    }
}

#[test]
fn what_is_not_worth_another_attempt_gets_none() {
    let outcome =
        stage().run(Fake::new(|n| (n == 3).then(|| DbError::aborted("constraint")))).unwrap();
    assert_eq!((outcome.counts.aborted, outcome.counts.retries), (1, 0));
    assert_eq!(outcome.counts.committed, 50);
}

#[test]
fn attempts_have_an_end() {
    let stage = Stage { sessions: 1, txns: Some(1), ..stage() };
    let outcome = stage.run(Fake::new(|n| (n < 6).then(|| DbError::retryable("busy")))).unwrap();
    // Four attempts at the first position, three at the next.
    assert_eq!((outcome.counts.aborted, outcome.counts.retries), (6, 5));
    assert_eq!(outcome.counts.committed, 1);
}

#[test]
fn a_fatal_error_ends_the_run_and_what_was_recorded_stays() {
    let stage = stage();
    let outcome = stage.run(Fake::new(|n| (n >= 20).then(|| DbError::fatal("no right")))).unwrap();
    assert_eq!(outcome.stopped, StopReason::Database);
    let cause = outcome.cause.unwrap();
    assert_eq!((cause.node, cause.message.as_deref()), (Some(0), Some("no right")));
    assert_eq!(count(&stage.history(), Ended::Committed), 20);
}

#[test]
fn a_database_where_nothing_commits_is_given_up() {
    let stage = Stage { patience: Duration::from_millis(150), ..stage() };
    let outcome = stage.run(Fake::new(|_| Some(DbError::retryable("busy")))).unwrap();
    assert_eq!(outcome.stopped, StopReason::Database);
    let cause = outcome.cause.unwrap();
    assert_eq!((cause.stalled_ms, cause.message.as_deref()), (Some(150.0), Some("busy")));
}

#[test]
fn who_cannot_connect_does_not_begin() {
    let refuse = Some(DbError::new(ErrorClass::Fatal, "wrong password"));
    let error = stage().run(Fake { refuse, ..Fake::new(|_| None) }).unwrap_err();
    assert_eq!(error.to_string(), "wrong password");
}

#[test]
fn transactions_of_a_group_overlap() {
    // On a busy machine, a session may come too late for some of them.
    let stage = Stage { txns: Some(200), ..stage() };
    let workload = Workload { keys: 2, aim: Some(Aim::LostUpdate), ..Workload::default() };
    stage.run_workload(Fake::new(|_| None), &workload).unwrap();
    let contention = isolario_model::Contention::of(&stage.history()).unwrap();
    assert!(contention.overlapped > 0, "{contention:?}");
}

#[test]
fn nobody_waits_for_sessions_that_have_ended() {
    // The fourth session has no partner, some sessions lose theirs to errors, and in the end one is
    // without a transaction.
    let stage = Stage { sessions: 4, txns: Some(101), ..stage() };
    let workload = Workload { keys: 4, aim: Some(Aim::CausalityViolation), ..Workload::default() };
    let trouble = |n| match n % 10 {
        3 => Some(DbError::retryable("conflict")),
        7 => Some(DbError::unknown("gone")),
        _ => None,
    };
    let outcome = stage.run_workload(Fake::new(trouble), &workload).unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 101));
}

#[test]
fn slow_transactions_wait_for_no_session_that_fails_or_waits_for_them() {
    let failures = |n| match n % 10 {
        3 => Some(DbError::retryable("conflict")),
        7 => Some(DbError::unknown("gone")),
        _ => None,
    };
    let stage = Stage { sessions: 6, txns: Some(401), ..stage() };
    let slow = Workload { keys: 10, absent_ratio: 0.5, slow_ratio: 0.5, ..Workload::default() };
    let outcome = stage.run_workload(Fake::new(failures), &slow).unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 401));
    // One transaction at a time: none can commit while a slow one waits.
    let stage = Stage { sessions: 3, ..self::stage() };
    let alone = Fake { turn: Some(Arc::default()), ..Fake::new(|_| None) };
    let outcome = stage.run_workload(alone, &slow).unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 50));
}

#[test]
fn the_same_seed_asks_for_the_same() {
    let asked = |seed| {
        let stage = Stage { sessions: 1, seed, ..stage() };
        stage.run(Fake::new(|_| None)).unwrap();
        written(&stage.history())
    };
    assert_eq!(asked(1), asked(1));
    assert_ne!(asked(1), asked(2));
}

#[test]
fn a_run_can_be_stopped_and_limited_in_time() {
    let stage = Stage { txns: None, ..stage() };
    let planner = Planner::new(&Workload::default(), 2, 1).unwrap();
    let databases: [Box<dyn Database>; 1] = [Box::new(Fake::new(|_| None))];
    let plan = RunPlan {
        databases: &databases,
        generator: &planner,
        sessions: 2,
        txns: None,
        duration: Some(Duration::from_millis(50)),
        rate: Some(100),
        think: Duration::ZERO,
        gathers: false,
        max_retries: 0,
        patience: Duration::from_secs(60),
        history: Some(&stage.path()),
        memory: 0,
    };
    let outcome = run(&plan, &Control::new(), &mut |_| {}).unwrap();
    assert_eq!(outcome.stopped, StopReason::Done);
    assert!(outcome.counts.committed <= 100, "{}", outcome.counts.committed);
    let control = Control::new();
    let endless = RunPlan { duration: None, ..plan };
    let interrupt = &mut |progress: &RunProgress| {
        if progress.counts.committed > 0 {
            control.stop(StopReason::Interrupted, None);
        }
    };
    assert_eq!(run(&endless, &control, interrupt).unwrap().stopped, StopReason::Interrupted);
}
