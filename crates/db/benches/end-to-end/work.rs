//! What is measured: a run, or the checking of what it recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolario_bench::{Failure, Job, Kept, Stopwatch};
use isolario_check::check;
use isolario_db::{DbUrl, Layout, Settings, open};
use isolario_formats::read;
use isolario_model::{Level, StopReason};
use isolario_run::driver::{Control, RunPlan, run};
use isolario_servers::Servers;
use isolario_workload::{DefaultRun, Kind, Planner};

/// A run against a database.
pub struct Run {
    pub url: String,
    pub isolation: String,
    pub kind: Kind,
    pub sessions: u32,
    /// How many transactions are to commit.
    pub txns: u64,
    /// Where to record, if anywhere.
    pub history: Option<PathBuf>,
}

/// The database is next door, and nobody listens.
pub fn without_encryption(servers: &Servers) -> String {
    format!("{}?sslmode=disable", servers.url())
}

/// What a child process does with its file.
pub enum Work {
    /// The run that the file describes.
    Run,
    /// Load the history in the file, and decide a level.
    Check(Level),
}

impl Run {
    /// Writes it to the file from which a child takes it.
    pub fn write(&self, file: &Path) -> Result<(), Failure> {
        let Run { url, isolation, kind, sessions, txns, history } = self;
        let history = history.as_ref().map_or("", |path| path.to_str().unwrap_or_default());
        let lines = format!("{url}\n{isolation}\n{kind}\n{sessions}\n{txns}\n{history}\n");
        Ok(fs::write(file, lines)?)
    }

    fn read(file: &Path) -> Result<Run, Failure> {
        let text = fs::read_to_string(file)?;
        let lines: Vec<&str> = text.lines().collect();
        let [url, isolation, kind, sessions, txns, history] = lines[..] else {
            return Err("no run is described here".into());
        };
        Ok(Run {
            url: url.to_owned(),
            isolation: isolation.to_owned(),
            kind: kind.parse()?,
            sessions: sessions.parse()?,
            txns: txns.parse()?,
            history: Some(PathBuf::from(history)).filter(|path| !path.as_os_str().is_empty()),
        })
    }

    /// Runs it from empty tables. Making them is preparation.
    fn run(&self, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        let settings = Settings { isolation: Some(self.isolation.clone()), ..Settings::default() };
        let databases = [open(&DbUrl::parse(&self.url)?, &settings)?];
        let workload = DefaultRun::of(self.kind).workload;
        databases[0].prepare(&Layout::new(self.kind, workload.keys))?;
        let planner = Planner::new(&workload, self.sessions, 1)?;
        let max_retries = 0;
        let plan = RunPlan {
            databases: &databases,
            generator: &planner.with_attempts(max_retries + 1),
            sessions: self.sessions,
            txns: Some(self.txns),
            duration: None,
            rate: None,
            think: Duration::ZERO,
            gathers: false,
            max_retries,
            patience: Duration::from_secs(60),
            history: self.history.as_deref(),
            memory: 0,
        };
        stopwatch.restart()?;
        let outcome = run(&plan, &Control::new(), &mut |_| {})?;
        match outcome.stopped {
            StopReason::Done => Ok(Box::new(())),
            _ => Err(format!("{:?}", outcome.cause).into()),
        }
    }
}

impl Job for Work {
    fn name(&self) -> String {
        match self {
            Work::Run => "run".to_owned(),
            Work::Check(level) => level.name().to_owned(),
        }
    }

    fn of_name(name: &str) -> Result<Work, Failure> {
        match Level::find(name) {
            Some(level) => Ok(Work::Check(level)),
            None if name == "run" => Ok(Work::Run),
            None => Err(format!("no such job: {name}").into()),
        }
    }

    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure> {
        match self {
            Work::Run => Run::read(file)?.run(stopwatch),
            Work::Check(level) => {
                let history = read(file)?.history;
                let results = check(&history, &[*level], &isolario_check::CheckOptions::default());
                Ok(Box::new((history, results)))
            }
        }
    }
}
