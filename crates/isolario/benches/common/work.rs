//! What is measured.

use std::path::Path;

use isolario::check::{CheckOptions, check};
use isolario::formats::{self, ParsedHistory, Source};
use isolario::model::{Level, Verdict};
use isolario_bench::{Failure, Job, Kept, Stopwatch};

/// Work on a history in a file of any format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A floor: count the newlines.
    Count,
    /// A floor: copy the bytes.
    Copy,
    /// Load.
    Load,
    /// Load and check a level.
    LoadAndCheck(Level),
    /// Check a level of a history that is there already.
    Check(Level),
}

/// What the child is told for [`Work::LoadAndCheck`], followed by the level.
const LOAD_AND: &str = "load and ";

impl Job for Work {
    fn name(&self) -> String {
        match self {
            Work::Count => "count".to_owned(),
            Work::Copy => "copy".to_owned(),
            Work::Load => "load".to_owned(),
            Work::LoadAndCheck(level) => format!("{LOAD_AND}{level}"),
            Work::Check(level) => level.to_string(),
        }
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
        let level = |name| Level::find(name).ok_or_else(|| format!("no such job: {name}"));
        Ok(match (name, name.strip_prefix(LOAD_AND)) {
            ("count", _) => Work::Count,
            ("copy", _) => Work::Copy,
            ("load", _) => Work::Load,
            (_, Some(name)) => Work::LoadAndCheck(level(name)?),
            (name, None) => Work::Check(level(name)?),
        })
    }

    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        let source = Source::open(file)?;
        Ok(match self {
            Work::Count => Box::new(isolario_bench::count_newlines(source.require_file()?)),
            Work::Copy => Box::new(isolario_bench::copy(source.require_file()?)),
            Work::Load => Box::new(load(&source)?),
            Work::LoadAndCheck(level) => satisfied(load(&source)?, *level)?,
            Work::Check(level) => {
                let loaded = load(&source)?;
                stopwatch.restart()?;
                satisfied(loaded, *level)?
            }
        })
    }
}

fn load(source: &Source) -> Result<ParsedHistory, Failure> {
    let format = formats::sniff(source).ok_or("no known format")?;
    Ok(format.read(source)?)
}

/// Checks a level that must hold: what is measured is the search for a violation that is not
/// there, the longest one.
fn satisfied(loaded: ParsedHistory, level: Level) -> Result<Kept, Failure> {
    let results = check(&loaded.history, &[level], &CheckOptions::default());
    match &results[..] {
        [result] if matches!(result.verdict, Verdict::Satisfied(_)) => {
            Ok(Box::new((loaded, results)))
        }
        _ => Err(format!("{level} should be satisfied and is not").into()),
    }
}
