//! What is said while a run goes on: notes, and a progress line on standard error where that is a
//! terminal.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use isolario::check::CheckOptions;
use isolario::db;
use isolario::model::StopReason;
use isolario::report::grouped;
use isolario::report::sentences::stopped_because;
use isolario::run::{Observer, RunTarget, Settings};

use crate::console::Console;
use crate::failure::Failure;
use crate::progress::Progress;

pub(super) struct Watch<'r> {
    settings: &'r Settings,
    console: &'r mut Console,
    bar: Option<ProgressBar>,
    checking: Option<Progress>,
}

impl<'r> Watch<'r> {
    pub(super) fn new(settings: &'r Settings, console: &'r mut Console) -> Watch<'r> {
        Watch { settings, console, bar: None, checking: None }
    }

    /// How much longer it is going to take.
    fn left(&self, progress: &db::RunProgress) -> Option<Duration> {
        let by_time = self.settings.duration.map(|all| all.saturating_sub(progress.elapsed));
        let by_txns = self.settings.txns.filter(|_| progress.throughput > 0.0).map(|all| {
            let txns = all.saturating_sub(progress.counts.committed);
            Duration::from_secs_f64((txns as f64 / progress.throughput).min(1e9))
        });
        by_time.into_iter().chain(by_txns).min()
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Watch<'_> {
    /// Says what is going to be stressed, and what it claims.
    fn opened(&mut self, target: &RunTarget) {
        let nodes = match target.nodes.len() {
            1 => String::new(),
            count => format!(", {count} nodes"),
        };
        let levels: Vec<_> = target.claim.levels.iter().map(|level| level.name()).collect();
        let claims = match levels.is_empty() {
            true => "claims nothing".to_owned(),
            false => format!("claims {}", levels.join(" and ")),
        };
        let (version, isolation) = (&target.version, target.isolation());
        let words = &target.claim.source;
        self.console.info(&format!("{version}{nodes}, {isolation}: {claims} ({words})"));
        for remark in target.remarks() {
            self.console.info(&remark);
        }
        if self.settings.leaves_ranges_open(&target.claim) {
            self.console.info(
                "results of ranges are decided at prefix and the levels above it only: this run will \
                 leave weaker levels open; --check prefix asks for one that is decided",
            );
        }
    }

    fn recording(&mut self, directory: &Path) {
        let seed = self.settings.seed;
        self.console.info(&format!("seed {seed}; recording to {}", directory.display()));
        self.bar = (!self.console.quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
    }

    fn driving(&mut self, progress: &db::RunProgress) {
        if let Some(bar) = &self.bar {
            bar.set_message(line(progress, self.left(progress)));
            bar.tick();
        }
    }

    /// Says why the run ended, where that was not the plan.
    fn driven(&mut self, outcome: &db::WorkloadOutcome) {
        self.clear();
        let urls: Vec<String> = self.settings.urls.iter().map(ToString::to_string).collect();
        let because = outcome.cause.as_ref().map(|cause| stopped_because(cause, &urls));
        let because = because.as_deref().unwrap_or("for an unknown reason");
        match outcome.stopped {
            StopReason::Database => {
                self.console.error(&Failure::new(format!("the run ended early: {because}")));
            }
            StopReason::Recording => {
                let message = format!("recording the history failed: {because}");
                let hint =
                    "what was recorded until then is checked; --out DIR chooses another directory";
                self.console.error(&Failure::new(message).with_hint(hint));
            }
            StopReason::Violation => self.console.info("stopped at a violation"),
            _ => {}
        }
    }

    fn checking(&mut self, options: &mut CheckOptions) {
        self.checking = (!self.console.quiet).then(|| Progress::of_check(options));
    }

    fn checked(&mut self) {
        self.checking = None;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(progress: &db::RunProgress, left: Option<Duration>) -> String {
    let counts = &progress.counts;
    let mut parts = vec![format!("{} committed", grouped(counts.committed))];
    parts.push(format!("{} aborted", grouped(counts.aborted)));
    if counts.unknown > 0 {
        parts.push(format!("{} unknown", grouped(counts.unknown)));
    }
    parts.push(format!("{}/s", grouped(progress.throughput as u64)));
    parts.push(match left {
        Some(left) => format!("{:.0} s left", left.as_secs_f64().ceil()),
        None => format!("{:.0} s", progress.elapsed.as_secs_f64()),
    });
    parts.join(", ")
}
