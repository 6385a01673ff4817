//! Runs of the real runner, and what their histories prove.

use std::ops::ControlFlow;
use std::time::Duration;

use isolario_check::check;
use isolario_db::Database;
use isolario_formats::read;
use isolario_model::{AnomalyKind, Counts, History, Level, StopReason, Verdict};
use isolario_run::driver::{Control, RunPlan, RunProgress, WorkloadOutcome, run};
use isolario_verify::verify;
use isolario_workload::{Kind, Planner, Schema, Workload};
use tempfile::TempDir;

use super::site::{SLOW, prepare_nodes, with_tables};

/// A run, of a size that suits a test.
#[derive(Clone)]
pub struct Trial {
    pub urls: Vec<String>,
    pub isolation: &'static str,
    pub workload: Workload,
    /// Whether the rows of an application are in SQL tables of their own.
    pub in_tables: bool,
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

/// With how many seeds an anomaly is looked for.
const SEEDS: u64 = 60;
/// After so many without it, runs get longer.
const SEEDS_PER_LENGTH: u64 = 4;

impl Trial {
    /// Mini-transactions on a few keys, so that sessions meet.
    pub fn new(urls: &[String], isolation: &'static str) -> Trial {
        Trial {
            urls: urls.to_vec(),
            isolation,
            workload: Workload { kind: Kind::Mini, keys: 100, ..Workload::default() },
            in_tables: false,
            sessions: 8,
            txns: 3000,
            seed: 1,
            timeout: SLOW,
            patience: Duration::from_secs(180),
        }
    }

    /// Runs it, from empty tables. `meanwhile` hears ten times a second what was done, and may end
    /// it.
    pub fn run_while(
        &self,
        mut meanwhile: impl FnMut(&Counts) -> ControlFlow<()>,
    ) -> (WorkloadOutcome, History) {
        let tables = Schema::of(&self.workload).filter(|_| self.in_tables);
        let open = |url: &String| with_tables(url, self.isolation, self.timeout, tables);
        let databases: Vec<Box<dyn Database>> = self.urls.iter().map(open).collect();
        let (kind, keys) = (self.workload.kind, self.workload.keys);
        prepare_nodes(&databases, kind, keys);
        let planner = Planner::new(&self.workload, self.sessions, self.seed).unwrap();
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("history.iso");
        let plan = RunPlan {
            databases: &databases,
            generator: &planner.with_attempts(MAX_RETRIES + 1),
            sessions: self.sessions,
            txns: Some(self.txns),
            duration: None,
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries: MAX_RETRIES,
            patience: self.patience,
            history: Some(&path),
            memory: 0,
        };
        let control = Control::new();
        let mut watch = |progress: &RunProgress| {
            if meanwhile(&progress.counts).is_break() {
                control.stop(StopReason::Done, None);
            }
        };
        let outcome = run(&plan, &control, &mut watch).unwrap();
        (outcome, read(&path).unwrap().history)
    }

    /// Runs it to its end.
    pub fn history(&self) -> History {
        let (outcome, history) = self.run_while(|_| ControlFlow::Continue(()));
        assert_eq!(outcome.counts.committed, self.txns, "{:?}", outcome.cause);
        history
    }

    /// A history violates the level, in whichever way.
    pub fn violates(&self, level: Level) {
        self.shows(level, |_| true);
    }

    /// A history violates the level by an anomaly of this kind.
    pub fn violates_by(&self, level: Level, kind: AnomalyKind) {
        self.shows(level, |found| found == kind);
    }

    /// Runs it with one seed after the other until something is found: what has to happen is a
    /// matter of luck, though not of much. Where luck stays away, runs get longer.
    fn shows(&self, level: Level, wanted: impl Fn(AnomalyKind) -> bool) {
        for seed in 1..=SEEDS {
            let txns = self.txns * (1 + seed / SEEDS_PER_LENGTH);
            let history = Trial { seed, txns, ..self.clone() }.history();
            if let Verdict::Violated(evidence) = verdict(&history, level)
                && evidence.anomalies.iter().any(|anomaly| wanted(anomaly.kind))
            {
                return;
            }
        }
        panic!("{}: it was never found at {level}", self.isolation)
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
    let result = check(history, &[level], &isolario_check::CheckOptions::default()).remove(0);
    verify(history, &result, &isolario_verify::VerifyOptions::default())
        .unwrap_or_else(|refusal| panic!("{level}: {}", refusal.describe(history)));
    result.verdict
}

pub fn assert_satisfied(history: &History, level: Level) {
    let verdict = verdict(history, level);
    assert!(matches!(verdict, Verdict::Satisfied(_)), "{level}: {verdict:?}");
}
