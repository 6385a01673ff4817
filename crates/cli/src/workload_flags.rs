//! The flags that describe a workload: what `gen` and `run` have in common.

use isolario::workload::{Aim, Application, Distribution, DistributionError, Kind, Mix, Preset};

use crate::failure::Failure;
use crate::suggest::no_such;

/// The workload on a table.
pub(crate) const PREDICATE: &str = "predicate";

/// Random SQL, which only a database can answer.
pub(crate) const SQL: &str = "sql";

/// A workload by name.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    Kind(Kind),
    Application(Application),
}

/// The workload of a name.
pub(crate) fn find_workload(name: &str) -> Result<Named, Failure> {
    let kind = name.parse().map(Named::Kind);
    kind.or_else(|_| name.parse().map(Named::Application)).map_err(|_| {
        if name == SQL {
            return Failure::new("the sql workload cannot be simulated: it needs a live database")
                .with_hint("run it: isolario run --workload sql --db URL");
        }
        let there_are = format!("workloads: {}", workload_names().join(", "));
        no_such("workload", name, "--workload", workload_names(), there_are)
    })
}

fn workload_names() -> Vec<&'static str> {
    let applications = Application::ALL.map(Application::name);
    Kind::ALL.map(Kind::name).into_iter().chain(applications).collect()
}

/// The help on scales.
pub(crate) const SCALE: &str = "Size of an application: number of warehouses (tpcc), hundreds of users (rubis, twitter) [default: 1]";

/// The help on workloads.
pub(crate) fn workload_help(further: &[&str]) -> String {
    let kinds = Kind::ALL.iter().map(|kind| kind.name()).chain(further.iter().copied());
    let applications = Application::ALL.map(Application::name).join(", ");
    format!(
        "Kind of transactions: {}; or an application: {applications} [default: {}]",
        kinds.collect::<Vec<_>>().join(", "),
        Kind::Mini
    )
}

/// The preset of a name, for the kind of workload that was named, if one was.
pub(crate) fn find_preset(name: &str, kind: Option<Kind>) -> Result<&'static Preset, Failure> {
    let preset = Preset::find(name).ok_or_else(|| {
        let names = preset_names();
        let there_are = format!("presets: {}", names.join(", "));
        no_such("preset", name, "--preset", names, there_are)
    })?;
    let is_of_table = preset.is_of_table();
    match kind {
        Some(kind) if (kind == Kind::Predicate) != is_of_table => {
            let what = if is_of_table { "a table" } else { "registers" };
            Err(Failure::new(format!(
                "the preset {name} is for operations on {what}, and --workload is not"
            ))
            .with_hint("leave out --workload"))
        }
        _ => Ok(preset),
    }
}

fn preset_names() -> Vec<&'static str> {
    Preset::all().iter().map(|preset| preset.name).collect()
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
        "Bias the workload towards an anomaly, to find it sooner if the database allows it; for mini: \
         {names}; for sql: the name of any probe or of its anomaly"
    )
}

/// The help on presets.
pub(crate) fn preset_help() -> String {
    format!("Workload from the literature: {}", preset_names().join(", "))
}
