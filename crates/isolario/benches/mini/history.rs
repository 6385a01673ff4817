//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::Level;
use isolario_bench::{Failure, Writer};
use isolario_sim::{Config, Distribution, Kind, Workload, generate};

/// A history of mini-transactions of a strictly serializable store.
#[derive(Clone, Copy)]
pub struct Recipe {
    pub txns: u64,
    pub sessions: u32,
    pub keys: u32,
    pub distribution: Distribution,
    /// The share of the sessions that have a transaction in progress.
    pub concurrency: f64,
    pub format: &'static str,
}

impl Default for Recipe {
    /// As in the table of targets.
    fn default() -> Self {
        Recipe {
            txns: 1_000_000,
            sessions: 50,
            keys: 10_000,
            distribution: Distribution::Zipf { exponent: 0.99 },
            concurrency: 1.0,
            format: "isolario",
        }
    }
}

impl Recipe {
    /// As a step of something that grows.
    pub fn writer(self) -> Writer {
        Box::new(move |file| self.write(file))
    }

    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let workload = Workload {
            kind: Kind::Mini,
            keys: self.keys,
            distribution: self.distribution,
            ..Workload::default()
        };
        let config = Config {
            level: Level::StrictSerializable,
            workload,
            txns: self.txns,
            sessions: self.sessions,
            concurrency: self.concurrency,
            seed: 1,
            ..Config::default()
        };
        let format = formats::find(self.format).ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let ops = generate(&config, &mut *writer)?.operations;
        writer.finish()?;
        Ok(ops)
    }
}
