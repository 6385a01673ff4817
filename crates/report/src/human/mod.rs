//! Reports for people: 80 columns, readable without colour.

mod anomaly;
mod explain;
mod palette;
mod stats;

use std::io;

use isolario_model::{LevelResult, Verdict};

use crate::names::{Names, counted, listed};
use crate::report::{Renderer, Report, Size, Timing};
use crate::words::why_not_applicable;
use crate::wrap::{WIDTH, wrap};
use palette::Palette;

/// Whether to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Letters only.
    #[default]
    Plain,
    /// With the escape sequences of terminals.
    Coloured,
}

/// Renders reports as text: the verdicts first, then the clearest anomalies in full.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Human {
    /// Whether to use colour.
    pub style: Style,
    /// Whether to say how long it took.
    pub timing: bool,
    /// How to see the anomalies that are not shown: said where there are any.
    pub how_to_see_more: &'static str,
    /// Whether there was a report before this one.
    separate: bool,
}

impl Human {
    /// A renderer of the given style.
    pub fn new(style: Style) -> Self {
        Human { style, ..Human::default() }
    }
}

impl Renderer for Human {
    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let palette = Palette::of(self.style);
        if std::mem::replace(&mut self.separate, true) {
            writeln!(out)?;
        }
        heading(report.name, &report.size, &palette, out)?;
        verdicts(report, &palette, out)?;
        if self.timing {
            writeln!(out, "  {}", palette.dim(&timing_words(&report.timing)))?;
        }
        self.anomalies(report, &palette, out)
    }

    /// Nothing: people read on the error stream what could not be read.
    fn failure(&mut self, _name: &str, _error: &str, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }
}

impl Human {
    fn anomalies(
        &self,
        report: &Report<'_>,
        palette: &Palette,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let found = report.anomalies();
        let names = Names::new(report.history);
        for anomaly in found.iter().take(report.max_anomalies) {
            writeln!(out)?;
            anomaly::write(names, anomaly, palette, out)?;
        }
        let hidden = found.len().saturating_sub(report.max_anomalies);
        if hidden > 0 {
            let more = if report.max_anomalies == 0 { "" } else { " more" };
            let hint = match self.how_to_see_more {
                "" => String::new(),
                hint => format!("; {hint}"),
            };
            let noun = if hidden == 1 { "anomaly" } else { "anomalies" };
            writeln!(out, "\n… {hidden}{more} {noun} not shown{hint}")?;
        }
        Ok(())
    }
}

/// The name of a history and its size.
fn heading(name: &str, size: &Size, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let text = wrap(&size_words(size), WIDTH, &format!("{name}: "), "  ");
    let text = text.strip_prefix(name).unwrap_or(&text);
    writeln!(out, "{}{text}\n", palette.heading(name))
}

fn size_words(size: &Size) -> String {
    let outcomes: Vec<String> =
        [(size.committed, "committed"), (size.aborted, "aborted"), (size.unknown, "unknown")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, outcome)| format!("{count} {outcome}"))
            .collect();
    let outcomes = match &outcomes[..] {
        [] => String::new(),
        [_] if size.committed > 0 => " (all committed)".to_owned(),
        outcomes => format!(" ({})", outcomes.join(", ")),
    };
    format!(
        "{}, {}{outcomes}, {}, {}",
        counted(size.sessions, "session"),
        counted(size.transactions, "transaction"),
        counted(size.operations, "operation"),
        counted(size.keys, "key"),
    )
}

fn timing_words(timing: &Timing) -> String {
    let memory = match timing.peak_rss_bytes {
        Some(bytes) => format!(", {:.1} MiB at most", bytes as f64 / f64::from(1 << 20)),
        None => String::new(),
    };
    format!("loaded in {:.1?}, checked in {:.1?}{memory}", timing.load, timing.check)
}

fn verdicts(report: &Report<'_>, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    const VERDICT_WIDTH: usize = "not applicable".len();
    let names = Names::new(report.history);
    let level_width = report.results.iter().map(|r| r.level.name().len()).max().unwrap_or(0);
    for result in report.results {
        let indent = " ".repeat(2 + level_width + 2 + VERDICT_WIDTH + 2);
        let detail = wrap(&detail(names, result), WIDTH, &indent, &indent);
        let verdict = result.verdict.name().replace('-', " ");
        let line = format!(
            "  {:level_width$}  {}{}{}",
            result.level.name(),
            palette.verdict(&result.verdict, &verdict),
            " ".repeat(VERDICT_WIDTH + 2 - verdict.len()),
            detail.trim_start(),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    let strongest: Vec<String> =
        report.strongest().iter().map(|level| level.name().to_owned()).collect();
    // One level needs no summing up.
    match (&strongest[..], report.results) {
        (_, [] | [_]) => Ok(()),
        ([], results) if results.iter().any(|r| matches!(r.verdict, Verdict::Violated(_))) => {
            writeln!(out, "\n  None of these levels is satisfied.")
        }
        ([], _) => writeln!(out, "\n  None of these levels could be decided."),
        (levels, _) => writeln!(out, "\n  Strongest satisfied: {}.", listed(levels)),
    }
}

/// What stands behind a verdict.
fn detail(names: Names<'_>, result: &LevelResult) -> String {
    match &result.verdict {
        Verdict::Violated(findings) => {
            let at_least = if findings.exact { "" } else { "at least " };
            format!("{at_least}{}", counted(findings.total, "anomaly"))
        }
        Verdict::Undecided { reason } => reason.clone(),
        Verdict::NotApplicable(why) => why_not_applicable(names, why),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
