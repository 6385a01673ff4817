//! A simulated store with a table: rows, ranges of rows, and functions over them.
//!
//! `store` executes transactions and argues why they get their level, `clients` runs the plans of
//! sessions against it and tells what they saw, `plant` has the anomalies that take predicates.

mod clients;
mod config;
mod plant;
mod report;
mod store;

use isolario_model::{SinkError, Stamp, TxnSink};
use isolario_workload::TablePlanner;

use clients::Tables;
pub use config::{TableAnomaly, TableConfig, TableDefect, TablePlant};
pub use store::{TableStore, TableTxn};

use crate::config::{ConfigError, GenerateError, Summary};
use crate::interleave::Interleaving;

/// The table of generated histories. Its rows are called `t(id=…)` and hold `(a=…, b=…, v=…)`;
/// `v` tells the versions of a row apart.
pub const TABLE: &str = "t";

/// The column of the table that is its key.
pub const KEY_COLUMN: &str = "id";

/// A row of a table, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowId<'a> {
    /// The table.
    pub table: &'a str,
    /// The key.
    pub id: u64,
}

/// Which version of each row an operation by range met, whether it matched or not. A row that the
/// transaction itself wrote before is met as it left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSet<'a> {
    /// Of each row, the last version that was committed at this place of the commit order.
    Snapshot(Stamp),
    /// Of these rows, the version of this writer; of all others, none.
    Versions(&'a [(RowId<'a>, u64)]),
}

/// Hears what the store knows and no client does.
pub trait TableChronicle {
    /// A commit made the next version of a row of [`TABLE`]: a transaction, by its name, wrote or
    /// deleted it.
    fn version(&mut self, row: u64, writer: u64) -> Result<(), SinkError>;

    /// A committed transaction, by its name, met these versions in its operation of this number,
    /// counted from 0.
    fn met(&mut self, txn: u64, op: usize, set: VersionSet<'_>) -> Result<(), SinkError>;

    /// A transaction, by its name, has this place in the true commit order. Planted ones have none:
    /// no store ran them.
    fn committed(&mut self, txn: u64, place: Stamp) -> Result<(), SinkError>;
}

/// Generates a history of transactions on a table into a sink, and tells what the store knows of
/// it. The same configuration gives the same history, on every platform.
///
/// Transactions come in the order they finish, and are numbered from 1 as they begin. Sessions
/// are numbered from 0, those of planted anomalies after the others.
pub fn generate_table(
    config: &TableConfig,
    sink: &mut dyn TxnSink,
    chronicle: &mut dyn TableChronicle,
) -> Result<Summary, GenerateError> {
    config.validate()?;
    let planner = TablePlanner::new(&config.workload, config.sessions, config.seed)
        .map_err(ConfigError::Workload)?;
    let clients = Tables::new(config, planner, sink, chronicle)?;
    let anomalies = config.anomalies.iter().map(|plant| (plant.at, plant.kind));
    Ok(Interleaving::new(clients, config.pace(), anomalies).run()?)
}
