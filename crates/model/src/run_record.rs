//! What a live run did: the file `run.json` of a run directory, and what reports draw charts from.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::anomaly::AnomalyKind;
use crate::level::Level;
use crate::verdict::VerdictKind;

/// A run of a workload against a database.
///
/// Times are milliseconds since the run began, unless a name says otherwise. Fields may be added;
/// they never change their meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// `isolario.run/1`.
    pub schema: String,
    /// The version of Isolario.
    pub isolario: String,
    /// When it began, as seconds since 1970.
    pub began_unix_s: u64,
    /// The databases, by URL, without passwords: one per node.
    pub urls: Vec<String>,
    /// The name of the database among the claims: `postgres`.
    pub database: String,
    /// Product and version, as the database itself tells.
    pub database_version: String,
    /// The isolation setting, by the database's own name.
    pub isolation: String,
    /// What the clients did.
    pub workload: RunShape,
    /// The seed, in decimal digits: JSON numbers lose large ones.
    pub seed: String,
    /// The command that repeats the run.
    pub replay: String,
    /// How the run ended.
    pub stopped: StopReason,
    /// What ended it, in words, where it was not the plan.
    pub stopped_because: Option<String>,
    /// What ended it, as facts, where it was not the plan.
    pub stop_cause: Option<StopCause>,
    /// What befell the run besides its transactions, in the order in which it began: lost
    /// connections, nodes that could not be reached, errors, and pauses.
    pub events: Vec<RunEvent>,
    /// What was done, in all.
    pub counts: Counts,
    /// Why transactions aborted or stayed unknown, most frequent first.
    pub abort_reasons: Vec<AbortReason>,
    /// How long transactions that committed took, from begin to commit.
    pub latency: Latency,
    /// What happened second by second, from the first on.
    pub seconds: Vec<RunSecond>,
    /// How long the workload ran.
    pub run_ms: f64,
    /// How long it took to read and check the history; nothing while that is not done.
    pub check_ms: Option<f64>,
    /// The most memory the process held.
    pub peak_rss_bytes: Option<u64>,
    /// What the database did differently for the run, in words.
    pub remarks: Vec<String>,
    /// How many transactions were acknowledged before a fault of the server and are missing after it.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_commits: u64,
    /// The settings by which the server was to keep what it acknowledges, where it could be asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durability: String,
    /// When a server that was alone ended and was back after a fault, in nanoseconds on the clock of the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<[i64; 2]>,
    /// The nodes that could not be reached when the run ended.
    pub gone: Vec<GoneNode>,
    /// How many of those that committed ran while another one did; nothing while it is not known.
    pub overlapped: Option<u64>,
    /// How many of those that committed ran while another one used one of their keys, and one of the
    /// two wrote it.
    pub conflicted: Option<u64>,
    /// What the database claims for this setting and workload.
    pub claim: Vec<Level>,
    /// Where the claim comes from, in words.
    #[serde(rename = "claim_words")]
    pub claim_source: String,
    /// The levels that were asked for by name instead of the claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Level>,
    /// Whether every level was to be decided.
    #[serde(skip_serializing_if = "is_false")]
    pub asked_all: bool,
    /// What the check came to, level by level; empty while it is not done.
    pub verdicts: Vec<RunVerdict>,
    /// Where in the history the first counterexample starts: as the number of transactions that
    /// began before its first one.
    pub first_counterexample: Option<u64>,
    /// What the database's own log says, where it was asked for.
    pub whitebox: Option<WhiteboxRecord>,
    /// Which of several hosts this is, where several record one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostRecord>,
}

/// One of several hosts that record a run together, each with a part of the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRecord {
    /// Which one, from 1.
    pub number: u32,
    /// Of how many.
    pub of: u32,
    /// How its clock compares to the database's, which is the same for all hosts; nothing where the
    /// database does not tell the time.
    pub clock: Option<HostClock>,
}

/// How the clock of a history compares to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostClock {
    /// What to add to a time of the history, in microseconds, to get the time of the other clock.
    pub offset_us: i64,
    /// How far that may be off, at any time of the run.
    pub bound_us: u64,
    /// How often the clocks were compared.
    pub samples: u32,
}

/// What the database's own log says about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WhiteboxRecord {
    /// Why there is nothing to say; everything else is empty then.
    pub failure: Option<String>,
    /// How many versions of rows the log has; nothing where the clients were told the order.
    pub versions: Option<u64>,
    /// How many operations by predicate committed transactions have.
    pub predicates: u64,
    /// How many of them have a set of versions that they met.
    pub version_sets: u64,
    /// How many transactions of unknown outcome committed, as the log shows.
    pub settled: u64,
    /// How long it took to read the log and to put it together with the history.
    pub assembled_ms: f64,
    /// What the check against the order of versions came to.
    pub by_versions: Vec<RunVerdict>,
    /// What the check against the order that the database promises came to.
    pub by_order: Vec<RunVerdict>,
    /// Where the logs of two nodes differ, which should be the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<String>,
    /// The levels that are satisfied, but not by the order that the database promises.
    pub not_as_promised: Vec<Level>,
}

/// What the clients did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunShape {
    /// The kind of workload: `mini`.
    pub kind: String,
    /// How many sessions.
    pub sessions: u32,
    /// Operations per transaction.
    pub ops: u32,
    /// How many keys.
    pub keys: u32,
    /// The share of them that begin absent.
    pub absent_ratio: f64,
    /// The share of its transactions that are slow.
    pub slow_ratio: f64,
    /// The share of reads.
    pub read_ratio: f64,
    /// How operations spread over keys.
    pub distribution: String,
    /// How many transactions were to commit.
    pub txns: Option<u64>,
    /// How long it was to run.
    pub duration_ms: Option<f64>,
    /// The most transactions per second that were wanted.
    pub rate: Option<u64>,
    /// The longest pause before an operation or a commit, if clients took any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_ms: Option<f64>,
    /// How often a transaction was tried again.
    pub max_retries: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopReason {
    /// It is not over, or was cut off: nobody wrote down how it ended.
    #[default]
    Unfinished,
    /// It did all it was to do.
    Done,
    /// A person stopped it.
    Interrupted,
    /// A violation was found.
    Violation,
    /// The database went away, or failed for good.
    Database,
    /// The history could not be written.
    Recording,
}

/// What ended a run before its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopCause {
    /// The node that failed, by its position among the URLs; nothing where it was no single one.
    pub node: Option<usize>,
    /// How long nothing had committed, where that was why.
    pub stalled_ms: Option<f64>,
    /// The error, or the last one before nothing committed any more: the database's own code,
    pub code: Option<String>,
    /// and its words.
    pub message: Option<String>,
}

/// Something that befell a run, for a time. What happened to several sessions at once, or again and
/// again, is one event.
///
/// Reports draw it as a band over the timeline: its times are those of the history's transactions,
/// only in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEvent {
    /// What it was.
    pub kind: RunEventKind,
    /// When it began, in milliseconds on the clock of the history.
    pub from_ms: f64,
    /// When it was over; nothing where it was not when the run ended.
    pub to_ms: Option<f64>,
    /// The node, by its position among the URLs; nothing where it was about no single one.
    pub node: Option<usize>,
    /// The database's own code, where there was an error that had one.
    pub code: Option<String>,
    /// The first message.
    pub message: String,
    /// How often it happened: over how many sessions, errors or attempts.
    pub count: u64,
}

/// What may befall a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunEventKind {
    /// Sessions were without a connection.
    ConnectionLost,
    /// A node refused connections.
    NodeUnreachable,
    /// Transactions failed for another reason than a conflict that a second try resolves.
    Errors,
    /// Nothing committed.
    Pause,
    /// Something that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that aborted.
    pub aborted: u64,
    /// Attempts of unknown outcome.
    pub unknown: u64,
    /// Attempts that were another try of a transaction.
    pub retries: u64,
    /// Connections that were opened after one was lost.
    pub reconnects: u64,
    /// Operations that were answered.
    pub operations: u64,
}

impl Counts {
    /// Attempts of any outcome.
    pub fn attempts(&self) -> u64 {
        self.committed + self.aborted + self.unknown
    }
}

/// Why transactions did not commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AbortReason {
    /// The database's own code, where it has one.
    pub code: Option<String>,
    /// The first message of that code.
    pub message: String,
    /// What it means: `aborted`, `retryable`, `unknown` or `fatal`.
    pub class: String,
    /// How often it happened.
    pub count: u64,
}

/// A node that could not be reached when the run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoneNode {
    /// Its URL, without a password; empty where it has none.
    pub url: String,
    /// What the last attempt to connect came to.
    pub error: String,
}

/// How long transactions took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50_us: f64,
    /// Nine of ten took no longer.
    pub p90_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// 999 of 1000 took no longer.
    pub p999_us: f64,
    /// None took longer.
    pub max_us: f64,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSecond {
    /// Transactions that committed in it.
    pub committed: u64,
    /// Attempts that aborted in it.
    pub aborted: u64,
    /// Attempts whose outcome became unknown in it.
    pub unknown: u64,
    /// How long those took that committed.
    pub latency: Latency,
}

/// What a check came to, for one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunVerdict {
    /// The level.
    pub level: Level,
    /// The answer.
    pub verdict: VerdictKind,
    /// The kinds of the anomalies, clearest first, each once.
    #[serde(default)]
    pub anomalies: Vec<AnomalyKind>,
}

/// In files, a level is its full name; short names are read as well.
impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Level::find(&name).ok_or_else(|| D::Error::custom(format!("there is no level `{name}`")))
    }
}

/// In files, a kind is its name.
impl Serialize for AnomalyKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AnomalyKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = || D::Error::custom(format!("there is no anomaly `{name}`"));
        AnomalyKind::find(&name).ok_or_else(unknown)
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl RunRecord {
    /// The schema that this version writes.
    pub const SCHEMA: &'static str = "isolario.run/1";

    /// Committed transactions per second.
    pub fn throughput(&self) -> f64 {
        if self.run_ms > 0.0 { self.counts.committed as f64 * 1000.0 / self.run_ms } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_file_and_missing_fields_have_defaults() {
        let record = RunRecord {
            schema: RunRecord::SCHEMA.to_owned(),
            stopped: StopReason::Interrupted,
            seconds: vec![RunSecond { committed: 3, ..RunSecond::default() }],
            run_ms: 1500.0,
            counts: Counts { committed: 3, aborted: 1, ..Counts::default() },
            events: vec![RunEvent { kind: RunEventKind::Pause, count: 1, ..RunEvent::default() }],
            ..RunRecord::default()
        };
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""stopped":"interrupted""#), "{text}");
        assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), record);
        assert_eq!(record.throughput(), 2.0);
        let old: RunRecord = serde_json::from_str(r#"{"seed":"7","later":1}"#).unwrap();
        assert_eq!((old.seed.as_str(), old.stopped), ("7", StopReason::Unfinished));
        let newer: RunEvent = serde_json::from_str(r#"{"kind":"eclipse","from_ms":1}"#).unwrap();
        assert_eq!(newer.kind, RunEventKind::Other);
    }

    #[test]
    fn a_level_is_its_name_in_files() {
        let text = serde_json::to_string(&Level::ReadAtomic).unwrap();
        assert_eq!(text, "\"read-atomic\"");
        assert_eq!(serde_json::from_str::<Level>("\"ra\"").unwrap(), Level::ReadAtomic);
        assert!(serde_json::from_str::<Level>("\"none\"").is_err());
    }
}
