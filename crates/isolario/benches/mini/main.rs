//! How fast and in how much memory the strong levels of mini-transactions are decided, and how
//! that grows.
//!
//! `scripts/bench mini [--full] [--part NAME] [--runs N] [--charts DIR]`. Without `--bench`, which
//! cargo adds, it only shows on small histories that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod history;
mod sweeps;
mod targets;
#[path = "../common/work.rs"]
mod work;

use isolario_bench::{Arguments, Failure, Suite};

use work::Work;

/// How large.
pub struct Sizes {
    /// Transactions in the table of targets.
    txns: u64,
    /// Transactions of the history that comes from the binary format.
    many_txns: u64,
    /// Transactions where their number grows.
    growing_txns: Vec<u64>,
    /// Transactions where something else grows.
    fixed_txns: u64,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        if !arguments.in_earnest() {
            return Sizes {
                txns: 1000,
                many_txns: 2000,
                growing_txns: vec![100, 1000],
                fixed_txns: 1000,
            };
        }
        let many = if arguments.has("--full") { 10_000_000 } else { 3_000_000 };
        Sizes {
            txns: 1_000_000,
            many_txns: many,
            growing_txns: vec![100_000, 300_000, 1_000_000],
            fixed_txns: 300_000,
        }
    }
}

fn main() -> Result<(), Failure> {
    let suite = Suite::<Work, Sizes> {
        family: "mini",
        sizes: Sizes::of,
        targets: targets::bench,
        growths: sweeps::all,
    };
    suite.run()
}
