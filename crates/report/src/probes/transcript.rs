//! Who did what when: a column per session, a line per event.

use std::io;

use crate::human::Style;
use crate::printable::printable;
use crate::wrap::wrap;

/// What the sessions of a probe did, in the order in which it happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The names of the sessions.
    pub sessions: Vec<String>,
    /// What happened.
    pub lines: Vec<TranscriptLine>,
}

/// Something that a session did, or that happened to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptLine {
    /// The session, by its position.
    pub session: usize,
    /// In words.
    pub text: String,
    /// Whether it is where script and database part ways.
    pub is_surprise: bool,
}

/// What a column takes at least, and the gap between two.
const NARROWEST: usize = 16;
const GAP: usize = 2;

/// Before what came otherwise than the script has it.
const MARK: &str = "! ";

impl Transcript {
    /// Writes it as text of so many columns.
    pub fn write(&self, style: Style, width: usize, out: &mut dyn io::Write) -> io::Result<()> {
        let count = self.sessions.len().max(1);
        let room = ((width.saturating_sub(2) + GAP) / count).saturating_sub(GAP);
        let longest = self.lines.iter().map(|line| line.text.chars().count() + MARK.len()).max();
        let column = room.min(longest.unwrap_or(0)).max(NARROWEST);
        let mut heads = String::new();
        let mut rules = String::new();
        for name in &self.sessions {
            heads += &format!("{:width$}", printable(name), width = column + GAP);
            rules += &format!("{:width$}", "─".repeat(column), width = column + GAP);
        }
        writeln!(out, "  {}\n  {}", heads.trim_end(), rules.trim_end())?;
        for line in &self.lines {
            let mark = if line.is_surprise { MARK } else { "" };
            let words = format!("{mark}{}", printable(&line.text));
            let indent = " ".repeat(2 + line.session * (column + GAP));
            // Continued lines are indented, so that they do not look like statements of their own.
            for part in wrap(&words, column, "", "  ").lines() {
                let part = match (style, line.is_surprise) {
                    (Style::Coloured, true) => format!("\x1b[1m{part}\x1b[0m"),
                    _ => part.to_owned(),
                };
                writeln!(out, "{indent}{part}")?;
            }
        }
        Ok(())
    }
}
