//! Live runs: stress a database, record what its clients see, check it, and write it down.
//!
//! [`Settings`] say what to run. [`run`] opens the database, drives the workload, checks the history
//! against what the database claims (or against the levels that were asked for), and leaves a
//! directory: `run.json`, `history.iso`, `verdict.json`, `proof`, `report.html`; where something is
//! violated, the smallest part that shows it as `shrunk.txt` with `shrunk.proof`; and `bug-report.md` where
//! that was claimed or asked for. What it found is a [`RunOutcome`], full of facts;
//! nothing is printed.
//!
//! ```
//! use isolario::run::{Handle, Judgement, Settings, run};
//! use isolario::workload::Kind;
//!
//! # let dir = tempfile::tempdir()?;
//! # let out = dir.path().join("run");
//! let settings = Settings::new(Kind::Mini)
//!     .with_url("sim:serializable?anomaly=LostUpdate")?
//!     .with_txns(2000)
//!     .with_out(out);
//! let outcome = run(&settings, &Handle::new(), &mut ())?;
//! assert_eq!(outcome.judgement(), Judgement::Violated);
//! println!("{}", outcome.promise());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A database that has no URL is run with [`run_against`]. Of a store of keys and values, four methods
//! make a database:
//!
//! ```
#![doc = include_str!("../../examples/store_of_your_own.rs")]
//! ```
//!
//! A workload of one's own is run with
//! [`run_with`]. A [`Handle`] ends a run early; an [`Observer`] is told how it goes.

mod crash;
mod directory;
mod drive;
mod error;
mod examine;
mod faults;
mod handle;
mod host;
mod hunt;
mod lost;
mod outcome;
pub mod relational;
mod replay;
mod resources;
mod settings;
mod target;
mod whitebox;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::driver::{RunProgress, WorkloadOutcome};
use isolario_check::CheckOptions;
use isolario_db::{self as db, Database};
use isolario_formats::{self as formats, ParsedHistory};
use isolario_model::{
    GoneNode, History, HostRecord, LevelResult, RunEvent, RunEventKind, RunRecord, RunShape,
    StopReason,
};
use isolario_report::sentences::stopped_because;
use isolario_report::{Json, Renderer, Report, Timing, bug_report, first_counterexample, html};
use isolario_verify::proof;
use isolario_workload::{Generator, Workload};

pub use crash::{crash_arguments, run_after_crash};
pub use directory::{
    HISTORY, PROOF, RECORD, SHRUNK, SHRUNK_PROOF, VERSION_ORDER, default_directory,
};
pub use error::RunError;
pub use examine::{Examination, Judgement, examine, examine_with, recorded_ask};
pub use faults::{Disk, Fault, Faults, FaultyServer};
pub use handle::{Handle, Stage};
pub use host::{Host, MeetingError};
pub use hunt::Hunt;
pub use lost::{LostCommits, Outage, report_of_lost};
pub use outcome::{Promise, RunOutcome};
pub use resources::peak_rss_bytes;
pub use settings::{Ask, Settings, Shrinking};
pub use target::RunTarget;
pub use whitebox::{Whitebox, examine_own_word_again};

use directory::{Directory, unix_seconds};
use drive::Course;
use faults::Trouble;
use host::{Comparison, SomeSessions};
use outcome::provenance;
use target::suited;
use whitebox::{Basis, Captured};

use isolario_shrink::{self as shrink, Shrunk, ShrunkHistory};

/// Is told how a run goes. Every method does nothing by default.
pub trait Observer {
    /// The database was opened, asked who it is, and made ready.
    fn opened(&mut self, target: &RunTarget) {
        let _ = target;
    }

    /// The workload is about to begin, and will be recorded in this directory.
    fn recording(&mut self, directory: &std::path::Path) {
        let _ = directory;
    }

    /// How the workload stands, several times a second.
    fn driving(&mut self, progress: &RunProgress) {
        let _ = progress;
    }

    /// The workload is over.
    fn driven(&mut self, outcome: &WorkloadOutcome) {
        let _ = outcome;
    }

    /// The history is about to be read and checked, with these options.
    fn checking(&mut self, options: &mut CheckOptions) {
        let _ = options;
    }

    /// The history is checked.
    fn checked(&mut self) {}
}

/// Nobody is told.
impl Observer for () {}

/// Runs the workload of the settings against the database of their URLs.
pub fn run(
    settings: &Settings,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    settings.planner()?;
    conduct(settings, None, || RunTarget::open(settings), handle, observer)
}

/// As [`run`], against a database of one's own, given by its nodes. Clients pause within their
/// transactions, unless [`Settings::think`] says otherwise, and wait for each other in some, so that
/// transactions overlap.
pub fn run_against(
    settings: &Settings,
    nodes: Vec<Box<dyn Database>>,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    let think = Some(settings.think.unwrap_or(Settings::THINK_IN_PROCESS));
    let settings = &Settings { think, gathers: true, ..settings.clone() };
    settings.planner()?;
    conduct(settings, None, || RunTarget::of(nodes, settings), handle, observer)
}

/// As [`run`], with a workload of one's own in place of the settings'. These still say of which kind
/// it is, and over how many keys.
pub fn run_with(
    settings: &Settings,
    generator: &(dyn Generator + Sync),
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    let workload = Workload { absent_ratio: 0.0, slow_ratio: 0.0, ..settings.workload.clone() };
    let settings = &settings.clone().with_workload(workload);
    conduct(settings, Some(generator), || RunTarget::open(settings), handle, observer)
}

/// What one of several hosts recorded: a part of a history, which is checked once it is joined with the
/// others.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartOutcome {
    /// What was done, as it stands in `run.json`.
    pub record: RunRecord,
    /// The directory of the part.
    pub directory: PathBuf,
}

/// Runs one host's share of a workload, together with the other hosts, and records what its clients see.
/// The settings say which [host](Settings::host) it is.
///
/// Hosts wait for each other before they begin. Their parts are put together by a
/// [`Joiner`](isolario_model::Joiner), or by `isolario check --join`.
pub fn run_part(
    settings: &Settings,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<PartOutcome, RunError> {
    let host = settings.host.ok_or(RunError::Nothing("hosts"))?;
    settings.planner()?;
    handle.enter(Stage::Opening);
    let outcome = RunTarget::open(settings).and_then(|mut target| {
        let settings = &*suited(settings, target.nodes[0].as_ref());
        let planner = settings.planner()?;
        let first_session = host.first_session(settings.sessions);
        let generator = SomeSessions { all: &planner, first: first_session };
        let meeting = host::meet(host, &mut target, settings, handle)?;
        observer.opened(&target);
        let leave = |target: &RunTarget| meeting.part(&target.nodes, handle);
        let Recorded { directory, record, .. } =
            record(settings, &generator, target, handle, observer, leave)?;
        directory.write_record(&record)?;
        Ok(PartOutcome { record, directory: directory.path().to_owned() })
    });
    handle.enter(Stage::Idle);
    outcome
}

/// One run, from the first connection to the last file. Whichever way it ends, the handle is idle
/// afterwards.
fn conduct(
    settings: &Settings,
    generator: Option<&(dyn Generator + Sync)>,
    open: impl FnOnce() -> Result<RunTarget, RunError>,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    if settings.host.is_some() {
        return Err(RunError::OnlyAPart);
    }
    handle.enter(Stage::Opening);
    let outcome = open().and_then(|target| {
        observer.opened(&target);
        let settings = &*suited(settings, target.nodes[0].as_ref());
        let planner;
        let generator = match generator {
            Some(generator) => generator,
            None => {
                planner = settings.planner()?;
                &planner
            }
        };
        let leave = |target: &RunTarget| db::clear(&target.nodes);
        let recorded = record(settings, generator, target, handle, observer, leave)?;
        finish(settings, recorded, handle, observer)
    });
    handle.enter(Stage::Idle);
    outcome
}

/// A run whose workload is over.
struct Recorded {
    directory: Directory,
    record: RunRecord,
    claim: db::Claim,
    options: CheckOptions,
    /// The recorded history, unless it is to be read from its file.
    history: Option<ParsedHistory>,
    /// What the database itself says, where that was asked for.
    captured: Option<Captured>,
    /// When the server ended and came back.
    outages: Vec<Outage>,
}

/// Drives the workload. Whichever way it ends, `leave` tidies up in the database.
fn record(
    settings: &Settings,
    generator: &(dyn Generator + Sync),
    target: RunTarget,
    handle: &Handle,
    observer: &mut dyn Observer,
    leave: impl FnOnce(&RunTarget),
) -> Result<Recorded, RunError> {
    if handle.is_interrupted() {
        return Err(RunError::Interrupted);
    }
    let path = settings.out.clone().unwrap_or_else(|| default_directory(settings.seed));
    let directory = Directory::create(path)?;
    let mut record = begin(settings, &target);
    let options = CheckOptions::default().with_timeout(settings.check_timeout);
    let history = directory.history();
    let begun = settings
        .whitebox
        .then(|| whitebox::begin(&target, settings.workload.kind, settings.shadow));
    let comparison = match settings.host {
        Some(_) => Comparison::begin(target.nodes[0].as_ref()).map_err(RunError::Open)?,
        None => None,
    };
    let course = Course {
        settings,
        target: &target,
        generator,
        history: &history,
        options: &options,
        comparison: comparison.map(Mutex::new),
    };
    let driven = directory.write_record(&record).and_then(|()| {
        observer.recording(directory.path());
        let control = handle.begin_driving().ok_or(RunError::Interrupted)?;
        course.drive(&control, &mut |progress| {
            if target.is_lost() {
                control.stop(StopReason::Database, None);
            }
            observer.driving(progress);
        })
    });
    let driven = match driven {
        Ok(driven)
            if driven.stopped == StopReason::Interrupted && driven.counts.attempts() == 0 =>
        {
            Err(RunError::Interrupted)
        }
        driven => driven,
    };
    // The tables of another run are left alone, and nothing is said about what it did to ours.
    let is_alone =
        target.confirm(may_have_lost(&target, driven.as_ref().ok()), settings.urls.first());
    let mut driven = match (driven, &is_alone) {
        (Ok(driven), Ok(())) => driven,
        (driven, _) => {
            // What was made for the capture goes as well.
            begun.map(|begun| begun.end(Vec::new()));
            if is_alone.is_ok() {
                leave(&target);
            }
            directory.discard();
            return Err(is_alone.err().or(driven.err()).unwrap_or(RunError::Interrupted));
        }
    };
    if let Some(trouble) = &target.trouble {
        match trouble.failure() {
            // A fault that did not happen shows nothing, and a server that is gone keeps no promise.
            Some(cause) if driven.stopped != StopReason::Interrupted => {
                (driven.stopped, driven.cause) = (StopReason::Database, Some(cause));
            }
            // Sessions that ended during a fault missed that the server came back.
            None if trouble.is_of_server() && driven.stopped == StopReason::Done => {
                driven.gone.clear();
            }
            _ => {}
        }
    }
    let clock = course.comparison.map(|comparison| {
        let comparison = comparison.into_inner().unwrap_or_else(PoisonError::into_inner);
        comparison.result(driven.epoch)
    });
    record.host =
        settings.host.map(|host| HostRecord { number: host.number(), of: host.of(), clock });
    let sightings = std::mem::take(&mut driven.sightings);
    let recorded = driven.history.take();
    let captured = begun.map(|begun| begun.end(sightings));
    leave(&target);
    observer.driven(&driven);
    let outages = outages(&target, driven.epoch);
    note(&mut record, driven, settings);
    record.remarks.extend(target.trouble.iter().flat_map(Trouble::told));
    // The verdict does not depend on it, and it is written again at the end.
    let _ = directory.write_record(&record);
    // The database is let go of before the check, and with it its temporary files.
    let claim = target.claim;
    Ok(Recorded { directory, record, claim, options, history: recorded, captured, outages })
}

/// Whether a server may have lost what it was sent: it had faults, or connections to it broke.
fn may_have_lost(target: &RunTarget, driven: Option<&WorkloadOutcome>) -> bool {
    let is_broken = |event: &RunEvent| event.kind == RunEventKind::ConnectionLost;
    target.trouble.as_ref().is_some_and(Trouble::is_of_server)
        || driven.is_none_or(|driven| driven.events.iter().any(is_broken))
}

/// When the server ended and came back. Of several nodes, one may be late with what another one has
/// acknowledged: then nobody knows whether it is lost.
fn outages(target: &RunTarget, epoch: Instant) -> Vec<Outage> {
    match (&target.trouble, target.nodes.len()) {
        (Some(trouble), 1) => trouble.outages(epoch),
        _ => Vec::new(),
    }
}

/// When the server ended and came back, as the record of a run tells.
pub fn recorded_outages(record: &RunRecord) -> Vec<Outage> {
    record.outages.iter().map(|[begun, over]| Outage { begun: *begun, over: *over }).collect()
}

/// What is known before anything has happened.
fn begin(settings: &Settings, target: &RunTarget) -> RunRecord {
    let workload = &settings.workload;
    let (asked, asked_all) = match &settings.ask {
        Ask::Claim => (Vec::new(), false),
        Ask::Levels { levels, named } => (named.clone(), levels.len() > named.len()),
    };
    // It matters where the server is going to end.
    let is_to_end = settings.faults.is_some() || settings.to_be_killed.is_some();
    let first = target.nodes.first().filter(|_| is_to_end);
    RunRecord {
        asked,
        asked_all,
        durability: first.and_then(|node| node.durability()).unwrap_or_default(),
        schema: RunRecord::SCHEMA.to_owned(),
        isolario: env!("CARGO_PKG_VERSION").to_owned(),
        began_unix_s: unix_seconds(),
        urls: settings.urls.iter().map(ToString::to_string).collect(),
        database: target.name().to_owned(),
        database_version: target.version.clone(),
        isolation: target.isolation().to_owned(),
        workload: RunShape {
            kind: workload.name().to_owned(),
            sessions: settings.sessions,
            ops: workload.max_ops(),
            keys: workload.keys,
            absent_ratio: workload.absent_ratio,
            slow_ratio: workload.slow_share(),
            read_ratio: workload.read_ratio,
            distribution: workload.distribution.to_string(),
            txns: settings.txns,
            duration_ms: settings.duration.map(|duration| duration.as_secs_f64() * 1e3),
            rate: settings.rate,
            think_ms: (settings.think.map(|think| think.as_secs_f64() * 1e3))
                .filter(|think| *think > 0.0),
            max_retries: settings.max_retries,
        },
        seed: settings.seed.to_string(),
        replay: replay::command(settings, target.isolation()),
        remarks: target.remarks(),
        claim: target.claim.levels.clone(),
        claim_source: target.claim.source.clone(),
        ..RunRecord::default()
    }
}

/// What the workload came to.
fn note(record: &mut RunRecord, driven: WorkloadOutcome, settings: &Settings) {
    record.stopped = driven.stopped;
    record.stopped_because =
        driven.cause.as_ref().map(|cause| stopped_because(cause, &record.urls));
    record.stop_cause = driven.cause;
    record.events = driven.events;
    record.counts = driven.counts;
    record.abort_reasons = driven.abort_reasons;
    record.latency = driven.latency;
    record.seconds = driven.seconds;
    record.run_ms = driven.elapsed.as_secs_f64() * 1e3;
    record.peak_rss_bytes = peak_rss_bytes();
    let url = |node: usize| settings.urls.get(node).map_or_else(String::new, ToString::to_string);
    let gone = driven.gone.into_iter();
    record.gone = gone.map(|(node, error)| GoneNode { url: url(node), error }).collect();
}

/// Checks what was recorded, and writes everything down that can be written.
fn finish(
    settings: &Settings,
    recorded: Recorded,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    let Recorded { directory, mut record, claim, options, history, captured, outages } = recorded;
    let mut options = options.with_stop(handle.begin_checking());
    observer.checking(&mut options);
    let begun = Instant::now();
    let loaded = history.map_or_else(|| formats::read(&directory.history()), Ok);
    let load = begun.elapsed();
    let mut loaded = loaded.inspect_err(|_| observer.checked())?;
    let asked = settings.ask.levels_or(&claim);
    let whitebox = captured.map(|captured| {
        Whitebox::examine(captured, &mut loaded.history, &directory, &asked, &options)
    });
    let examination = examine(&loaded.history, &settings.ask, &claim, &options);
    let check = begun.elapsed() - load;
    let lost = LostCommits::find(&loaded.history, &outages);
    record.outages = outages.iter().map(|outage| [outage.begun, outage.over]).collect();
    record.lost_commits = lost.as_ref().map_or(0, |lost| lost.total);
    record.remarks.extend(lost.as_ref().map(|lost| format!("lost commits: {lost}")));
    let excerpt = shrink_found(settings, &loaded.history, &examination, &options);
    observer.checked();
    handle.enter(Stage::Writing);
    let timing = Timing { load, check, peak_rss_bytes: peak_rss_bytes() };
    record.check_ms = Some(begun.elapsed().as_secs_f64() * 1e3);
    record.peak_rss_bytes = timing.peak_rss_bytes;
    record.verdicts = examination.verdicts(&loaded.history);
    record.first_counterexample = first_counterexample(&loaded.history, &examination.results);
    record.overlapped = examination.contention.map(|contention| contention.overlapped);
    record.conflicted = examination.contention.map(|contention| contention.conflicted);
    record.whitebox =
        whitebox.as_ref().map(|whitebox| whitebox.record(&loaded.history, &examination));
    let mut outcome = RunOutcome {
        provenance: provenance(&record, directory.path(), &loaded.history),
        record,
        directory: directory.path().to_owned(),
        history: loaded.history,
        warnings: loaded.warnings,
        examination,
        timing,
        max_anomalies: settings.max_anomalies,
        excerpt,
        whitebox,
        lost,
        unwritten: Vec::new(),
    };
    outcome.unwritten = write_files(&directory, &outcome, &options);
    Ok(outcome)
}

/// The smallest part of the history that shows what is wrong, if somebody wants to know. A violation that
/// the verifier does not accept is not passed on.
fn shrink_found(
    settings: &Settings,
    history: &History,
    examination: &Examination,
    options: &CheckOptions,
) -> Option<ShrunkHistory> {
    let report = Report::new("", history, &examination.results).with_asked(examination.asked());
    let wanted = shrink::Settings::default().with_options(options.clone()).with_first_of(&report);
    let wanted = match settings.shrink {
        Shrinking::Never => return None,
        Shrinking::Briefly => wanted.with_timeout(Shrinking::BRIEFLY),
        Shrinking::Thoroughly => wanted,
    };
    let found = ShrunkHistory::find(history, &examination.results, &wanted)?;
    let Shrunk { history, result, .. } = &found.shrunk;
    let is_right = isolario_verify::verify(history, result, &read_as(options)).is_ok();
    is_right.then_some(found)
}

/// How the verifier is to read a history that was checked with these options.
fn read_as(options: &CheckOptions) -> isolario_verify::VerifyOptions {
    isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew)
        .with_trusted_version_order(options.trust_version_order)
}

/// Writes the files of a run, each on its own: what one of them lacks does not hide the others.
fn write_files(
    directory: &Directory,
    outcome: &RunOutcome,
    options: &CheckOptions,
) -> Vec<RunError> {
    let name = outcome.name();
    let report = outcome.report(&name);
    let read_as = read_as(options);
    let (history, results) = (&outcome.history, &outcome.examination.results);
    let mut written = vec![
        directory.write_record(&outcome.record),
        directory.write("verdict.json", |out| Json.report(&report, out)),
        directory.write(PROOF, |out| {
            let outages = recorded_outages(&outcome.record);
            let lost = outcome.lost.as_ref().map_or(&[][..], |lost| &lost.evidence);
            proof::write_with_lost(history, results, &outages, lost, &read_as, &name, out)
        }),
        directory.write("report.html", |out| html::write(&report, Some(&outcome.record), out)),
    ];
    for (basis, results) in outcome.whitebox.iter().flat_map(Whitebox::answers) {
        written.extend(write_own_word(directory, outcome, basis, results, &read_as));
    }
    if let Some(ShrunkHistory { shrunk, text, .. }) = &outcome.excerpt {
        let results = std::slice::from_ref(&shrunk.result);
        let proof = |out: &mut dyn io::Write| {
            proof::write(&shrunk.history, results, &read_as, SHRUNK, &mut { out })
        };
        written.push(directory.write(SHRUNK, |out| out.write_all(text.as_bytes())));
        written.push(directory.write(SHRUNK_PROOF, proof));
    }
    if outcome.is_broken() {
        written.push(directory.write("bug-report.md", |out| {
            bug_report::write(&outcome.broken_report(&name), Some(&outcome.record), out)
        }));
    }
    written.into_iter().filter_map(Result::err).collect()
}

/// Writes what rests on the database's own word: the answers, their proof, and a page.
fn write_own_word(
    directory: &Directory,
    outcome: &RunOutcome,
    basis: Basis,
    results: &[LevelResult],
    read_as: &isolario_verify::VerifyOptions,
) -> [Result<(), RunError>; 3] {
    let (name, stem) = (outcome.name(), basis.stem());
    let report = outcome.own_word_report(&name, basis, results);
    let read_as = basis.read_as(*read_as);
    let history = &outcome.history;
    [
        directory.write(&format!("{stem}.json"), |out| Json.report(&report, out)),
        directory.write(&format!("{stem}.proof"), |out| {
            proof::write(history, results, &read_as, &name, out)
        }),
        directory
            .write(&format!("{stem}.html"), |out| html::write(&report, Some(&outcome.record), out)),
    ]
}
