//! A benchmark as a program: a table of targets, and things that grow.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::path::Path;

use crate::{Arguments, Effort, Failure, Growth, Job, answer_if_child, scratch};

/// By which the table of targets is selected.
const TARGETS: &str = "targets";

/// Runs per figure, unless told otherwise.
const RUNS: usize = 3;

/// What a benchmark consists of. `S` is how large its histories are.
#[derive(Debug)]
pub struct Suite<J, S> {
    /// Its name.
    pub family: &'static str,
    /// How large the command line wants everything.
    pub sizes: fn(&Arguments) -> S,
    /// Measures and prints the table of targets, with files in this directory.
    pub targets: fn(&S, &Effort, &Path) -> Result<(), Failure>,
    /// What grows.
    pub growths: fn(&S) -> Vec<Growth<J>>,
}

impl<J: Job, S> Suite<J, S> {
    /// Does what the command line says: all of it, or the parts whose names begin as `--part` says.
    /// In a process that the benchmark started itself, only does that one's job.
    pub fn run(&self) -> Result<(), Failure> {
        let arguments = Arguments::of_process();
        if let Some(answer) = answer_if_child::<J>(&arguments)? {
            println!("{answer}");
            return Ok(());
        }
        let (effort, sizes) =
            (Effort::of(&arguments, self.family, RUNS)?, (self.sizes)(&arguments));
        let directory = scratch()?;
        println!("Medians of {} processes; megabytes beyond the mapped file", effort.runs);
        println!();
        // Nothing is the beginning of all.
        let part: String = arguments.value("--part")?.unwrap_or_default();
        if TARGETS.starts_with(&part) {
            (self.targets)(&sizes, &effort, directory.path())?;
        }
        for growth in (self.growths)(&sizes).iter().filter(|growth| growth.name.starts_with(&part))
        {
            growth.bench(&effort, directory.path())?;
        }
        println!("Charts are in {}", effort.charts.display());
        Ok(())
    }
}
