//! Reading a history, and saying what was odd about the file.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario::formats::{self, Position, Problem, ReadError, Source};
use isolario::model::{History, Remark, Severity};

use crate::config::InputFormat;
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
    format: InputFormat,
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
pub(crate) fn report_remarks(
    name: &str,
    history: &History,
    remarks: &[Remark],
    console: &mut Console,
) -> Option<Failure> {
    let mut contradiction = None;
    for remark in remarks {
        let text = format!("{name}: {}", remark.describe(history));
        match remark.severity() {
            Severity::Fatal => contradiction = contradiction.or(Some(Failure::new(text))),
            Severity::Warning => console.warning(&text),
            _ => console.detail(&text),
        }
    }
    contradiction
}

fn read(path: &Path, format: InputFormat) -> Result<formats::Loaded, Failure> {
    let failed = |error: &ReadError| Failure::reading(error, format);
    let source = Source::open(path).map_err(|error| failed(&error))?;
    if let Some(format) = format.named {
        return format.read(&source).map_err(|error| failed(&error));
    }
    let Some(guess) = formats::sniff(&source) else {
        return Err(failed(&source.error(Position::Whole, Problem::Unrecognised)));
    };
    guess.read(&source).map_err(|error| failed(&error).with_guess(guess.name(), format.flag))
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
