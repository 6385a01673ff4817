//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, Target};
use isolario::model::Level;
use isolario_bench::Failure;
use isolario_sim::{Config, Kind, Preset, Workload, generate};

/// A history with blind writes.
#[derive(Clone, Copy)]
pub struct Recipe {
    pub name: &'static str,
    pub txns: u64,
    pub sessions: u32,
    pub ops: u32,
    pub keys: u32,
    pub reads: f64,
}

impl Recipe {
    fn config(&self, level: Level, shrink: u64) -> Config {
        let config = match Preset::find(self.name) {
            Some(preset) => Config::from(preset),
            None => Config {
                workload: Workload {
                    kind: Kind::General,
                    ops: self.ops,
                    keys: self.keys,
                    read_ratio: self.reads,
                    ..Workload::default()
                },
                ..Config::default()
            },
        };
        Config { level, txns: self.txns / shrink, sessions: self.sessions, seed: 1, ..config }
    }

    /// Writes a history of a store that gives a level to a file.
    pub fn write(&self, level: Level, shrink: u64, file: &Path) -> Result<(), Failure> {
        let format = formats::find("isolario").ok_or("no such format")?;
        let mut writer = format.writer(Target::Path(file.to_owned()))?;
        generate(&self.config(level, shrink), &mut *writer)?;
        writer.finish()?;
        Ok(())
    }
}
