//! How many transactions per second a run drives, and what recording them costs.
//!
//! `scripts/bench run [--db URL] [--sessions N] [--txns N] [--pairs N]`. Runs with and without
//! recording take turns, so that a busy machine disturbs both alike.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::path::Path;
use std::time::Duration;

use isolario_bench::{Align, Arguments, Failure, Table, judge, scratch};
use isolario_db::{Control, Database, DbUrl, Layout, Plan, Settings, open, run};
use isolario_workload::{Generator, Kind, Planner, Usual, Workload};

/// What SQLite is to reach with 8 sessions.
const TARGET_PER_SECOND: f64 = 20_000.0;
/// What recording may cost, of the throughput.
const TARGET_COST: f64 = 0.03;

struct Bench {
    databases: Vec<Box<dyn Database>>,
    layout: Layout,
    planner: Box<dyn Generator + Sync>,
    sessions: u32,
    txns: u64,
}

impl Bench {
    fn of(arguments: &Arguments, kind: Kind) -> Result<Bench, Failure> {
        let usual = Usual::of(kind);
        let sessions = arguments.value("--sessions")?.unwrap_or(8);
        let few = if arguments.in_earnest() { 40_000 } else { 200 };
        let url: String = arguments.value("--db")?.unwrap_or_else(|| "sqlite:".to_owned());
        let settings = Settings { sessions, ..Settings::default() };
        let workload =
            Workload { keys: arguments.value("--keys")?.unwrap_or(1000), ..usual.workload };
        let planner = Planner::new(&workload, sessions, 1)?.with_attempts(6);
        Ok(Bench {
            databases: vec![open(&DbUrl::parse(&url)?, &settings)?],
            layout: Layout::new(kind, workload.keys),
            planner: Box::new(planner),
            sessions,
            txns: arguments.value("--txns")?.unwrap_or(few),
        })
    }

    /// Transactions per second of one run, on empty tables.
    fn throughput(&self, history: Option<&Path>) -> Result<f64, Failure> {
        self.databases[0].prepare(&self.layout)?;
        let plan = Plan {
            databases: &self.databases,
            generator: self.planner.as_ref(),
            sessions: self.sessions,
            txns: Some(self.txns),
            duration: None,
            rate: None,
            max_retries: 5,
            patience: Duration::from_secs(60),
            history,
        };
        let outcome = run(&plan, &Control::new(), &mut |_| {})?;
        Ok(outcome.counts.committed as f64 / outcome.elapsed.as_secs_f64())
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let bench = Bench::of(&arguments, Kind::Mini)?;
    let pairs = arguments.value("--pairs")?.unwrap_or(if arguments.in_earnest() { 15 } else { 1 });
    let directory = scratch()?;
    let file = directory.path().join("history.iso");
    let (mut with, mut without, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Who comes second profits from what the first warmed up, or suffers from what it left.
        let first = if pair % 2 == 0 { Some(bench.throughput(None)?) } else { None };
        let recorded = bench.throughput(Some(&file))?;
        let bare = first.map_or_else(|| bench.throughput(None), Ok)?;
        costs.push(1.0 - recorded / bare);
        with.push(recorded);
        without.push(bare);
    }
    let database = bench.databases[0].version()?;
    println!(
        "{database}: {} mini-transactions, {} sessions, {} keys; medians of {pairs} pairs of runs",
        bench.txns, bench.sessions, bench.layout.keys
    );
    let mut table =
        Table::new(&[("", Align::Left), ("txn/s", Align::Right), ("target", Align::Left)]);
    table.row(["recording off".into(), format!("{:.0}", median(&mut without)), String::new()]);
    let speed = median(&mut with);
    // The target is that of the embedded database; others wait for their servers.
    let is_embedded = bench.databases[0].name() == "sqlite";
    let reached = judge(speed >= TARGET_PER_SECOND);
    let target = if is_embedded { format!("{TARGET_PER_SECOND} {reached}") } else { String::new() };
    table.row(["recording on".into(), format!("{speed:.0}"), target]);
    let cost = median(&mut costs);
    let reached = judge(cost <= TARGET_COST);
    table.row([
        "cost".into(),
        format!("{:.1}%", cost * 100.0),
        format!("{}% {reached}", TARGET_COST * 100.0),
    ]);
    println!("{table}");
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
