//! `isolario check`: which levels recorded histories satisfy.

use std::path::Path;
use std::time::Instant;

use isolario::check;
use isolario::report::{Human, Json, Renderer, Report, Timing};

use crate::args::OutputForm;
use crate::config::Check;
use crate::console::Console;
use crate::exit::{Outcome, deciding, judge};
use crate::failure::Failure;
use crate::load::{LoadedHistory, load, report_findings};
use crate::resources::peak_rss_bytes;

pub(crate) fn run(
    config: &Check,
    output: OutputForm,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let mut renderer = renderer(output, console);
    let mut outcome = Outcome::Done;
    renderer.begin(console.out())?;
    for path in &config.histories {
        outcome = outcome.max(check_one(config, path, renderer.as_mut(), console)?);
    }
    renderer.end(console.out())?;
    Ok(outcome)
}

fn renderer(output: OutputForm, console: &Console) -> Box<dyn Renderer> {
    match output {
        OutputForm::Json => Box::new(Json),
        OutputForm::Human => {
            let mut human = Human::new(console.style);
            human.timing = console.verbose;
            human.how_to_see_more = "--max-anomalies N shows more";
            Box::new(human)
        }
    }
}

/// Checks one history. One that cannot be read does not stop the others; only standard output
/// that cannot be written to does.
fn check_one(
    config: &Check,
    path: &Path,
    renderer: &mut dyn Renderer,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let name = path.display().to_string();
    let loaded = match load_valid(&name, path, config, console) {
        Ok(loaded) => loaded,
        Err(failure) => {
            renderer.failure(&name, &failure.message, console.out())?;
            console.error(&failure);
            return Ok(Outcome::Error);
        }
    };
    let begun = Instant::now();
    let results = check::check(&loaded.history, &config.request.levels, &config.options);
    let timing =
        Timing { load: loaded.time, check: begun.elapsed(), peak_rss_bytes: peak_rss_bytes() };
    let report = Report::new(&name, &loaded.history, &results)
        .with_timing(timing)
        .with_max_anomalies(config.max_anomalies);
    renderer.report(&report, console.out())?;
    if config.request.open && deciding(&results).is_none() {
        console.warning(&format!("{name}: no level could be decided"));
    }
    Ok(judge(&config.request, &results))
}

/// Reads a history that can be checked.
fn load_valid(
    name: &str,
    path: &Path,
    config: &Check,
    console: &mut Console,
) -> Result<LoadedHistory, Failure> {
    let loaded = load(path, config.format, console)?;
    let findings = loaded.history.validate();
    match report_findings(name, &loaded.history, &findings, console) {
        Some(contradiction) => Err(contradiction),
        None => Ok(loaded),
    }
}
