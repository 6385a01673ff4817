//! The histories that are measured, as files.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use isolario::formats::{self, OutputTarget, version_order};
use isolario::model::{Level, Meta, OpInput, OpNotes, SinkError, Stamp, TxnEnd, TxnSink, TxnStart};
use isolario_bench::Failure;
use isolario_sim::{Chronicle, Config, Kind, Preset, Thinned, Workload, generate_with};

use crate::question::order_of;

/// A history with blind writes.
#[derive(Clone, Copy)]
pub struct Recipe {
    pub name: &'static str,
    pub txns: u64,
    pub sessions: u32,
    pub ops: u32,
    pub keys: u32,
    pub reads: f64,
    /// How many writes write a value that was written before.
    pub duplicates: f64,
}

impl Recipe {
    /// A workload of the literature.
    pub fn preset(name: &'static str) -> Result<Recipe, Failure> {
        let preset = Preset::find(name).ok_or("no such preset")?;
        let Workload { ops, keys, read_ratio: reads, .. } = preset.workload();
        let (txns, sessions) = (preset.txns, preset.sessions);
        Ok(Recipe { name, txns, sessions, ops, keys, reads, duplicates: 0.0 })
    }

    fn config(&self, level: Level, shrink: u64) -> Config {
        let config = match Preset::find(self.name) {
            Some(preset) => Config::from(preset),
            None => Config {
                workload: Workload {
                    kind: Kind::General,
                    ops: self.ops,
                    keys: self.keys,
                    read_ratio: self.reads,
                    duplicate_ratio: self.duplicates,
                    ..Workload::default()
                },
                ..Config::default()
            },
        };
        Config { level, txns: self.txns / shrink, sessions: self.sessions, seed: 1, ..config }
    }

    /// Writes a history of a store that gives a level to a file, with these clues.
    pub fn write(
        &self,
        level: Level,
        shrink: u64,
        clues: Clues,
        file: &Path,
    ) -> Result<(), Failure> {
        let format = formats::find("isolario").ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let config = self.config(level, shrink);
        let mut orders = Orders::create(file)?;
        let mut thinned = Thinned::new(&mut orders, clues.versions, config.seed);
        let mut clients = Clients { sink: &mut *writer, tell_times: clues.times };
        generate_with(&config, &mut clients, &mut thinned)?;
        writer.finish()?;
        orders.0.finish()?;
        Ok(())
    }
}

/// What there is to go by beside reads and writes.
#[derive(Clone, Copy)]
pub struct Clues {
    /// Whether clients tell their times.
    pub times: bool,
    /// The share of the order of versions, in a file beside the history.
    pub versions: f64,
}

/// The order of versions beside a history.
struct Orders(version_order::VersionOrderWriter<BufWriter<File>>);

impl Orders {
    fn create(history: &Path) -> Result<Orders, Failure> {
        let file = File::create(order_of(history))?;
        Ok(Orders(version_order::VersionOrderWriter::new(BufWriter::new(file))))
    }
}

impl Chronicle for Orders {
    fn version(&mut self, key: u64, value: i64) -> Result<(), SinkError> {
        Ok(self.0.version(key, value)?)
    }

    fn committed(&mut self, _: u64, _: Stamp) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Passes a history on, with times or without.
struct Clients<'s> {
    sink: &'s mut dyn TxnSink,
    tell_times: bool,
}

impl TxnSink for Clients<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.sink.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.sink.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.sink.op_with(op, notes)
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        match self.tell_times {
            true => self.sink.end(end),
            false => self.sink.end(&TxnEnd { start: None, finish: None, ..*end }),
        }
    }
}
