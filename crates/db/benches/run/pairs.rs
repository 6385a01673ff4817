//! Runs with something and without it, in turns.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario_bench::{Arguments, Failure, process_time, time_of_descendants};
use isolario_db::certificate::{Capture, assemble};
use isolario_db::{Database, DbUrl, Layout, Settings, open};
use isolario_formats::read;
use isolario_run::driver::{Control, RunPlan, RunProgress, WorkloadOutcome, run};
use isolario_workload::{DefaultRun, Generator, Kind, Planner, Workload};

/// What a run is measured with and without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Recording what clients see.
    Recording,
    /// Capturing what the database's own log says, of runs that are recorded.
    OwnWord,
}

/// A database, and what is asked of it.
pub struct Bench {
    pub databases: Vec<Box<dyn Database>>,
    /// The same, asked for what a version certificate is made of.
    telling: Vec<Box<dyn Database>>,
    pub layout: Layout,
    pub sessions: u32,
    subject: Subject,
    planner: Box<dyn Generator + Sync>,
    /// How long a run takes.
    duration: Duration,
}

/// What a run came to.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Transactions per second.
    pub speed: f64,
    /// Nanoseconds of processor time per transaction, of this process.
    pub effort: f64,
    /// The same, with that of the servers that it has started.
    pub work: f64,
    /// How long it took to read the log and to put it together with the history, in runs of that
    /// length.
    pub assembly: f64,
}

/// A run without something and one with it.
pub struct Pair {
    pub without: Pace,
    pub with: Pace,
}

impl Bench {
    /// The run that the arguments ask for, on a database at one of its levels.
    pub fn of(
        arguments: &Arguments,
        url: &str,
        isolation: Option<&str>,
        subject: Subject,
    ) -> Result<Bench, Failure> {
        let kind = match subject {
            Subject::Recording => Kind::Mini,
            Subject::OwnWord => Kind::Predicate,
        };
        let run = DefaultRun::of(kind);
        let sessions = arguments.value("--sessions")?.unwrap_or(8);
        let isolation = isolation.map(str::to_owned);
        let opened = |evidence| -> Result<_, Failure> {
            let isolation = isolation.clone();
            let settings = Settings { sessions, isolation, evidence, ..Settings::default() };
            Ok(vec![open(&DbUrl::parse(url)?, &settings)?])
        };
        let workload =
            Workload { keys: arguments.value("--keys")?.unwrap_or(1000), ..run.workload };
        let planner = Planner::new(&workload, sessions, 1)?.with_attempts(6);
        let ms = if arguments.in_earnest() { 1000 } else { 250 };
        Ok(Bench {
            databases: opened(false)?,
            telling: opened(true)?,
            layout: Layout::new(kind, workload.keys),
            sessions,
            subject,
            planner: Box::new(planner),
            duration: Duration::from_millis(arguments.value("--ms")?.unwrap_or(ms)),
        })
    }

    /// Measures so many pairs. The two runs of a pair follow each other closely: whatever else the
    /// machine does for longer disturbs both alike.
    pub fn measure(&self, pairs: usize, history: &Path) -> Result<Vec<Pair>, Failure> {
        let without = || match self.subject {
            Subject::Recording => self.pace(&self.databases, None, false),
            Subject::OwnWord => self.pace(&self.databases, Some(history), false),
        };
        let with = || match self.subject {
            Subject::Recording => self.pace(&self.databases, Some(history), false),
            Subject::OwnWord => self.pace(&self.telling, Some(history), true),
        };
        let one = |pair| {
            // Who comes second profits from what the first warmed up, or suffers from what it left.
            let first = if pair % 2 == 0 { Some(without()?) } else { None };
            let with = with()?;
            Ok(Pair { without: first.map_or_else(without, Ok)?, with })
        };
        (0..pairs).map(one).collect()
    }

    /// One run, on empty tables. It is measured while all sessions are at work: the way there, and
    /// the packing of what was recorded, are not what clients wait for.
    fn pace(
        &self,
        databases: &[Box<dyn Database>],
        history: Option<&Path>,
        captures: bool,
    ) -> Result<Pace, Failure> {
        databases[0].prepare(&self.layout)?;
        let capture = captures.then(|| databases[0].capture()).transpose()?;
        let plan = RunPlan {
            databases,
            generator: self.planner.as_ref(),
            sessions: self.sessions,
            txns: None,
            duration: Some(self.duration),
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries: 5,
            patience: Duration::from_secs(60),
            history,
            memory: 0,
        };
        let mut moments = Vec::new();
        let mut watch = |progress: &RunProgress| {
            let servers = time_of_descendants().unwrap_or_default();
            moments.push((*progress, process_time(), servers));
        };
        let outcome = run(&plan, &Control::new(), &mut watch)?;
        let [(first, spent_before, others_before), .., (last, spent, others)] = moments[..] else {
            return Err("too short a run to be measured".into());
        };
        let assembled = match (capture, history) {
            (Some(capture), Some(history)) => assembled(capture, &outcome, history)?,
            _ => Duration::ZERO,
        };
        let txns = (last.counts.committed - first.counts.committed) as f64;
        Ok(Pace {
            speed: txns / (last.elapsed - first.elapsed).as_secs_f64(),
            effort: (spent - spent_before).as_nanos() as f64 / txns,
            work: (spent - spent_before + others.saturating_sub(others_before)).as_nanos() as f64
                / txns,
            assembly: assembled.as_secs_f64() / outcome.elapsed.as_secs_f64(),
        })
    }
}

/// How long it takes to read the log, and to put it together with the history.
fn assembled(
    capture: Box<dyn Capture>,
    outcome: &WorkloadOutcome,
    history: &Path,
) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let log = capture.stop()?;
    let captured = begun.elapsed();
    let history = read(history)?.history;
    let begun = Instant::now();
    assemble(&history, &log, &outcome.sightings)?;
    Ok(captured + begun.elapsed())
}

/// The values below which a quarter, half and three quarters of all are.
pub fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get(values.len() * quarter / 4).copied().unwrap_or_default())
}
