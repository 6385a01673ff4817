//! How fast and in how much memory linearizability is decided, and how that grows.
//!
//! `scripts/bench lin [--full] [--part NAME] [--runs N] [--charts DIR]`. Without `--bench`, which
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
    /// Operations in the table of targets.
    many_ops: u64,
    /// Operations where their number grows.
    ops: Vec<u64>,
    /// Operations where something else grows.
    fixed_ops: u64,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        if !arguments.in_earnest() {
            return Sizes { many_ops: 1000, ops: vec![100, 1000], fixed_ops: 1000 };
        }
        let mut ops = vec![100_000, 300_000, 1_000_000];
        if arguments.has("--full") {
            ops.push(10_000_000);
        }
        Sizes { many_ops: 1_000_000, ops, fixed_ops: 1_000_000 }
    }
}

fn main() -> Result<(), Failure> {
    let suite = Suite::<Work, Sizes> {
        family: "lin",
        sizes: Sizes::of,
        targets: targets::bench,
        growths: sweeps::all,
    };
    suite.run()
}
