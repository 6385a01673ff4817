//! What went wrong, and how to fix it.

use std::io;

use isolario::formats::{FORMATS, Problem, ReadError};
use isolario::model::SinkError;

use crate::config::InputFormat;
use crate::load::place;

/// An error for a person: what and where, and the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None }
    }

    /// Adds the flag or command that fixes it.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// A history that could not be read.
    pub(crate) fn reading(error: &ReadError, format: InputFormat) -> Failure {
        let failure = Failure::new(error.to_string());
        match &error.problem {
            Problem::Unrecognised => {
                let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
                failure.with_hint(format!(
                    "name its format with {}: {}",
                    format.flag,
                    names.join(", ")
                ))
            }
            Problem::ContradictoryTimes(found) => {
                let (file, place) = (&error.file, place(error.position));
                Failure::new(format!("{file}{place}: {}", found.describe(format.most_lines)))
                    .with_hint(
                        "use --bad-times unknown to leave out both times of such transactions",
                    )
            }
            Problem::UnpacksTooLarge { .. } => failure.with_hint(
                "if that is expected, unpack it first: an unpacked file is not kept in memory",
            ),
            Problem::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                failure.with_hint("check the path; `-` reads standard input")
            }
            _ => failure,
        }
    }

    /// Says which format the history was taken for, where nothing more is known of the remedy.
    pub(crate) fn with_guess(self, format: &str, flag: &str) -> Failure {
        match self.hint {
            Some(_) => self,
            None => self.with_hint(format!(
                "it was read as {format}, because it looks like that; use {flag} for another format"
            )),
        }
    }

    /// A target that could not be written; the flag is the one that names its format.
    pub(crate) fn writing(target: &str, error: &SinkError, flag: &str) -> Failure {
        let failure = Failure::new(format!("{target}: {error}"));
        match error {
            SinkError::Inexpressible { .. } => {
                failure.with_hint(format!("`{flag} isolario` can express every history"))
            }
            _ => failure,
        }
    }
}

/// Standard output that cannot be written to, since everything else names its file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(format!("cannot write to standard output: {error}"))
    }
}
