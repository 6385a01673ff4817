//! The commands, one per file.

mod check;
mod convert;
mod explain;
mod follow;
mod levels;
mod packaging;
mod show;
mod shrink;
mod spill;
mod stats;
pub(crate) mod verify;

use crate::args::OutputForm;
use crate::config::Command;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::generate;
use crate::probe;
use crate::run;

pub(crate) fn dispatch(
    command: &Command,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    match command {
        Command::Check(check) => check::run(check, console),
        Command::Convert(convert) => convert::run(convert, console),
        Command::Gen(what) => generate::run(what, output, console),
        Command::Run(what) => run::run(what, console),
        Command::Probe(what) => probe::run(what, output, console),
        Command::Relational(what) => what.run(console),
        Command::Stats(stats) => stats::run(stats, output, console),
        Command::Show(show) => show::run(show, output, console),
        Command::Shrink(shrink) => shrink::run(shrink, console),
        Command::ShrinkSql(what) => what.run(console),
        Command::Explain(explain) => explain::run(explain, output, console),
        Command::Verify(verify) => verify::run(verify, output, console),
        Command::Levels => levels::run(output, console),
        Command::Completions(shell) => packaging::completions(*shell, console),
        Command::Man(dir) => packaging::manual(dir.as_deref(), console),
    }
}
