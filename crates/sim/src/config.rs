//! What to generate, and what came of it.

use isolario_model::{AnomalyKind, Level, SinkError};
use isolario_workload::{Kind, Preset, Workload, WorkloadError};

use crate::interleave::Pace;
use crate::plant::Template;

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What the history satisfies at least, planted anomalies aside.
    pub level: Level,
    /// What the clients do.
    pub workload: Workload,
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
    pub anomalies: Vec<Plant>,
    /// Whether to tell the store's own timestamps of what committed: its snapshot, at levels that
    /// have one, and its place in the true commit order. Planted transactions have none.
    pub stamps: bool,
    /// The same seed gives the same history.
    pub seed: u64,
}

/// An anomaly to plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// Where, as the share of the transactions that come before it.
    pub at: f64,
}

impl Plant {
    /// An anomaly in the middle of the history.
    pub fn in_the_middle(kind: AnomalyKind) -> Plant {
        Plant { kind, at: 0.5 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            level: Level::Serializable,
            workload: Workload::default(),
            txns: 1000,
            sessions: 10,
            concurrency: 1.0,
            abort_ratio: 0.0,
            unknown_ratio: 0.0,
            anomalies: Vec::new(),
            stamps: false,
            seed: 0,
        }
    }
}

impl From<&Preset> for Config {
    fn from(preset: &Preset) -> Self {
        Config {
            workload: preset.workload(),
            txns: preset.txns,
            sessions: preset.sessions,
            ..Config::default()
        }
    }
}

/// Why there is no such history.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A wrong workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A share outside of its range.
    #[error("the {name} must be from 0 to 1; found {found}")]
    Ratio {
        /// Its name.
        name: &'static str,
        /// What it was.
        found: f64,
    },
    /// More aborted and unknown transactions than transactions.
    #[error("the shares of aborted and unknown outcomes add up to {found}, which is more than 1")]
    Outcomes {
        /// Their sum.
        found: f64,
    },
    /// An anomaly that cannot be planted.
    #[error("{kind} cannot be planted: it takes more than operations on a few keys")]
    NoTemplate {
        /// The anomaly.
        kind: AnomalyKind,
    },
    /// A workload on a table.
    #[error("a workload on a table has a configuration of its own, TableConfig")]
    Table,
    /// More operations than there are values for.
    #[error("{txns} transactions of {sessions} sessions need more distinct values than exist")]
    TooLarge {
        /// How many transactions.
        txns: u64,
        /// How many sessions.
        sessions: u32,
    },
}

impl Config {
    /// Says what is wrong with the knobs, if anything is.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.workload.validate()?;
        if self.workload.kind == Kind::Predicate {
            return Err(ConfigError::Table);
        }
        if self.sessions == 0 {
            return Err(WorkloadError::Zero("sessions").into());
        }
        check_shares(self.concurrency, self.abort_ratio, self.unknown_ratio)?;
        for plant in &self.anomalies {
            if !(0.0..=1.0).contains(&plant.at) {
                let name = "position of a planted anomaly";
                return Err(ConfigError::Ratio { name, found: plant.at });
            }
            if Template::of(plant.kind).is_none() {
                return Err(ConfigError::NoTemplate { kind: plant.kind });
            }
        }
        self.check_values()
    }

    pub(crate) fn pace(&self) -> Pace {
        let Config { txns, sessions, concurrency, seed, .. } = *self;
        Pace { txns, sessions, concurrency, seed }
    }

    /// Values are numbered by position, session and operation; one session may run all
    /// transactions.
    fn check_values(&self) -> Result<(), ConfigError> {
        let values =
            u128::from(self.txns) * u128::from(self.sessions) * u128::from(self.workload.max_ops());
        if values >> 61 == 0 {
            return Ok(());
        }
        Err(ConfigError::TooLarge { txns: self.txns, sessions: self.sessions })
    }
}

/// Says which share is out of range, if one is.
pub(crate) fn check_shares(
    concurrency: f64,
    abort_ratio: f64,
    unknown_ratio: f64,
) -> Result<(), ConfigError> {
    for (found, name) in [
        (concurrency, "share of concurrent sessions"),
        (abort_ratio, "abort ratio"),
        (unknown_ratio, "unknown ratio"),
    ] {
        if !(0.0..=1.0).contains(&found) {
            return Err(ConfigError::Ratio { name, found });
        }
    }
    let found = abort_ratio + unknown_ratio;
    if found > 1.0 {
        return Err(ConfigError::Outcomes { found });
    }
    Ok(())
}

/// Why a history was not generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The sink did not take it.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// What was generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Transactions that committed, planted ones aside.
    pub committed: u64,
    /// Transactions that aborted, planted ones aside.
    pub aborted: u64,
    /// Transactions whose outcome the client does not know.
    pub unknown: u64,
    /// Transactions of planted anomalies.
    pub planted: u64,
    /// Operations, those of planted anomalies included.
    pub operations: u64,
    /// Transactions that ran twice because of a conflict; clients saw only the second run.
    pub reruns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_knobs_are_named() {
        let message = |config: Config| config.validate().unwrap_err().to_string();
        let of = Config::default;
        assert_eq!(message(Config { sessions: 0, ..of() }), "sessions: at least one is required");
        assert_eq!(
            message(Config { abort_ratio: -0.5, ..of() }),
            "the abort ratio must be from 0 to 1; found -0.5"
        );
        assert_eq!(
            message(Config { abort_ratio: 0.75, unknown_ratio: 0.5, ..of() }),
            "the shares of aborted and unknown outcomes add up to 1.25, which is more than 1"
        );
        let anomalies = vec![Plant::in_the_middle(AnomalyKind::Phantom)];
        assert_eq!(
            message(Config { anomalies, ..of() }),
            "Phantom cannot be planted: it takes more than operations on a few keys"
        );
        let workload = Workload { kind: Kind::Predicate, ..Workload::default() };
        assert!(message(Config { workload, ..of() }).ends_with("TableConfig"));
        assert!(
            message(Config { txns: 1 << 60, ..of() }).contains("more distinct values than exist")
        );
    }

    #[test]
    fn presets_are_valid() {
        assert!(
            Preset::all().iter().filter(|preset| !preset.is_of_table()).all(|preset| Config::from(
                preset
            )
            .validate()
            .is_ok())
        );
    }
}
