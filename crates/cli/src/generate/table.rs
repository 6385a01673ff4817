//! What the flags mean for a workload on a table.

use isolario::model::Level;
use isolario::sim::{TableAnomaly, TableConfig, TableDefect, TablePlant, TableWorkload};
use isolario::workload::Preset;

use super::args::HistoryArgs;
use super::settings::find_level;
use crate::failure::Failure;
use crate::suggest::no_such;
use crate::workload_flags::{PREDICATE, find_distribution, find_mix};

/// The preset if there is one, overridden by whatever was given.
pub(super) fn config(args: &HistoryArgs, preset: Option<&Preset>) -> Result<TableConfig, Failure> {
    let base = preset.map_or_else(TableConfig::default, TableConfig::from);
    let level = find_level(&args.level)?;
    if level == Level::Linearizable {
        let refusal =
            format!("{level} applies to single operations, not to transactions of several");
        let hint = format!("use --level {}", Level::StrictSerializable);
        return Err(Failure::new(refusal).with_hint(hint));
    }
    let distribution = args.distribution.as_deref().map(find_distribution).transpose()?;
    let mix = args.mix.as_deref().map(find_mix).transpose()?;
    Ok(TableConfig {
        level,
        workload: TableWorkload {
            ops: args.ops.unwrap_or(base.workload.ops),
            keys: args.keys.unwrap_or(base.workload.keys),
            distribution: distribution.unwrap_or(base.workload.distribution),
            mix: mix.unwrap_or(base.workload.mix),
        },
        txns: args.txns.unwrap_or(base.txns),
        sessions: args.sessions.unwrap_or(base.sessions),
        concurrency: args.concurrency,
        abort_ratio: args.abort_ratio,
        unknown_ratio: args.unknown_ratio,
        anomalies: plants(&args.anomaly)?,
        defect: args.defect.as_deref().map(find_defect).transpose()?,
        seed: args.seed,
    })
}

fn find_defect(name: &str) -> Result<TableDefect, Failure> {
    name.parse().map_err(|()| {
        let names: Vec<_> = TableDefect::ALL.iter().map(|defect| defect.name()).collect();
        let there_are = format!("defects: {}", names.join(", "));
        no_such("defect", name, "--defect", names, there_are)
    })
}

/// Spreads anomalies evenly; one is in the middle.
fn plants(names: &[String]) -> Result<Vec<TablePlant>, Failure> {
    let gaps = names.len() as f64 + 1.0;
    let plant = |(before, name): (usize, &String)| {
        Ok(TablePlant { kind: find_anomaly(name)?, at: (before as f64 + 1.0) / gaps })
    };
    names.iter().enumerate().map(plant).collect()
}

/// Refuses an anomaly that takes a table, for workloads without one.
pub(super) fn refuse_anomaly(name: &str) -> Result<(), Failure> {
    match name.to_lowercase().parse::<TableAnomaly>() {
        Err(()) => Ok(()),
        Ok(anomaly) => Err(Failure::new(format!("{anomaly} needs operations by predicate"))
            .with_hint(format!("use --workload {PREDICATE}"))),
    }
}

fn find_anomaly(name: &str) -> Result<TableAnomaly, Failure> {
    name.to_lowercase().parse().map_err(|()| {
        let names: Vec<_> = TableAnomaly::ALL.iter().map(|anomaly| anomaly.name()).collect();
        let there_are = format!("anomalies that can be planted in a table: {}", names.join(", "));
        no_such("anomaly of tables", name, "--anomaly", names, there_are)
    })
}
