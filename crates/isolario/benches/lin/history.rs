//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::Level;
use isolario_bench::{Failure, Writer};
use isolario_sim::{Config, Kind, Workload, generate};

/// A history of single operations of a linearizable store.
#[derive(Clone, Copy)]
pub struct Recipe {
    pub kind: Kind,
    pub ops: u64,
    pub sessions: u32,
    pub keys: u32,
    /// The share of the operations that only read.
    pub read_ratio: f64,
    /// The share of the sessions that have an operation in progress.
    pub concurrency: f64,
    /// The share of writes whose values repeat.
    pub duplicate_ratio: f64,
    /// The share of operations whose outcome the client never learns.
    pub unknown_ratio: f64,
}

impl Recipe {
    /// Compare-and-sets and a few inserts, as in the table of targets.
    pub const CONDITIONAL: Recipe = Recipe {
        kind: Kind::Lwt,
        ops: 1_000_000,
        sessions: 50,
        keys: 1000,
        read_ratio: 0.0,
        concurrency: 1.0,
        duplicate_ratio: 0.0,
        unknown_ratio: 0.0,
    };

    /// Half reads, half plain writes.
    pub const PLAIN: Recipe =
        Recipe { kind: Kind::General, read_ratio: 0.5, ..Recipe::CONDITIONAL };

    /// As a step of something that grows.
    pub fn writer(self) -> Writer {
        Box::new(move |file| self.write(file))
    }

    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let workload = Workload {
            kind: self.kind,
            ops: 1,
            keys: self.keys,
            read_ratio: self.read_ratio,
            duplicate_ratio: self.duplicate_ratio,
            ..Workload::default()
        };
        let config = Config {
            level: Level::Linearizable,
            workload,
            txns: self.ops,
            sessions: self.sessions,
            concurrency: self.concurrency,
            unknown_ratio: self.unknown_ratio,
            seed: 1,
            ..Config::default()
        };
        let format = formats::find("isolario").ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let ops = generate(&config, &mut *writer)?.operations;
        writer.finish()?;
        Ok(ops)
    }
}
