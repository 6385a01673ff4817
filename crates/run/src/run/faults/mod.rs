//! Faults: trouble for a server that the run has started, or that somebody else keeps running, and for the network
//! between clients and nodes.
//!
//! The server is one process with all that it starts in turn; nobody else is touched. A
//! server that is killed loses what it kept to itself. What it had handed to the operating system is
//! still there, unless the power fails as well: then it has what it has synced.
//!
//! When the sessions are done, the server is killed or restarted once more, and all keys are read.
//! These reads are transactions of the history like any other, later than all of them in real time.
//! So what was acknowledged and is missing then is a stale read at the levels that know real time, and
//! a [lost commit](super::lost) at any level.

mod network;
mod power;
mod process;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolario_db::{Access, Connection, Database, DbError, DbUrl, Obstacle};
use isolario_model::{StopCause, StopReason};
use isolario_workload::{Generator, Kind, PlannedOp, TableOp, Workload};

use super::error::RunError;
use super::lost::Outage;
use crate::driver::Control;
use network::Network;
pub use power::Disk;
use process::{PATIENCE, POLL, Started, end, is_stopped, pid_in, signal, tree, wait_for_another};

/// What to do to which server, or to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The faults, one after the other, and again from the first.
    pub kinds: Vec<Fault>,
    /// The server; none where only the network has faults.
    pub server: Option<FaultyServer>,
    /// The directory that has the server's files, where its power is to fail.
    pub disk: Option<PathBuf>,
}

/// A server that is to have faults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultyServer {
    /// The run starts it by this command, which stays in the foreground as long as the server lives.
    Started(String),
    /// Somebody else has started it, and starts it again when it has ended. Its process id is the first word
    /// of this file.
    Found(PathBuf),
}

impl Faults {
    /// These faults, of a server that this command starts.
    pub fn new(kinds: Vec<Fault>, server: impl Into<String>) -> Faults {
        Faults { kinds, server: Some(FaultyServer::Started(server.into())), disk: None }
    }

    /// These faults, of a server whose process id is in a file.
    pub fn by_pid_file(kinds: Vec<Fault>, file: impl Into<PathBuf>) -> Faults {
        Faults { kinds, server: Some(FaultyServer::Found(file.into())), disk: None }
    }

    /// Partitions alone, of servers that are somebody else's.
    pub fn partitions() -> Faults {
        Faults { kinds: vec![Fault::Partition], server: None, disk: None }
    }

    /// With the directory that has the files of the server.
    #[must_use]
    pub fn with_disk(self, directory: impl Into<PathBuf>) -> Faults {
        Faults { disk: Some(directory.into()), ..self }
    }

    /// The first fault of a server, if there is one.
    pub fn of_server(&self) -> Option<Fault> {
        self.kinds.iter().copied().find(|fault| *fault != Fault::Partition)
    }
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The server is killed, and started again.
    Kill,
    /// It is stopped for a second, and goes on.
    Pause,
    /// It is asked to end, and started again.
    Restart,
    /// Clients are parted from one of the nodes for a second.
    Partition,
    /// The server is killed, its files have what was last synced, and it is started again.
    Power,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] =
        [Fault::Kill, Fault::Pause, Fault::Restart, Fault::Partition, Fault::Power];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Pause => "pause",
            Fault::Restart => "restart",
            Fault::Partition => "partition",
            Fault::Power => "power",
        }
    }

    /// Whether the server ends, and with it what it kept to itself.
    const fn ends_server(self) -> bool {
        matches!(self, Fault::Kill | Fault::Restart | Fault::Power)
    }
}

/// How long the server is left alone between two faults, and how long a pause or a partition is.
const PEACE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);

/// The faults of a run. If the run has started the server, it ends with the value.
pub(super) struct Trouble {
    faults: Faults,
    network: Option<Network>,
    running: Mutex<Running>,
    /// No more faults are wanted.
    is_over: AtomicBool,
}

struct Running {
    /// The process, where the run has started it.
    server: Option<Started>,
    /// What has its files, where its power may fail.
    disk: Option<Disk>,
    done: Vec<Done>,
    /// How many partitions hindered no client.
    idle: usize,
    /// Why a fault could not be made, or what it left behind.
    failure: Option<String>,
}

/// A fault that was made.
struct Done {
    fault: Fault,
    begun: Instant,
    /// When the server answered again.
    over: Instant,
}

impl Trouble {
    /// Starts the server, and gets between the clients and the nodes if they are to be parted. Also gives the URLs by
    /// which clients are to reach the nodes.
    pub(super) fn start(
        faults: &Faults,
        nodes: &[DbUrl],
    ) -> Result<(Trouble, Vec<DbUrl>), RunError> {
        if let (None, Some(fault)) = (&faults.server, faults.of_server()) {
            return Err(RunError::NoServer { fault: fault.name() });
        }
        let (network, urls) = match faults.kinds.contains(&Fault::Partition) {
            true => Network::before(nodes).map(|(network, urls)| (Some(network), urls))?,
            false => (None, nodes.to_vec()),
        };
        let disk = faults.kinds.contains(&Fault::Power).then(|| disk(faults)).transpose()?;
        let server = match &faults.server {
            Some(FaultyServer::Started(command)) => Started::spawn(command).map(Some),
            Some(FaultyServer::Found(file)) => pid_in(file).map(|_| None),
            None => Ok(None),
        };
        let server = server.map_err(|error| RunError::Server(error.to_string()))?;
        let running = Running { server, disk, done: Vec::new(), idle: 0, failure: None };
        let running = Mutex::new(running);
        let is_over = AtomicBool::new(false);
        Ok((Trouble { faults: faults.clone(), network, running, is_over }, urls))
    }

    /// Whether the server has faults, and not the network alone.
    pub(super) fn is_of_server(&self) -> bool {
        self.faults.of_server().is_some()
    }

    /// Waits until a server that was just started answers. One that has ended will not, whatever else answers in its
    /// place.
    pub(super) fn wait_for(
        &self,
        url: &DbUrl,
        mut attempt: impl FnMut() -> Result<String, DbError>,
    ) -> Result<(), RunError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = attempt();
            if let Some(ended) = self.running().server.as_mut().and_then(Started::ended) {
                return Err(RunError::Server(ended));
            }
            let Err(error) = answer else { return Ok(()) };
            let is_starting = matches!(error.obstacle, None | Some(Obstacle::Unreachable));
            match &self.running().server {
                Some(server) if is_starting && Instant::now() > deadline => {
                    let (seconds, words) = (PATIENCE.as_secs(), server.words());
                    return Err(RunError::Server(format!(
                        "no answer at {url} after {seconds} seconds ({error}){words}"
                    )));
                }
                Some(_) if is_starting => {}
                _ => return Err(RunError::Database { url: Some(url.clone()), error }),
            }
            sleep(POLL);
        }
    }

    /// Makes trouble until the sessions are done, or a server does not come back. One that still recovers is
    /// left alone until it is up: it has acknowledged nothing that it could lose. What it had before the sessions
    /// is never lost: it is about what these were told.
    pub(super) fn go_on(&self, control: &Control, nodes: &[Box<dyn Database>]) {
        self.running().disk.iter().for_each(Disk::sync);
        for fault in self.faults.kinds.iter().cycle() {
            let mut next = None;
            while next.is_none_or(|next| Instant::now() < next) {
                if self.is_over.load(Ordering::Relaxed) || control.is_stopped() {
                    return;
                }
                if next.is_none() && is_up(nodes) {
                    next = Some(Instant::now() + PEACE);
                }
                sleep(POLL);
            }
            self.make(*fault, control, nodes);
        }
    }

    /// Makes no more trouble.
    pub(super) fn leave_alone(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The last fault, when the sessions are done: the server ends once more in the ways that were
    /// asked for.
    pub(super) fn last(&self, control: &Control, nodes: &[Box<dyn Database>]) {
        self.leave_alone();
        for fault in self.faults.kinds.iter().filter(|fault| fault.ends_server()) {
            self.make(*fault, control, nodes);
        }
    }

    /// Makes a fault, unless an earlier one failed. One that fails ends the run.
    fn make(&self, fault: Fault, control: &Control, nodes: &[Box<dyn Database>]) {
        let mut running = self.running();
        if running.failure.is_some() {
            return;
        }
        let begun = Instant::now();
        match self.try_to_make(fault, &mut running, control, nodes) {
            Ok(true) => running.done.push(Done { fault, begun, over: Instant::now() }),
            Ok(false) => running.idle += 1,
            Err(error) => {
                running.failure = Some(error.to_string());
                control.stop(StopReason::Database, self.failed(&running));
            }
        }
    }

    /// Returns whether the fault happened to anything.
    fn try_to_make(
        &self,
        fault: Fault,
        running: &mut Running,
        control: &Control,
        nodes: &[Box<dyn Database>],
    ) -> io::Result<bool> {
        let how = match fault {
            Fault::Partition => {
                let made = running.done.iter().filter(|done| done.fault == fault).count();
                let count = made + running.idle;
                return Ok(self.network.as_ref().is_some_and(|network| network.part(count, PAUSE)));
            }
            Fault::Pause => {
                let members = tree(self.root(running)?);
                signal(&members, "STOP");
                sleep(PAUSE);
                let has_stopped = is_stopped(&members);
                signal(&members, "CONT");
                return match has_stopped {
                    true => Ok(true),
                    false => Err(io::Error::other(
                        "the server was not paused: none of its processes stopped",
                    )),
                };
            }
            Fault::Kill | Fault::Power => "KILL",
            Fault::Restart => "TERM",
        };
        let root = self.root(running)?;
        let mut witnesses = Witnesses::of(nodes);
        end(root, running.server.as_mut().map(|server| &mut server.child), how)?;
        if !witnesses.are_cut_off(nodes) {
            return Err(io::Error::other(format!(
                "the {} did nothing: the processes that it ended are not those of the database, which still \
                 answers",
                fault.name()
            )));
        }
        if let (Fault::Power, Some(disk)) = (fault, &mut running.disk) {
            disk.fail()?;
        }
        match &self.faults.server {
            Some(FaultyServer::Started(command)) => {
                running.server = Some(Started::spawn(command)?);
            }
            Some(FaultyServer::Found(file)) => wait_for_another(root, file, control)?,
            None => {}
        }
        wait_until_up(running, control, nodes)?;
        Ok(true)
    }

    /// The first process of the server.
    fn root(&self, running: &mut Running) -> io::Result<u32> {
        match (&mut running.server, &self.faults.server) {
            (Some(server), _) => match server.ended() {
                Some(ended) => Err(io::Error::other(format!("the server is gone: {ended}"))),
                None => Ok(server.child.id()),
            },
            (None, Some(FaultyServer::Found(file))) => pid_in(file),
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Why the faults that were asked for did not all happen, or what they left behind.
    pub(super) fn failure(&self) -> Option<StopCause> {
        let running = self.running();
        let parted = running.done.iter().any(|done| done.fault == Fault::Partition);
        match running.idle > 0 && !parted && running.failure.is_none() {
            true => {
                let message =
                    "the partitions had no effect: no client sent or received anything during them";
                Some(StopCause { message: Some(message.to_owned()), ..StopCause::default() })
            }
            false => self.failed(&running),
        }
    }

    fn failed(&self, running: &Running) -> Option<StopCause> {
        let message = Some(running.failure.clone()?);
        Some(StopCause { message, ..StopCause::default() })
    }

    /// When the server ended and was started again, by a clock that began then.
    pub(super) fn outages(&self, epoch: Instant) -> Vec<Outage> {
        let at = |moment: Instant| moment.saturating_duration_since(epoch).as_nanos() as i64;
        let running = self.running();
        let ended = running.done.iter().filter(|done| done.fault.ends_server());
        ended.map(|done| Outage { begun: at(done.begun), over: at(done.over) }).collect()
    }

    /// What was done, in words, and how long the server was away.
    pub(super) fn told(&self) -> Vec<String> {
        let running = self.running();
        let times = |fault: &Fault| running.done.iter().filter(|done| done.fault == *fault).count();
        let faults = Fault::ALL.iter().filter(|fault| times(fault) > 0);
        let words: Vec<_> = faults.map(|f| format!("{} \u{d7} {}", times(f), f.name())).collect();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        let ended = running.done.iter().filter(|done| done.fault.ends_server());
        let lengths: Vec<_> =
            ended.map(|done| format!("{:.1} s", (done.over - done.begun).as_secs_f64())).collect();
        let away = (!lengths.is_empty()).then(|| format!("away: {}", lengths.join(", ")));
        std::iter::once(format!("faults: {words}")).chain(away).collect()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        if let Some(server) = &mut self.running().server {
            let _ = end(server.child.id(), Some(&mut server.child), "KILL");
        }
    }
}

fn is_up(nodes: &[Box<dyn Database>]) -> bool {
    nodes.iter().all(|node| node.version().is_ok())
}

/// Waits until a server that was started again answers.
fn wait_until_up(
    running: &mut Running,
    control: &Control,
    nodes: &[Box<dyn Database>],
) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let not_back = |why: String| io::Error::other(format!("the server did not come back: {why}"));
    while !is_up(nodes) {
        if let Some(ended) = running.server.as_mut().and_then(Started::ended) {
            return Err(not_back(ended));
        }
        if control.why().0 == StopReason::Interrupted {
            return Ok(());
        }
        if Instant::now() > deadline {
            let words = running.server.as_ref().map_or_else(String::new, Started::words);
            let seconds = PATIENCE.as_secs();
            return Err(not_back(format!("it does not answer after {seconds} seconds{words}")));
        }
        sleep(POLL);
    }
    Ok(())
}

/// Connections to all nodes that were there before a fault.
struct Witnesses(Vec<Option<Box<dyn Connection>>>);

impl Witnesses {
    fn of(nodes: &[Box<dyn Database>]) -> Witnesses {
        Witnesses(nodes.iter().map(|node| node.connect().ok()).collect())
    }

    /// Whether one of the nodes does not answer, or has lost its connection. A driver answers for itself, so that
    /// any error of its connection counts.
    fn are_cut_off(&mut self, nodes: &[Box<dyn Database>]) -> bool {
        nodes.iter().zip(&mut self.0).any(|(node, witness)| {
            let Some(witness) = witness else { return true };
            let is_driver = node.traits().by_driver;
            let is_cut_off = |error: DbError| is_driver || error.disconnected;
            let read = witness.begin(Access::Read).and_then(|()| witness.read(0));
            read.is_err_and(is_cut_off) || node.version().is_err()
        })
    }
}

/// Gets between the server and the directory of its files, before it is started.
fn disk(faults: &Faults) -> Result<Disk, RunError> {
    match (&faults.disk, &faults.server) {
        (Some(directory), Some(FaultyServer::Started(_))) => Disk::over(directory)
            .map_err(|error| RunError::Disk { directory: directory.clone(), error }),
        _ => Err(RunError::NoDisk),
    }
}

/// How many keys one of the last transactions reads.
const KEYS_AT_ONCE: usize = 50;

/// Reads of all keys or rows that sessions can touch before a position, but for unused keys. Each
/// transaction has a few.
pub(super) fn last_reads(
    workload: &Workload,
    generator: &dyn Generator,
    unused: Range<u64>,
    positions: u64,
) -> Vec<Vec<PlannedOp>> {
    let until = || generator.first_key(positions.saturating_sub(1)) + u64::from(workload.keys);
    let last = generator.keys(positions).unwrap_or_else(until);
    let (read, at_once): (fn(u64) -> PlannedOp, usize) = match workload.kind {
        Kind::Mini | Kind::General => (|key| PlannedOp::Read { key }, KEYS_AT_ONCE),
        Kind::Append => (|key| PlannedOp::ReadList { key }, KEYS_AT_ONCE),
        Kind::Lwt => (|key| PlannedOp::Read { key }, 1),
        // There are no more rows than a number of 32 bits can tell apart.
        Kind::Predicate => {
            (|key| PlannedOp::Table(TableOp::Read { key: key as u32 }), KEYS_AT_ONCE)
        }
        _ => return Vec::new(),
    };
    let reads: Vec<PlannedOp> = (0..last).filter(|key| !unused.contains(key)).map(read).collect();
    reads.chunks(at_once).map(<[PlannedOp]>::to_vec).collect()
}
