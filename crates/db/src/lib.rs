//! Stresses databases with transactions and records what their clients saw.
//!
//! A [`Database`] opens [`Connection`]s; [`open`] finds the one that a URL names.
//!
//! ```
//! use isolario_db::{Access, DbUrl, Layout, Settings, open};
//! use isolario_workload::Kind;
//!
//! # #[cfg(feature = "sqlite")] {
//! let database = open(&DbUrl::parse("sqlite:")?, &Settings::default())?;
//! database.prepare(&Layout::new(Kind::Mini, 10))?;
//! let mut connection = database.connect()?;
//! connection.begin(Access::Write)?;
//! assert_eq!(connection.read(3)?, None);
//! connection.write(3, 17)?;
//! connection.commit()?;
//! # }
//! # Ok::<(), isolario_db::DbError>(())
//! ```
//!
//! # Why connections block
//!
//! Every session has a thread of its own, and its connection blocks that thread. There are tens of
//! sessions, not thousands, so threads cost nothing that matters. In return, an embedded engine
//! cannot stall a runtime that other sessions share; the times taken around a call are those of
//! the call, not of a scheduler; and an adapter is plain code, one call after the other. A driver
//! that exists only in an asynchronous form runs behind a single-threaded runtime inside its own
//! connection.
//!
//! # Adding a database
//!
//! Write a folder next to `sqlite`: a [`Driver`] for the registry, a [`Database`], a
//! [`Connection`]. The contract is in the documentation of these traits; the book has a guide. A store
//! of keys and values needs less: see [`embedded`].

pub mod certificate;
pub mod claims;
mod clock;
mod database;
pub mod embedded;
mod error;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(all(unix, feature = "exec"))]
mod exec;
mod hold;
mod locked;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod registry;
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
mod remote;
mod secrets;
#[cfg(feature = "sim")]
mod sim;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis"))]
mod site;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod state_report;
mod table;
mod temporary;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis"))]
mod tls;
mod url;

pub use claims::{Claim, ClaimNodes, ClaimRow};
pub use clock::{ClockBounds, ServerClock};
pub use database::{
    Access, ConditionalResult, Connection, Database, Layout, LockView, NodeLogs, Receipt,
    RegisterValue, Replication, SqlConnection, SqlDatabase, SqlResult, Traits, clear, prepare,
};
pub use error::{DbError, ErrorClass, Obstacle};
pub use hold::{Hold, LEASE, MarkStore, Marking, ObservedMarks, SharedNodes};
pub use registry::{
    DRIVERS, Driver, OpenFn, Service, Settings, drivers, host_and_port, is_embedded, names_server,
    open, register,
};
#[cfg(feature = "sqlite")]
pub use sqlite::matches;
pub use state_report::StateReport;
pub use table::{TABLE, TableResult};
pub use temporary::abandon_temporary_files;
pub use url::{Address, DbUrl, Parameters};
