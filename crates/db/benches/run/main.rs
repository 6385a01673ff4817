//! How many transactions per second a run drives, and what recording them costs; and what it costs
//! clients that the database's own log is captured.
//!
//! `scripts/bench run [--db URL] [--whitebox] [--sessions N] [--keys N] [--ms N] [--pairs N]`. Without
//! `--db` the databases are SQLite, and a PostgreSQL and a MariaDB that are started here. Without
//! `--bench`, which cargo adds, it only shows with short runs that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod pairs;
mod recorder;

use std::path::Path;

use isolario_bench::{Align, Arguments, Failure, Table, answer_if_child, judge, median, scratch};
use isolario_servers::{Durability, Kind as Server, Servers};

use pairs::{Bench, Pace, Pair, Subject, quartiles};
use recorder::Record;

/// What SQLite is to reach with 8 sessions.
const TARGET_PER_SECOND: f64 = 20_000.0;
/// What recording may cost, of the throughput.
const TARGET_COST: f64 = 0.03;
/// What capturing the log may cost.
const TARGET_CAPTURE: f64 = 0.1;
/// The levels of databases whose logs are captured.
const POSTGRES: [&str; 3] = ["read-committed", "repeatable-read", "serializable"];
const MARIADB: [&str; 2] = ["repeatable-read", "serializable"];

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Record>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let directory = scratch()?;
    let file = directory.path().join("history.iso");
    match arguments.value::<String>("--db")? {
        Some(url) => bench(&arguments, &url, &file)?,
        None => {
            let postgres = Servers::start(Server::Postgres, Durability::Fast)?;
            let mariadb = Servers::start(Server::MariaDb, Durability::Fast)?;
            // The servers are next door, and nobody listens.
            let local = |servers: &Servers| format!("{}?sslmode=disable", servers.url());
            if !arguments.has("--whitebox") {
                bench(&arguments, "sqlite:", &file)?;
                bench(&arguments, &local(&postgres), &file)?;
            }
            whitebox(&arguments, &local(&postgres), &POSTGRES, &file)?;
            whitebox(&arguments, &local(&mariadb), &MARIADB, &file)?;
            if arguments.has("--whitebox") {
                return Ok(());
            }
        }
    }
    let txns = if arguments.in_earnest() { 1_000_000 } else { 1000 };
    let recorded = median(&Record { txns }, &file, 1, if arguments.in_earnest() { 5 } else { 1 })?;
    let nanos = recorded.cpu.as_nanos() as f64 / txns as f64;
    println!("The recorder by itself: {nanos:.0} ns of processor time per transaction");
    Ok(())
}

/// Measures one database, and prints its table.
fn bench(arguments: &Arguments, url: &str, file: &Path) -> Result<(), Failure> {
    let bench = Bench::of(arguments, url, None, Subject::Recording)?;
    let pairs = arguments.value("--pairs")?.unwrap_or(if arguments.in_earnest() { 25 } else { 1 });
    let measured = bench.measure(pairs, file)?;
    println!(
        "{}: mini-transactions, {} sessions, {} keys; medians and quartiles of {pairs} pairs of runs",
        bench.databases[0].version()?,
        bench.sessions,
        bench.layout.keys
    );
    let mut table = Table::new(&[
        ("", Align::Left),
        ("without", Align::Right),
        ("with", Align::Right),
        ("cost", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("target", Align::Left),
    ]);
    let [speeds, efforts] = [|pace: Pace| pace.speed, |pace: Pace| pace.effort]
        .map(|figure| Row::of(&measured, figure));
    // The first target is that of the embedded database; others wait for their servers.
    let is_embedded = bench.databases[0].name() == "sqlite";
    let fast = is_embedded.then(|| judge(speeds.with >= TARGET_PER_SECOND));
    let cheap = judge(speeds.cost[1] >= -TARGET_COST);
    let fast =
        fast.map_or(String::new(), |fast| format!("{TARGET_PER_SECOND} per second {fast}, "));
    let target = format!("{fast}{}% {cheap}", TARGET_COST * 100.0);
    table.row(speeds.cells("transactions per second", &target));
    table.row(efforts.cells("processor ns per transaction", ""));
    println!("{table}");
    Ok(())
}

/// Measures what the capture of a log costs, at some levels of a database.
fn whitebox(
    arguments: &Arguments,
    url: &str,
    isolations: &[&str],
    file: &Path,
) -> Result<(), Failure> {
    let pairs = arguments.value("--pairs")?.unwrap_or(if arguments.in_earnest() { 15 } else { 1 });
    let mut table = Table::new(&[
        ("", Align::Left),
        ("without", Align::Right),
        ("with", Align::Right),
        ("cost", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("processors", Align::Right),
        ("assembly", Align::Right),
        ("target", Align::Left),
    ]);
    let mut version = String::new();
    for isolation in isolations {
        let bench = Bench::of(arguments, url, Some(isolation), Subject::OwnWord)?;
        version = bench.databases[0].version()?;
        let measured = bench.measure(pairs, file)?;
        let speeds = Row::of(&measured, |pace| pace.speed);
        let work = Row::of(&measured, |pace| pace.work).cost[1];
        let assembly = quartiles(measured.iter().map(|pair| pair.with.assembly))[1];
        let cheap = judge(speeds.cost[1] >= -TARGET_CAPTURE);
        let target = format!("{}% {cheap}, 1.00 {}", TARGET_CAPTURE * 100.0, judge(assembly < 1.0));
        let [name, without, with, cost, low, high, target] = speeds.cells(isolation, &target);
        let (work, assembly) = (format!("{:+.1}%", work * 100.0), format!("{assembly:.2}"));
        table.row([name, without, with, cost, low, high, work, assembly, target]);
    }
    println!(
        "{version}: rows by predicate, transactions per second without and with the capture of its \
         log; medians and quartiles of {pairs} pairs of runs. Processors is how much more processor time \
         a transaction takes, that of the server included; assembly is how long it takes to read the \
         log and put it together, over the time of the run"
    );
    println!("{table}");
    Ok(())
}

/// A figure without something and with it: medians, and quartiles of how much more it is with it.
struct Row {
    without: f64,
    with: f64,
    cost: [f64; 3],
}

impl Row {
    fn of(measured: &[Pair], figure: fn(Pace) -> f64) -> Row {
        let pairs = measured.iter().map(|pair| (figure(pair.without), figure(pair.with)));
        Row {
            without: quartiles(pairs.clone().map(|(without, _)| without))[1],
            with: quartiles(pairs.clone().map(|(_, with)| with))[1],
            cost: quartiles(pairs.map(|(without, with)| with / without - 1.0)),
        }
    }

    fn cells(&self, name: &str, target: &str) -> [String; 7] {
        let [low, middle, high] = self.cost.map(|cost| format!("{:+.1}%", cost * 100.0));
        let (without, with) = (format!("{:.0}", self.without), format!("{:.0}", self.with));
        [name.to_owned(), without, with, middle, low, high, target.to_owned()]
    }
}
