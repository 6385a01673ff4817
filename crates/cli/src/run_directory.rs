//! The directory of a run: its history, and what lies beside it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use isolario::model::RunRecord;
use isolario::report::shell_word;
use isolario::run::{HISTORY, Outage, PROOF, RECORD, recorded_outages};

use crate::failure::Failure;

/// The history in the directory of a run.
pub(crate) fn history_in(directory: &Path) -> Option<PathBuf> {
    Some(directory.join(HISTORY)).filter(|history| history.is_file())
}

/// The history that a path means: that of a run, if it is the directory of one.
pub(crate) fn history_of(path: PathBuf) -> PathBuf {
    history_in(&path).unwrap_or(path)
}

/// The proof in the directory of a run.
pub(crate) fn proof_in(directory: &Path) -> Option<PathBuf> {
    Some(directory.join(PROOF)).filter(|proof| proof.is_file())
}

/// What is known of the run that recorded a history: it lies beside it.
pub(crate) fn record_beside(history: &Path) -> Option<RunRecord> {
    if history.file_name()? != HISTORY {
        return None;
    }
    record_in(history.parent()?)
}

/// When the server of the run that recorded a history ended and came back; empty where nothing is known of that.
pub(crate) fn outages_beside(history: &Path) -> Vec<Outage> {
    record_beside(history).as_ref().map_or_else(Vec::new, recorded_outages)
}

/// Refuses the history of one host where several recorded a run: what its clients read was written on the
/// other hosts, too.
pub(crate) fn refuse_part(history: &Path) -> Result<(), Failure> {
    let Some(record) = record_beside(history) else { return Ok(()) };
    let Some(own) = record.host.filter(|host| host.of > 1) else { return Ok(()) };
    let directory = match history.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let others = beside(directory).into_iter().filter_map(|path| {
        let other = record_in(&path)?;
        let is_same = other.seed == record.seed && other.workload.kind == record.workload.kind;
        Some((other.host.filter(|host| is_same && host.of == own.of)?.number, path))
    });
    let mut parts: BTreeMap<u32, PathBuf> =
        (1..=own.of).map(|number| (number, format!("PART{number}").into())).collect();
    parts.extend(others);
    parts.insert(own.number, directory.to_owned());
    let parts: Vec<String> =
        parts.values().map(|path| shell_word(&path.display().to_string())).collect();
    let message = format!(
        "{} is part {} of {} of a run by several hosts, and cannot be checked without the others",
        directory.display(),
        own.number,
        own.of
    );
    let hint = format!("check all parts together: isolario check --join {}", parts.join(" "));
    Err(Failure::new(message).with_hint(hint))
}

/// What lies beside a directory.
fn beside(directory: &Path) -> Vec<PathBuf> {
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut found: Vec<PathBuf> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| directory.with_file_name(entry.file_name()))
        .collect();
    found.sort();
    found
}

/// What is known of a run, by its directory.
pub(crate) fn record_in(directory: &Path) -> Option<RunRecord> {
    let file = File::open(directory.join(RECORD)).ok()?;
    let record: RunRecord = serde_json::from_reader(BufReader::new(file)).ok()?;
    (record.schema == RunRecord::SCHEMA).then_some(record)
}

/// Refuses URLs as they are recorded, with `***` for what was a password or looked like one.
pub(crate) fn refuse_masked<'u>(mut urls: impl Iterator<Item = &'u str>) -> Result<(), Failure> {
    match urls.any(|url| url.contains("***")) {
        true => Err(Failure::new("the password of the database was not recorded")
            .with_hint("give the URL with the password: --db URL")),
        false => Ok(()),
    }
}

/// The command that verifies the proof that a run left beside its history.
pub(crate) fn verify_beside(history: &Path) -> Option<String> {
    proof_in(history.parent()?).map(|proof| verify(history, &proof))
}

/// The command that verifies a proof.
pub(crate) fn verify(history: &Path, proof: &Path) -> String {
    let word = |path: &Path| shell_word(&path.display().to_string());
    format!("isolario verify {} {}", word(history), word(proof))
}
