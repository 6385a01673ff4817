//! What went wrong with an input, and where.

use std::fmt;

use isolario_model::SinkError;

use crate::bad_times::ContradictoryTimesError;
use crate::source::Source;

/// A place in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// The input as a whole.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// A line and a column, both counted from 1, the column in bytes.
    Column(u64, u64),
    /// A byte, counted from 0: for binary formats.
    Byte(u64),
}

impl Position {
    /// The line and column of a byte of a text.
    pub(crate) fn in_text(text: &[u8], at: usize) -> Position {
        let before = &text[..at.min(text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() as u64 + 1;
        let begin = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        Position::Column(line, (before.len() - begin) as u64 + 1)
    }
}

/// What is wrong there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The input could not be opened or read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is not what the format says.
    #[error("expected {expected}, found {found}")]
    Malformed {
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// It reads well and makes no sense: a transaction in two sessions, say.
    #[error("{0}")]
    Inconsistent(#[from] SinkError),
    /// Transactions finish before they start.
    #[error("{0}")]
    ContradictoryTimes(ContradictoryTimesError),
    /// An order of versions names one that was never there.
    #[error("{txn} wrote {version} to {key} but aborted, so this version does not exist")]
    AbortedVersion {
        /// The key.
        key: Box<str>,
        /// The value, or "a value" where the order names the writer.
        version: Box<str>,
        /// Its writer.
        txn: Box<str>,
    },
    /// An order of versions names one that several transactions may have written.
    #[error("{first} and {second} both wrote {version} to {key}, so this version is ambiguous")]
    AmbiguousVersion {
        /// The key.
        key: Box<str>,
        /// The value.
        version: Box<str>,
        /// One of the writers.
        first: Box<str>,
        /// Another one.
        second: Box<str>,
    },
    /// It was unpacked as far as the limit, and there is more.
    #[error("{packed} compressed bytes expand to more than {limit} bytes")]
    UnpacksTooLarge {
        /// How large it is packed.
        packed: u64,
        /// How large it may be unpacked.
        limit: u64,
    },
    /// No format's sniffer knows it.
    #[error("not in any known history format")]
    Unrecognised,
}

impl Problem {
    /// A [`Problem::Malformed`]; what was found is cut to a readable length.
    pub fn malformed(expected: impl Into<String>, found: impl fmt::Display) -> Problem {
        Problem::Malformed { expected: expected.into(), found: shorten(&found.to_string()) }
    }
}

/// Enough of a text to recognise it by.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// An input that could not be read: which file, where in it, and why.
#[derive(Debug)]
pub struct ReadError {
    /// The file, as the user named it.
    pub file: String,
    /// The place in it.
    pub position: Position,
    /// What is wrong there.
    pub problem: Problem,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReadError { file, position, problem } = self;
        match position {
            Position::Whole => write!(f, "{file}: {problem}"),
            Position::Line(line) => write!(f, "{file}:{line}: {problem}"),
            Position::Column(line, column) => write!(f, "{file}:{line}:{column}: {problem}"),
            Position::Byte(byte) => write!(f, "{file}: byte {byte}: {problem}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// An error on its way up to the place that knows the file's name: what is wrong, and at which byte.
///
/// Lines are counted when something is wrong, and not before. The problem is in a box, so that the
/// results of a parser's small functions stay in registers.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) problem: Box<Problem>,
}

impl Fault {
    #[cold]
    pub(crate) fn new(at: usize, problem: impl Into<Problem>) -> Fault {
        Fault { at, problem: Box::new(problem.into()) }
    }

    /// Something other than the format says.
    #[cold]
    pub(crate) fn malformed(
        at: usize,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Fault {
        Fault::new(at, Problem::malformed(expected, found))
    }

    /// Whatever stands at a byte is not what should stand there.
    pub(crate) fn here(input: &str, at: usize, expected: impl Into<String>) -> Fault {
        match input.get(at..).unwrap_or("").chars().next() {
            Some(c) => Fault::malformed(at, expected, format_args!("{c:?}")),
            None => Fault::malformed(at, expected, "the end of the input"),
        }
    }

    /// Something the sink did not take.
    pub(crate) fn refused(at: usize) -> impl FnOnce(SinkError) -> Fault {
        move |error| Fault::new(at, error)
    }

    /// The same fault in a text of which this one is the part from `start` on.
    pub(crate) fn shifted(self, start: usize) -> Fault {
        Fault { at: self.at + start, ..self }
    }

    /// Names the source as the file at fault, which is a text: the place is a line and a column.
    pub(crate) fn in_text(self, source: &Source, text: &[u8]) -> ReadError {
        source.error(Position::in_text(text, self.at), *self.problem)
    }

    /// Names the source as the file at fault, which is binary: the place is a byte.
    pub(crate) fn in_binary(self, source: &Source) -> ReadError {
        source.error(Position::Byte(self.at as u64), *self.problem)
    }
}

/// The bytes as text, or the first byte that is none.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let byte = bytes.get(at).copied().unwrap_or_default();
        Fault::malformed(at, "UTF-8 text", format_args!("the byte 0x{byte:02x}"))
    })
}
