//! What is measured: an answer, with more or less to go by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use isolario::check::{CheckOptions, check};
use isolario::formats::{self, ParsedHistory, Source, version_order};
use isolario::model::{Level, StatedOrder, Verdict};
use isolario_bench::{Failure, Job, Kept, Stopwatch};

/// Nobody waits longer for one answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Whether a history satisfies a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub level: Level,
    /// Whether the time to read the files counts.
    pub loads: bool,
    /// Whether sessions are ordered.
    pub session_order: bool,
    /// Whether the order of versions beside the history is tried.
    pub version_order: bool,
}

impl Question {
    /// From the file to the answer, by the history alone.
    pub fn of(level: Level) -> Question {
        Question { level, loads: true, session_order: true, version_order: false }
    }

    fn options(&self, version_order: Vec<StatedOrder>) -> CheckOptions {
        let mut options = CheckOptions::default();
        options.session_order = self.session_order;
        options.timeout = Some(PATIENCE);
        options.version_order = version_order;
        options
    }
}

/// The order of versions of a history.
pub fn order_of(history: &Path) -> PathBuf {
    history.with_extension("order")
}

const LOAD_AND: &str = "load and ";
const WITHOUT_SESSIONS: &str = ", no session order";
const WITH_VERSIONS: &str = ", version order";

impl Job for Question {
    fn name(&self) -> String {
        let mut name = if self.loads { LOAD_AND.to_owned() } else { String::new() };
        name.push_str(self.level.name());
        if !self.session_order {
            name.push_str(WITHOUT_SESSIONS);
        }
        if self.version_order {
            name.push_str(WITH_VERSIONS);
        }
        name
    }

    fn of_name(name: &str) -> Result<Self, Failure> {
        let (rest, loads) = name.strip_prefix(LOAD_AND).map_or((name, false), |rest| (rest, true));
        let (rest, version_order) =
            rest.strip_suffix(WITH_VERSIONS).map_or((rest, false), |rest| (rest, true));
        let (rest, session_order) =
            rest.strip_suffix(WITHOUT_SESSIONS).map_or((rest, true), |rest| (rest, false));
        let level = Level::find(rest).ok_or_else(|| format!("no such job: {name}"))?;
        Ok(Question { level, loads, session_order, version_order })
    }

    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        let source = Source::open(file)?;
        let format = formats::sniff(&source).ok_or("no known format")?;
        let loaded = format.read(&source)?;
        let mut orders = Vec::new();
        if self.version_order {
            let source = Source::open(&order_of(file))?;
            orders = version_order::read(&source, &loaded.history)?.orders;
        }
        if !self.loads {
            stopwatch.restart()?;
        }
        self.answer(loaded, orders)
    }
}

impl Question {
    /// The level must hold: what is measured is the search for a violation that is not there, the
    /// longest one. It may be given up.
    fn answer(&self, loaded: ParsedHistory, orders: Vec<StatedOrder>) -> Result<Kept, Failure> {
        let results = check(&loaded.history, &[self.level], &self.options(orders));
        match results.first().map(|result| &result.verdict) {
            Some(Verdict::Satisfied(_) | Verdict::Undecided(_)) => Ok(Box::new((loaded, results))),
            _ => Err(format!("{} should be satisfied and is not", self.level).into()),
        }
    }
}
