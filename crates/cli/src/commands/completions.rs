//! `isolario completions`: completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

pub(crate) fn run(shell: Shell, console: &mut Console) -> Result<Outcome, Failure> {
    clap_complete::generate(shell, &mut Args::command(), "isolario", &mut console.out());
    Ok(Outcome::Done)
}
