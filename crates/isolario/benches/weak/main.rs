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

use isolario_bench::{Arguments, Failure, Suite};

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
    let suite = Suite::<Work, Sizes> {
        family: "weak",
        sizes: Sizes::of,
        targets: targets::bench,
        growths: growth::all,
    };
    suite.run()
}
