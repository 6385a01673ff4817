//! What went wrong with an input, and where.

use std::fmt;

use isolario_model::SinkError;

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
    /// An order of versions names one that was never there.
    #[error("{txn} wrote {version} to {key} and aborted, so that there is no such version")]
    AbortedVersion {
        /// The key.
        key: Box<str>,
        /// The value, or "a value" where the order names the writer.
        version: Box<str>,
        /// Its writer.
        txn: Box<str>,
    },
    /// An order of versions names one that several transactions may have written.
    #[error(
        "{first} and {second} both wrote {version} to {key}, so that it is not clear which version \
         is meant"
    )]
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
    #[error("{packed} packed bytes unpack to more than {limit}")]
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
