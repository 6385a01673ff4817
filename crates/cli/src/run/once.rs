//! One run, from the first connection to the last word.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use isolario::check::Options;
use isolario::db::Outcome as Driven;
use isolario::model::{RunRecord, RunShape, StopReason};
use isolario::report::{Json, Renderer, Report, Timing, first_counterexample, html};

use super::directory::{Directory, unix_seconds};
use super::drive::Course;
use super::examine::{Ask, Examined, examine};
use super::settings::Run;
use super::summary::{self, Told};
use super::target::Target;
use super::{repeat::Finding, replay};
use crate::args::{OutputForm, ReportForm};
use crate::commands::proof::write_proof;
use crate::config::InputFormat;
use crate::console::Console;
use crate::exit::{Outcome, judge};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::load::{LoadedHistory, load};
use crate::progress::Progress;
use crate::reports::{renderer, write_whole};
use crate::resources::peak_rss_bytes;

pub(super) fn run(
    what: &Run,
    seed: u64,
    directory: PathBuf,
    output: OutputForm,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Finding, Failure> {
    let target = Target::open(what)?;
    target.announce(console);
    let directory = Directory::create(directory)?;
    console.info(&format!("seed {seed}; recording to {}", directory.path().display()));
    let mut record = begin(what, seed, &target);
    directory.write_record(&record)?;
    let ask = match &what.check {
        Some(request) => Ask::Named(request.clone()),
        None => Ask::Claim(target.claim.levels.clone()),
    };
    let mut options = Options::default();
    options.timeout = Some(what.check_timeout);
    let course = Course {
        run: what,
        seed,
        nodes: &target.nodes,
        history: &directory.history(),
        ask: &ask,
        options: &options,
        quiet: console.quiet,
    };
    let driven = course.drive(&interrupt.control());
    interrupt.release();
    let driven = match driven {
        Ok(driven) => driven,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    let stopped = tell_why_stopped(&driven, console);
    note(&mut record, driven);
    directory.write_record(&record)?;
    options.stop = interrupt.stop();
    let mut check = Check { directory: &directory, record, ask, options, what };
    let outcome = check.run(output, console)?.max(stopped);
    interrupt.release();
    Ok(Finding {
        outcome,
        run: Duration::from_secs_f64(check.record.run_ms / 1e3),
        record: check.record,
    })
}

/// What is known before anything has happened.
fn begin(what: &Run, seed: u64, target: &Target) -> RunRecord {
    let workload = &what.workload;
    RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        isolario: env!("CARGO_PKG_VERSION").to_owned(),
        began_unix_s: unix_seconds(),
        urls: what.urls.iter().map(ToString::to_string).collect(),
        database: target.name().to_owned(),
        database_version: target.version.clone(),
        isolation: target.isolation().to_owned(),
        workload: RunShape {
            kind: workload.kind.to_string(),
            sessions: what.sessions,
            ops: workload.max_ops(),
            keys: workload.keys,
            read_ratio: workload.read_ratio,
            distribution: workload.distribution.to_string(),
            txns: what.txns,
            duration_ms: what.duration.map(|duration| duration.as_secs_f64() * 1e3),
            rate: what.drive.rate,
            max_retries: what.drive.max_retries,
        },
        seed: seed.to_string(),
        replay: replay::command(what, target.isolation(), seed),
        claim: target.claim.levels.clone(),
        claim_words: target.claim.words.clone(),
        ..RunRecord::default()
    }
}

/// What the workload came to.
fn note(record: &mut RunRecord, driven: Driven) {
    record.stopped = driven.stopped;
    record.stopped_because = driven.because;
    record.counts = driven.counts;
    record.abort_reasons = driven.abort_reasons;
    record.latency = driven.latency;
    record.seconds = driven.seconds;
    record.run_ms = driven.elapsed.as_secs_f64() * 1e3;
    record.peak_rss_bytes = peak_rss_bytes();
}

/// Says why the run ended, where that was not the plan, and what it means for the exit code.
fn tell_why_stopped(driven: &Driven, console: &mut Console) -> Outcome {
    let because = driven.because.as_deref().unwrap_or("for an unknown reason");
    match driven.stopped {
        StopReason::Database => {
            console.error(&Failure::new(format!("the run ended early: {because}")));
            Outcome::Error
        }
        StopReason::Recording => {
            let message = format!("the history could not be recorded to its end: {because}");
            let hint = "what was recorded until then is checked; --out DIR chooses another place";
            console.error(&Failure::new(message).with_hint(hint));
            Outcome::Error
        }
        StopReason::Violation => {
            console.info("stopped at a violation");
            Outcome::Done
        }
        _ => Outcome::Done,
    }
}

/// The check of what was recorded.
struct Check<'r> {
    directory: &'r Directory,
    record: RunRecord,
    ask: Ask,
    options: Options,
    what: &'r Run,
}

impl Check<'_> {
    /// Checks, writes the files, and tells.
    fn run(&mut self, output: OutputForm, console: &mut Console) -> Result<Outcome, Failure> {
        let path = self.directory.history();
        let format = InputFormat { named: None, flag: "--format" };
        let loaded = load(&path, format, console)?;
        let begun = Instant::now();
        let progress = (!console.quiet).then(|| Progress::of_check(&mut self.options));
        let examined = examine(&loaded.history, &self.ask, &self.options);
        drop(progress);
        let timing =
            Timing { load: loaded.time, check: begun.elapsed(), peak_rss_bytes: peak_rss_bytes() };
        self.complete(&examined, &loaded, timing);
        let name = path.display().to_string();
        let report = Report::new(&name, &loaded.history, &examined.results)
            .with_weakest_only(examined.request.open)
            .with_named(&examined.request.named)
            .with_max_anomalies(self.what.max_anomalies)
            .with_timing(timing);
        self.write_files(&report, &loaded, &examined, &name)?;
        let told = Told {
            record: &self.record,
            directory: self.directory.path(),
            missing: &examined.missing,
        };
        match output {
            OutputForm::Json => told.json(console.out())?,
            OutputForm::Human => {
                let mut renderer = renderer(ReportForm::Human, console);
                renderer.report(&report, console.out())?;
                renderer.end(console.out())?;
                told.human(console.style, console.out())?;
            }
        }
        summary::warn(&examined, &loaded.history, &self.record, console);
        Ok(judge(&examined.request, &examined.results))
    }

    fn complete(&mut self, examined: &Examined, loaded: &LoadedHistory, timing: Timing) {
        let record = &mut self.record;
        record.check_ms = Some((timing.load + timing.check).as_secs_f64() * 1e3);
        record.peak_rss_bytes = timing.peak_rss_bytes;
        record.verdicts = examined.verdicts();
        record.first_counterexample = first_counterexample(&loaded.history, &examined.results);
    }

    fn write_files(
        &self,
        report: &Report<'_>,
        loaded: &LoadedHistory,
        examined: &Examined,
        name: &str,
    ) -> Result<(), Failure> {
        let directory = self.directory;
        directory.write_record(&self.record)?;
        write_whole(&directory.verdict(), |out| Json.report(report, out))?;
        let history = &loaded.history;
        write_proof(history, &examined.results, &self.options, name, &directory.proof())?;
        write_whole(&directory.report(), |out| html::write(report, Some(&self.record), out))
    }
}
