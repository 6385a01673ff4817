//! An error on its way up to the place that knows the file's name.

use std::fmt;

use isolario_model::SinkError;

use crate::error::{Position, Problem, ReadError};
use crate::source::Source;

/// What is wrong and where in its file; parsers of bytes do not know what the file is called.
#[derive(Debug)]
pub(crate) struct Fault {
    position: Position,
    problem: Problem,
}

impl Fault {
    /// This problem, there.
    pub(crate) fn new(position: Position, problem: impl Into<Problem>) -> Fault {
        Fault { position, problem: problem.into() }
    }

    /// Something other than the format says.
    pub(crate) fn malformed(
        position: Position,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Fault {
        Fault { position, problem: Problem::malformed(expected, found) }
    }

    /// Something the sink did not take.
    pub(crate) fn refused(position: Position) -> impl FnOnce(SinkError) -> Fault {
        move |error| Fault { position, problem: error.into() }
    }

    /// Names the source as the file at fault.
    pub(crate) fn in_source(self, source: &Source) -> ReadError {
        source.error(self.position, self.problem)
    }

    /// Names one file of a directory as the one at fault.
    pub(crate) fn in_file(self, source: &Source, file: &str) -> ReadError {
        source.error_in(file, self.position, self.problem)
    }
}
