//! What is asked of a history.

use std::path::Path;

use isolario::check::{CheckOptions, check};
use isolario::formats::{self, ParsedHistory, Source};
use isolario::model::{AnomalyKind, Level, Verdict};
use isolario_bench::{Failure, Job, Kept, Stopwatch};

use crate::work::Work;
use crate::{orders, plain};

/// Work on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// On a history that satisfies the level.
    Holds(Work),
    /// To find what violates a level.
    Broken(Level, AnomalyKind),
    /// To find that something violates a level.
    Fails(Level),
    /// On a history that is serializable by what the database says of it, loading included or not.
    Stated(Statement, Loading),
    /// To compare all versions with all predicates, once everything is loaded.
    EveryVersion,
}

/// What a database says of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The order of versions, and which of them operations met.
    Certificate,
    /// The order of transactions.
    Promise,
}

/// Whether the time to load a history and what is stated of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    Counts,
    IsLeftOut,
}

/// What the child is told for [`Question::Stated`].
const STATED: [(&str, Question); 4] = [
    ("load and certificate", Question::Stated(Statement::Certificate, Loading::Counts)),
    ("certificate", Question::Stated(Statement::Certificate, Loading::IsLeftOut)),
    ("load and promise", Question::Stated(Statement::Promise, Loading::Counts)),
    ("promise", Question::Stated(Statement::Promise, Loading::IsLeftOut)),
];

/// What it is told for [`Question::EveryVersion`].
const EVERY_VERSION: &str = "every version";

/// What the child is told for [`Question::Broken`], followed by the level and the anomaly.
const BREAK: &str = "break ";

/// What it is told for [`Question::Fails`], followed by the level.
const FAIL: &str = "violate ";

impl Job for Question {
    fn name(&self) -> String {
        match self {
            Question::Holds(work) => work.name(),
            Question::Broken(level, kind) => format!("{BREAK}{level} {}", kind.name()),
            Question::Fails(level) => format!("{FAIL}{level}"),
            Question::EveryVersion => EVERY_VERSION.to_owned(),
            Question::Stated(..) => {
                let own = STATED.iter().find(|(_, question)| question == self);
                own.map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
        }
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
        if name == EVERY_VERSION {
            return Ok(Question::EveryVersion);
        }
        if let Some((_, question)) = STATED.iter().find(|(known, _)| *known == name) {
            return Ok(*question);
        }
        if let Some(level) = name.strip_prefix(FAIL) {
            let level = Level::find(level).ok_or_else(|| format!("no such job: {name}"))?;
            return Ok(Question::Fails(level));
        }
        let Some((level, kind)) = name.strip_prefix(BREAK).and_then(|rest| rest.split_once(' '))
        else {
            return Work::of_name(name).map(Question::Holds);
        };
        let unknown = || format!("no such job: {name}");
        let level = Level::find(level).ok_or_else(unknown)?;
        let kind = AnomalyKind::find(kind).ok_or_else(unknown)?;
        Ok(Question::Broken(level, kind))
    }

    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        let (level, kind) = match self {
            Question::Holds(work) => return work.run(file, stopwatch),
            Question::Broken(level, kind) => (*level, Some(*kind)),
            Question::Fails(level) => (*level, None),
            Question::Stated(statement, loading) => {
                return stated(file, *statement, *loading, stopwatch);
            }
            Question::EveryVersion => {
                let loaded = load(file)?;
                let options = orders::certificate(file, &loaded.history)?;
                stopwatch.restart()?;
                let edges = plain::edges(&loaded.history, &options)?;
                return Ok(Box::new((loaded, edges)));
            }
        };
        let loaded = load(file)?;
        let results = check(&loaded.history, &[level], &CheckOptions::default());
        let is_wanted = |found: AnomalyKind| kind.is_none_or(|kind| kind == found);
        match &results[0].verdict {
            Verdict::Violated(found) if found.anomalies.iter().any(|a| is_wanted(a.kind)) => {
                Ok(Box::new((loaded, results)))
            }
            _ => Err(format!("{level} should be violated, by {kind:?}").into()),
        }
    }
}

fn load(file: &Path) -> Result<ParsedHistory, Failure> {
    let source = Source::open(file)?;
    Ok(formats::sniff(&source).ok_or("no known format")?.read(&source)?)
}

/// Finds that a history is serializable by what is stated of it.
fn stated(
    file: &Path,
    statement: Statement,
    loading: Loading,
    stopwatch: &mut Stopwatch,
) -> Result<Kept, Failure> {
    let loaded = load(file)?;
    let options = match statement {
        Statement::Certificate => orders::certificate(file, &loaded.history)?,
        Statement::Promise => orders::promise(file, &loaded.history)?,
    };
    if loading == Loading::IsLeftOut {
        stopwatch.restart()?;
    }
    let results = check(&loaded.history, &[Level::Serializable], &options);
    match &results[0].verdict {
        Verdict::Satisfied(_) => Ok(Box::new((loaded, options, results))),
        _ => Err(format!("it should be serializable by its {statement:?}").into()),
    }
}
