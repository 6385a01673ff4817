//! What went wrong, and what mends it.

use std::io;

use isolario::formats::{Problem, ReadError};
use isolario::model::SinkError;

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

    /// Adds the flag or command that mends it.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// A history that could not be read. `read_as` is the format that was recognised, where none
    /// was named.
    pub(crate) fn reading(error: &ReadError, read_as: Option<&str>) -> Failure {
        let failure = Failure::new(error.to_string());
        match (&error.problem, read_as) {
            (Problem::Unrecognised, _) => {
                failure.with_hint("name the format with --format (convert: --from)")
            }
            (Problem::Malformed { .. } | Problem::Inconsistent(_), Some(format)) => failure
                .with_hint(format!(
                    "it looks like {format}; if it is not, name its format with --format \
                     (convert: --from)"
                )),
            _ => failure,
        }
    }

    /// A target that could not be written.
    pub(crate) fn writing(target: &str, error: &SinkError) -> Failure {
        let failure = Failure::new(format!("{target}: {error}"));
        match error {
            SinkError::Inexpressible { .. } => {
                failure.with_hint("`--to isolario` can express every history")
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
