//! `isolario run`: stress a database, record what its clients see, check it, and explain.
//!
//! The run itself is the library's. Here are its flags (`args` as they are typed, `settings` what
//! they mean, `again` those of an earlier run), what is said while it goes on (`watch`) and about it (`summary`), what mends what goes
//! wrong (`remedy`), how often it is repeated (`repeat`), what shapes it goes through (`hunt`), what one of several hosts does
//! (`part`), and the SQL
//! workload, whose rounds are runs of another kind (`relational`).

mod again;
mod args;
mod hunt;
mod part;
mod relational;
mod remedy;
mod repeat;
mod settings;
mod summary;
mod watch;
pub(crate) mod whitebox;

use isolario::model::StopReason;
use isolario::report::{HistoryName, sentences};
use isolario::run::{Handle, Judgement, RunOutcome, Settings};

pub(crate) use again::repeating;
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
    let is_part = what.settings.host.is_some();
    if is_part || !matches!(what.form, ReportForm::Junit | ReportForm::Github) {
        return conduct(what, &handle, console);
    }
    // However many runs there are, and whatever becomes of them, it is one document.
    let mut renderer = renderer(what.form, console);
    renderer.begin(console.out())?;
    let done = conduct(what, &handle, console);
    if let Err(failure) = &done {
        let name = HistoryName { name: "isolario run", file: None, test: "isolario run" };
        renderer.failure(name, &failure.message, console.out())?;
    }
    renderer.end(console.out())?;
    console.out().flush()?;
    done
}

fn conduct(what: &Run, handle: &Handle, console: &mut Console) -> Result<Outcome, Failure> {
    if let Some(time) = what.hunt {
        return hunt::run(what, time, handle, console);
    }
    if what.settings.host.is_some() {
        return part::run(&what.settings, what.form, handle, console);
    }
    match what.repeat {
        1 => Ok(once(&what.settings, what.form, 1, handle, console)?.0),
        _ => repeat::run(what, handle, console),
    }
}

/// One run, from the first connection to the last word; of several, with its number.
fn once(
    settings: &Settings,
    output: ReportForm,
    number: u64,
    handle: &Handle,
    console: &mut Console,
) -> Result<(Outcome, RunOutcome), Failure> {
    let done = isolario::run::run(settings, handle, &mut Watch::new(settings, console));
    let outcome = done.map_err(|error| failure(&error))?;
    for warning in &outcome.warnings {
        console.warning(&format!("{}: {}", outcome.name(), warning.message));
    }
    tell(&outcome, output, number, console)?;
    let mut exit = exit_of(&outcome);
    for error in &outcome.unwritten {
        console.error(&failure(error));
        exit = Outcome::Error;
    }
    Ok((exit, outcome))
}

fn tell(
    outcome: &RunOutcome,
    output: ReportForm,
    number: u64,
    console: &mut Console,
) -> Result<(), Failure> {
    let told = Told { outcome };
    match output {
        ReportForm::Json => told.json(console.out())?,
        ReportForm::Human => {
            if outcome.judgement() != Judgement::NothingToCheck {
                let (name, mut renderer) = (outcome.name(), renderer(output, console));
                renderer.report(&outcome.report(&name), console.out())?;
                whitebox::report(outcome, (&name).into(), renderer.as_mut(), console.out())?;
                renderer.end(console.out())?;
            }
            told.human(console)?;
        }
        ReportForm::Junit | ReportForm::Github => ci(outcome, output, number, console)?,
    }
    told.warn(console);
    Ok(())
}

/// For CI: the history as `check` reports it, called after what was tested. What ended a run too early,
/// or left nothing to check, is a failure of its own.
fn ci(
    outcome: &RunOutcome,
    form: ReportForm,
    number: u64,
    console: &mut Console,
) -> Result<(), Failure> {
    let (path, mut test) = (outcome.name(), sentences::test_name(&outcome.record));
    if number > 1 {
        test += &format!(" ({number})");
    }
    let name = HistoryName { test: &test, ..HistoryName::from(&path) };
    let mut renderer = renderer(form, console);
    let has_answers = outcome.judgement() != Judgement::NothingToCheck;
    if has_answers {
        renderer.report(&outcome.report(name), console.out())?;
        whitebox::report(outcome, name, renderer.as_mut(), console.out())?;
    }
    let why = match has_answers {
        true => outcome.record.stopped_because.clone(),
        false => {
            Some("nothing to check: no transaction that reads or writes was committed".to_owned())
        }
    };
    if let Some(why) = why {
        renderer.failure(name, &why, console.out())?;
    }
    Ok(())
}

/// A run that the database or the recording ended is an error, whatever its history shows.
fn exit_of(outcome: &RunOutcome) -> Outcome {
    if matches!(outcome.record.stopped, StopReason::Database | StopReason::Recording) {
        return Outcome::Error;
    }
    if outcome.whitebox.as_ref().is_some_and(|own| own.failure.is_some()) {
        return Outcome::Error;
    }
    outcome.judgement().into()
}
