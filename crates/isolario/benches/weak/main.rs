//! How fast and in how much memory the weak levels are decided, and how that grows.
//!
//! `scripts/bench weak [--full] [--part NAME] [--runs N] [--charts DIR]`. Without `--bench`, which
//! cargo adds, it only shows on small histories that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod growth;
mod hard;
mod history;
mod targets;
#[path = "../common/work.rs"]
mod work;

use isolario_bench::{Arguments, Effort, Failure, answer_if_child};

use work::Work;

/// How large.
pub struct Sizes {
    /// Transactions in the table of targets.
    txns: u64,
    /// Transactions where their number grows.
    growing_txns: Vec<u64>,
    /// Transactions where something else grows.
    fixed_txns: u64,
    /// Nodes of the graphs of the hard families.
    nodes: Vec<u32>,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        let usual = Sizes {
            txns: 1_000_000,
            growing_txns: vec![30_000, 100_000, 300_000, 1_000_000],
            fixed_txns: 100_000,
            nodes: vec![250, 500, 1000],
        };
        if !arguments.in_earnest() {
            let (growing_txns, nodes) = (vec![100, 1000], vec![10, 30]);
            Sizes { txns: 1000, growing_txns, fixed_txns: 1000, nodes }
        } else if arguments.has("--full") {
            let growing_txns = vec![100_000, 1_000_000, 10_000_000];
            Sizes { growing_txns, nodes: vec![500, 1000, 2000], ..usual }
        } else {
            usual
        }
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Work>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let (effort, sizes) = (Effort::of(&arguments, "weak", 3)?, Sizes::of(&arguments));
    let directory = isolario_bench::scratch()?;
    println!("Medians of {} processes; megabytes beyond the mapped file", effort.runs);
    println!();
    // The beginning of a part's name selects it; nothing is the beginning of all.
    let part: String = arguments.value("--part")?.unwrap_or_default();
    if targets::NAME.starts_with(&part) {
        targets::bench(sizes.txns, &effort, directory.path())?;
    }
    for growth in growth::all(&sizes).iter().filter(|growth| growth.name.starts_with(&part)) {
        growth.bench(&effort, directory.path())?;
    }
    println!("Charts are in {}", effort.charts.display());
    Ok(())
}
