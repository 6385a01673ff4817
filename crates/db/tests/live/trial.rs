//! Runs of the real runner, and what their histories prove.

use std::time::Duration;

use isolario_check::check;
use isolario_db::{Control, Database, Layout, Outcome, Plan, run};
use isolario_formats::read;
use isolario_model::{AnomalyKind, History, Level, Verdict};
use isolario_verify::verify;
use isolario_workload::{Kind, Planner, Workload};
use tempfile::TempDir;

use super::site::patient;

/// A run, of a size that suits a test.
#[derive(Clone)]
pub struct Trial {
    pub urls: Vec<String>,
    pub isolation: &'static str,
    pub workload: Workload,
    pub sessions: u32,
    /// How many transactions are to commit.
    pub txns: u64,
    pub seed: u64,
    /// The statement time-out, in milliseconds.
    pub timeout: u64,
    /// How long nothing may commit before the run is given up.
    pub patience: Duration,
}

const MAX_RETRIES: u32 = 3;

impl Trial {
    /// Mini-transactions on a few keys, so that sessions meet.
    pub fn new(urls: &[String], isolation: &'static str) -> Trial {
        Trial {
            urls: urls.to_vec(),
            isolation,
            workload: Workload { kind: Kind::Mini, keys: 100, ..Workload::default() },
            sessions: 8,
            txns: 3000,
            seed: 1,
            timeout: 5000,
            patience: Duration::from_secs(30),
        }
    }

    /// Runs it, from empty tables. `meanwhile` hears ten times a second how many have committed.
    pub fn run_while(&self, mut meanwhile: impl FnMut(u64)) -> (Outcome, History) {
        let open = |url: &String| patient(url, self.isolation, self.timeout);
        let databases: Vec<Box<dyn Database>> = self.urls.iter().map(open).collect();
        let (kind, keys) = (self.workload.kind, self.workload.keys);
        databases[0].prepare(&Layout::new(kind, keys)).unwrap();
        let planner = Planner::new(&self.workload, self.sessions, self.seed).unwrap();
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("history.iso");
        let plan = Plan {
            databases: &databases,
            generator: &planner.with_attempts(MAX_RETRIES + 1),
            sessions: self.sessions,
            txns: Some(self.txns),
            duration: None,
            rate: None,
            max_retries: MAX_RETRIES,
            patience: self.patience,
            history: Some(&path),
        };
        let mut watch = |progress: &isolario_db::Progress| meanwhile(progress.counts.committed);
        let outcome = run(&plan, &Control::new(), &mut watch).unwrap();
        (outcome, read(&path).unwrap().history)
    }

    /// Runs it to its end.
    pub fn history(&self) -> History {
        let (outcome, history) = self.run_while(|_| {});
        assert_eq!(outcome.counts.committed, self.txns, "{:?}", outcome.because);
        history
    }

    /// Runs it with one seed after the other until a history violates the level: what has to
    /// happen is a matter of luck, but not of much. Returns the names of what was found.
    pub fn violates(&self, level: Level) -> Vec<AnomalyKind> {
        for seed in 1..=20 {
            let history = Trial { seed, ..self.clone() }.history();
            if let Verdict::Violated(evidence) = verdict(&history, level) {
                return evidence.anomalies.iter().map(|anomaly| anomaly.kind).collect();
            }
        }
        panic!("{}: nothing was found at {level}", self.isolation)
    }

    /// Runs it; the history satisfies the levels.
    pub fn satisfies(&self, levels: &[Level]) {
        let history = self.history();
        for level in levels {
            assert_satisfied(&history, *level);
        }
    }
}

/// A verdict whose proof holds.
pub fn verdict(history: &History, level: Level) -> Verdict {
    let result = check(history, &[level], &isolario_check::Options::default()).remove(0);
    verify(history, &result, &isolario_verify::Options::default())
        .unwrap_or_else(|refusal| panic!("{level}: {}", refusal.describe(history)));
    result.verdict
}

pub fn assert_satisfied(history: &History, level: Level) {
    let verdict = verdict(history, level);
    assert!(matches!(verdict, Verdict::Satisfied(_)), "{level}: {verdict:?}");
}
