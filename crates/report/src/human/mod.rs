//! Reports for people: 80 columns, readable without colour.

mod anomaly;
mod explain;
mod palette;
mod show;
mod stats;
mod summary;
mod verdicts;

use std::io;

use isolario_model::Anomaly;

use crate::names::{Names, counted};
use crate::printable::printable;
use crate::report::{Renderer, Report, Size, Timing};
use crate::summary::Summary;
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
    /// What to do next.
    pub hints: Hints,
    /// Whether there was a report before this one.
    separate: bool,
    /// Whether an anomaly was shown.
    has_shown: bool,
}

/// What to do next, where there is something to do. Nothing is said where a hint is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How to see the anomalies beyond the limit.
    pub more: &'static str,
    /// How to see the anomalies of stronger levels.
    pub levels: &'static str,
    /// How to ask for a level, where none was.
    pub ask: &'static str,
    /// How to learn what an anomaly means.
    pub meaning: &'static str,
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
        verdicts::write(report, self.hints.ask, &palette, out)?;
        if self.timing {
            writeln!(out, "  {}", palette.dim(&timing_words(&report.timing)))?;
        }
        self.anomalies(report, &palette, out)
    }

    /// Nothing: people read on the error stream what could not be read.
    fn failure(&mut self, _name: &str, _error: &str, _out: &mut dyn io::Write) -> io::Result<()> {
        Ok(())
    }

    fn summary(&mut self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        summary::write(summary, &Palette::of(self.style), out)
    }

    fn end(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.hints.meaning {
            hint if self.has_shown && !hint.is_empty() => writeln!(out, "\n{hint}"),
            _ => Ok(()),
        }
    }
}

impl Human {
    fn anomalies(
        &mut self,
        report: &Report<'_>,
        palette: &Palette,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let all = report.anomalies();
        let chosen = report.shown_anomalies();
        let names = Names::new(report.history);
        let shown = &chosen[..chosen.len().min(report.max_anomalies)];
        for (at, anomaly) in shown.iter().enumerate() {
            writeln!(out)?;
            anomaly::write(names, anomaly, is_first(&shown[..at], anomaly), palette, out)?;
            self.has_shown = true;
        }
        let hidden = chosen.len().saturating_sub(report.max_anomalies);
        if hidden > 0 {
            let more = if report.max_anomalies == 0 { "" } else { " more" };
            let noun = if hidden == 1 { "anomaly" } else { "anomalies" };
            let text = format!("… {hidden}{more} {noun} not shown");
            writeln!(out, "\n{}", with_hint(&text, self.hints.more))?;
        }
        let is_new = |anomaly: &&Anomaly| is_first(&chosen, anomaly);
        let others: Vec<&Anomaly> = all.into_iter().filter(is_new).collect();
        if !others.is_empty() {
            let text =
                format!("Stronger levels show more: {}", verdicts::kinds(others.into_iter()));
            writeln!(out, "\n{}", with_hint(&text, self.hints.levels))?;
        }
        Ok(())
    }
}

/// Whether an anomaly is the first of its kind, and so comes with advice.
fn is_first(before: &[&Anomaly], anomaly: &Anomaly) -> bool {
    !before.iter().any(|other| other.kind == anomaly.kind)
}

/// One anomaly in full, as plain text.
pub(crate) fn anomaly_text(names: Names<'_>, anomaly: &Anomaly) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = anomaly::write(names, anomaly, true, &Palette::of(Style::Plain), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn with_hint(text: &str, hint: &str) -> String {
    let text = if hint.is_empty() { text.to_owned() } else { format!("{text}; {hint}") };
    wrap(&text, WIDTH, "", "  ")
}

/// The name of a history and its size.
fn heading(name: &str, size: &Size, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    let name = printable(name);
    let text = wrap(&size_words(size), WIDTH, &format!("{name}: "), "  ");
    let text = text.strip_prefix(&*name).unwrap_or(&text);
    writeln!(out, "{}{text}\n", palette.heading(&name))
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

#[cfg(test)]
mod tests;
