//! What the benchmarks share.
//!
//! A benchmark names its work by implementing [`Job`]. [`median`] then runs a job several times,
//! each time in a process of its own: the benchmark calls itself, and [`answer_if_child`] does
//! the work there. [`Table`] and [`Chart`] show what came out; [`exponent`] tells how
//! it grows, and [`Growth`] does all of that for a row of sizes. A [`Suite`] is a whole benchmark.
//! An [`Adapter`] runs another checker on the same files.

mod against;
mod arguments;
mod chart;
mod fit;
mod floors;
mod growth;
mod measure;
mod process;
mod suite;
mod table;

use std::error::Error;

pub use against::{ADAPTERS, Adapter, Reply};
pub use arguments::Arguments;
pub use chart::{Chart, Origin, Series};
pub use fit::exponent;
pub use floors::{copy, count_newlines};
pub use growth::{Effort, Expected, Growth, Step, Writer};
pub use measure::{Job, Kept, Sample, Stopwatch, answer_if_child, median};
pub use process::{peak_resident, process_time, time_of_descendants, time_of_ended_children};
pub use suite::Suite;
pub use table::{Align, Table};

/// Any error; it may have come from another thread.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A directory for the files of a benchmark, removed when dropped.
pub fn scratch() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("isolario-bench-").tempdir()
}

/// How a target was met, in a word that can be searched for.
pub fn judge(reached: bool) -> &'static str {
    if reached { "reached" } else { "MISSED" }
}
