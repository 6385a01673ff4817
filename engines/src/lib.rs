//! Embedded stores of others as databases of Isolario, one file and one feature each.
//!
//! Each file says how to talk to a store, and what that store claims. What makes a database of it is in
//! [`isolario::db::embedded`].

#[cfg(feature = "canopydb")]
mod canopydb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "stoolap")]
mod hex;
#[cfg(feature = "mace")]
mod mace;
#[cfg(feature = "noxu")]
mod noxu;
#[cfg(feature = "persy")]
mod persy;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "slatedb")]
mod slatedb;
#[cfg(feature = "sled")]
mod sled;
#[cfg(feature = "stoolap")]
mod stoolap;
#[cfg(feature = "surrealkv")]
mod surrealkv;
#[cfg(feature = "surrealmx")]
mod surrealmx;
#[cfg(feature = "turso")]
mod turso;

use std::fmt::Display;

use isolario::db::embedded::{Directory, EmbeddedDatabase};
use isolario::db::{Database, DbError, DbUrl, Driver, Settings};

/// Every store that is compiled in.
pub static DRIVERS: &[Driver] = &[
    #[cfg(feature = "canopydb")]
    canopydb::DRIVER,
    #[cfg(feature = "fjall")]
    fjall::DRIVER,
    #[cfg(feature = "mace")]
    mace::DRIVER,
    #[cfg(feature = "noxu")]
    noxu::DRIVER,
    #[cfg(feature = "persy")]
    persy::DRIVER,
    #[cfg(feature = "redb")]
    redb::DRIVER,
    #[cfg(feature = "rocksdb")]
    rocksdb::DRIVER,
    #[cfg(feature = "slatedb")]
    slatedb::DRIVER,
    #[cfg(feature = "sled")]
    sled::DRIVER,
    #[cfg(feature = "stoolap")]
    stoolap::DRIVER,
    #[cfg(feature = "surrealkv")]
    surrealkv::DRIVER,
    #[cfg(feature = "surrealmx")]
    surrealmx::DRIVER,
    #[cfg(feature = "turso")]
    turso::DRIVER,
];

/// Where a store has its files: a directory that is there.
#[cfg_attr(not(feature = "redb"), allow(dead_code, reason = "without a store, nobody asks"))]
fn directory_of(url: &DbUrl) -> Result<Directory, DbError> {
    let directory = Directory::of(url)?;
    std::fs::create_dir_all(directory.path()).map_err(fatal)?;
    Ok(directory)
}

/// Completes a database: the version of the crate, its setting, its files.
#[cfg_attr(not(feature = "redb"), allow(dead_code, reason = "without a store, nobody asks"))]
fn complete(
    store: EmbeddedDatabase,
    package: &str,
    isolation: &str,
    directory: Option<Directory>,
    settings: &Settings,
) -> Box<dyn Database> {
    let version = format!("{package} {}", version_of(package));
    complete_as(version, store, isolation, directory, settings)
}

/// Completes a database that knows its own version.
fn complete_as(
    version: String,
    store: EmbeddedDatabase,
    isolation: &str,
    directory: Option<Directory>,
    settings: &Settings,
) -> Box<dyn Database> {
    let store = store.version(version).isolation(isolation).timeout(settings.statement_timeout);
    Box::new(match directory {
        Some(directory) => store.stored_in(directory),
        None => store,
    })
}

/// The version of a dependency, as it is locked.
fn version_of(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let (name, mark) = (format!("name = \"{package}\"\nversion = \""), '"');
    let found = lock.split_once(&name).and_then(|(_, rest)| rest.split_once(mark));
    found.map_or("of unknown version", |(version, _)| version)
}

/// What should not happen.
fn fatal(error: impl Display) -> DbError {
    DbError::fatal(error.to_string())
}

/// What is worth another attempt.
fn conflict(error: impl Display) -> DbError {
    DbError::retryable(error.to_string()).with_code("conflict")
}

/// What a commit may have ended with.
fn in_doubt(error: impl Display) -> DbError {
    DbError::unknown(error.to_string())
}
