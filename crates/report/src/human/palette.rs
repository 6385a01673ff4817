//! The colours of reports, each with a meaning.

use anstyle::{AnsiColor, Style as Ansi};
use isolario_model::Verdict;

use super::Style;

/// How to set off parts of a text, and how wide it may be. Nothing is said by colour alone.
pub(super) struct Palette {
    coloured: bool,
    pub(super) width: usize,
}

impl Palette {
    pub(super) fn of(style: Style, width: usize) -> Self {
        Palette { coloured: style == Style::Coloured, width }
    }

    fn paint(&self, style: Ansi, text: &str) -> String {
        if self.coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn heading(&self, text: &str) -> String {
        self.paint(Ansi::new().bold(), text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(Ansi::new().dimmed(), text)
    }

    pub(super) fn bad(&self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(super) fn verdict(&self, verdict: &Verdict, text: &str) -> String {
        match verdict {
            Verdict::Satisfied(_) => self.paint(AnsiColor::Green.on_default(), text),
            Verdict::Violated(_) => self.bad(text),
            Verdict::Undecided(_) => self.paint(AnsiColor::Yellow.on_default(), text),
            _ => self.dim(text),
        }
    }
}
