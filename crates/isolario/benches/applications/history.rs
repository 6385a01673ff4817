//! The histories that are measured, as files.

use std::path::Path;

use isolario::formats::{self, OutputTarget};
use isolario::model::Level;
use isolario::run::{HISTORY, Handle, Settings, Shrinking, run};
use isolario::workload::{Application, DefaultRun, Kind, Workload};
use isolario_bench::{Failure, Writer};
use isolario_sim::{Config, generate};

/// How to make a history.
pub enum Recipe {
    /// By a run against a database, on registers or on SQL tables.
    Recorded { url: String, workload: Workload, sql_tables: bool, txns: u64, sessions: u32 },
    /// By the simulated store, at snapshot isolation.
    Simulated { workload: Workload, txns: u64, sessions: u32 },
}

/// What the clients of an application ask for.
pub fn played(application: Application) -> Workload {
    DefaultRun::of_application(application, 1).workload
}

/// The same for so many sessions at a database, which have to wait for each other there: a warehouse of TPC-C has ten
/// terminals (clause 4.2.1).
pub fn played_at(application: Application, sessions: u32) -> Workload {
    let scale = if application == Application::Tpcc { sessions.div_ceil(10) } else { 1 };
    DefaultRun::of_application(application, scale).workload
}

/// Transactions of so many operations, half of them reads.
pub fn general(ops: u32) -> Workload {
    Workload { kind: Kind::General, ops, keys: 10_000, read_ratio: 0.5, ..Workload::default() }
}

impl Recipe {
    /// As a step of something that grows.
    pub fn writer(self) -> Writer {
        Box::new(move |file| match &self {
            Recipe::Recorded { url, workload, sql_tables, txns, sessions } => {
                let settings = Settings::new(workload.kind)
                    .with_url(url)?
                    .with_workload(workload.clone())
                    .with_sql_tables(*sql_tables)
                    .with_sessions(*sessions)
                    .with_txns(*txns);
                record(settings, file)
            }
            Recipe::Simulated { workload, txns, sessions } => {
                simulate(workload, *txns, *sessions, file)
            }
        })
    }
}

/// Runs the workload; says how many operations the history has.
fn record(settings: Settings, file: &Path) -> Result<u64, Failure> {
    let directory = file.with_extension("run");
    let is_postgres = settings.urls.iter().any(|url| url.scheme() == "postgres");
    let mut settings = settings
        .with_levels([Level::ReadCommitted])
        .with_shrinking(Shrinking::Never)
        .with_out(&directory);
    // Snapshots are enough, and abort less.
    settings.isolation = is_postgres.then(|| "repeatable-read".to_owned());
    let outcome = run(&settings, &Handle::new(), &mut ())?;
    std::fs::rename(directory.join(HISTORY), file)?;
    std::fs::remove_dir_all(&directory)?;
    Ok(outcome.history.op_count() as u64)
}

/// Makes the history; says how many operations it has.
fn simulate(workload: &Workload, txns: u64, sessions: u32, file: &Path) -> Result<u64, Failure> {
    let config = Config {
        level: Level::SnapshotIsolation,
        workload: workload.clone(),
        txns,
        sessions,
        seed: 1,
        ..Config::default()
    };
    let format = formats::find("isolario").ok_or("no such format")?;
    let mut writer = format.writer(OutputTarget::Path(file.to_owned()))?;
    let made = generate(&config, &mut *writer)?;
    writer.finish()?;
    Ok(made.operations)
}
