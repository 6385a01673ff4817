//! The database's own word about a run: the order of versions from its log, the order that it promises,
//! and what the history comes to against both.

use std::time::{Duration, Instant};

use isolario_check::{Checker, Options, is_decided_by_promise};
use isolario_db::certificate::{Capture, Certificate, Log, assemble};
use isolario_db::{DbError, Sighting};
use isolario_formats::{self as formats, Source, Target as File, version_order};
use isolario_model::{
    Batch, History, Level, LevelResult, PromisedOrder, RunVerdict, SinkError, WhiteboxRecord,
};
use isolario_report::Report;
use isolario_workload::Kind;

use super::directory::{Directory, HISTORY, VERSION_ORDER};
use super::examine::{Examination, Judgement};
use super::target::Target;

/// What was begun before the clients came.
pub(super) enum Begun {
    /// The database's log is captured.
    Log(Box<dyn Capture>),
    /// The database tells its clients the order in which it gives this level.
    Told(Level),
    /// Nothing, and why.
    Failed(String),
}

/// What was captured when the clients had gone.
pub(super) enum Captured {
    Log { log: Log, sightings: Vec<Sighting>, took: Duration },
    Told(Level),
    Failed(String),
}

/// What the database's own word came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Whitebox {
    /// Why there is none.
    pub failure: Option<String>,
    /// What its log says.
    pub certificate: Option<Certificate>,
    /// The answers by the order of versions.
    pub by_versions: Vec<LevelResult>,
    /// The answers by the order that the database promises.
    pub by_order: Vec<LevelResult>,
    /// How long it took to read the log and to put it together with the history.
    pub assembled: Duration,
    /// The levels that it was asked about.
    pub asked: Vec<Level>,
}

/// Begins, before there are clients.
pub(super) fn begin(target: &Target, kind: Kind) -> Begun {
    if let Some(level) = target.nodes.first().and_then(|node| node.promised(kind)) {
        return Begun::Told(level);
    }
    let [node] = &target.nodes[..] else {
        return Begun::Failed("the order of versions is captured from a single node".to_owned());
    };
    if kind != Kind::Predicate {
        return Begun::Failed(format!(
            "the order of versions is captured for the predicate workload, not for {kind}"
        ));
    }
    match node.capture() {
        Ok(capture) => Begun::Log(capture),
        Err(DbError { message, .. }) => Begun::Failed(message),
    }
}

impl Begun {
    /// Ends it, when the clients have gone.
    pub(super) fn end(self, sightings: Vec<Sighting>) -> Captured {
        let begun = Instant::now();
        match self {
            Begun::Told(level) => Captured::Told(level),
            Begun::Failed(why) => Captured::Failed(why),
            Begun::Log(capture) => match capture.stop() {
                Ok(log) => Captured::Log { log, sightings, took: begun.elapsed() },
                Err(error) => Captured::Failed(error.to_string()),
            },
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
        options: &Options,
    ) -> Whitebox {
        let asked = levels.to_vec();
        match captured {
            Captured::Failed(why) => Whitebox::failed(why),
            Captured::Told(level) => {
                let by_order = by_order(history, level, options);
                Whitebox { by_order, asked, ..Whitebox::default() }
            }
            Captured::Log { log, sightings, took } => {
                let begun = Instant::now();
                match certify(history, &log, &sightings, directory) {
                    Err(why) => Whitebox::failed(why),
                    Ok((certificate, certified, statements)) => {
                        *history = certified;
                        let assembled = took + begun.elapsed();
                        let promised = certificate.promised;
                        Whitebox {
                            failure: None,
                            certificate: Some(certificate),
                            by_versions: by_versions(history, statements, levels, options),
                            by_order: promised
                                .map_or_else(Vec::new, |level| by_order(history, level, options)),
                            assembled,
                            asked,
                        }
                    }
                }
            }
        }
    }

    /// What it means beside the answers from what clients saw alone. A violation by either is one; where
    /// these leave something open, what the log decides counts.
    pub(super) fn judgement(&self, blackbox: &Examination) -> Judgement {
        let own = blackbox.judgement();
        let answers = || self.by_versions.iter().chain(&self.by_order);
        if own == Judgement::Violated || answers().any(|result| result.verdict.is_violated()) {
            return Judgement::Violated;
        }
        let is_open = matches!(own, Judgement::NotDecidable | Judgement::Undecided);
        let is_decided = |level: &Level| {
            answers().any(|result| {
                result.verdict.is_satisfied()
                    && (result.level == *level || result.level.implies(*level))
            })
        };
        match is_open && !self.asked.is_empty() && self.asked.iter().all(is_decided) {
            true => Judgement::Satisfied,
            false => own,
        }
    }

    /// As it stands in `run.json`.
    pub(super) fn record(&self, history: &History) -> WhiteboxRecord {
        let short = |results: &[LevelResult]| -> Vec<RunVerdict> {
            Report::new("", history, results).answers_in_short()
        };
        let certificate = self.certificate.as_ref();
        let count = |of: fn(&Certificate) -> usize| certificate.map_or(0, of) as u64;
        WhiteboxRecord {
            failure: self.failure.clone(),
            versions: certificate.map(|certificate| certificate.versions as u64),
            predicates: count(|certificate| certificate.predicates),
            version_sets: count(|certificate| certificate.sets),
            settled: count(|certificate| certificate.settled),
            assembled_ms: self.assembled.as_secs_f64() * 1e3,
            by_versions: short(&self.by_versions),
            by_order: short(&self.by_order),
        }
    }
}

/// The certificate, the history with what it adds, and the order of versions as `check` would read it.
fn certify(
    history: &History,
    log: &Log,
    sightings: &[Sighting],
    directory: &Directory,
) -> Result<(Certificate, History, version_order::Statements), String> {
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

fn by_order(history: &History, level: Level, options: &Options) -> Vec<LevelResult> {
    if !is_decided_by_promise(level, true) {
        return Vec::new();
    }
    let options = options.clone().with_promised_order(PromisedOrder::of_stamps(history));
    vec![Checker::new(history, options).check(level)]
}

fn by_versions(
    history: &History,
    statements: version_order::Statements,
    levels: &[Level],
    options: &Options,
) -> Vec<LevelResult> {
    let options = options
        .clone()
        .with_version_order(statements.orders)
        .with_trusted_version_order(true)
        .with_version_sets(statements.sets);
    Checker::new(history, options).check_all(levels)
}
