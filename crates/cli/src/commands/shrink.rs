//! `isolario shrink`: the smallest part of a history that still shows an anomaly.

use isolario::model::{History, LevelResult, Verdict, VerdictKind};
use isolario::report::{Human, Judgement, Renderer, Report};
use isolario::run::{LostCommits, examine, recorded_ask, recorded_outages};
use isolario::shrink::{Settings, ShrinkError, Shrunk, shrink_known};
use isolario::verify::verify;

use crate::commands::verify::{Proof, read_as};
use crate::config::{Shrink, Written};
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::load::load;
use crate::outfile::{refuse_replacing, write_whole};
use crate::run_directory::{self, refuse_part};

pub(crate) fn run(config: &Shrink, console: &mut Console) -> Result<Outcome, Failure> {
    refuse_existing(&config.to)?;
    let interrupt = Interrupt::listen(console.quiet)?;
    let name = config.history.display().to_string();
    refuse_part(&config.history)?;
    let history = load(&config.history, config.format, console)?.history;
    let mut settings = config.settings.clone();
    settings.options = settings.options.with_stop(interrupt.stop());
    let known = as_in_the_run(config, &history, &mut settings)?;
    let shrunk = shrink_known(&history, &known, &settings);
    let shrunk = shrunk.map_err(|error| nothing_to_shrink(&name, &error))?;
    refuse_untestable(&shrunk, config)?;
    recheck(&shrunk, config)?;
    tell(&history, &shrunk, console);
    write(config, &shrunk, console)?;
    if let Some(file) = &config.proof {
        let results = std::slice::from_ref(&shrunk.result);
        let proof = Proof { history: &shrunk.history, results, outages: &[], lost: None };
        proof.write(&settings.options, &name, file)?;
        console.info(&format!("wrote the proof to {}", file.display()));
    }
    Ok(Outcome::Done)
}

/// The answers of the run that recorded the history, where nothing else is asked: what stays is what the
/// run was headed by.
fn as_in_the_run(
    config: &Shrink,
    history: &History,
    settings: &mut Settings,
) -> Result<Vec<LevelResult>, Failure> {
    let record = run_directory::record_beside(&config.history);
    let is_open = settings.level.is_none() && settings.anomaly.is_none();
    let Some(record) = record.filter(|record| is_open && record.host.is_none()) else {
        return Ok(Vec::new());
    };
    let (ask, claim) = recorded_ask(&record);
    let mut options = settings.options.clone();
    options.timeout = settings.timeout;
    let examination = examine(history, &ask, &claim, &options);
    let name = config.history.display().to_string();
    let report = Report::new(&name, history, &examination.results).with_asked(examination.asked());
    if report.judgement() != Judgement::Violated {
        let lost = match LostCommits::find(history, &recorded_outages(&record)) {
            Some(lost) => format!("; lost commits cannot be shrunk: {lost}"),
            None => String::new(),
        };
        let why = "the run violates no level that was claimed or requested";
        return Err(Failure::new(format!("{name}: nothing to shrink: {why}{lost}"))
            .with_hint("use --level L to shrink a violation of another level"));
    }
    *settings = settings.clone().with_first_of(&report);
    Ok(examination.results)
}

fn refuse_existing(to: &Written) -> Result<(), Failure> {
    match to {
        Written::History(output) => output.refuse_existing(),
        Written::RustTest { path: Some(path), force } => refuse_replacing(path, *force),
        Written::RustTest { path: None, .. } => Ok(()),
    }
}

/// The recorder has no calls for operations by predicate.
fn refuse_untestable(shrunk: &Shrunk, config: &Shrink) -> Result<(), Failure> {
    match &config.to {
        Written::RustTest { .. } if shrunk.history.has_predicates() => {
            let why = "the shrunk history has operations by predicate, which a test in Rust cannot express";
            Err(Failure::new(why).with_hint("write it as text: --to text"))
        }
        _ => Ok(()),
    }
}

/// What is handed on was never looked at by anybody: it is checked once more, by other code.
fn recheck(shrunk: &Shrunk, config: &Shrink) -> Result<(), Failure> {
    let Shrunk { history, result, .. } = shrunk;
    let options = read_as(&config.settings.options);
    verify(history, result, &options).map_err(|refusal| {
        let why = refusal.describe(history);
        Failure::new(format!("the verifier refuses the evidence that was found: {why}"))
            .with_hint("this is a bug of Isolario: please report it with the history")
    })
}

fn tell(whole: &History, shrunk: &Shrunk, console: &mut Console) {
    let Shrunk { history, anomaly, result, is_minimal, .. } = shrunk;
    let (before, after) = (whole.txn_count(), history.txn_count());
    console.info(&format!(
        "{after} of {before} transactions still violate {}: {}",
        result.level,
        anomaly.title()
    ));
    if !is_minimal {
        console.caution("the time limit was reached, so the result may not be minimal; allow more with --timeout");
    }
}

/// A part that goes to a file is explained on standard output; one that goes there itself is all
/// that is there.
fn write(config: &Shrink, shrunk: &Shrunk, console: &mut Console) -> Result<(), Failure> {
    let file = match &config.to {
        Written::History(output) => {
            output.write(|sink| shrunk.history.replay(sink))?;
            (!output.is_stdout()).then_some(&output.path)
        }
        Written::RustTest { path: Some(path), .. } => {
            write_whole(path, |out| out.write_all(shrunk.as_rust_test().as_bytes()))?;
            Some(path)
        }
        Written::RustTest { path: None, .. } => {
            console.out().write_all(shrunk.as_rust_test().as_bytes())?;
            None
        }
    };
    if let Some(path) = file {
        let name = path.display().to_string();
        let results = std::slice::from_ref(&shrunk.result);
        let report = Report::new(&name, &shrunk.history, results);
        let mut human = Human::new(console.style);
        human.report(&report, console.out())?;
        console.info(&format!("wrote {name}"));
    }
    Ok(())
}

fn nothing_to_shrink(name: &str, error: &ShrinkError) -> Failure {
    let failure = Failure::new(format!("{name}: nothing to shrink: {error}"));
    match error {
        ShrinkError::NotViolated { results } => {
            let undecided = |verdict: &Verdict| verdict.kind() == VerdictKind::Undecided;
            match results.iter().any(|result| undecided(&result.verdict)) {
                true => {
                    failure.with_hint("not every level was decided: allow more time with --timeout")
                }
                false => {
                    failure.with_hint("`isolario check` shows which levels the history satisfies")
                }
            }
        }
        ShrinkError::OtherAnomalies { result } => {
            let mut kinds: Vec<_> =
                result.verdict.anomalies().iter().map(|anomaly| anomaly.kind.name()).collect();
            kinds.sort_unstable();
            kinds.dedup();
            failure.with_hint(format!("anomalies that violate it: {}", kinds.join(", ")))
        }
        _ => failure,
    }
}
