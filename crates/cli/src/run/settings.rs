//! What the flags of `isolario run` mean: names are looked up and checked before any work is done.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolario::db::{DbUrl, Settings};
use isolario::workload::{Kind, Planner, Preset, Usual, Workload};

use super::args::{DriveArgs, RunArgs, ShapeArgs};
use crate::config::Request;
use crate::failure::Failure;
use crate::knobs::{find_distribution, find_kind, find_preset, refuse_idle_flags};

/// A run, or several.
pub(crate) struct Run {
    pub(super) urls: Vec<DbUrl>,
    pub(super) settings: Settings,
    /// The levels that were named; without any, the database's claim counts.
    pub(super) check: Option<Request>,
    /// As they were typed.
    pub(super) check_names: Vec<String>,
    pub(super) check_timeout: Duration,
    pub(super) out: Option<PathBuf>,
    pub(super) max_anomalies: usize,
    pub(super) preset: Option<&'static str>,
    pub(super) workload: Workload,
    pub(super) sessions: u32,
    pub(super) txns: Option<u64>,
    pub(super) duration: Option<Duration>,
    pub(super) seed: u64,
    pub(super) drive: DriveArgs,
}

impl Run {
    pub(crate) fn build(args: RunArgs) -> Result<Run, Failure> {
        let parse = |text: &String| DbUrl::parse(text).map_err(|error| Failure::new(error.message));
        let urls: Result<Vec<_>, _> = args.db.iter().map(parse).collect();
        let preset = args.shape.preset.as_deref().map(find_preset).transpose()?;
        let usual = shape(&args.shape, preset)?;
        let txns = match (args.shape.txns, args.shape.duration) {
            (None, None) => Some(usual.txns),
            (txns, _) => txns,
        };
        let run = Run {
            urls: urls?,
            settings: Settings {
                isolation: args.isolation,
                statement_timeout: args.drive.statement_timeout,
                sessions: usual.sessions,
            },
            check: (!args.check.is_empty()).then(|| Request::build(&args.check)).transpose()?,
            check_names: args.check,
            check_timeout: args.timeout,
            out: args.out,
            max_anomalies: args.max_anomalies,
            preset: preset.map(|preset| preset.name),
            workload: usual.workload,
            sessions: usual.sessions,
            txns,
            duration: args.shape.duration,
            seed: args.shape.seed.unwrap_or_else(any_seed),
            drive: args.drive,
        };
        run.planner(run.seed)?;
        Ok(run)
    }

    /// What the clients ask for, with a seed.
    pub(super) fn planner(&self, seed: u64) -> Result<Planner, Failure> {
        let planner = Planner::new(&self.workload, self.sessions, seed);
        let planner = planner.map_err(|error| Failure::new(error.to_string()))?;
        Ok(planner.with_attempts(self.drive.max_retries + 1))
    }
}

/// The usual workload of a kind, or a preset, overridden by whatever was given.
fn shape(args: &ShapeArgs, preset: Option<&Preset>) -> Result<Usual, Failure> {
    let named = args.workload.as_deref().map(find_kind).transpose()?;
    let base = preset.map(Preset::workload);
    let kind = named.or(base.as_ref().map(|base| base.kind)).unwrap_or_default();
    let mut usual = Usual::of(kind);
    if let (Some(base), Some(preset)) = (base, preset) {
        usual.workload = Workload { kind, ..base };
        (usual.sessions, usual.txns) = (preset.sessions, preset.txns);
    }
    refuse_idle_flags(
        kind,
        &[
            (args.ops.is_some(), "--ops", &[Kind::General, Kind::Append]),
            (args.rmw_ratio.is_some(), "--rmw-ratio", &[Kind::General]),
            (args.list_length.is_some(), "--list-length", &[Kind::Append]),
        ],
    )?;
    let distribution = args.distribution.as_deref().map(find_distribution).transpose()?;
    let base = usual.workload.clone();
    usual.workload = Workload {
        ops: args.ops.unwrap_or(base.ops),
        keys: args.keys.unwrap_or(base.keys),
        read_ratio: args.read_ratio.unwrap_or(base.read_ratio),
        rmw_ratio: args.rmw_ratio.unwrap_or(base.rmw_ratio),
        distribution: distribution.unwrap_or(base.distribution),
        list_length: args.list_length.unwrap_or(base.list_length),
        ..base
    };
    usual.sessions = args.sessions.unwrap_or(usual.sessions);
    Ok(usual)
}

/// Another seed each time, short enough to be typed.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    isolario::workload::Rng::new(now.as_nanos() as u64).below(1_000_000_000)
}
