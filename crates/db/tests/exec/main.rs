//! Driver programs: the example in Python that we ship, and what happens when one fails.

#![cfg(all(unix, feature = "exec"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use isolario_check::{CheckOptions, check};
use isolario_db::{DbUrl, Layout, Settings, open};
use isolario_formats::read;
use isolario_model::{History, Level, Outcome as Ended, StopReason, Verdict};
use isolario_run::driver::{Control, RunError, RunPlan, WorkloadOutcome, run};
use isolario_workload::{Kind, Planner, Workload};
use tempfile::TempDir;

const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/drivers/sqlite_driver.py");
const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exec/faulty.py");

const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exec/shared.py");

/// A directory for the database and the history.
struct Stage {
    dir: TempDir,
    kind: Kind,
    txns: u64,
    /// How long a driver may take that does not hang: the machine may be very busy.
    patience: Duration,
}

impl Stage {
    fn new(kind: Kind, txns: u64) -> Stage {
        let patience = Duration::from_secs(60);
        Stage { dir: TempDir::new().unwrap(), kind, txns, patience }
    }

    fn run(&self, command: &str) -> Result<WorkloadOutcome, RunError> {
        let file = self.dir.path().join("exec.db");
        let url = DbUrl::parse(&format!("exec:{command} {}", file.display())).unwrap();
        let settings =
            Settings { statement_timeout: self.patience, sessions: 3, ..Settings::default() };
        let databases = [open(&url, &settings).unwrap()];
        databases[0]
            .prepare(&Layout::new(self.kind, 5))
            .map_err(|error| RunError::Connect { node: 0, error })?;
        let workload = Workload { kind: self.kind, keys: 5, ops: 4, ..Workload::default() };
        let planner = Planner::new(&workload, 3, 1).unwrap().with_attempts(4);
        let plan = RunPlan {
            databases: &databases,
            generator: &planner,
            sessions: 3,
            txns: Some(self.txns),
            duration: None,
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries: 3,
            patience: Duration::from_secs(180),
            history: Some(&self.history_path()),
            memory: 0,
        };
        run(&plan, &Control::new(), &mut |_| {})
    }

    fn history_path(&self) -> std::path::PathBuf {
        self.dir.path().join("history.iso")
    }

    fn history(&self) -> History {
        read(&self.history_path()).unwrap().history
    }
}

fn faulty(fault: &str) -> String {
    format!("python3 {FAULTY} {fault}")
}

fn verdict(history: &History, level: Level) -> Verdict {
    check(history, &[level], &CheckOptions::default()).remove(0).verdict
}

#[test]
fn the_example_runs_every_workload() {
    for kind in Kind::ALL {
        let stage = Stage::new(kind, 150);
        let outcome = stage.run(&format!("python3 {EXAMPLE}")).unwrap();
        assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 150), "{kind}");
        let history = stage.history();
        assert_eq!(history.txn_count() as u64, outcome.counts.attempts(), "{kind}");
        if kind == Kind::Mini {
            let verdict = verdict(&history, Level::StrictSerializable);
            assert!(matches!(verdict, Verdict::Satisfied(_)), "{kind}: {verdict:?}");
        }
    }
}

#[test]
fn one_process_serves_many_sessions() {
    for kind in Kind::KEYED {
        let stage = Stage::new(kind, 150);
        let outcome = stage.run(&format!("python3 {SHARED} works")).unwrap();
        assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 150), "{kind}");
        assert_eq!(outcome.counts.reconnects, 0, "{kind}");
        if kind == Kind::Mini {
            let verdict = verdict(&stage.history(), Level::StrictSerializable);
            assert!(matches!(verdict, Verdict::Satisfied(_)), "{kind}: {verdict:?}");
        }
    }
}

/// The process takes all sessions along; one is started anew, and each of them connects again.
#[test]
fn sessions_of_one_process_are_lost_together() {
    let stage = Stage::new(Kind::Mini, 150);
    let outcome = stage.run(&format!("python3 {SHARED} dies-after-commit")).unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 150));
    assert!(outcome.counts.unknown > 0 && outcome.counts.reconnects >= outcome.counts.unknown);
    let verdict = verdict(&stage.history(), Level::StrictSerializable);
    assert!(!matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
}

/// One session waits for ever, and the others go on.
#[test]
fn a_session_that_hangs_is_replaced() {
    let stage = Stage { patience: Duration::from_secs(2), ..Stage::new(Kind::Mini, 150) };
    let outcome = stage.run(&format!("python3 {SHARED} hangs")).unwrap();
    assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 150));
    assert!(outcome.counts.reconnects > 0);
    let verdict = verdict(&stage.history(), Level::StrictSerializable);
    assert!(!matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
}

#[test]
fn an_answer_to_nobody_is_shown() {
    let error = Stage::new(Kind::Mini, 10).run(&format!("python3 {SHARED} forgets-session"));
    let error = error.err().unwrap().to_string();
    assert!(error.contains("expected the number of its session"), "{error}");
}

#[test]
fn the_example_introduces_itself() {
    let dir = TempDir::new().unwrap();
    let url =
        DbUrl::parse(&format!("exec:python3 {EXAMPLE} {}/x.db", dir.path().display())).unwrap();
    let database = open(&url, &Settings::default()).unwrap();
    assert!(database.version().unwrap().starts_with("SQLite 3."));
    assert_eq!(database.traits().isolation, "serializable");
    assert_eq!(database.claim(Kind::Mini, 1).levels, [Level::StrictSerializable]);
    let odd = Settings { isolation: Some("chaos".into()), ..Settings::default() };
    let error = open(&url, &odd).unwrap().version().unwrap_err();
    assert_eq!(error.message, "there is no isolation level but serializable");
}

/// Whether the transaction took effect or not, nobody is misled.
#[test]
fn a_driver_lost_around_its_commit_leaves_unknown_outcomes_and_a_right_verdict() {
    for (fault, seconds) in [
        ("dies-before-commit", 60),
        ("dies-after-commit", 60),
        ("hangs-before-commit", 2),
        ("garbage-after-commit", 60),
    ] {
        let patience = Duration::from_secs(seconds);
        let stage = Stage { patience, ..Stage::new(Kind::Mini, 150) };
        let outcome = stage.run(&faulty(fault)).unwrap();
        assert_eq!((outcome.stopped, outcome.counts.committed), (StopReason::Done, 150), "{fault}");
        let history = stage.history();
        let unknown = history.txns().filter(|txn| history.outcome(*txn) == Ended::Unknown).count();
        assert_eq!(unknown as u64, outcome.counts.unknown, "{fault}");
        // Where patience is short, a slow machine may lose more than the commits that hang.
        assert!(outcome.counts.unknown <= outcome.counts.reconnects, "{fault}");
        for level in [Level::Causal, Level::StrictSerializable] {
            let verdict = verdict(&history, level);
            assert!(!matches!(verdict, Verdict::Violated(_)), "{fault}: {verdict:?}");
        }
    }
}

#[test]
fn a_driver_lost_before_its_commit_has_not_committed() {
    let stage = Stage::new(Kind::Mini, 150);
    let outcome = stage.run(&faulty("dies-in-write")).unwrap();
    assert_eq!((outcome.counts.committed, outcome.counts.unknown), (150, 0));
    assert_eq!(outcome.counts.aborted, outcome.counts.reconnects);
    let verdict = verdict(&stage.history(), Level::StrictSerializable);
    assert!(matches!(verdict, Verdict::Satisfied(_)), "{verdict:?}");
}

/// A driver that lies is a database that lies.
#[test]
fn commits_called_aborted_are_found() {
    // It lies seldom, and somebody has to read what it lied about.
    let found = (0..20).any(|_| {
        let stage = Stage::new(Kind::Mini, 400);
        stage.run(&faulty("loses-commits")).unwrap();
        matches!(verdict(&stage.history(), Level::ReadCommitted), Verdict::Violated(_))
    });
    assert!(found);
}

#[test]
fn a_driver_that_cannot_be_talked_to_is_named_with_what_it_said() {
    for (command, words) in [
        (faulty("dies-at-once"), "the driver process has ended: no such module"),
        (faulty("garbage"), "the driver answered \"Hello there\": expected value"),
        ("/no/such/driver".to_owned(), "/no/such/driver: not found"),
    ] {
        let error = Stage::new(Kind::Mini, 10).run(&command).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(Path::new(EXAMPLE).exists());
}
