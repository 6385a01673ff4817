//! What a relational run came to.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use isolario_model::StopReason;
use serde::{Deserialize, Serialize};

use super::findings::{Finding, Row};
use super::record::Record;
use super::simplify::Simplified;
use crate::run::{Judgement, RunError};

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Figures {
    /// Rounds.
    pub rounds: u64,
    /// Transactions that committed, the last looks of sessions left aside.
    pub committed: u64,
    /// Transactions that aborted, by themselves or because of an error.
    pub aborted: u64,
    /// Transactions of unknown outcome.
    pub unknown: u64,
    /// Statements that were sent.
    pub statements: u64,
    /// Statements that the database refused.
    pub refused: u64,
    /// Statements that could not be instrumented, and were sent as they are.
    pub uninstrumented: u64,
    /// Statements that read rows which they do not show.
    pub partial: u64,
    /// Rows that statements showed.
    pub seen: u64,
    /// Anomalies that Adya's level of the setting's name forbids.
    pub anomalies: u64,
    /// Rounds that broke what they had to satisfy.
    pub broken: u64,
    /// Rounds whose dependencies by predicate are known.
    pub certified: u64,
    /// Rounds whose answers were compared with those of their transactions one after the other.
    pub compared: u64,
    /// Rounds for which that was tried, but could not be decided.
    pub not_compared: u64,
    /// Findings that there was no time to simplify.
    pub not_simplified: u64,
}

/// What a relational run found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the database among the claims.
    pub database: String,
    /// The product and its version.
    pub version: String,
    /// The run directory.
    pub directory: PathBuf,
    /// How much was done.
    pub figures: Figures,
    /// How long the rounds took, checks included.
    pub elapsed: Duration,
    /// How long it took to simplify what was found.
    pub simplified_in: Duration,
    /// How the run ended.
    pub stopped: StopReason,
    /// Everything that was found.
    pub findings: Vec<Finding>,
    /// The smallest scripts that show them: of each kind at each isolation level, those that differ.
    pub simplified: Vec<Simplified>,
    /// The same by isolation level and kind.
    pub table: BTreeMap<String, Row>,
    /// Errors of statements by code: how often, and the first message.
    pub errors: BTreeMap<String, (u64, String)>,
    /// Statements that could not be instrumented, by their first word and the reason.
    pub refusals: BTreeMap<String, u64>,
    /// What rounds had to satisfy, by isolation level.
    pub asked: BTreeMap<String, String>,
    /// What it means for whoever asked: the worst of all rounds.
    pub judgement: Judgement,
    /// Files that could not be written.
    pub unwritten: Vec<RunError>,
    /// The command that repeats the run.
    pub replay: String,
}

impl Outcome {
    /// The outcome as JSON, on one line: what stands in `findings.json`.
    pub fn json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut record = Record::new(&self.database, &self.version, self.figures);
        record.table.clone_from(&self.table);
        record.asked.clone_from(&self.asked);
        record.errors.clone_from(&self.errors);
        record.refusals.clone_from(&self.refusals);
        record.tell_findings(&self.findings);
        record.tell_simplified(&self.simplified);
        record.write(out)
    }
}
