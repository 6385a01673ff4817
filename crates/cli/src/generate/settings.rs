//! What the flags of `isolario gen` mean: names are looked up and checked before any work is done.

use isolario::model::Level;
use isolario::sim::{Config, ConfigError, Kind, Plant, Workload, WorkloadError, templates};
use isolario::workload::{Application, Preset};

use super::args::{GenArgs, HistoryArgs};
use super::orders::Orders;
use super::subject::Subject;
use super::table;
use crate::clashes::Files;
use crate::config::output_format;
use crate::failure::Failure;
use crate::output::Output;
use crate::suggest::{AnomalyFlag, no_such};
use crate::workload_flags::{Named, find_distribution, find_preset, find_workload};

/// A history to generate, and where to.
pub(crate) struct Generate {
    pub(crate) subject: Subject,
    pub(crate) output: Output,
    pub(super) orders: Orders,
}

impl Generate {
    pub(crate) fn build(GenArgs::History(args): GenArgs) -> Result<Generate, Failure> {
        let subject = subject(&args)?;
        let orders = orders(&args, &subject)?;
        Files::default()
            .writing("-o", (args.file.as_os_str() != "-").then_some(&args.file))
            .writing("--version-order-out", args.version_order_out.as_ref())
            .writing("--serialization-order-out", args.serialization_order_out.as_ref())
            .refuse_clashes()?;
        Ok(Generate { subject, output: output(*args)?, orders })
    }
}

fn subject(args: &HistoryArgs) -> Result<Subject, Failure> {
    let kind = args.workload.as_deref().and_then(|name| name.parse().ok());
    let preset = args.preset.as_deref().map(|name| find_preset(name, kind)).transpose()?;
    if kind == Some(Kind::Predicate) || kind.is_none() && preset.is_some_and(Preset::is_of_table) {
        let config = table::config(args, preset)?;
        config.validate().map_err(|error| wrong(&error))?;
        return Ok(Subject::Table(config));
    }
    let config = config(args, preset)?;
    config.validate().map_err(|error| wrong(&error))?;
    Ok(Subject::Registers(config))
}

/// Where the true orders go. Versions of registers are named by their values, which must be
/// different.
fn orders(args: &HistoryArgs, subject: &Subject) -> Result<Orders, Failure> {
    let repeats = match subject {
        Subject::Registers(config) => config.workload.duplicate_ratio > 0.0,
        Subject::Table(_) => false,
    };
    if args.version_order_out.is_some() && repeats {
        let refusal = "a version order names values, and some values of this history repeat";
        return Err(
            Failure::new(refusal).with_hint("leave out --duplicate-ratio or --version-order-out")
        );
    }
    Ok(Orders {
        versions: args.version_order_out.clone(),
        share: args.version_order_ratio,
        serialization: args.serialization_order_out.clone(),
        of_rows: matches!(subject, Subject::Table(_)),
    })
}

fn output(args: HistoryArgs) -> Result<Output, Failure> {
    let to_stdout = args.file.as_os_str() == "-";
    let name = args.format.as_deref().or(to_stdout.then_some("jsonl"));
    let format = output_format("--format", name, &args.file)?;
    Ok(Output { path: args.file, format, flag: "--format", force: args.force })
}

/// The preset if one is named, overridden by whatever was given.
fn config(args: &HistoryArgs, preset: Option<&Preset>) -> Result<Config, Failure> {
    let base = preset.map_or_else(Config::default, Config::from);
    let workload = workload(args, &base.workload)?;
    let level = find_level(&args.level)?;
    refuse_transactions(level, &workload)?;
    Ok(Config {
        level,
        workload,
        txns: args.txns.unwrap_or(base.txns),
        sessions: args.sessions.unwrap_or(base.sessions),
        concurrency: args.concurrency,
        abort_ratio: args.abort_ratio,
        unknown_ratio: args.unknown_ratio,
        anomalies: plants(&args.anomaly)?,
        seed: args.seed,
        ..base
    })
}

fn workload(args: &HistoryArgs, base: &Workload) -> Result<Workload, Failure> {
    let kind = match args.workload.as_deref().map(find_workload).transpose()? {
        Some(Named::Application(application)) => return Ok(played(args, application)),
        Some(Named::Kind(kind)) => kind,
        None => base.kind,
    };
    let distribution = args.distribution.as_deref().map(find_distribution).transpose()?;
    Ok(Workload {
        kind,
        ops: args.ops.unwrap_or(base.ops),
        keys: args.keys.unwrap_or(base.keys),
        read_ratio: args.read_ratio.unwrap_or(base.read_ratio),
        rmw_ratio: args.rmw_ratio.unwrap_or(base.rmw_ratio),
        distribution: distribution.unwrap_or(base.distribution),
        duplicate_ratio: args.duplicate_ratio.unwrap_or(base.duplicate_ratio),
        ..base.clone()
    })
}

/// The transactions of an application.
fn played(args: &HistoryArgs, application: Application) -> Workload {
    Workload::of_application(application, args.scale.unwrap_or(1))
}

/// Linearizability speaks of single operations.
fn refuse_transactions(level: Level, workload: &Workload) -> Result<(), Failure> {
    if level != Level::Linearizable || workload.max_ops() == 1 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{level} applies to single operations, not to transactions of several"
    ))
    .with_hint(format!(
        "use --workload lwt, --workload general --ops 1, or --level {}",
        Level::StrictSerializable
    )))
}

/// Spreads anomalies evenly; one is in the middle.
fn plants(names: &[String]) -> Result<Vec<Plant>, Failure> {
    let planting = AnomalyFlag {
        done: "planted",
        with: templates().iter().map(|template| template.kind).collect(),
        refusal: "cannot be planted: it takes more than operations on a few keys",
        words: &[],
    };
    let gaps = names.len() as f64 + 1.0;
    let plant = |(before, name): (usize, &String)| {
        table::refuse_anomaly(name)?;
        Ok(Plant { kind: planting.find(name)?, at: (before as f64 + 1.0) / gaps })
    };
    names.iter().enumerate().map(plant).collect()
}

pub(super) fn find_level(name: &str) -> Result<Level, Failure> {
    Level::find(name).ok_or_else(|| {
        let names: Vec<_> = Level::all().map(Level::name).collect();
        let aliases = Level::all().flat_map(|level| level.aliases().iter().copied());
        let there_are = format!("levels: {}", names.join(", "));
        no_such("level", name, "--level", names.iter().copied().chain(aliases), there_are)
    })
}

/// Options that contradict each other.
fn wrong(error: &ConfigError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ConfigError::Workload(WorkloadError::Shares { .. }) => {
            failure.with_hint("lower --read-ratio or --rmw-ratio")
        }
        ConfigError::Outcomes { .. } => failure.with_hint("lower --abort-ratio or --unknown-ratio"),
        _ => failure,
    }
}
