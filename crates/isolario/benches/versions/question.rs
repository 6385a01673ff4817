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
}

/// What the child is told for [`Question::Broken`], followed by the level and the anomaly.
const BREAK: &str = "break ";

impl Job for Question {
    fn name(&self) -> String {
        match self {
            Question::Holds(work) => work.name(),
            Question::Broken(level, kind) => format!("{BREAK}{level} {}", kind.name()),
        }
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
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
            Question::Broken(level, kind) => (*level, *kind),
        };
        let source = Source::open(file)?;
        let loaded = formats::sniff(&source).ok_or("no known format")?.read(&source)?;
        let results = check(&loaded.history, &[level], &Options::default());
        match &results[0].verdict {
            Verdict::Violated(found) if found.anomalies.iter().any(|a| a.kind == kind) => {
                Ok(Box::new((loaded, results)))
            }
            _ => Err(format!("{level} should be violated by a {}", kind.name()).into()),
        }
    }
}
