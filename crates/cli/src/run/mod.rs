//! `isolario run`: stress a database, record what its clients see, check it, and explain.
//!
//! The run itself is the library's. Here are its flags (`args` as they are typed, `settings` what
//! they mean), what is said while it goes on (`watch`) and about it (`summary`), what mends what goes
//! wrong (`remedy`), and how often it is repeated (`repeat`).

mod args;
mod remedy;
mod repeat;
mod settings;
mod summary;
mod watch;

use isolario::model::StopReason;
use isolario::run::{Handle, Judgement, RunOutcome, Settings};

pub(crate) use args::{EXAMPLES, RunArgs};
pub(crate) use settings::Run;

use crate::args::{OutputForm, ReportForm};
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::reports::renderer;
use summary::Told;
use watch::Watch;

pub(crate) fn run(
    what: &Run,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let handle = Handle::new();
    Interrupt::listen(console.quiet)?.run(&handle);
    match what.repeat {
        1 => Ok(once(&what.settings, output, &handle, console)?.0),
        _ => repeat::run(what, output, &handle, console),
    }
}

/// One run, from the first connection to the last word.
fn once(
    settings: &Settings,
    output: OutputForm,
    handle: &Handle,
    console: &mut Console,
) -> Result<(Outcome, RunOutcome), Failure> {
    let done = isolario::run::run(settings, handle, &mut Watch::new(settings, console));
    let outcome = done.map_err(|error| remedy::failure(&error))?;
    for warning in &outcome.warnings {
        console.warning(&format!("{}: {}", outcome.name(), warning.message));
    }
    tell(&outcome, output, console)?;
    let mut exit = exit_of(&outcome);
    for error in &outcome.unwritten {
        console.error(&remedy::failure(error));
        exit = Outcome::Error;
    }
    Ok((exit, outcome))
}

fn tell(outcome: &RunOutcome, output: OutputForm, console: &mut Console) -> Result<(), Failure> {
    let told = Told { outcome };
    match output {
        OutputForm::Json => told.json(console.out())?,
        OutputForm::Human => {
            if outcome.judgement() != Judgement::NothingToCheck {
                let (name, mut renderer) = (outcome.name(), renderer(ReportForm::Human, console));
                renderer.report(&outcome.report(&name), console.out())?;
                renderer.end(console.out())?;
            }
            told.human(console.style, console.out())?;
        }
    }
    told.warn(console);
    Ok(())
}

/// A run that the database or the recording ended is an error, whatever its history shows.
fn exit_of(outcome: &RunOutcome) -> Outcome {
    if matches!(outcome.record.stopped, StopReason::Database | StopReason::Recording) {
        return Outcome::Error;
    }
    match outcome.judgement() {
        Judgement::Satisfied => Outcome::Done,
        Judgement::Undecided => Outcome::Undecided,
        Judgement::Violated => Outcome::Violated,
        _ => Outcome::Error,
    }
}
