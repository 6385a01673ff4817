//! `--hunt`: one shape after the other, until a claim is broken or the time is up.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isolario::model::{RunRecord, StopReason};
use isolario::report::{grouped, shell_word};
use isolario::run::{
    Disk, Fault, HISTORY, Handle, Hunt, Judgement, RunError, RunOutcome, Settings, crash_arguments,
    default_directory, run_after_crash,
};
use serde::Serialize;

use super::remedy;
use super::settings::Run;
use super::summary::seconds;
use crate::args::ReportForm;
use crate::console::Console;
use crate::exit::Outcome;
use crate::failure::Failure;

pub(super) fn run(
    what: &Run,
    time: Duration,
    handle: &Handle,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let out = what.settings.out.clone().unwrap_or_else(|| default_directory(what.settings.seed));
    let mut hunt = Hunt::new(what.settings.clone()).map_err(|error| remedy::failure(&error))?;
    let mut covered = Covered { crashes: what.crash, ..Covered::default() };
    let mut disk = what.disk.as_deref().map(layer).transpose()?;
    let mut found = None;
    while found.is_none() && !handle.is_interrupted() {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        let directory = out.join((covered.phases.len() + 1).to_string());
        let settings = hunt.next(left).with_out(&directory);
        let outcome = match what.crash {
            true => crashed(&settings, disk.as_mut(), handle)?,
            false => isolario::run::run(&settings, handle, &mut ())
                .map_err(|error| remedy::failure(&error))?,
        };
        let phase = Phase::of(&outcome, &settings);
        console.info(&phase.to_string());
        covered.add(&outcome, phase);
        match is_finding(&outcome) {
            true => found = Some(outcome),
            // What nobody has to look at would fill the disk. If it cannot go, it stays.
            false => _ = std::fs::remove_dir_all(&directory),
        }
    }
    covered.seconds = begun.elapsed().as_secs_f64();
    conclude(what, covered, out, found.as_ref(), console)
}

/// The most transactions per second of a phase that is going to be killed: whoever is faster would record more than
/// can be checked in the time that it took.
const FASTEST: u64 = 20_000;
/// Longer than any phase: the child must not end by itself.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// Gets between a store and the directory that it is in.
fn layer(directory: &Path) -> Result<Disk, Failure> {
    let of = |error| RunError::Disk { directory: directory.to_owned(), error };
    Disk::over(directory).map_err(|error| remedy::failure(&of(error)))
}

/// A phase that a child drives, which is killed when its time is up, and whose power fails if there is a disk. Then
/// the store is opened again here.
fn crashed(
    settings: &Settings,
    mut disk: Option<&mut Disk>,
    handle: &Handle,
) -> Result<RunOutcome, Failure> {
    let phase = settings.duration.unwrap_or_default();
    let mut endless = settings.clone().with_duration(FOR_EVER);
    endless.rate = Some(FASTEST);
    let arguments = crash_arguments(&endless).map_err(|error| remedy::failure(&error))?;
    let failed = |error: io::Error| Failure::new(format!("cannot start another process: {error}"));
    let mut child = start(&arguments, settings).map_err(failed)?;
    let history = settings.out.clone().unwrap_or_default().join(HISTORY);
    let mut begun = None;
    while begun.is_none_or(|begun: Instant| begun.elapsed() < phase) && !handle.is_interrupted() {
        if begun.is_none() && history.exists() {
            begun = Some(Instant::now());
            disk.iter().for_each(|disk| disk.sync());
        }
        if let Some(status) = child.try_wait().map_err(failed)? {
            let hint = "without --crash, the same hunt reports why";
            let message = format!("the process that had the store open ended on its own: {status}");
            return Err(Failure::new(message).with_hint(hint));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = child.kill().and_then(|()| child.wait());
    killed.map_err(failed)?;
    let fault = if disk.is_some() { Fault::Power } else { Fault::Kill };
    if let Some(disk) = disk.as_mut() {
        disk.fail()
            .map_err(|error| Failure::new(format!("cannot simulate power loss: {error}")))?;
    }
    run_after_crash(settings, fault, handle, &mut ()).map_err(|error| remedy::failure(&error))
}

/// Starts this program again, to drive the workload until it is killed.
fn start(arguments: &str, settings: &Settings) -> io::Result<Child> {
    let program = std::env::current_exe()?;
    let out = settings.out.clone().unwrap_or_default();
    let words = [program, out].map(|path| shell_word(&path.display().to_string()));
    let command = format!("exec {} {arguments} --out {}", words[0], words[1]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn()
}

/// A broken claim, or a store that failed.
fn is_finding(outcome: &RunOutcome) -> bool {
    outcome.judgement() == Judgement::Violated
        || matches!(outcome.record.stopped, StopReason::Database | StopReason::Recording)
}

/// Tells what was found, as a run of its shape alone would, and what was covered.
fn conclude(
    what: &Run,
    mut covered: Covered,
    out: PathBuf,
    found: Option<&RunOutcome>,
    console: &mut Console,
) -> Result<Outcome, Failure> {
    covered.found = found.is_some();
    match found {
        Some(found) => super::tell(found, what.form, 1, console)?,
        // There is nothing left in it.
        None => _ = std::fs::remove_dir(out),
    }
    match what.form {
        ReportForm::Json => covered.json(console.out())?,
        ReportForm::Human => covered.human(console.out())?,
        ReportForm::Junit | ReportForm::Github => {}
    }
    let worst = covered.phases.iter().map(|phase| phase.outcome).max();
    Ok(found.map(super::exit_of).or(worst).unwrap_or(Outcome::Done))
}

/// What one phase asked for, and what it came to.
#[derive(Serialize)]
struct Phase {
    workload: String,
    sessions: u32,
    keys: u32,
    think_us: u64,
    value_size: u32,
    seed: String,
    committed: u64,
    overlapped: Option<u64>,
    seconds: f64,
    #[serde(skip)]
    outcome: Outcome,
}

impl Phase {
    fn of(outcome: &RunOutcome, settings: &Settings) -> Phase {
        let RunRecord { counts, overlapped, run_ms, check_ms, seed, .. } = &outcome.record;
        Phase {
            workload: settings.workload.kind.to_string(),
            sessions: settings.sessions,
            keys: settings.workload.keys,
            think_us: settings.think.unwrap_or_default().as_micros() as u64,
            value_size: settings.value_size,
            seed: seed.clone(),
            committed: counts.committed,
            overlapped: *overlapped,
            seconds: (run_ms + check_ms.unwrap_or_default()) / 1e3,
            outcome: super::exit_of(outcome),
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Phase { workload, sessions, keys, think_us, value_size, .. } = self;
        write!(f, "{workload}, {sessions} sessions, {keys} keys, pauses up to {think_us} us")?;
        if *value_size > 0 {
            write!(f, ", values of {value_size} bytes")?;
        }
        write!(f, ": {} committed", grouped(self.committed))?;
        if let Some(overlapped) = self.overlapped {
            write!(f, ", {} overlapped", grouped(overlapped))?;
        }
        Ok(())
    }
}

fn phases(count: usize) -> String {
    match count {
        1 => "1 phase".to_owned(),
        _ => format!("{count} phases"),
    }
}

/// All phases.
#[derive(Default, Serialize)]
struct Covered {
    database_version: String,
    isolation: String,
    /// Each level that was claimed for some workload.
    claims: BTreeSet<&'static str>,
    /// Whether each phase ended with a crash.
    crashes: bool,
    found: bool,
    seconds: f64,
    phases: Vec<Phase>,
}

impl Covered {
    fn add(&mut self, outcome: &RunOutcome, phase: Phase) {
        let RunRecord { database_version, isolation, claim, .. } = &outcome.record;
        self.database_version.clone_from(database_version);
        self.isolation.clone_from(isolation);
        self.claims.extend(claim.iter().map(|level| level.name()));
        self.phases.push(phase);
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let took = seconds(Duration::from_secs_f64(self.seconds));
        let committed: u64 = self.phases.iter().map(|phase| phase.committed).sum();
        let (count, committed) = (phases(self.phases.len()), grouped(committed));
        let what = if self.found { "Found" } else { "Nothing was found" };
        writeln!(out, "\n{what} after {took}, {count} and {committed} transactions:")?;
        let mut by_workload: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for phase in &self.phases {
            let (count, committed) = by_workload.entry(&phase.workload).or_default();
            *count += 1;
            *committed += phase.committed;
        }
        for (workload, (count, committed)) in by_workload {
            let (count, committed) = (phases(count), grouped(committed));
            writeln!(out, "  {workload:<10} {count}, {committed} transactions")?;
        }
        let range = |of: fn(&Phase) -> u64| {
            let values = || self.phases.iter().map(of);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let ranges = [
            ("keys", range(|phase| phase.keys.into())),
            ("sessions", range(|phase| phase.sessions.into())),
            ("pauses, us", range(|phase| phase.think_us)),
            ("bytes", range(|phase| phase.value_size.max(8).into())),
        ];
        for (name, (least, most)) in ranges {
            writeln!(out, "  {name:<10} {least} to {most}")?;
        }
        if self.crashes {
            writeln!(out, "  crashes    1 at the end of each phase")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'c> {
            schema: &'static str,
            #[serde(flatten)]
            covered: &'c Covered,
        }
        serde_json::to_writer(&mut *out, &Line { schema: "isolario.hunt/1", covered: self })?;
        writeln!(out)
    }
}
