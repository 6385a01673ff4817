//! Reading a history, and saying what was odd about the file.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario::formats::{self, Position, Problem, Source};
use isolario::model::{Finding, History, Severity};

use crate::config::Format;
use crate::console::Console;
use crate::failure::Failure;
use crate::progress::Progress;

/// A history, and how long it took to read.
pub(crate) struct LoadedHistory {
    pub(crate) history: History,
    pub(crate) time: Duration,
}

/// Reads a history in the given format, or in the one that it looks like.
pub(crate) fn load(
    path: &Path,
    format: Format,
    console: &mut Console,
) -> Result<LoadedHistory, Failure> {
    let name = path.display();
    let begun = Instant::now();
    let progress = (!console.quiet).then(|| Progress::start(format!("reading {name}")));
    let loaded = read(path, format)?;
    let time = begun.elapsed();
    drop(progress);
    for warning in &loaded.warnings {
        console.warning(&format!("{name}{}: {}", place(warning.position), warning.message));
    }
    for ignored in &loaded.ignored {
        let first = place(ignored.first);
        console.detail(&format!(
            "{name}: ignored {} {}, the first at {name}{first}",
            ignored.count, ignored.what
        ));
    }
    Ok(LoadedHistory { history: loaded.history, time })
}

/// Says what is odd about a history. Gives back the contradiction, if there is one: no verdict
/// about such a history would mean anything.
pub(crate) fn report_findings(
    name: &str,
    history: &History,
    findings: &[Finding],
    console: &mut Console,
) -> Option<Failure> {
    let mut contradiction = None;
    for finding in findings {
        let text = format!("{name}: {}", finding.describe(history));
        match finding.severity() {
            Severity::Fatal => contradiction = contradiction.or(Some(Failure::new(text))),
            Severity::Warning => console.warning(&text),
            _ => console.detail(&text),
        }
    }
    contradiction
}

fn read(path: &Path, format: Format) -> Result<formats::Loaded, Failure> {
    let source = Source::open(path).map_err(|error| Failure::reading(&error, None))?;
    if let Some(format) = format {
        return format.read(&source).map_err(|error| Failure::reading(&error, None));
    }
    let format = formats::sniff(&source).ok_or_else(|| {
        Failure::reading(&source.error(Position::Whole, Problem::Unrecognised), None)
    })?;
    format.read(&source).map_err(|error| Failure::reading(&error, Some(format.name())))
}

/// A position, as it follows the name of a file.
fn place(position: Position) -> String {
    match position {
        Position::Whole => String::new(),
        Position::Line(line) => format!(":{line}"),
        Position::Column(line, column) => format!(":{line}:{column}"),
        Position::Byte(byte) => format!(": byte {byte}"),
    }
}
