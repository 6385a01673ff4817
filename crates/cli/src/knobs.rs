//! The knobs of workloads, by their names: what `gen` and `run` have in common.

use std::time::Duration;

use isolario::workload::{Distribution, DistributionError, Kind, Preset};

use crate::failure::Failure;
use crate::suggest::no_such;

/// Workloads that are spoken of, and cannot be had yet.
const NOT_BUILT: [&str; 5] = ["predicate", "sql", "tpcc", "rubis", "twitter"];

pub(crate) fn find_kind(name: &str) -> Result<Kind, Failure> {
    let names = Kind::ALL.map(Kind::name);
    let there_are = format!("workloads: {}", names.join(", "));
    match name.parse() {
        Ok(kind) => Ok(kind),
        Err(_) if NOT_BUILT.contains(&name) => {
            Err(Failure::new(format!("the {name} workload is not there yet")).with_hint(there_are))
        }
        Err(_) => Err(no_such("workload", name, "--workload", names, there_are)),
    }
}

pub(crate) fn find_preset(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).ok_or_else(|| {
        let names: Vec<_> = Preset::all().iter().map(|preset| preset.name).collect();
        let there_are = format!("presets: {}", names.join(", "));
        no_such("preset", name, "--preset", names, there_are)
    })
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

/// The help on presets.
pub(crate) fn preset_help() -> String {
    let names: Vec<_> = Preset::all().iter().map(|preset| preset.name).collect();
    format!("A workload of the literature: {}", names.join(", "))
}

/// Reads a share.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a share from 0 to 1".to_owned())
}

/// Reads a duration: `100us`, `500ms`, `10s`, `5m`, `1h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text);
    let seconds = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    number
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 5m or 1h".to_owned())
}

/// Reads a size: `500MB`, `2GiB`; a bare number is bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text);
    let bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => f64::NAN,
    };
    number
        .map(|number| number * bytes)
        .filter(|bytes| (1.0..1e18).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "expected a size such as 500MB or 2GB".to_owned())
}

/// The number that a text begins with, and what follows it.
fn number_and_unit(text: &str) -> (Option<f64>, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.parse().ok(), unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("500MB", 500_000_000), ("2 GiB", 2 << 30), ("64", 64), ("1.5k", 1500)]
        {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for wrong in ["", "MB", "0", "-1GB", "10 parsecs"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("10", 10_000), ("1.5m", 90_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "s", "10x", "-1s", "0s", "nan", "1e9h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
