//! How many transactions per second a run drives, and what recording them costs.
//!
//! `scripts/bench run [--db URL] [--sessions N] [--keys N] [--ms N] [--pairs N]`. Without `--db`
//! the databases are SQLite and a PostgreSQL that is started here. Without `--bench`, which cargo
//! adds, it only shows with short runs that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod pairs;
mod recorder;

use std::path::Path;

use isolario_bench::{Align, Arguments, Failure, Table, answer_if_child, judge, median, scratch};
use isolario_servers::{Durability, Kind as Server, Servers};

use pairs::{Bench, quartiles};
use recorder::Record;

/// What SQLite is to reach with 8 sessions.
const TARGET_PER_SECOND: f64 = 20_000.0;
/// What recording may cost, of the throughput.
const TARGET_COST: f64 = 0.03;

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
            bench(&arguments, "sqlite:", &file)?;
            let postgres = Servers::start(Server::Postgres, Durability::Fast)?;
            // The server is next door, and nobody listens.
            bench(&arguments, &format!("{}?sslmode=disable", postgres.url()), &file)?;
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
    let bench = Bench::of(arguments, url)?;
    let pairs = arguments.value("--pairs")?.unwrap_or(if arguments.in_earnest() { 25 } else { 1 });
    let mut measured = bench.measure(pairs, file)?;
    println!(
        "{}: mini-transactions, {} sessions, {} keys; medians of {pairs} pairs of runs, and quartiles",
        bench.databases[0].version()?,
        bench.sessions,
        bench.layout.keys
    );
    let mut table = Table::new(&[
        ("", Align::Left),
        ("", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("target", Align::Left),
    ]);
    // The target is that of the embedded database; others wait for their servers.
    let is_embedded = bench.databases[0].name() == "sqlite";
    for (name, speeds) in [
        ("recording off, txn/s", &mut measured.without),
        ("recording on, txn/s", &mut measured.with),
    ] {
        let [low, middle, high] = quartiles(speeds);
        let reached = judge(middle >= TARGET_PER_SECOND);
        let target =
            if is_embedded { format!("{TARGET_PER_SECOND} {reached}") } else { String::new() };
        let [low, middle, high] = [low, middle, high].map(|speed| format!("{speed:.0}"));
        table.row([name.to_owned(), middle, low, high, target]);
    }
    let [low, middle, high] = quartiles(&mut measured.costs);
    let target = format!("{}% {}", TARGET_COST * 100.0, judge(middle <= TARGET_COST));
    let [low, middle, high] = [low, middle, high].map(|cost| format!("{:.1}%", cost * 100.0));
    table.row(["cost of recording".to_owned(), middle, low, high, target]);
    println!("{table}");
    Ok(())
}
