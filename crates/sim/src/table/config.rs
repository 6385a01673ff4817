//! What to generate.

use std::fmt;
use std::str::FromStr;

use isolario_model::Level;
use isolario_workload::{Preset, TableWorkload, WorkloadError};

use crate::config::{ConfigError, check_shares};
use crate::interleave::Pace;

/// A history of transactions on a table to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct TableConfig {
    /// What the history satisfies at least, planted anomalies and defects aside. There are rules
    /// for serializable, snapshot isolation, repeatable read and read committed; another level gets
    /// those of a stronger one.
    pub level: Level,
    /// What the clients do.
    pub workload: TableWorkload,
    /// How many transactions, of any outcome, beside the planted ones.
    pub txns: u64,
    /// How many sessions, beside those of planted anomalies.
    pub sessions: u32,
    /// The share of the sessions that have a transaction in progress at a time; at least one has.
    pub concurrency: f64,
    /// The share of transactions that abort.
    pub abort_ratio: f64,
    /// The share of transactions whose outcome the client never learns. Half of them commit.
    pub unknown_ratio: f64,
    /// The anomalies to plant.
    pub anomalies: Vec<TablePlant>,
    /// What is wrong with the store.
    pub defect: Option<TableDefect>,
    /// The same seed gives the same history.
    pub seed: u64,
}

impl Default for TableConfig {
    fn default() -> Self {
        TableConfig {
            level: Level::Serializable,
            workload: TableWorkload::default(),
            txns: 1000,
            sessions: 10,
            concurrency: 1.0,
            abort_ratio: 0.0,
            unknown_ratio: 0.0,
            anomalies: Vec::new(),
            defect: None,
            seed: 0,
        }
    }
}

impl From<&Preset> for TableConfig {
    fn from(preset: &Preset) -> Self {
        TableConfig {
            workload: TableWorkload::from(&preset.workload()),
            txns: preset.txns,
            sessions: preset.sessions,
            ..TableConfig::default()
        }
    }
}

impl TableConfig {
    /// Says what is wrong with the knobs, if anything is.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.workload.validate()?;
        if self.sessions == 0 {
            return Err(WorkloadError::Zero("sessions").into());
        }
        check_shares(self.concurrency, self.abort_ratio, self.unknown_ratio)?;
        if let Some(plant) = self.anomalies.iter().find(|plant| !(0.0..=1.0).contains(&plant.at)) {
            return Err(ConfigError::Ratio {
                name: "position of a planted anomaly",
                found: plant.at,
            });
        }
        let versions =
            u128::from(self.txns) * u128::from(self.sessions) * u128::from(self.workload.ops);
        match versions >> 61 {
            0 => Ok(()),
            _ => Err(ConfigError::TooLarge { txns: self.txns, sessions: self.sessions }),
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        let TableConfig { txns, sessions, concurrency, seed, .. } = *self;
        Pace { txns, sessions, concurrency, seed }
    }
}

/// An anomaly to plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TablePlant {
    /// The anomaly.
    pub kind: TableAnomaly,
    /// Where, as the share of the transactions that come before it.
    pub at: f64,
}

/// An anomaly that takes predicates. Both satisfy repeatable read and violate serializability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableAnomaly {
    /// One reads a range twice, and the second time finds a row that another one has inserted in
    /// between. Snapshot isolation forbids it.
    Phantom,
    /// Two read an empty range, and each then inserts a row into it. Snapshot isolation allows it.
    PredicateWriteSkew,
}

/// What may be wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableDefect {
    /// The store forgets to lock ranges: a serializable transaction commits although a row came
    /// into a range that it read.
    PredicateLock,
    /// Some reads by range use a snapshot that is older than that of their transaction.
    StaleScan,
    /// Some deletes are acknowledged, and logged, and leave the row as it was.
    LostDelete,
}

/// Names of a few things.
macro_rules! names {
    ($type:ty: $($variant:path => $name:literal),+) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = ();

            fn from_str(name: &str) -> Result<Self, ()> {
                Self::ALL.iter().copied().find(|one| one.name() == name).ok_or(())
            }
        }
    };
}

names!(TableAnomaly:
    TableAnomaly::Phantom => "phantom",
    TableAnomaly::PredicateWriteSkew => "predicate-write-skew");

names!(TableDefect:
    TableDefect::PredicateLock => "predicate-lock",
    TableDefect::StaleScan => "stale-scan",
    TableDefect::LostDelete => "lost-delete");
