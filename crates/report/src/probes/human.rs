//! The table as text.

use std::io;

use anstyle::{AnsiColor, Style as Ansi};

use super::{ProbeOutcome, ProbeTable, named};
use crate::human::Style;
use crate::names::counted;
use crate::printable::printable;

/// The gap between two columns.
const GAP: usize = 2;

/// Follows what a claim forbids and happens all the same.
const BROKEN: &str = " !";

const KEY: &str = "  can happen  it went as written
  waits       prevented: a session has to wait for another one
  aborts      prevented: a transaction is refused, with this code
  not shown   prevented: nobody waits and nobody is refused, but nobody sees it either";

impl ProbeTable {
    /// Writes it for a terminal: what came of each probe, what is claimed and what is in effect.
    pub fn write_text(&self, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
        let (probes, settings) = (self.probes.len() as u64, self.settings.len() as u64);
        writeln!(
            out,
            "{}: {} at {}\n",
            printable(&self.database),
            counted(probes, "probe"),
            counted(settings, "isolation level")
        )?;
        self.write_results(style, out)?;
        writeln!(out, "\n{KEY}")?;
        if !self.broken_claims().is_empty() {
            writeln!(out, "  !           the claim of that isolation level forbids it")?;
        }
        self.write_levels(out)?;
        self.write_notes(out)
    }

    /// What is judged by scripts alone, and why.
    fn write_notes(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let notes = self.notes();
        if !notes.is_empty() {
            writeln!(out, "\n  judged by the script alone:")?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "  {}", printable(note)))
    }

    fn write_results(&self, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
        let titles = self.probes.iter().map(|probe| printable(&probe.title).chars().count());
        let first = titles.max().unwrap_or(0) + GAP;
        let widths: Vec<usize> = (0..self.settings.len()).map(|at| self.width(at)).collect();
        let heads: Vec<Vec<String>> = self
            .settings
            .iter()
            .zip(&widths)
            .map(|(setting, width)| broken_at_hyphens(&setting.isolation, *width))
            .collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = " ".repeat(2 + first);
            for (head, width) in heads.iter().zip(&widths) {
                let part = head.get(line).map_or("", String::as_str);
                text += &format!("{part:width$}", width = width + GAP);
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        for probe in &self.probes {
            write!(out, "  {:first$}", printable(&probe.title))?;
            let last = probe.results.len().saturating_sub(1);
            for (at, result) in probe.results.iter().enumerate() {
                let mark = if result.breaks_claim() { BROKEN } else { "" };
                let words = format!("{}{mark}", printable(&result.outcome.cell()));
                let padding = match at == last {
                    true => 0,
                    false => (widths[at] + GAP).saturating_sub(words.chars().count()),
                };
                let painted = paint(style, &result.outcome, &words);
                write!(out, "{painted}{:padding$}", "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// How wide the column of a setting is: its cells fit, and the longest word of its name.
    fn width(&self, at: usize) -> usize {
        let cell = |result: &super::ProbeResult| {
            let mark = if result.breaks_claim() { BROKEN.len() } else { 0 };
            result.outcome.cell().chars().count() + mark
        };
        let cells = self.probes.iter().filter_map(|probe| probe.results.get(at)).map(cell);
        let words =
            self.settings[at].isolation.split_inclusive('-').map(|word| word.chars().count());
        cells.chain(words).max().unwrap_or(0)
    }

    /// What each setting is said to give, and what is left of the levels.
    fn write_levels(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let name = |setting: &super::ProbeSetting| printable(&setting.isolation).into_owned();
        let staying = self
            .settings
            .iter()
            .map(|setting| [name(setting), named(&setting.claims), named(&setting.in_effect)]);
        write_levels("isolation level", staying.collect(), out)?;
        let moving = self.settings.iter().filter_map(|setting| {
            let moving = setting.moving.as_ref()?;
            Some([name(setting), named(&moving.claims), named(&moving.in_effect)])
        });
        match moving.collect::<Vec<_>>() {
            rows if rows.is_empty() => Ok(()),
            rows => write_levels("sessions that move between nodes", rows, out),
        }
    }
}

fn write_levels(head: &str, rows: Vec<[String; 3]>, out: &mut dyn io::Write) -> io::Result<()> {
    let head = [head, "claims", "no probe rules out"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0) + GAP, width(1) + GAP);
    writeln!(out)?;
    for row in &rows {
        writeln!(out, "  {:first$}{:second$}{}", row[0], row[1], row[2])?;
    }
    Ok(())
}

/// A name on several lines, none wider than it has to be.
fn broken_at_hyphens(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split_inclusive('-') {
        let taken = lines.last().map_or(0, |line| line.chars().count());
        if taken > 0 && taken + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&printable(word));
        }
    }
    lines
}

/// Nothing is said by colour alone.
fn paint(style: Style, outcome: &ProbeOutcome, text: &str) -> String {
    let colour = match outcome {
        _ if style == Style::Plain => return text.to_owned(),
        ProbeOutcome::Happens => AnsiColor::Red.on_default().bold(),
        ProbeOutcome::NotRun { .. } => Ansi::new().dimmed(),
        _ => AnsiColor::Green.on_default(),
    };
    format!("{colour}{text}{colour:#}")
}
