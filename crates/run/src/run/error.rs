//! Why there is no run, or nothing to say about it.

use std::io;
use std::path::PathBuf;

use isolario_db::{DbError, DbUrl};
use isolario_formats::ReadError;
use isolario_model::SinkError;
use isolario_workload::{Kind, WorkloadError};

use super::host::MeetingError;

/// Why there is no run, or nothing to say about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is nothing to run, or nothing to run it on.
    #[error("{0}: at least one is required")]
    Nothing(&'static str),
    /// The server of a run with faults cannot be started.
    #[error("cannot start the server: {0}")]
    Server(String),
    /// A fault is one of a server, and there is none to have it.
    #[error("the fault {fault} needs a server, and none is given")]
    NoServer {
        /// The fault.
        fault: &'static str,
    },
    /// A fault is one of a server, and the database has none.
    #[error("the fault {fault} needs a server, but {url} runs inside this process")]
    Embedded {
        /// The fault.
        fault: &'static str,
        /// The database.
        url: DbUrl,
    },
    /// Power fails for a server that the run starts, and for the directory of its files.
    #[error("power loss needs a server that the run starts, and the directory of its files")]
    NoDisk,
    /// Nothing can get between the server and its files.
    #[error("cannot intercept writes to {}, to simulate power loss: {error}", .directory.display())]
    Disk {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Nothing can get between clients and a node.
    #[error("cannot start a proxy between the clients and {url}: {error}")]
    Proxy {
        /// The node.
        url: DbUrl,
        /// Why not.
        error: io::Error,
    },
    /// The workload cannot be.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// There is nothing of that name to aim at.
    #[error("there is no probe `{name}`, and no probe for an anomaly of that name")]
    NoAim {
        /// The name.
        name: String,
    },
    /// A database of that URL cannot be had.
    #[error("{0}")]
    Open(DbError),
    /// The database does not do what it was asked for before the run began.
    #[error("{}", at(.url, .error))]
    Database {
        /// The node, where it has a URL.
        url: Option<DbUrl>,
        /// What it said.
        error: DbError,
    },
    /// The database cannot run the workload.
    #[error("{database} cannot run the {kind} workload")]
    Unsupported {
        /// The database.
        database: String,
        /// The workload.
        kind: Kind,
    },
    /// The rows of the workload cannot be kept in SQL tables of their own.
    #[error("{database} cannot keep the rows of the {workload} workload in SQL tables")]
    NoTables {
        /// The database.
        database: String,
        /// The workload.
        workload: &'static str,
    },
    /// The database does not let a register have a size.
    #[error("{database} has no size of registers")]
    NoValueSizes {
        /// The database.
        database: String,
    },
    /// The nodes are of different databases.
    #[error("{first} and {other} are not nodes of one database")]
    DifferentDatabases {
        /// The first node.
        first: String,
        /// One that differs.
        other: String,
    },
    /// The run directory cannot be made.
    #[error("cannot create the run directory {}: {error}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The run directory holds something already, and is left alone.
    #[error("the run directory {} is not empty", .path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the run directory cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file of an earlier run, or one that a run is to begin with, cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The history cannot be recorded.
    #[error("{}: {error}", .path.display())]
    Recording {
        /// Its file.
        path: PathBuf,
        /// Why not.
        error: SinkError,
    },
    /// What was recorded cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadError),
    /// The hosts of a run did not meet.
    #[error("{0}")]
    Meeting(#[from] MeetingError),
    /// What one of several hosts records is not checked by itself.
    #[error("one of several hosts records only a part of the run: join all parts to check it")]
    OnlyAPart,
    /// A thread of the run panicked, and has said why on the error stream.
    #[error("a thread of the run panicked: this is a bug of Isolario")]
    Panicked,
    /// Somebody interrupted it before any transaction was sent. Nothing is left behind.
    #[error("interrupted before the first transaction: nothing was recorded")]
    Interrupted,
}

/// The error, and where it happened unless it says so itself.
fn at(url: &Option<DbUrl>, error: &DbError) -> String {
    let words = error.to_string();
    match url.as_ref().map(ToString::to_string) {
        Some(place) if !words.contains(&place) => format!("{place}: {words}"),
        _ => words,
    }
}
