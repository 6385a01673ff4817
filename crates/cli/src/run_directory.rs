//! What lies beside a history that `isolario run` recorded.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use isolario::model::RunRecord;
use isolario::report::shell_word;

const HISTORY: &str = "history.iso";
const RECORD: &str = "run.json";
const PROOF: &str = "proof";

/// What is known of the run that recorded a history: it lies beside it.
pub(crate) fn record_beside(history: &Path) -> Option<RunRecord> {
    if history.file_name()? != HISTORY {
        return None;
    }
    let file = File::open(history.with_file_name(RECORD)).ok()?;
    let record: RunRecord = serde_json::from_reader(BufReader::new(file)).ok()?;
    (record.schema == RunRecord::SCHEMA).then_some(record)
}

/// The command that verifies the proof that a run left beside its history.
pub(crate) fn verify_beside(history: &Path) -> Option<String> {
    let proof = history.with_file_name(PROOF);
    proof.is_file().then(|| verify(history, &proof))
}

/// The command that verifies a proof.
pub(crate) fn verify(history: &Path, proof: &Path) -> String {
    let word = |path: &Path| shell_word(&path.display().to_string());
    format!("isolario verify {} {}", word(history), word(proof))
}
