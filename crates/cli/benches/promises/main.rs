//! What live databases give and do not give, by the command alone: which promise holds, and how long
//! it takes to find out where one does not.
//!
//! `scripts/bench promises [--part NAME]`. The servers are started here. Without `--bench`, which
//! cargo adds, only the embedded database is asked, with few transactions.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod promises;
mod run;

use isolario_bench::{Align, Arguments, Failure, Table, judge, scratch};
use isolario_servers::{Durability, Servers};

use promises::{PROMISES, Promise};
use run::{Ran, run};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let directory = scratch()?;
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("isolario run", Align::Left),
        ("committed", Align::Right),
        ("per second", Align::Right),
        ("verdict", Align::Left),
        ("proof", Align::Left),
        ("found, s", Align::Right),
        ("seconds", Align::Right),
        ("target", Align::Left),
    ]);
    for (number, (name, server, promises)) in PROMISES.iter().enumerate() {
        if !name.to_lowercase().starts_with(&part) || (!arguments.in_earnest() && server.is_some())
        {
            continue;
        }
        let servers = server.map(|kind| Servers::start(kind, Durability::Fast)).transpose()?;
        let urls = servers.as_ref().map_or(&[][..], Servers::urls);
        for (at, promise) in promises.iter().enumerate() {
            let out = directory.path().join(format!("{number}-{at}"));
            let few = (!arguments.in_earnest()).then_some(200);
            let ran = run(urls, promise, few, &out)?;
            table.row(row(name, promise, &ran));
        }
    }
    println!(
        "found: to run and to check; seconds: the whole command, with what is explained and written"
    );
    println!();
    println!("{table}");
    Ok(())
}

fn row(name: &str, promise: &Promise, ran: &Ran) -> [String; 9] {
    [
        name.to_owned(),
        promise.arguments.to_owned(),
        ran.committed.to_string(),
        format!("{:.0}", ran.per_second),
        ran.verdict(),
        if ran.proof_holds { "holds" } else { "WRONG" }.to_owned(),
        format!("{:.1}", ran.found.as_secs_f64()),
        format!("{:.1}", ran.took.as_secs_f64()),
        format!("{}: {}", promise.expected.words(), judge(ran.proof_holds && promise.is_met(ran))),
    ]
}
