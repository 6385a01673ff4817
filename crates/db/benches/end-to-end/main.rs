//! From a live database to a verdict: what mini-transactions cost against general ones, and how
//! many transactions pass.
//!
//! `scripts/bench end-to-end [--full] [--part NAME] [--runs N]`. Without `--bench`, which cargo
//! adds, it only shows with few transactions that everything works. The servers are started here.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod targets;
mod work;
mod workloads;

use isolario_bench::{Arguments, Effort, Failure, answer_if_child};

use work::Work;

/// How large.
pub struct Sizes {
    /// Transactions that commit where workloads are compared.
    compared: u64,
    /// How many sessions there are.
    sessions: Vec<u32>,
    /// Transactions that commit where throughput is measured.
    many: u64,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        if !arguments.in_earnest() {
            Sizes { compared: 50, sessions: vec![2], many: 100 }
        } else if arguments.has("--full") {
            Sizes { compared: 10_000, sessions: vec![5, 10, 20, 40], many: 100_000 }
        } else {
            Sizes { compared: 3_000, sessions: vec![5, 20], many: 100_000 }
        }
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Work>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let (effort, sizes) = (Effort::of(&arguments, "end-to-end", 3)?, Sizes::of(&arguments));
    let directory = isolario_bench::scratch()?;
    println!("Medians of {} processes", effort.runs);
    println!();
    let part: String = arguments.value("--part")?.unwrap_or_default();
    for (name, bench) in [
        (targets::NAME, targets::bench as fn(&_, &_, &_) -> _),
        (workloads::NAME, workloads::bench),
    ] {
        if name.starts_with(&part) {
            bench(&sizes, &effort, directory.path())?;
        }
    }
    Ok(())
}
