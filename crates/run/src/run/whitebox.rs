//! The database's own word about a run: the order of versions from its log, the order that it promises,
//! and what the history comes to against both.

use std::path::Path;
use std::time::{Duration, Instant};

use isolario_check::{CheckOptions, Checker, is_decided_by_promise};
use isolario_db::certificate::{Capture, Certificate, CommitLog, assemble, difference};
use isolario_db::{DbError, NodeLogs, StateReport};
use isolario_formats::{self as formats, OutputTarget as File, Source, version_order};
use isolario_model::{
    Batch, History, Level, LevelResult, PromisedOrder, RunRecord, RunVerdict, SinkError,
    WhiteboxRecord,
};
use isolario_report::{Report, shell_word};
use isolario_workload::Kind;

use super::directory::{Directory, HISTORY, VERSION_ORDER};
use super::examine::Examination;
use super::target::RunTarget;

/// What was begun before the clients came.
pub(super) enum Begun {
    /// The database's log is captured, on every node.
    Log(Vec<Box<dyn Capture>>),
    /// The database tells its clients the order in which it gives this level.
    Told(Level),
    /// Nothing, and why.
    Failed(String),
}

/// What was captured when the clients had gone.
pub(super) enum Captured {
    Log {
        log: CommitLog,
        disagreement: Option<String>,
        sightings: Vec<StateReport>,
        took: Duration,
    },
    Told(Level),
    Failed(String),
}

/// What answers rest on, beside what clients saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// The order of versions in the log.
    Versions,
    /// The order of transactions that the database promises.
    Order,
}

impl Basis {
    /// How its files are called, but for what they hold: `version-order.proof`.
    pub(super) fn stem(self) -> &'static str {
        match self {
            Basis::Versions => "version-order",
            Basis::Order => "promised-order",
        }
    }

    /// The flags with which `check` and `verify` answer the same question.
    pub(super) fn flags(self, directory: &Path) -> String {
        match self {
            Basis::Versions => {
                let orders = shell_word(&directory.join(VERSION_ORDER).display().to_string());
                format!("--version-order {orders} --trust-version-order")
            }
            Basis::Order => "--serialization-order timestamps".to_owned(),
        }
    }

    /// How the verifier is to read the history.
    pub(super) fn read_as(
        self,
        options: isolario_verify::VerifyOptions,
    ) -> isolario_verify::VerifyOptions {
        match self {
            Basis::Versions => options.with_trusted_version_order(true),
            Basis::Order => options.with_promised_order(true),
        }
    }
}

/// What the database's own word came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Whitebox {
    /// Why there is none.
    pub failure: Option<String>,
    /// Where the logs of two nodes differ, which should be the same: a finding of its own.
    pub disagreement: Option<String>,
    /// What its log says.
    pub certificate: Option<Certificate>,
    /// The answers by the order of versions.
    pub by_versions: Vec<LevelResult>,
    /// The answers by the order that the database promises.
    pub by_order: Vec<LevelResult>,
    /// How long it took to read the log and to put it together with the history.
    pub assembled: Duration,
}

/// Begins, before there are clients.
pub(super) fn begin(target: &RunTarget, kind: Kind, shadow: bool) -> Begun {
    if shadow && !target.nodes.iter().all(|node| node.traits().shadows) {
        return Begun::Failed(format!(
            "a shadow transaction takes PostgreSQL at repeatable read or serializable, and this is {} \
             at {}",
            target.version,
            target.isolation()
        ));
    }
    if let Some(level) = target.nodes.first().and_then(|node| node.promised(kind)) {
        return Begun::Told(level);
    }
    let logs = target.nodes.first().map_or(NodeLogs::Own, |node| node.traits().logs);
    let nodes = if logs == NodeLogs::One { &target.nodes[..1] } else { &target.nodes[..] };
    if nodes.len() > 1 && logs == NodeLogs::Own {
        return Begun::Failed(
            "the order of versions can only be captured from a single node or a Galera cluster"
                .to_owned(),
        );
    }
    if kind != Kind::Predicate {
        return Begun::Failed(format!(
            "the order of versions can only be captured for the predicate workload, not for {kind}"
        ));
    }
    match nodes.iter().map(|node| node.capture()).collect() {
        Ok(captures) => Begun::Log(captures),
        Err(DbError { message, .. }) => Begun::Failed(message),
    }
}

/// The log of a cluster. Snapshots are places in the log of the node that tells them, and no order is
/// promised for all nodes: neither counts where there are several.
fn of_cluster(mut logs: Vec<CommitLog>) -> (CommitLog, Option<String>) {
    let disagreement = difference(&logs);
    let is_alone = logs.len() == 1;
    let log = logs.swap_remove(0);
    match is_alone {
        true => (log, disagreement),
        false => (log.without_order(), disagreement),
    }
}

impl Begun {
    /// Ends it, when the clients have gone.
    pub(super) fn end(self, sightings: Vec<StateReport>) -> Captured {
        let begun = Instant::now();
        match self {
            Begun::Told(level) => Captured::Told(level),
            Begun::Failed(why) => Captured::Failed(why),
            Begun::Log(captures) => {
                // All of them, whatever becomes of one.
                let logs: Vec<_> = captures.into_iter().map(Capture::stop).collect();
                match logs.into_iter().collect::<Result<Vec<_>, _>>() {
                    Ok(logs) => {
                        let (log, disagreement) = of_cluster(logs);
                        Captured::Log { log, disagreement, sightings, took: begun.elapsed() }
                    }
                    Err(error) => Captured::Failed(error.to_string()),
                }
            }
        }
    }
}

impl Whitebox {
    fn failed(why: String) -> Whitebox {
        Whitebox { failure: Some(why), ..Whitebox::default() }
    }

    /// Puts what was captured together with the history, and checks it. What the log adds to the history
    /// is in its file from then on, and the order of versions lies beside it.
    pub(super) fn examine(
        captured: Captured,
        history: &mut History,
        directory: &Directory,
        levels: &[Level],
        options: &CheckOptions,
    ) -> Whitebox {
        match captured {
            Captured::Failed(why) => Whitebox::failed(why),
            Captured::Told(level) => {
                let by_order = by_order(history, level, options);
                Whitebox { by_order, ..Whitebox::default() }
            }
            Captured::Log { log, disagreement, sightings, took } => {
                let begun = Instant::now();
                match certify(history, &log, &sightings, directory) {
                    Err(why) => Whitebox { disagreement, ..Whitebox::failed(why) },
                    Ok((certificate, certified, statements)) => {
                        *history = certified;
                        let assembled = took + begun.elapsed();
                        let promised = certificate.promised;
                        Whitebox {
                            failure: None,
                            disagreement,
                            certificate: Some(certificate),
                            by_versions: by_versions(history, statements, levels, options),
                            by_order: promised
                                .map_or_else(Vec::new, |level| by_order(history, level, options)),
                            assembled,
                        }
                    }
                }
            }
        }
    }

    /// The levels that are satisfied by what clients saw, or by the order of versions, and violated by the
    /// order that the database promises alone: it gives what it claims, but not in that order.
    pub fn not_as_promised(&self, blackbox: &Examination) -> Vec<Level> {
        let others = || blackbox.results.iter().chain(&self.by_versions);
        let is_satisfied = |level: Level| {
            others().any(|other| {
                other.verdict.is_satisfied() && (other.level == level || other.level.implies(level))
            }) && !others()
                .any(|other| other.verdict.is_violated() && level.is_ruled_out_by(other.level))
        };
        let violated = self.by_order.iter().filter(|result| result.verdict.is_violated());
        violated.map(|result| result.level).filter(|level| is_satisfied(*level)).collect()
    }

    /// The answers that rest on it, by the names of the files that hold them.
    pub(super) fn answers(&self) -> impl Iterator<Item = (Basis, &[LevelResult])> {
        let all = [(Basis::Versions, &self.by_versions[..]), (Basis::Order, &self.by_order[..])];
        all.into_iter().filter(|(_, results)| !results.is_empty())
    }

    /// As it stands in `run.json`.
    pub(super) fn record(&self, history: &History, blackbox: &Examination) -> WhiteboxRecord {
        let short = |results: &[LevelResult]| -> Vec<RunVerdict> {
            Report::new("", history, results).answers_in_short()
        };
        let certificate = self.certificate.as_ref();
        let count = |of: fn(&Certificate) -> usize| certificate.map_or(0, of) as u64;
        WhiteboxRecord {
            failure: self.failure.clone(),
            disagreement: self.disagreement.clone(),
            versions: certificate.map(|certificate| certificate.versions as u64),
            predicates: count(|certificate| certificate.predicates),
            version_sets: count(|certificate| certificate.sets),
            settled: count(|certificate| certificate.settled),
            assembled_ms: self.assembled.as_secs_f64() * 1e3,
            by_versions: short(&self.by_versions),
            by_order: short(&self.by_order),
            not_as_promised: self.not_as_promised(blackbox),
        }
    }
}

/// The answers of a run by its database's own word, once more, by what is in its directory: those by the
/// order of versions, and those by the order that the database promises. The record takes them over.
pub fn examine_own_word_again(
    history: &History,
    directory: &Path,
    record: &mut RunRecord,
    options: &CheckOptions,
) -> Result<[Vec<LevelResult>; 2], String> {
    let Some(own) = &mut record.whitebox else { return Ok(Default::default()) };
    let levels = |answers: &[RunVerdict]| -> Vec<Level> {
        answers.iter().map(|answer| answer.level).collect()
    };
    let file = directory.join(VERSION_ORDER);
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut again = [Vec::new(), Vec::new()];
    if !own.by_versions.is_empty() {
        let source = Source::open(&file).map_err(|error| failed(&error))?;
        let stated = version_order::read(&source, history).map_err(|error| failed(&error))?;
        again[0] = by_versions(history, stated, &levels(&own.by_versions), options);
    }
    if let Some(level) = levels(&own.by_order).first() {
        again[1] = by_order(history, *level, options);
    }
    own.by_versions = Report::new("", history, &again[0]).answers_in_short();
    own.by_order = Report::new("", history, &again[1]).answers_in_short();
    Ok(again)
}

/// The certificate, the history with what it adds, and the order of versions as `check` would read it.
fn certify(
    history: &History,
    log: &CommitLog,
    sightings: &[StateReport],
    directory: &Directory,
) -> Result<(Certificate, History, version_order::VersionStatements), String> {
    let certificate = assemble(history, log, sightings).map_err(|misfit| misfit.to_string())?;
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let mut batch = Batch::new();
    certificate.replay(history, &mut batch).map_err(|error| failed(&error))?;
    let certified = batch.build().map_err(|error| failed(&error))?;
    let mut orders = Vec::new();
    certificate.write_version_order(&mut orders).map_err(|error| failed(&error))?;
    directory.write(VERSION_ORDER, |out| out.write_all(&orders)).map_err(|error| failed(&error))?;
    write_history(&certified, directory).map_err(|error| failed(&error))?;
    let source = Source::from_bytes(VERSION_ORDER, orders).map_err(|error| failed(&error))?;
    let statements = version_order::read(&source, &certified).map_err(|error| failed(&error))?;
    Ok((certificate, certified, statements))
}

/// Replaces the history in the directory, as a whole or not at all.
fn write_history(history: &History, directory: &Directory) -> Result<(), SinkError> {
    let draft = directory.file(&format!(".{HISTORY}.tmp"));
    let lacks = SinkError::Sequence("the format of recordings is not there");
    let format = formats::by_extension(&directory.history()).ok_or(lacks)?;
    let mut writer = format.writer(File::Path(draft.clone()))?;
    history.replay(&mut *writer)?;
    writer.finish()?;
    Ok(std::fs::rename(draft, directory.history())?)
}

fn by_order(history: &History, level: Level, options: &CheckOptions) -> Vec<LevelResult> {
    if !is_decided_by_promise(level, true) {
        return Vec::new();
    }
    let options = options.clone().with_promised_order(PromisedOrder::of_stamps(history));
    vec![Checker::new(history, options).check(level)]
}

fn by_versions(
    history: &History,
    statements: version_order::VersionStatements,
    levels: &[Level],
    options: &CheckOptions,
) -> Vec<LevelResult> {
    let options = options
        .clone()
        .with_version_order(statements.orders)
        .with_trusted_version_order(true)
        .with_version_sets(statements.sets);
    Checker::new(history, options).check_all(levels)
}
