//! Lists of a strictly serializable store, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::Level;
use isolario_bench::Failure;
use isolario_sim::{Config, Kind, Workload, generate};

/// A history of appends and list reads: 1000 lists at a time, 10 sessions.
#[derive(Clone, Copy)]
pub struct Lists {
    pub txns: u64,
    pub format: &'static str,
}

impl Lists {
    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let workload = Workload { kind: Kind::Append, keys: 1000, ..Workload::default() };
        let config = Config {
            level: Level::StrictSerializable,
            workload,
            txns: self.txns,
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
