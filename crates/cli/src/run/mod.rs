//! `isolario run`: stress a database, record what its clients see, check it, and explain.
//!
//! `args` are the flags as they are typed, `settings` what they mean. A run is `target` (the
//! database), `drive` (the workload), `examine` (the check), and `summary` (what is said about it);
//! `directory` is what it leaves behind.

mod args;
mod directory;
mod drive;
mod examine;
mod once;
mod repeat;
mod replay;
mod settings;
mod summary;
mod target;
mod watch;

pub(crate) use args::{EXAMPLES, RunArgs};
pub(crate) use settings::Run;

use crate::args::OutputForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

pub(crate) fn run(
    what: &Run,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::listen(console.quiet)?;
    if what.drive.repeat > 1 {
        repeat::run(what, output, &interrupt, console)
    } else {
        let directory = what.out.clone().unwrap_or_else(|| directory::usual(what.seed));
        let finding = once::run(what, what.seed, directory, output, &interrupt, console)?;
        Ok(finding.outcome)
    }
}
