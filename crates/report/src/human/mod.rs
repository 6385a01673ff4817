//! Reports for people, readable without colour.

mod anomaly;
mod explain;
mod groups;
mod palette;
mod show;
mod stats;
mod summary;
mod verdicts;

use std::collections::BTreeSet;
use std::io;

use isolario_model::{AnomalyKind, Level};

use crate::finding::{Finding, ReportFindings, each_once};
use crate::names::{Names, counted, grouped, listed};
use crate::not_ruled_out::not_ruled_out;
use crate::printable::printable;
use crate::report::{HistoryName, HistorySize, Renderer, Report, Timing};
use crate::sentences::{at_least, began, verdict};
use crate::summary::Summary;
use crate::wrap::{WIDTH, wrap};
use palette::Palette;

/// Text of more lines than this is scrolled through.
const ONE_SCREEN: usize = 20;

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
    /// How many columns there are; 80 where nobody says.
    pub columns: Option<usize>,
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
    /// How to ask for all levels.
    pub all: &'static str,
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

    fn width(&self) -> usize {
        self.columns.unwrap_or(WIDTH)
    }
}

impl Renderer for Human {
    fn report(&mut self, report: &Report<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let palette = Palette::of(self.style, self.width());
        if std::mem::replace(&mut self.separate, true) {
            writeln!(out)?;
        }
        heading(report.name, &report.size, &palette, out)?;
        let found = report.found();
        verdicts::write(report, &found, self.hints.ask, &palette, out)?;
        if self.timing {
            writeln!(out, "  {}", palette.dim(&timing_words(&report.timing)))?;
        }
        let mut anomalies = Vec::new();
        self.anomalies(report, &found, &palette, &mut anomalies)?;
        out.write_all(&anomalies)?;
        // Whoever has scrolled past the verdicts finds them again where the text ends.
        match anomalies.iter().filter(|byte| **byte == b'\n').count() {
            long if long > ONE_SCREEN => closing(report, &found, &palette, out),
            _ => Ok(()),
        }
    }

    /// Nothing: people read on the error stream what could not be read.
    fn failure(
        &mut self,
        _name: HistoryName<'_>,
        _error: &str,
        _out: &mut dyn io::Write,
    ) -> io::Result<()> {
        Ok(())
    }

    fn summary(&mut self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        summary::write(summary, &Palette::of(self.style, self.width()), out)
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
        found: &ReportFindings<'_>,
        palette: &Palette,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let names = Names::new(report.history);
        let shown = found.in_full(report.max_anomalies);
        let began = began(report.history);
        let mut kinds = BTreeSet::new();
        for finding in shown {
            writeln!(out)?;
            // The first of its kind comes with advice.
            let advice = kinds.insert(finding.kind());
            anomaly::write(names, finding, began, advice, palette, out)?;
            self.has_shown = true;
        }
        let hidden = found.reported - shown.len();
        if hidden > 0 {
            let more = if shown.is_empty() { "" } else { " more" };
            let noun = if hidden == 1 { "anomaly" } else { "anomalies" };
            let text = format!("… {}{more} {noun} not shown", grouped(hidden as u64));
            writeln!(out, "\n{}", with_hint(&text, self.hints.more, palette))?;
            groups::write(names, found, palette, out)?;
        }
        self.further(report, found, palette, out)
    }

    /// What the answers leave to say: the kinds that only stronger levels forbid, and those that may be
    /// there for all that is known.
    fn further(
        &self,
        report: &Report<'_>,
        found: &ReportFindings<'_>,
        palette: &Palette,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let (told, rest) = found.findings.split_at(found.reported);
        let is_new =
            |finding: &&Finding<'_>| told.iter().all(|known| known.kind() != finding.kind());
        let others = each_once(rest.iter().filter(is_new).map(Finding::kind));
        if !others.is_empty() {
            let text = format!("Stronger levels show more: {}", listed(&others));
            writeln!(out, "\n{}", with_hint(&text, self.hints.levels, palette))?;
        }
        if found.total() == 0 {
            return Ok(());
        }
        let (asked, unasked): (Vec<_>, Vec<_>) = not_ruled_out(report, found)
            .into_iter()
            .partition(|(level, _)| report.results.iter().any(|result| result.level == *level));
        if !asked.is_empty() {
            let by_level =
                |(level, kinds): &(Level, Vec<AnomalyKind>)| format!("{} ({level})", listed(kinds));
            let open: Vec<String> = asked.iter().map(by_level).collect();
            let text = format!(
                "Not ruled out, with the level whose search would find it: {}.",
                open.join("; ")
            );
            writeln!(out, "\n{}", palette.dim(&wrap(&text, palette.width, "", "  ")))?;
        }
        if !unasked.is_empty() {
            let kinds = unasked.iter().map(|(_, kinds)| kinds.len() as u64).sum();
            let kinds = counted(kinds, "more kind");
            let text = format!("Other levels look for {kinds} of anomaly");
            writeln!(out, "\n{}", palette.dim(&with_hint(&text, self.hints.all, palette)))?;
        }
        Ok(())
    }
}

/// One finding in full, as plain text.
pub(crate) fn finding_text(names: Names<'_>, finding: &Finding<'_>, began: i64) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let palette = Palette::of(Style::Plain, WIDTH);
    let _ = anomaly::write(names, finding, began, true, &palette, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// What it all comes to, once more.
fn closing(
    report: &Report<'_>,
    found: &ReportFindings<'_>,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let shown = found.in_full(report.max_anomalies).len() as u64;
    let total = counted(found.total() as u64, "anomaly");
    let at_least = at_least(found.exact);
    let verdict = match verdict(report) {
        Some(verdict) => format!("{verdict}; "),
        None => String::new(),
    };
    let name = printable(report.name);
    let text = format!("{verdict}{at_least}{total}, {} shown in full.", grouped(shown));
    let text = wrap(&text, palette.width, &format!("{name}: "), "  ");
    let text = text.strip_prefix(&*name).unwrap_or(&text);
    writeln!(out, "\n{}{text}", palette.heading(&name))
}

fn with_hint(text: &str, hint: &str, palette: &Palette) -> String {
    let text = if hint.is_empty() { text.to_owned() } else { format!("{text}; {hint}") };
    wrap(&text, palette.width, "", "  ")
}

/// The name of a history and its size.
fn heading(
    name: &str,
    size: &HistorySize,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let name = printable(name);
    let text = wrap(&size_words(size), palette.width, &format!("{name}: "), "  ");
    let text = text.strip_prefix(&*name).unwrap_or(&text);
    writeln!(out, "{}{text}\n", palette.heading(&name))
}

fn size_words(size: &HistorySize) -> String {
    let outcomes: Vec<String> =
        [(size.committed, "committed"), (size.aborted, "aborted"), (size.unknown, "unknown")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, outcome)| format!("{} {outcome}", grouped(count)))
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
