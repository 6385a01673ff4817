//! What can go wrong, and where.

use std::path::{Path, PathBuf};

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use isolario_formats::ReadError;
use isolario_model::SinkError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A history has something that the table has no place for.
    #[error("the table of operations has no place for {what}: {example}")]
    NoPlace {
        /// What, in the plural.
        what: &'static str,
        /// Where the first of them is.
        example: String,
    },
    /// A file or a part of several is not what it should be.
    #[error("{}: {problem}", .path.display())]
    Part {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The plan could not be carried out.
    #[error("the query engine failed: {0}")]
    Engine(#[from] DataFusionError),
    /// A worker process could not be started, or did not do what it was asked.
    #[error("a worker with {}: {problem}", listed(.files))]
    Worker {
        /// The parts that it works on.
        files: Vec<PathBuf>,
        /// What it said.
        problem: String,
    },
    /// A history file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A history could not be built or written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn listed(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if names.is_empty() { "no parts".to_owned() } else { names.join(", ") }
}

impl Error {
    pub(crate) fn part(path: &Path, problem: impl ToString) -> Error {
        Error::Part { path: path.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Error::File { path: path.to_owned(), source }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        Error::Engine(error.into())
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Error {
        Error::Engine(error.into())
    }
}
