//! The flags that describe a workload: what `gen` and `run` have in common.

use isolario::workload::{Aim, Distribution, DistributionError, Kind, Mix, Preset, TablePreset};

use crate::failure::Failure;
use crate::suggest::no_such;

/// The workload on a table.
pub(crate) const PREDICATE: &str = "predicate";

/// Workloads that are planned, and not available yet.
const NOT_BUILT: [&str; 4] = ["sql", "tpcc", "rubis", "twitter"];

/// The kind of workload of a name.
pub(crate) fn find_kind(name: &str) -> Result<Kind, Failure> {
    let names = Kind::ALL.map(Kind::name);
    let there_are = format!("workloads: {}", names.join(", "));
    match name.parse() {
        Ok(kind) => Ok(kind),
        Err(_) if NOT_BUILT.contains(&name) => {
            Err(Failure::new(format!("the {name} workload is not available yet"))
                .with_hint(there_are))
        }
        Err(_) => Err(no_such("workload", name, "--workload", names, there_are)),
    }
}

pub(crate) fn find_preset(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).ok_or_else(|| {
        if TablePreset::find(name).is_some() {
            return Failure::new(format!("the preset {name} is about operations on a table"))
                .with_hint(format!("it is for --workload {PREDICATE}"));
        }
        let names = preset_names();
        let there_are = format!("presets: {}", names.join(", "));
        no_such("preset", name, "--preset", names, there_are)
    })
}

fn preset_names() -> Vec<&'static str> {
    let of_tables = TablePreset::all().iter().map(|preset| preset.name);
    Preset::all().iter().map(|preset| preset.name).chain(of_tables).collect()
}

pub(crate) fn find_distribution(text: &str) -> Result<Distribution, Failure> {
    text.parse().map_err(|error| match error {
        DistributionError::Name(name) => {
            let names = ["uniform", "zipf", "hotspot", "exponential"];
            let there_are = "distributions: uniform, zipf:S, hotspot:H,O, exponential:L";
            no_such("distribution", &name, "--distribution", names, there_are.to_owned())
        }
        other => Failure::new(format!("--distribution: {other}")),
    })
}

/// A flag that would change nothing is a mistake. Each flag comes with whether it was given, and
/// the kinds it is for.
pub(crate) fn refuse_idle_flags(
    kind: Kind,
    flags: &[(bool, &str, &[Kind])],
) -> Result<(), Failure> {
    match flags.iter().find(|(given, _, kinds)| *given && !kinds.contains(&kind)) {
        None => Ok(()),
        Some((_, flag, kinds)) => {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            Err(Failure::new(format!("{flag} has no effect on the {kind} workload"))
                .with_hint(format!("it is for --workload {}", kinds.join(", "))))
        }
    }
}

pub(crate) fn find_mix(text: &str) -> Result<Mix, Failure> {
    text.parse().map_err(|error| Failure::new(format!("--mix: {error}")))
}

/// The aim of a name.
pub(crate) fn find_aim(name: &str) -> Result<Aim, Failure> {
    let names = Aim::ALL.map(Aim::name);
    let there_are = format!("aims: {}", names.join(", "));
    name.parse().map_err(|_| no_such("aim", name, "--aim", names, there_are))
}

/// The help on aims.
pub(crate) fn aim_help() -> String {
    let names = Aim::ALL.map(Aim::name).join(", ");
    format!(
        "Aim at an anomaly, which is then found sooner if it can happen (mini): {names}; for sql, any \
         probe or its anomaly"
    )
}

/// The help on presets.
pub(crate) fn preset_help() -> String {
    format!("A workload from the literature: {}", preset_names().join(", "))
}
