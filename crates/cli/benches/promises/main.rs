//! What live databases give and do not give, by the command alone: which promise holds, and how long
//! it takes to find out where one does not.
//!
//! `scripts/bench promises [--part NAME] [--seeds N]`. The servers are started here. Without `--bench`, which
//! cargo adds, only the embedded database is asked, with few transactions, and one seed is enough.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod planted;
mod promises;
mod run;

use std::path::Path;

use isolario_bench::{Align, Arguments, Failure, Table, judge, scratch};
use isolario_servers::{Durability, Servers};

use promises::{Asked, PROMISES, Promise};
use run::{Ran, run};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let directory = scratch()?;
    if PLANTED.starts_with(&part) {
        let enough = if arguments.in_earnest() { 11 } else { 1 };
        let seeds = arguments.value("--seeds")?.unwrap_or(enough);
        println!("Planted in the simulated store, medians over {seeds} seeds{}", load());
        println!();
        println!("{}", planted::table(seeds, directory.path())?);
    }
    let is_asked = |(name, server, _): &&Asked| {
        name.to_lowercase().starts_with(&part) && (arguments.in_earnest() || server.is_none())
    };
    let asked: Vec<&Asked> = PROMISES.iter().filter(is_asked).collect();
    if !asked.is_empty() {
        println!("Databases{}", load());
        println!(
            "found: to run and to check; seconds: the whole command, with what is explained and written"
        );
        println!();
        println!("{}", databases(&asked, arguments.in_earnest(), directory.path())?);
    }
    Ok(())
}

fn databases(asked: &[&Asked], in_earnest: bool, directory: &Path) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("isolario run", Align::Left),
        ("committed", Align::Right),
        ("per second", Align::Right),
        ("verdict", Align::Left),
        ("proof", Align::Left),
        ("found, s", Align::Right),
        ("seconds", Align::Right),
        ("processor", Align::Right),
        ("target", Align::Left),
    ]);
    for (name, server, promises) in asked {
        let servers = server.map(|kind| Servers::start(kind, Durability::Fast)).transpose()?;
        let urls = servers.as_ref().map_or(&[][..], Servers::urls);
        for (at, promise) in promises.iter().enumerate() {
            let few = (!in_earnest).then_some(200);
            let ran = run(urls, promise.arguments, few, &directory.join(format!("{name}-{at}")))?;
            table.row(row(name, promise, &ran));
        }
    }
    Ok(table)
}

/// The part that needs no database.
const PLANTED: &str = "planted";

/// How busy the machine is: whoever reads the figures has to know.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().map_or_else(String::new, |load| format!(", at a load of {load}"))
}

fn row(name: &str, promise: &Promise, ran: &Ran) -> [String; 10] {
    [
        name.to_owned(),
        promise.arguments.to_owned(),
        ran.committed.to_string(),
        format!("{:.0}", ran.per_second),
        ran.verdict(),
        if ran.proof_holds { "holds" } else { "WRONG" }.to_owned(),
        format!("{:.1}", ran.found.as_secs_f64()),
        format!("{:.1}", ran.took.as_secs_f64()),
        format!("{:.1}", ran.processor.as_secs_f64()),
        format!("{}: {}", promise.expected.words(), judge(ran.proof_holds && promise.is_met(ran))),
    ]
}
