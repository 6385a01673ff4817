//! `isolario run`: stress a database, record what its clients see, check it, and explain.
//!
//! The run itself is the library's. Here are its flags (`args` as they are typed, `settings` what
//! they mean), what is said while it goes on (`watch`) and about it (`summary`), what mends what goes
//! wrong (`remedy`), how often it is repeated (`repeat`), what shapes it goes through (`hunt`), what one of several hosts does
//! (`part`), and the SQL
//! workload, whose rounds are runs of another kind (`relational`).

mod args;
mod hunt;
mod part;
mod relational;
mod remedy;
mod repeat;
mod settings;
mod summary;
mod watch;
mod whitebox;

use isolario::model::StopReason;
use isolario::report::words;
use isolario::run::{Handle, Judgement, RunOutcome, Settings};

pub(crate) use args::{EXAMPLES, RunArgs, db_help};
pub(crate) use relational::{Relational, ShrinkSql};
pub(crate) use remedy::failure;
pub(crate) use settings::Run;

use crate::args::ReportForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::reports::renderer;
use summary::Told;
use watch::Watch;

pub(crate) fn run(what: &Run, console: &mut Console) -> Result<Outcome, Failure> {
    let handle = Handle::new();
    Interrupt::listen(console.quiet)?.run(&handle);
    if let Some(time) = what.hunt {
        return hunt::run(what, time, &handle, console);
    }
    if what.settings.host.is_some() {
        return part::run(&what.settings, what.form, &handle, console);
    }
    match what.repeat {
        1 => Ok(once(&what.settings, what.form, &handle, console)?.0),
        _ => repeat::run(what, &handle, console),
    }
}

/// One run, from the first connection to the last word.
fn once(
    settings: &Settings,
    output: ReportForm,
    handle: &Handle,
    console: &mut Console,
) -> Result<(Outcome, RunOutcome), Failure> {
    let done = isolario::run::run(settings, handle, &mut Watch::new(settings, console));
    let outcome = done.map_err(|error| failure(&error))?;
    for warning in &outcome.warnings {
        console.warning(&format!("{}: {}", outcome.name(), warning.message));
    }
    tell(&outcome, output, console)?;
    let mut exit = exit_of(&outcome);
    for error in &outcome.unwritten {
        console.error(&failure(error));
        exit = Outcome::Error;
    }
    Ok((exit, outcome))
}

fn tell(outcome: &RunOutcome, output: ReportForm, console: &mut Console) -> Result<(), Failure> {
    let told = Told { outcome };
    match output {
        ReportForm::Json => told.json(console.out())?,
        ReportForm::Human => {
            if outcome.judgement() != Judgement::NothingToCheck {
                let (name, mut renderer) = (outcome.name(), renderer(output, console));
                renderer.report(&outcome.report(&name), console.out())?;
                whitebox::report(outcome, renderer.as_mut(), console.out())?;
                renderer.end(console.out())?;
            }
            told.human(console)?;
        }
        ReportForm::Junit | ReportForm::Github => ci(outcome, output, console)?,
    }
    told.warn(console);
    Ok(())
}

/// For CI: the history as `check` reports it, called after what was tested. What ended a run too early,
/// or left nothing to check, is a failure of its own.
fn ci(outcome: &RunOutcome, form: ReportForm, console: &mut Console) -> Result<(), Failure> {
    let name = words::headline(&outcome.record);
    let mut renderer = renderer(form, console);
    renderer.begin(console.out())?;
    let why = match outcome.judgement() {
        Judgement::NothingToCheck => Some("no transaction committed that read or wrote".to_owned()),
        Judgement::NotDecidable => Some(told_missing(outcome)),
        _ => outcome.record.stopped_because.clone(),
    };
    if outcome.judgement() != Judgement::NothingToCheck {
        renderer.report(&outcome.report(&name), console.out())?;
        whitebox::report(outcome, renderer.as_mut(), console.out())?;
    }
    if let Some(why) = why {
        renderer.failure(&name, &why, console.out())?;
    }
    Ok(renderer.end(console.out())?)
}

/// That what was claimed could not be decided.
fn told_missing(outcome: &RunOutcome) -> String {
    let missing = outcome.examination.missing.iter().map(|level| level.name());
    format!("could not be decided: {}", missing.collect::<Vec<_>>().join(", "))
}

/// A run that the database or the recording ended is an error, whatever its history shows.
fn exit_of(outcome: &RunOutcome) -> Outcome {
    if matches!(outcome.record.stopped, StopReason::Database | StopReason::Recording) {
        return Outcome::Error;
    }
    if outcome.whitebox.as_ref().is_some_and(|own| own.failure.is_some()) {
        return Outcome::Error;
    }
    match outcome.judgement() {
        Judgement::Satisfied => Outcome::Done,
        Judgement::Undecided => Outcome::Undecided,
        Judgement::Violated => Outcome::Violated,
        _ => Outcome::Error,
    }
}
