//! `isolario check`: which levels recorded histories satisfy.

use std::path::Path;
use std::time::Instant;

use isolario::check;
use isolario::report::{Renderer, Report, Summary, Timing, deciding};

use crate::commands::proof::write_proof;
use crate::config::{Check, Question};
use crate::console::Console;
use crate::exit::{Outcome, judge, judge_patterns};
use crate::failure::Failure;
use crate::load::{LoadedHistory, load, report_remarks};
use crate::reports::{Files, renderer};
use crate::resources::peak_rss_bytes;

pub(crate) fn run(config: &Check, console: &mut Console) -> Result<Outcome, Failure> {
    let mut checking = Checking {
        config,
        renderer: renderer(config.form, console),
        files: Files::new(&config.reports),
        summary: Summary::default(),
    };
    let mut outcome = Outcome::Done;
    checking.renderer.begin(console.out())?;
    for path in &config.histories {
        outcome = outcome.max(checking.one(path, console)?);
    }
    let Checking { mut renderer, summary, .. } = checking;
    if config.histories.len() > 1 {
        renderer.summary(&summary, console.out())?;
    }
    renderer.end(console.out())?;
    Ok(outcome)
}

/// A run over histories.
struct Checking<'c> {
    config: &'c Check,
    renderer: Box<dyn Renderer>,
    files: Files<'c>,
    summary: Summary,
}

impl Checking<'_> {
    /// Checks one history. One that cannot be read does not stop the others; only standard output
    /// that cannot be written to does.
    fn one(&mut self, path: &Path, console: &mut Console) -> Result<Outcome, Failure> {
        let name = path.display().to_string();
        let loaded = match load_valid(&name, path, self.config, console) {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.renderer.failure(&name, &failure.message, console.out())?;
                self.files.failure(&name, &failure.message)?;
                self.summary.add_failure();
                console.error(&failure);
                return Ok(Outcome::Error);
            }
        };
        match &self.config.question {
            Question::Levels(request) => {
                let begun = Instant::now();
                let results = check::check(&loaded.history, &request.levels, &self.config.options);
                let report = Report::new(&name, &loaded.history, &results)
                    .with_weakest_only(request.open)
                    .with_named(&request.named)
                    .with_timing(timing(&loaded, begun));
                self.report(report, console)?;
                if request.open && deciding(&results).is_none() {
                    console.warning(&format!("{name}: no level could be decided"));
                }
                if let Some(file) = &self.config.proof {
                    write_proof(&loaded.history, &results, &self.config.options, &name, file)?;
                    console.info(&format!("wrote the proof to {}", file.display()));
                }
                Ok(judge(request, &results))
            }
            Question::Patterns { kinds, named } => {
                let begun = Instant::now();
                let results = check::patterns(&loaded.history, kinds, &self.config.options);
                let report = Report::of_patterns(&name, &loaded.history, &results)
                    .with_timing(timing(&loaded, begun));
                self.report(report, console)?;
                Ok(judge_patterns(&results, *named))
            }
        }
    }

    fn report(&mut self, report: Report<'_>, console: &mut Console) -> Result<(), Failure> {
        let report = report.with_max_anomalies(self.config.max_anomalies);
        self.summary.add(&report);
        self.renderer.report(&report, console.out())?;
        self.files.report(&report, console)
    }
}

fn timing(loaded: &LoadedHistory, begun: Instant) -> Timing {
    Timing { load: loaded.time, check: begun.elapsed(), peak_rss_bytes: peak_rss_bytes() }
}

/// Reads a history that can be checked.
fn load_valid(
    name: &str,
    path: &Path,
    config: &Check,
    console: &mut Console,
) -> Result<LoadedHistory, Failure> {
    let loaded = load(path, config.format, console)?;
    let remarks = loaded.history.validate();
    match report_remarks(name, &loaded.history, &remarks, console) {
        Some(contradiction) => Err(contradiction),
        None => Ok(loaded),
    }
}
