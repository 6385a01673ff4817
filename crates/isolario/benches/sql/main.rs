//! How many transactions per second rounds of random SQL drive, checks included, and what instrumentation
//! costs.
//!
//! `scripts/bench sql [--db URL] [--ms N] [--pairs N]`. Without `--db` the databases are a PostgreSQL and a
//! MariaDB that are started here. Runs with and without instrumentation take turns. Without `--bench`,
//! which cargo adds, it only shows with short runs that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Duration;

use isolario::db::DbUrl;
use isolario::run::Handle;
use isolario::run::relational::{Settings, run};
use isolario_bench::{Align, Arguments, Failure, Table, judge, scratch};
use isolario_servers::{Durability, Kind, Servers};

/// What the paper's tool ran in 35 rounds of 10 minutes over five databases; here, in one of them.
const TARGET_TXNS: f64 = 22_717.0;
/// What is to be left of the throughput.
const TARGET_SHARE: f64 = 0.6;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(url) = arguments.value::<String>("--db")? {
        return bench(&arguments, &url);
    }
    for kind in [Kind::Postgres, Kind::MariaDb] {
        let servers = Servers::start(kind, Durability::Fast)?;
        bench(&arguments, servers.url())?;
    }
    Ok(())
}

/// Measures one database, and prints its table.
fn bench(arguments: &Arguments, url: &str) -> Result<(), Failure> {
    let in_earnest = arguments.in_earnest();
    let usual = if in_earnest { 20_000 } else { 200 };
    let duration = Duration::from_millis(arguments.value("--ms")?.unwrap_or(usual));
    let pairs: u64 = arguments.value("--pairs")?.unwrap_or(if in_earnest { 3 } else { 1 });
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut version = String::new();
    for seed in 0..pairs {
        without.push(rate(url, duration, seed, false)?.0);
        let (rate, told) = rate(url, duration, seed, true)?;
        with.push(rate);
        version = told;
    }
    let (without, with) = (middle(without), middle(with));
    let share = with / without;
    println!("{version}: rounds of random SQL, medians of {pairs} pairs of {duration:?}");
    let headings =
        [("transactions per second", Align::Left), ("", Align::Right), ("target", Align::Left)];
    let mut table = Table::new(&headings);
    let in_ten_minutes = with * 600.0;
    let enough = judge(in_ten_minutes >= TARGET_TXNS);
    let cheap = judge(share >= TARGET_SHARE);
    table.row(["as they are".to_owned(), format!("{without:.0}"), String::new()]);
    let target = format!("{TARGET_TXNS} in 10 minutes {enough}: {in_ten_minutes:.0}");
    table.row(["instrumented and checked".to_owned(), format!("{with:.0}"), target]);
    let target = format!("{:.0}% {cheap}", TARGET_SHARE * 100.0);
    table.row(["what is left".to_owned(), format!("{:.0}%", share * 100.0), target]);
    println!("{table}");
    Ok(())
}

/// Committed transactions per second of a run, and what the database is.
fn rate(
    url: &str,
    duration: Duration,
    seed: u64,
    instrumented: bool,
) -> Result<(f64, String), Failure> {
    let directory = scratch()?;
    let mut settings = Settings::new(vec![DbUrl::parse(url)?]);
    settings.duration = Some(duration);
    settings.seed = seed;
    settings.instrumented = instrumented;
    settings.simplify = None;
    settings.out = Some(directory.path().join("run"));
    let outcome = run(&settings, &Handle::new(), &mut ())?;
    let rate = outcome.figures.committed as f64 / outcome.elapsed.as_secs_f64();
    Ok((rate, outcome.version))
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
