//! Version certificates: what a database itself says about a run, from its own log.
//!
//! A [`Capture`] is started before the clients and stopped after them. It gives a [`Log`]: the changes
//! of every transaction that committed, in the order of the log. The clients bring
//! [sightings](crate::Sighting): which state an operation saw, in the database's words. [`assemble`]
//! puts the two together with the history: who committed at which place, in which order the versions
//! of each row came, and which versions every operation by predicate met.
//!
//! A log that does not fit the history proves nothing about the database. Then there is a [`Misfit`],
//! and no certificate.
//!
//! Nothing here depends on timing, and nothing is decoded while clients run.

mod assemble;
#[cfg(feature = "mysql")]
pub(crate) mod binlog;
#[cfg(feature = "postgres")]
pub(crate) mod pgoutput;
mod visibility;

use isolario_model::Level;

use crate::error::DbError;

pub use assemble::{Certificate, Misfit, assemble};

/// A capture that has begun.
pub trait Capture: Send {
    /// Ends it: reads the log, and removes what was made for it, also if something goes wrong. All
    /// clients are gone.
    fn stop(self: Box<Self>) -> Result<Log, DbError>;
}

/// What a database's log says about the table of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// The transactions that committed and changed the table, in the order of the log.
    pub commits: Vec<Commit>,
    /// How clients name the states that they saw.
    pub snapshots: Snapshots,
    /// Whether updates and deletes by predicate see a snapshot. Where they work on the newest rows
    /// instead, there is no set of versions that they met.
    pub writes_see_snapshots: bool,
    /// The level that the database gives in the very order of its log, if it promises an order.
    pub promised: Option<Level>,
}

/// A transaction in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its number: what [`Snapshots`] speak of.
    pub number: u64,
    /// What it did, in that order.
    pub changes: Vec<Change>,
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key of the row.
    pub row: i64,
    /// The version that was there; none if there was no row.
    pub before: Option<i64>,
    /// The version that is there now; none if the row is gone.
    pub after: Option<i64>,
}

/// How a state is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Snapshots {
    /// Not at all.
    #[default]
    None,
    /// As PostgreSQL prints it, `xmin:xmax:list`: what committed and is below the first number, or
    /// below the second and not in the list.
    InProgress,
    /// A place in the log: what committed up to there.
    Positions,
}
