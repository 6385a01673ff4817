//! The progress line: on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use isolario::db::Progress;

use super::settings::Run;
use super::summary::grouped;

pub(super) struct Watch<'r> {
    run: &'r Run,
    bar: Option<ProgressBar>,
}

impl<'r> Watch<'r> {
    pub(super) fn start(run: &'r Run, quiet: bool) -> Watch<'r> {
        let bar = (!quiet).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Watch { run, bar }
    }

    pub(super) fn show(&self, progress: &Progress) {
        if let Some(bar) = &self.bar {
            bar.set_message(line(progress, self.left(progress)));
            bar.tick();
        }
    }

    /// How much longer it is going to take.
    fn left(&self, progress: &Progress) -> Option<Duration> {
        let by_time = self.run.duration.map(|all| all.saturating_sub(progress.elapsed));
        let by_txns = self.run.txns.filter(|_| progress.throughput > 0.0).map(|all| {
            let txns = all.saturating_sub(progress.counts.committed);
            Duration::from_secs_f64((txns as f64 / progress.throughput).min(1e9))
        });
        by_time.into_iter().chain(by_txns).min()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &Progress, left: Option<Duration>) -> String {
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
