//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::{
    Initial, Level, Meta, Op, OpInput, OpNotes, SinkError, TxnEnd, TxnSink, TxnStart, Value,
    ValueRef,
};
use isolario_bench::Failure;
use isolario_sim::{Config, Kind, Workload, generate};

/// A history of the simulated store.
#[derive(Clone, Copy)]
pub struct Recipe {
    /// Mini-transactions, in which every write follows a read; or half reads and half blind writes.
    pub kind: Kind,
    pub txns: u64,
    pub sessions: u32,
    /// Operations per transaction; mini-transactions have two to four.
    pub ops: u32,
    pub keys: u32,
    pub format: &'static str,
}

impl Recipe {
    /// Half reads and half blind writes.
    pub const fn general(txns: u64, ops: u32, keys: u32, format: &'static str) -> Recipe {
        Recipe { kind: Kind::General, txns, sessions: 50, ops, keys, format }
    }

    /// Mini-transactions.
    pub const fn mini(txns: u64, keys: u32, format: &'static str) -> Recipe {
        Recipe { kind: Kind::Mini, txns, sessions: 50, ops: 4, keys, format }
    }

    /// What it is, in a few words.
    pub fn title(&self) -> String {
        let Recipe { txns, ops, keys, .. } = self;
        match self.kind {
            Kind::Mini => format!("{txns} mini-transactions, {keys} keys"),
            _ => format!("{txns} x {ops}, {keys} keys"),
        }
    }

    /// What the simulated store is to do.
    pub fn config(&self) -> Config {
        Config {
            level: Level::StrictSerializable,
            workload: Workload {
                kind: self.kind,
                ops: self.ops,
                keys: self.keys,
                read_ratio: 0.5,
                ..Workload::default()
            },
            txns: self.txns,
            sessions: self.sessions,
            seed: 1,
            ..Config::default()
        }
    }

    /// Writes the history to a file; says how many operations it has.
    pub fn write(&self, file: &Path) -> Result<u64, Failure> {
        let config = self.config();
        let format = formats::find(self.format).ok_or("no such format")?;
        let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
        let ops = match self.format {
            "elle-edn" => generate(&config, &mut FromNil(&mut *writer))?.operations,
            _ => generate(&config, &mut *writer)?.operations,
        };
        writer.finish()?;
        Ok(ops)
    }
}

/// Passes a history on with nil for the initial value of zero: Elle knows no other.
struct FromNil<'s>(&'s mut dyn TxnSink);

impl TxnSink for FromNil<'_> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.0.meta(&Meta { initial: Initial::Value(Value::Nil), ..meta.clone() })
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.0.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        match op {
            Op::Read { key, value: Some(ValueRef::Int(0)) } => {
                self.0.op_with(&Op::Read { key: *key, value: Some(ValueRef::Nil) }, notes)
            }
            op => self.0.op_with(op, notes),
        }
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.0.end(end)
    }
}
