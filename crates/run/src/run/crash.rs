//! Crashes of embedded stores: the process that has one open is killed, and another one opens it again.
//!
//! An embedded store has no process of its own that could be killed. So its workload is driven by a child, which
//! would go on for ever. When it is killed, its history has all that its sessions had been told by then; of each
//! session, the answer to the last transaction may be missing, which leaves that one of unknown outcome. Then
//! the store is opened here, and all keys are read. These reads are transactions of the history like any other, later
//! than all of them; what was acknowledged and is missing then is a [lost commit](super::lost).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::driver::{key_name, record_table_op};
use isolario_check::CheckOptions;
use isolario_db::{self as db, Access, Connection, DbError, TableResult};
use isolario_formats::{self as formats, OutputTarget as File};
use isolario_model::{
    Counts, History, Op, Outcome, RunRecord, SinkError, TxnEnd, TxnId, TxnSink, TxnStart, ValueRef,
};
use isolario_workload::{Generator, KeyNames, PlannedOp, TableOp};

use super::directory::{Directory, HISTORY};
use super::error::RunError;
use super::faults::{Fault, last_reads};
use super::handle::{Handle, Stage};
use super::lost::Outage;
use super::outcome::RunOutcome;
use super::replay;
use super::settings::Settings;
use super::target::{RunTarget, asked_of, in_real_time, layout};
use super::{Observer, Recorded, begin, finish};

/// The arguments of `isolario` by which a child drives the workload of these settings until it is killed, but for
/// where it leaves its history.
pub fn crash_arguments(settings: &Settings) -> Result<String, RunError> {
    let url = settings.urls.first().ok_or(RunError::Nothing("databases"))?;
    let database = db::open(url, &asked_of(settings)).map_err(RunError::Open)?;
    let command = replay::command(settings, database.traits().isolation);
    let arguments = command.strip_prefix("isolario ").unwrap_or_default();
    let run = settings.to_be_killed.unwrap_or_default();
    Ok(format!("{arguments} --to-be-killed {run} --no-shrink"))
}

/// Opens a store again whose process was killed or lost its power while it drove the workload of these
/// settings, reads all keys, and checks what was recorded, in the directory that the child has left.
pub fn run_after_crash(
    settings: &Settings,
    fault: Fault,
    handle: &Handle,
    observer: &mut dyn Observer,
) -> Result<RunOutcome, RunError> {
    handle.enter(Stage::Opening);
    let outcome = recorded(settings, fault)
        .and_then(|(recorded, _target)| finish(settings, recorded, handle, observer));
    handle.enter(Stage::Idle);
    outcome
}

/// What the child has recorded, with the last reads. The store stays open as long as the target does.
fn recorded(settings: &Settings, fault: Fault) -> Result<(Recorded, RunTarget), RunError> {
    let path = settings.out.clone().ok_or(RunError::Nothing("run directories"))?;
    let file = path.join(HISTORY);
    let before = formats::read(&file)?.history;
    let target = reopened(settings)?;
    let at = |error| RunError::Database { url: settings.urls.first().cloned(), error };
    let mut connection = target.nodes[0].connect().map_err(at)?;
    let longest = before.sessions().map(|session| before.session_txns(session).len()).max();
    let planner = settings.planner()?;
    let reads = last_reads(
        &settings.workload,
        &planner,
        settings.unused_keys(),
        longest.unwrap_or(0) as u64,
    );
    let found = reads.iter().map(|plan| read_again(plan, connection.as_mut()));
    let found = found.collect::<Result<Vec<_>, _>>().map_err(at)?;
    let outage = after(&before);
    write(&before, &found, planner.key_names().as_ref(), outage, &file)
        .map_err(|error| RunError::Recording { path: file, error })?;
    let mut record = begin(settings, &target);
    record.counts = counts(&before);
    record.remarks.push(format!("faults: 1 \u{d7} {}", fault.name()));
    let directory = Directory::existing(path);
    directory.write_record(&record)?;
    let options = CheckOptions::default().with_timeout(settings.check_timeout);
    let claim = target.claim.clone();
    let outages = vec![outage];
    Ok((
        Recorded { directory, record, claim, options, history: None, captured: None, outages },
        target,
    ))
}

/// The store, opened as it was left.
fn reopened(settings: &Settings) -> Result<RunTarget, RunError> {
    let [url] = &settings.urls[..] else { return Err(RunError::Nothing("databases")) };
    let at = |error| RunError::Database { url: Some(url.clone()), error };
    let node = db::open(url, &asked_of(settings)).map_err(RunError::Open)?;
    node.resume(&layout(settings)).map_err(at)?;
    let version = node.version().map_err(at)?;
    let claim = in_real_time(node.claim(settings.workload.kind, 1));
    let (nodes, tables) = (Arc::new(vec![node]), settings.tables());
    Ok(RunTarget { hold: None, nodes, version, claim, tables, trouble: None })
}

/// A time after everything that was recorded. When the child was killed is not on its clock, but then nothing was
/// recorded any more.
fn after(history: &History) -> Outage {
    let times = |txn: TxnId| [history.start(txn), history.finish(txn)];
    let last = history.txns().flat_map(times).flatten().max().unwrap_or(0);
    Outage { begun: last + 1, over: last + 2 }
}

/// What one of the last reads found.
enum Seen {
    Register(u64, Option<i64>),
    List(u64, Vec<i64>),
    Row(TableOp, TableResult),
}

/// Runs one of the last transactions.
fn read_again(plan: &[PlannedOp], connection: &mut dyn Connection) -> Result<Vec<Seen>, DbError> {
    connection.begin(Access::Read)?;
    let mut seen = Vec::new();
    for op in plan {
        seen.push(match *op {
            PlannedOp::Read { key } => Seen::Register(key, connection.read(key)?),
            PlannedOp::ReadList { key } => {
                let mut elements = Vec::new();
                connection.read_list(key, &mut elements)?;
                Seen::List(key, elements)
            }
            PlannedOp::Table(op) => {
                let mut found = TableResult::default();
                connection.table(&op, &mut found)?;
                Seen::Row(op, found)
            }
            _ => continue,
        });
    }
    connection.commit()?;
    Ok(seen)
}

impl Seen {
    /// Keys are called as they were in the run.
    fn tell(&self, names: Option<&KeyNames>, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        match self {
            Seen::Register(key, held) => {
                let value = Some(held.map_or(ValueRef::Nil, ValueRef::Int));
                sink.op(&Op::Read { key: key_name(*key, names), value })
            }
            Seen::List(key, elements) => {
                let elements: Vec<_> = elements.iter().map(|element| (*element).into()).collect();
                sink.op(&Op::ReadList { key: key_name(*key, names), elements: Some(&elements) })
            }
            Seen::Row(op, found) => record_table_op(op, Some(found), |op| sink.op(op)).map(drop),
        }
    }
}

/// Writes the history anew, with the last reads in a session of their own.
fn write(
    before: &History,
    found: &[Vec<Seen>],
    names: Option<&KeyNames>,
    outage: Outage,
    file: &Path,
) -> Result<(), SinkError> {
    let whole: PathBuf = file.with_extension("whole");
    let format = formats::find("isolario").ok_or_else(no_format)?;
    let mut sink = format.writer(File::Path(whole.clone()))?;
    before.replay(&mut *sink)?;
    for (number, found) in (0i64..).zip(found) {
        // Other sessions have numbers from 0 on.
        sink.begin(&TxnStart { session: (-1i64).into(), id: None, line: None })?;
        found.iter().try_for_each(|seen| seen.tell(names, &mut *sink))?;
        let start = outage.over + 1 + 2 * number;
        let end = TxnEnd::new(Outcome::Committed);
        sink.end(&TxnEnd { start: Some(start), finish: Some(start + 1), ..end })?;
    }
    sink.finish()?;
    Ok(std::fs::rename(whole, file)?)
}

fn no_format() -> SinkError {
    std::io::Error::other("there is no format for the history").into()
}

/// What the child had done by then.
fn counts(history: &History) -> Counts {
    let of = |outcome| history.txns().filter(|txn| history.outcome(*txn) == outcome).count() as u64;
    Counts {
        committed: of(Outcome::Committed),
        aborted: of(Outcome::Aborted),
        unknown: of(Outcome::Unknown),
        ..RunRecord::default().counts
    }
}
