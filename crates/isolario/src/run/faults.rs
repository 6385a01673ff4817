//! Faults: trouble for a server that the run has started, or that somebody else keeps running.
//!
//! The server is one process with all that it starts in turn; nobody else is touched. A
//! server that is killed loses what it kept to itself. What it had handed to the operating system is
//! still there: lost power is another fault, and not made here.
//!
//! When the sessions are done, the server is killed or restarted once more, and all keys are read.
//! These reads are transactions of the history like any other, later than all of them in real time.
//! So what was acknowledged and is missing then is a stale read at the levels that know real time, and
//! a [lost commit](super::lost) at any level.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolario_db::{Control, DbError, Obstacle};
use isolario_model::{StopCause, StopReason};
use isolario_workload::{Generator, Kind, PlannedOp, Workload};

use super::lost::Outage;

/// What to do to which server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The faults, one after the other, and again from the first.
    pub kinds: Vec<Fault>,
    /// The server.
    pub server: FaultyServer,
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
        Faults { kinds, server: FaultyServer::Started(server.into()) }
    }

    /// These faults, of a server whose process id is in a file.
    pub fn by_pid_file(kinds: Vec<Fault>, file: impl Into<PathBuf>) -> Faults {
        Faults { kinds, server: FaultyServer::Found(file.into()) }
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
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 3] = [Fault::Kill, Fault::Pause, Fault::Restart];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Pause => "pause",
            Fault::Restart => "restart",
        }
    }
}

/// How long the server is left alone between two faults, and how long a pause is.
const PEACE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);
/// How long a server may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// A server that has faults. If the run has started it, it ends with the value.
pub(super) struct Server {
    faults: Faults,
    running: Mutex<Running>,
    /// No more faults are wanted.
    is_over: AtomicBool,
}

struct Running {
    /// The process, where the run has started it.
    child: Option<Child>,
    done: Vec<Done>,
}

/// A fault that was made.
struct Done {
    fault: Fault,
    begun: Instant,
    over: Instant,
}

impl Server {
    pub(super) fn start(faults: &Faults) -> io::Result<Server> {
        let child = match &faults.server {
            FaultyServer::Started(command) => Some(spawn(command)?),
            FaultyServer::Found(file) => pid_in(file).map(|_| None)?,
        };
        let running = Mutex::new(Running { child, done: Vec::new() });
        Ok(Server { faults: faults.clone(), running, is_over: AtomicBool::new(false) })
    }

    /// Tries until the server answers. One that has ended will not.
    pub(super) fn wait_for<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let error = match attempt() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_starting = matches!(error.obstacle, None | Some(Obstacle::Unreachable));
            let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            let has_ended = self.running().child.as_mut().is_none_or(has_ended);
            if !is_starting || has_ended || Instant::now() > deadline {
                return Err(error);
            }
            sleep(POLL);
        }
    }

    /// Makes trouble until the sessions are done, or a server does not come back. One that still recovers is
    /// left alone until it is up: it has acknowledged nothing that it could lose.
    pub(super) fn trouble(&self, control: &Control, is_up: impl Fn() -> bool) {
        for fault in self.faults.kinds.iter().cycle() {
            let mut next = None;
            while next.is_none_or(|next| Instant::now() < next) {
                if self.is_over.load(Ordering::Relaxed) || control.is_stopped() {
                    return;
                }
                if next.is_none() && is_up() {
                    next = Some(Instant::now() + PEACE);
                }
                sleep(POLL);
            }
            self.make(*fault, control);
        }
    }

    /// Makes no more trouble.
    pub(super) fn leave_alone(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The last fault, when the sessions are done: the server ends once more in the ways that were
    /// asked for.
    pub(super) fn last(&self, control: &Control) {
        self.leave_alone();
        for fault in self.faults.kinds.iter().filter(|fault| **fault != Fault::Pause) {
            self.make(*fault, control);
        }
    }

    fn make(&self, fault: Fault, control: &Control) {
        let mut running = self.running();
        let begun = Instant::now();
        match self.try_to_make(fault, &mut running, control) {
            Ok(()) => running.done.push(Done { fault, begun, over: Instant::now() }),
            Err(error) => {
                let message = Some(format!("the server did not come back: {error}"));
                let cause = StopCause { message, ..StopCause::default() };
                control.stop(StopReason::Database, Some(cause));
            }
        }
    }

    fn try_to_make(
        &self,
        fault: Fault,
        running: &mut Running,
        control: &Control,
    ) -> io::Result<()> {
        let root = match (&running.child, &self.faults.server) {
            (Some(child), _) => child.id(),
            (None, FaultyServer::Found(file)) => pid_in(file)?,
            (None, FaultyServer::Started(_)) => return Err(io::ErrorKind::NotFound.into()),
        };
        let how = match fault {
            Fault::Pause => {
                let members = tree(root);
                signal(&members, "STOP");
                sleep(PAUSE);
                signal(&members, "CONT");
                return Ok(());
            }
            Fault::Kill => "KILL",
            Fault::Restart => "TERM",
        };
        end(root, running.child.as_mut(), how);
        match &self.faults.server {
            FaultyServer::Started(command) => running.child = Some(spawn(command)?),
            FaultyServer::Found(file) => wait_for_another(root, file, control)?,
        }
        Ok(())
    }

    /// When the server ended and was started again, by a clock that began then.
    pub(super) fn outages(&self, epoch: Instant) -> Vec<Outage> {
        let at = |moment: Instant| moment.saturating_duration_since(epoch).as_nanos() as i64;
        let running = self.running();
        let ended = running.done.iter().filter(|done| done.fault != Fault::Pause);
        ended.map(|done| Outage { begun: at(done.begun), over: at(done.over) }).collect()
    }

    /// What was done to the server, in words.
    pub(super) fn told(&self) -> String {
        let running = self.running();
        let times = |fault: &Fault| running.done.iter().filter(|done| done.fault == *fault).count();
        let faults = Fault::ALL.iter().filter(|fault| times(fault) > 0);
        let words: Vec<_> = faults.map(|f| format!("{} \u{d7} {}", times(f), f.name())).collect();
        format!("faults: {}", words.join(", "))
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.running().child {
            end(child.id(), Some(child), "KILL");
        }
    }
}

/// Ends a server and all that it has started, and waits until they are gone: whoever starts it
/// anew would find its files in use. Who does not end when asked is killed in the end.
fn end(root: u32, mut child: Option<&mut Child>, how: &str) {
    // A server that is asked to end sees to its children itself.
    let mut members = if how == "KILL" { frozen_tree(root) } else { vec![root] };
    signal(&members, how);
    let deadline = Instant::now() + PATIENCE;
    loop {
        // If it was started here, its end has to be asked for.
        child.iter_mut().for_each(|child| _ = child.try_wait());
        for late in tree(root) {
            if !members.contains(&late) {
                members.push(late);
            }
        }
        let left: Vec<u32> = members.iter().copied().filter(|pid| is_running(*pid)).collect();
        if left.is_empty() {
            child.iter_mut().for_each(|child| _ = child.wait());
            return;
        }
        if how == "KILL" || Instant::now() > deadline {
            signal(&left, "KILL");
        }
        sleep(POLL);
    }
}

/// The process that a file names. Neither the first process of the system nor this one is a server.
fn pid_in(file: &Path) -> io::Result<u32> {
    let told = |words: &str| io::Error::other(format!("{}: {words}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| told(&error.to_string()))?;
    let pid = text.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
    match pid {
        Some(pid) if pid <= 1 || pid == std::process::id() => Err(told("this is no server")),
        Some(pid) if !is_running(pid) => Err(told("the process has ended")),
        Some(pid) => Ok(pid),
        None => Err(told("it does not begin with a process id")),
    }
}

/// Waits until somebody has started the server again: its file names another process.
fn wait_for_another(old: u32, file: &Path, control: &Control) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match pid_in(file) {
            Ok(pid) if pid != old => return Ok(()),
            _ if control.is_stopped() => return Ok(()),
            _ if Instant::now() > deadline => {
                let seconds = PATIENCE.as_secs();
                return Err(io::Error::other(format!(
                    "nobody started it within {seconds} seconds"
                )));
            }
            _ => sleep(POLL),
        }
    }
}

/// Starts a server. Its process is that of the command itself, not that of a shell, and Ctrl-C on the
/// run's terminal is not for it.
fn spawn(command: &str) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.args(["-c", &format!("exec {command}")]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Sends a signal. A process that is gone needs none, so the shell's complaints do not count.
fn signal(pids: &[u32], what: &str) {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("kill -{what} {}", pids.join(" "))]);
    let _ = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A process and all that it has started, directly or not. PostgreSQL serves each connection by a
/// process in a group of its own, so the group is not enough.
fn tree(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.1))).collect();
    let mut members = vec![root];
    let mut at = 0;
    while let Some(parent) = members.get(at).copied() {
        members.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    members
}

/// A process and all that it has started, none of which starts anything any more. Who is stopped has no
/// children that nobody knows of: these would outlive it, and keep its files and its memory in use.
fn frozen_tree(root: u32) -> Vec<u32> {
    let mut members = tree(root);
    loop {
        signal(&members, "STOP");
        let now = tree(root);
        if now.iter().all(|pid| members.contains(pid)) {
            return now;
        }
        members = now;
    }
}

/// Whether a process runs; one that has ended but was not waited for does not.
fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// State and parent of a process: `PID (NAME) STATE PARENT …`, where NAME may hold anything.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// How many keys one of the last transactions reads.
const KEYS_AT_ONCE: usize = 50;

/// Reads of all keys that sessions have come to after so many positions, a few at a time; none where reads by
/// key would not show what was written.
pub(super) fn last_reads(
    workload: &Workload,
    generator: &dyn Generator,
    positions: u64,
) -> Vec<Vec<PlannedOp>> {
    let last = generator.first_key(positions.saturating_sub(1)) + u64::from(workload.keys);
    let (read, at_once): (fn(u64) -> PlannedOp, usize) = match workload.kind {
        Kind::Mini | Kind::General => (|key| PlannedOp::Read { key }, KEYS_AT_ONCE),
        Kind::Append => (|key| PlannedOp::ReadList { key }, KEYS_AT_ONCE),
        Kind::Lwt => (|key| PlannedOp::Read { key }, 1),
        _ => return Vec::new(),
    };
    let reads: Vec<PlannedOp> = (0..last).map(read).collect();
    reads.chunks(at_once).map(<[PlannedOp]>::to_vec).collect()
}
