//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::{Level, TxnSink};
use isolario_bench::{Failure, Writer};
use isolario_sim::{Config, Distribution, Kind, Workload, generate};

use crate::hard::{Family, Graph};

/// The format of all histories here: plain text that other checkers read as well.
pub const FORMAT: &str = "plume";

pub const SESSIONS: u32 = 50;
pub const OPS_PER_TXN: u32 = 8;
pub const KEYS: u32 = 10_000;

/// How to make a history.
pub enum Recipe {
    /// By the simulated store.
    Simulated(Box<Config>),
    /// Of a graph without triangles, with so many nodes.
    Hard(Family, u32),
}

impl Recipe {
    /// Half reads, half blind writes, of a store that gives snapshot isolation.
    pub fn simulated(txns: u64, sessions: u32, ops: u32, distribution: Distribution) -> Recipe {
        Recipe::Simulated(Box::new(Config {
            level: Level::SnapshotIsolation,
            workload: Workload {
                kind: Kind::General,
                ops,
                keys: KEYS,
                read_ratio: 0.5,
                distribution,
                ..Workload::default()
            },
            txns,
            sessions,
            seed: 1,
            ..Config::default()
        }))
    }

    /// As a step of something that grows.
    pub fn writer(self) -> Writer {
        Box::new(move |file| self.write(file))
    }

    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let format = formats::find(FORMAT).ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let ops = self.tell(&mut *writer)?;
        writer.finish()?;
        Ok(ops)
    }

    fn tell(&self, sink: &mut dyn TxnSink) -> Result<u64, Failure> {
        Ok(match self {
            Recipe::Simulated(config) => generate(config, sink)?.operations,
            Recipe::Hard(family, nodes) => family.write(&Graph::two_sided(*nodes, 1), sink)?,
        })
    }
}
