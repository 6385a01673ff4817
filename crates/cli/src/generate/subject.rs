//! What is generated: registers and lists, or a table.

use isolario::model::{Level, TxnSink};
use isolario::sim::{
    Config, GenerateError, Summary, TableConfig, Thinned, generate_table, generate_with,
};

use super::orders::OrderFiles;
use crate::workload_flags::PREDICATE;

/// A history to generate.
pub(crate) enum Subject {
    /// Of registers or lists.
    Registers(Config),
    /// Of a table.
    Table(TableConfig),
}

impl Subject {
    pub(crate) fn level(&self) -> Level {
        match self {
            Subject::Registers(config) => config.level,
            Subject::Table(config) => config.level,
        }
    }

    pub(crate) fn workload(&self) -> &'static str {
        match self {
            Subject::Registers(config) => config.workload.name(),
            Subject::Table(_) => PREDICATE,
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        match self {
            Subject::Registers(config) => config.seed,
            Subject::Table(config) => config.seed,
        }
    }

    /// The names of what is planted.
    pub(crate) fn anomalies(&self) -> Vec<&'static str> {
        match self {
            Subject::Registers(config) => {
                config.anomalies.iter().map(|plant| plant.kind.name()).collect()
            }
            Subject::Table(config) => {
                config.anomalies.iter().map(|plant| plant.kind.name()).collect()
            }
        }
    }

    /// Generates it, with a share of the order of versions.
    pub(crate) fn generate(
        &self,
        sink: &mut dyn TxnSink,
        orders: &mut OrderFiles<'_>,
        share: f64,
    ) -> Result<Summary, GenerateError> {
        match self {
            Subject::Registers(config) => {
                generate_with(config, sink, &mut Thinned::new(orders, share, config.seed))
            }
            Subject::Table(config) => generate_table(config, sink, orders),
        }
    }
}
