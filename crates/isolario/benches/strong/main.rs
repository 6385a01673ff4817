//! How fast and in how much memory the strong levels of histories with blind writes are decided,
//! and what orders that are known beforehand are worth.
//!
//! `scripts/bench strong [--full] [--part NAME] [--runs N] [--charts DIR]`. Without `--bench`, which cargo adds,
//! it only shows on small histories that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod hints;
mod history;
mod question;
mod targets;

use isolario_bench::{Arguments, Effort, Failure, answer_if_child};

use question::Question;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Question>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let effort = Effort::of(&arguments, "strong", 3)?;
    let directory = isolario_bench::scratch()?;
    println!("Medians of {} processes; megabytes beyond the mapped file", effort.runs);
    println!();
    // The beginning of a row's name selects it; nothing is the beginning of all.
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let shrink = if arguments.in_earnest() { 1 } else { 50 };
    targets::bench(&part, shrink, arguments.has("--full"), &effort, directory.path())?;
    hints::bench(&part, shrink, &effort, directory.path())
}
