//! A simulated store: histories that satisfy a chosen level by construction, with planted
//! anomalies if wanted.
//!
//! A [`Store`] executes transactions step by step under the rules of one level. [`generate`] runs
//! the sessions of a workload against it, interleaved by a seeded scheduler, and streams what the
//! clients saw into a sink. Memory grows with keys and sessions, not with transactions.
//!
//! ```
//! use isolario_model::{Batch, Level};
//! use isolario_sim::{Config, Workload, generate};
//!
//! let config = Config {
//!     level: Level::SnapshotIsolation,
//!     workload: Workload { keys: 10, ..Workload::default() },
//!     txns: 100,
//!     sessions: 5,
//!     seed: 42,
//!     ..Config::default()
//! };
//! let mut batch = Batch::new();
//! let summary = generate(&config, &mut batch)?;
//! assert_eq!((summary.committed, batch.len()), (100, 100));
//! # Ok::<(), isolario_sim::GenerateError>(())
//! ```
//!
//! Why the histories satisfy their level is argued in one place, `store/rules.rs`.

mod chronicle;
mod config;
mod ending;
mod flight;
mod generate;
mod interleave;
mod plant;
mod report;
mod schedule;
mod store;
mod table;

pub use chronicle::{Chronicle, Thinned};
pub use config::{Config, ConfigError, GenerateError, Plant, Summary};
pub use generate::{generate, generate_with};
pub use isolario_workload::{
    Distribution, DistributionError, Kind, Mix, Preset, TableWorkload, Workload, WorkloadError,
};
pub use plant::{Template, templates};
pub use store::{Conflict, Intent, Store, Txn};
pub use table::{
    KEY_COLUMN, RowId, TABLE, TableAnomaly, TableChronicle, TableConfig, TableDefect, TablePlant,
    TableStore, TableTxn, VersionSet, generate_table,
};
