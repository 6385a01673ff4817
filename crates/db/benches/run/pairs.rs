//! Runs with recording and without, in turns.

use std::path::Path;
use std::time::Duration;

use isolario_bench::{Arguments, Failure, process_time};
use isolario_db::{Control, Database, DbUrl, Layout, Plan, Progress, Settings, open, run};
use isolario_workload::{DefaultRun, Generator, Kind, Planner, Workload};

/// A database, and what is asked of it.
pub struct Bench {
    pub databases: Vec<Box<dyn Database>>,
    pub layout: Layout,
    pub sessions: u32,
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
}

/// A run without recording and one with it.
pub struct Pair {
    pub without: Pace,
    pub with: Pace,
}

impl Bench {
    /// The run that the arguments ask for, on a database.
    pub fn of(arguments: &Arguments, url: &str) -> Result<Bench, Failure> {
        let run = DefaultRun::of(Kind::Mini);
        let sessions = arguments.value("--sessions")?.unwrap_or(8);
        let settings = Settings { sessions, ..Settings::default() };
        let workload =
            Workload { keys: arguments.value("--keys")?.unwrap_or(1000), ..run.workload };
        let planner = Planner::new(&workload, sessions, 1)?.with_attempts(6);
        let ms = if arguments.in_earnest() { 1000 } else { 250 };
        Ok(Bench {
            databases: vec![open(&DbUrl::parse(url)?, &settings)?],
            layout: Layout::new(Kind::Mini, workload.keys),
            sessions,
            planner: Box::new(planner),
            duration: Duration::from_millis(arguments.value("--ms")?.unwrap_or(ms)),
        })
    }

    /// Measures so many pairs. The two runs of a pair follow each other closely: whatever else the
    /// machine does for longer disturbs both alike.
    pub fn measure(&self, pairs: usize, history: &Path) -> Result<Vec<Pair>, Failure> {
        let one = |pair| {
            // Who comes second profits from what the first warmed up, or suffers from what it left.
            let first = if pair % 2 == 0 { Some(self.pace(None)?) } else { None };
            let with = self.pace(Some(history))?;
            Ok(Pair { without: first.map_or_else(|| self.pace(None), Ok)?, with })
        };
        (0..pairs).map(one).collect()
    }

    /// One run, on empty tables. It is measured while all sessions are at work: the way there, and
    /// the packing of what was recorded, are not what clients wait for.
    fn pace(&self, history: Option<&Path>) -> Result<Pace, Failure> {
        self.databases[0].prepare(&self.layout)?;
        let plan = Plan {
            databases: &self.databases,
            generator: self.planner.as_ref(),
            sessions: self.sessions,
            txns: None,
            duration: Some(self.duration),
            rate: None,
            think: Duration::ZERO,
            max_retries: 5,
            patience: Duration::from_secs(60),
            history,
        };
        let mut moments = Vec::new();
        let mut watch = |progress: &Progress| moments.push((*progress, process_time()));
        run(&plan, &Control::new(), &mut watch)?;
        let [(first, spent_before), .., (last, spent)] = moments[..] else {
            return Err("too short a run to be measured".into());
        };
        let txns = (last.counts.committed - first.counts.committed) as f64;
        Ok(Pace {
            speed: txns / (last.elapsed - first.elapsed).as_secs_f64(),
            effort: (spent - spent_before).as_nanos() as f64 / txns,
        })
    }
}

/// The values below which a quarter, half and three quarters of all are.
pub fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get(values.len() * quarter / 4).copied().unwrap_or_default())
}
