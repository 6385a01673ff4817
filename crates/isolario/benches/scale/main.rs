//! How fast and in how much memory the largest histories are decided, here and by other checkers.
//!
//! `scripts/bench scale [--huge] [--part NAME] [--runs N] [--minutes N [--rate N]]`, and
//! `scripts/bench --against PATH [--as NAME] [--txns N] [--timeout SECONDS]`. Without `--bench`, which
//! cargo adds, it only shows on small histories that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod follow;
mod history;
mod live;
mod targets;
mod versus;
#[path = "../common/work.rs"]
mod work;

use std::path::PathBuf;

use isolario_bench::{Arguments, Effort, Failure, answer_if_child};

use follow::Follow;
use work::Work;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    let follows = arguments.all().iter().any(|argument| argument.starts_with(follow::NAME));
    let answer = match follows {
        true => answer_if_child::<Follow>(&arguments)?,
        false => answer_if_child::<Work>(&arguments)?,
    };
    if let Some(answer) = answer {
        println!("{answer}");
        return Ok(());
    }
    if live::record_if_child(&arguments)? {
        return Ok(());
    }
    let effort = Effort::of(&arguments, "scale", 3)?;
    let directory = isolario_bench::scratch()?;
    println!("Medians of {} processes; megabytes beyond the mapped file", effort.runs);
    println!();
    if let Some(program) = arguments.value::<PathBuf>("--against")? {
        return versus::bench(&program, &arguments, &effort, directory.path());
    }
    // The beginning of a row's name selects it; nothing is the beginning of all.
    let part: String = arguments.value("--part")?.unwrap_or_default();
    let shrink = if arguments.in_earnest() { 1 } else { 10_000 };
    targets::bench(&part, shrink, arguments.has("--huge"), &effort, directory.path())?;
    if "follow".starts_with(&part) {
        follow::bench(shrink.min(1000), &effort, directory.path())?;
    }
    let minutes = match arguments.in_earnest() {
        true => arguments.value("--minutes")?,
        false => Some(0.002),
    };
    match minutes {
        Some(minutes) => {
            let rate = arguments.value("--rate")?.unwrap_or(follow::PER_SECOND);
            live::bench(minutes, rate, directory.path())
        }
        None => Ok(()),
    }
}
