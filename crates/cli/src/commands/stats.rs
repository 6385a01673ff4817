//! `isolario stats`: the figures of a history.

use crate::args::OutputForm;
use crate::config::Stats;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::load::load;

pub(crate) fn run(
    config: &Stats,
    _output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let _history = load(&config.history, config.format, console)?.history;
    Ok(Outcome::Done)
}
