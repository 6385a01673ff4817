//! `check --join`: one history of the parts that several hosts recorded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolario::model::{HostClock, HostRecord, JoinError, Joiner, RunRecord};

use crate::config::InputFormat;
use crate::console::Console;
use crate::failure::Failure;
use crate::load::{LoadedHistory, load};
use crate::run_directory::{history_of, record_beside};

/// A history of parts, and how far its times may be off.
pub(crate) struct Joined {
    pub(crate) loaded: LoadedHistory,
    pub(crate) skew_ns: u64,
}

/// A file of a history, by the name that its sessions get.
struct Part {
    name: String,
    path: PathBuf,
    record: Option<RunRecord>,
}

/// Reads the parts and puts them together. `stated_skew` is what somebody vouches for: then the parts'
/// own clocks agree to within it, unless the parts know better.
pub(crate) fn load_joined(
    paths: &[PathBuf],
    format: InputFormat,
    stated_skew: Option<u64>,
    console: &mut Console,
) -> Result<Joined, Failure> {
    let parts = named(paths);
    let hosts: Option<Vec<HostRecord>> =
        parts.iter().map(|part| part.record.as_ref()?.host).collect();
    if let Some(hosts) = &hosts {
        refuse_other_runs(&parts)?;
        refuse_gaps(hosts)?;
    }
    let clocks: Option<Vec<HostClock>> =
        hosts.and_then(|hosts| hosts.iter().map(|host| host.clock).collect());
    let mut joiner = Joiner::new();
    let (mut time, mut has_times) = (Duration::ZERO, false);
    for (number, part) in parts.iter().enumerate() {
        let loaded = load(&part.path, format, console)?;
        time += loaded.time;
        has_times |= loaded.history.has_times();
        let offset = match &clocks {
            Some(clocks) => clocks[number].offset_us.checked_mul(1000),
            None => stated_skew.map(|_| 0),
        };
        joiner.add(&part.name, &loaded.history, offset).map_err(|error| failed(&error))?;
    }
    if has_times && clocks.is_none() && stated_skew.is_none() {
        console.warning(
            "the times of the parts are left out, since it is not known how their clocks compare; if all \
             clocks are within D of each other, add --clock-skew D",
        );
    }
    let history = joiner.finish().map_err(|error| failed(&error))?;
    let bounds = clocks.iter().flatten().map(|clock| clock.bound_us.saturating_mul(1000));
    let skew_ns = bounds.chain(stated_skew).max().unwrap_or(0);
    Ok(Joined { loaded: LoadedHistory { history, time }, skew_ns })
}

/// The parts, each with a name of its own: that of its file, or of the directory of its run, and a number
/// where two are called alike.
fn named(paths: &[PathBuf]) -> Vec<Part> {
    let mut taken = BTreeSet::new();
    let mut name = |path: &Path, number: usize| {
        let short = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        let name = match short.is_empty() || taken.contains(&short) {
            true => format!("{short}#{number}"),
            false => short,
        };
        taken.insert(name.clone());
        name
    };
    let part = |(number, path): (usize, &PathBuf)| {
        let (name, path) = (name(path, number + 1), history_of(path.clone()));
        Part { name, record: record_beside(&path), path }
    };
    paths.iter().enumerate().map(part).collect()
}

/// Parts of different runs have nothing to do with each other: that they look like one history would be
/// an accident.
fn refuse_other_runs(parts: &[Part]) -> Result<(), Failure> {
    let key = |record: &RunRecord| (record.seed.clone(), record.workload.kind.clone());
    let known: Vec<(&Part, &RunRecord)> =
        parts.iter().filter_map(|part| Some((part, part.record.as_ref()?))).collect();
    let Some((first, other)) = known
        .first()
        .and_then(|first| Some((first, known.iter().find(|one| key(one.1) != key(first.1))?)))
    else {
        return Ok(());
    };
    let place = |one: &(&Part, &RunRecord)| one.0.path.display().to_string();
    let message = format!("{} and {} are not parts of one run", place(first), place(other));
    Err(Failure::new(message).with_hint("all hosts of one run have the same seed and workload"))
}

/// Without one of the hosts, reads of what it wrote would look as if nobody had written it.
fn refuse_gaps(hosts: &[HostRecord]) -> Result<(), Failure> {
    let of = hosts.iter().map(|host| host.of).max().unwrap_or(0);
    for number in 1..=of {
        let named = hosts.iter().filter(|host| host.number == number).count();
        let message = match named {
            1 => continue,
            0 => format!("the part of host {number} of {of} is missing"),
            _ => format!("there are {named} parts of host {number}"),
        };
        return Err(Failure::new(message).with_hint("give the part of each host exactly once"));
    }
    Ok(())
}

fn failed(error: &JoinError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        JoinError::Initial { .. } => failure.with_hint(
            "parts of one history have the same initial state: check that they are of one run",
        ),
        _ => failure,
    }
}
