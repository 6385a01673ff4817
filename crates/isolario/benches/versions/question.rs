//! What is asked of a history.

use std::path::Path;

use isolario::check::{Options, check};
use isolario::formats::{self, Source};
use isolario::model::{AnomalyKind, Level, Verdict};
use isolario_bench::{Failure, Job, Kept, Stopwatch};

use crate::work::Work;

/// Work on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// On a history that satisfies the level.
    Holds(Work),
    /// To find what violates a level.
    Broken(Level, AnomalyKind),
    /// To find that something violates a level.
    Fails(Level),
}

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
        }
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
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
        };
        let source = Source::open(file)?;
        let loaded = formats::sniff(&source).ok_or("no known format")?.read(&source)?;
        let results = check(&loaded.history, &[level], &Options::default());
        let is_wanted = |found: AnomalyKind| kind.is_none_or(|kind| kind == found);
        match &results[0].verdict {
            Verdict::Violated(found) if found.anomalies.iter().any(|a| is_wanted(a.kind)) => {
                Ok(Box::new((loaded, results)))
            }
            _ => Err(format!("{level} should be violated, by {kind:?}").into()),
        }
    }
}
