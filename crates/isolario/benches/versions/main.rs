//! How fast and in how much memory levels over a known order of versions are decided, and how that
//! grows.
//!
//! `scripts/bench versions [--full] [--part NAME] [--runs N] [--charts DIR]`. Without `--bench`,
//! which cargo adds, it only shows on small histories that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod figures;
mod giant;
mod history;
mod orders;
mod plain;
mod question;
mod rows;
mod targets;
#[path = "../common/work.rs"]
mod work;

use isolario::model::Level;
use isolario_bench::{
    Arguments, Effort, Expected, Failure, Growth, Step, Suite, answer_if_child, scratch,
};

use history::Lists;
use question::Question;
use work::Work;

/// The name of the benchmark.
const FAMILY: &str = "versions";

/// How large.
pub struct Sizes {
    /// Transactions that append to lists, in the table of targets.
    txns: u64,
    /// Transactions of the history that comes from the binary format.
    many_txns: u64,
    /// Transactions where their number grows.
    growing_txns: Vec<u64>,
    /// Transactions that are all in one cycle.
    giant: u32,
    /// Transactions on the rows of a table: few and many.
    rows: [u64; 2],
    /// Those where their number grows.
    growing_rows: Vec<u64>,
    /// The same where many operations go by range.
    growing_predicates: Vec<u64>,
    /// The same where every version is compared with every predicate.
    every_version: Vec<u64>,
}

impl Sizes {
    fn of(arguments: &Arguments) -> Sizes {
        if !arguments.in_earnest() {
            let growing_txns = vec![100, 1000];
            let growing_rows = vec![300, 1000];
            let rows = [2_500, 5_000];
            return Sizes {
                txns: 1000,
                many_txns: 2000,
                growing_txns,
                giant: 1000,
                rows,
                growing_predicates: growing_rows.clone(),
                every_version: growing_rows.clone(),
                growing_rows,
            };
        }
        let largest = if arguments.has("--full") { 10_000_000 } else { 1_000_000 };
        let growing_txns = (4..=7).map(|digits| 10_u64.pow(digits));
        Sizes {
            txns: 200_000,
            many_txns: largest,
            growing_txns: growing_txns.filter(|txns| *txns <= largest).collect(),
            giant: 100_000,
            rows: [2_500, 100_000],
            growing_rows: vec![2_500, 10_000, 40_000, 100_000],
            growing_predicates: vec![500, 1_000, 2_500, 10_000, 40_000],
            every_version: vec![250, 500, 1_000, 2_500],
        }
    }
}

/// What grows.
fn growths(sizes: &Sizes) -> Vec<Growth<Question>> {
    let step = |txns: &u64| {
        let lists = Lists { txns: *txns, format: "isolario" };
        Step { size: Some(*txns as f64), write: Box::new(move |file| lists.write(file)) }
    };
    let levels = [Level::ReadUncommitted, Level::Serializable, Level::StrictSerializable];
    let lists = Growth {
        name: "transactions".to_owned(),
        title: "Check lists, by transactions".to_owned(),
        quantity: "transactions",
        jobs: levels.map(|level| Question::Holds(Work::Check(level))).to_vec(),
        expected: Expected::AtMost(1.1),
        steps: sizes.growing_txns.iter().map(step).collect(),
    };
    let mut growths = rows::growths(sizes);
    growths.insert(0, lists);
    growths
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Question>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let suite = Suite::<Question, Sizes> {
        family: FAMILY,
        sizes: Sizes::of,
        targets: targets::bench,
        growths,
    };
    suite.run()?;
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let effort = Effort::of(&arguments, FAMILY, 3)?;
    figures::bench(&part, &Sizes::of(&arguments), &effort, scratch()?.path())
}
