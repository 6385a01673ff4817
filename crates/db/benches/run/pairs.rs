//! Runs with recording and without, in turns.

use std::path::Path;
use std::time::Duration;

use isolario_bench::{Arguments, Failure};
use isolario_db::{Control, Database, DbUrl, Layout, Plan, Settings, open, run};
use isolario_workload::{Generator, Kind, Planner, Usual, Workload};

/// A database, and what is asked of it.
pub struct Bench {
    pub databases: Vec<Box<dyn Database>>,
    pub layout: Layout,
    pub sessions: u32,
    planner: Box<dyn Generator + Sync>,
    /// How long a run takes.
    duration: Duration,
}

/// What came out: transactions per second, and the cost of recording, pair by pair.
#[derive(Default)]
pub struct Pairs {
    pub without: Vec<f64>,
    pub with: Vec<f64>,
    pub costs: Vec<f64>,
}

impl Bench {
    /// The run that the arguments ask for, on a database.
    pub fn of(arguments: &Arguments, url: &str) -> Result<Bench, Failure> {
        let usual = Usual::of(Kind::Mini);
        let sessions = arguments.value("--sessions")?.unwrap_or(8);
        let settings = Settings { sessions, ..Settings::default() };
        let workload =
            Workload { keys: arguments.value("--keys")?.unwrap_or(1000), ..usual.workload };
        let planner = Planner::new(&workload, sessions, 1)?.with_attempts(6);
        let usual = if arguments.in_earnest() { 1000 } else { 20 };
        Ok(Bench {
            databases: vec![open(&DbUrl::parse(url)?, &settings)?],
            layout: Layout::new(Kind::Mini, workload.keys),
            sessions,
            planner: Box::new(planner),
            duration: Duration::from_millis(arguments.value("--ms")?.unwrap_or(usual)),
        })
    }

    /// Measures so many pairs. The two runs of a pair follow each other closely: whatever else the
    /// machine does for longer disturbs both alike.
    pub fn measure(&self, pairs: usize, history: &Path) -> Result<Pairs, Failure> {
        let mut measured = Pairs::default();
        for pair in 0..pairs {
            // Who comes second profits from what the first warmed up, or suffers from what it left.
            let first = if pair % 2 == 0 { Some(self.throughput(None)?) } else { None };
            let with = self.throughput(Some(history))?;
            let without = first.map_or_else(|| self.throughput(None), Ok)?;
            measured.without.push(without);
            measured.with.push(with);
            measured.costs.push(1.0 - with / without);
        }
        Ok(measured)
    }

    /// Transactions per second of one run, on empty tables.
    fn throughput(&self, history: Option<&Path>) -> Result<f64, Failure> {
        self.databases[0].prepare(&self.layout)?;
        let plan = Plan {
            databases: &self.databases,
            generator: self.planner.as_ref(),
            sessions: self.sessions,
            txns: None,
            duration: Some(self.duration),
            rate: None,
            max_retries: 5,
            patience: Duration::from_secs(60),
            history,
        };
        let outcome = run(&plan, &Control::new(), &mut |_| {})?;
        Ok(outcome.counts.committed as f64 / outcome.elapsed.as_secs_f64())
    }
}

/// The values below which a quarter, half and three quarters of all are.
pub fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get(values.len() * quarter / 4).copied().unwrap_or_default())
}
