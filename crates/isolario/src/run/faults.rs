//! Faults: trouble for a server that the run itself has started.
//!
//! The server is a process of the run, with all that it starts in turn; nobody else is touched. A
//! server that is killed loses what it kept to itself. What it had handed to the operating system is
//! still there: lost power is another fault, and not made here.
//!
//! When the sessions are done, the server is killed or restarted once more, and all keys are read.
//! These reads are transactions of the history like any other, later than all of them in real time.
//! So what was acknowledged and is missing then is a stale read at the levels that know real time.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolario_db::{Control, DbError, Obstacle};
use isolario_model::{StopCause, StopReason};
use isolario_workload::{Kind, PlannedOp, Workload};

/// What to do to which server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The faults, one after the other, and again from the first.
    pub kinds: Vec<Fault>,
    /// The command that starts the server, and stays in the foreground as long as that lives.
    pub server: String,
}

impl Faults {
    /// These faults, of a server that this command starts.
    pub fn new(kinds: Vec<Fault>, server: impl Into<String>) -> Faults {
        Faults { kinds, server: server.into() }
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

/// A server that the run has started. It ends with the value.
pub(super) struct Server {
    faults: Faults,
    running: Mutex<Running>,
    /// No more faults are wanted.
    is_over: AtomicBool,
}

struct Running {
    child: Child,
    done: Vec<Fault>,
}

impl Server {
    pub(super) fn start(faults: &Faults) -> io::Result<Server> {
        let running = Mutex::new(Running { child: spawn(&faults.server)?, done: Vec::new() });
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
            let has_ended = matches!(self.running().child.try_wait(), Ok(Some(_)) | Err(_));
            if !is_starting || has_ended || Instant::now() > deadline {
                return Err(error);
            }
            sleep(POLL);
        }
    }

    /// Makes trouble until the sessions are done, or a server does not come back.
    pub(super) fn trouble(&self, control: &Control) {
        for fault in self.faults.kinds.iter().cycle() {
            let next = Instant::now() + PEACE;
            while Instant::now() < next {
                if self.is_over.load(Ordering::Relaxed) || control.is_stopped() {
                    return;
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
        let made = match fault {
            Fault::Pause => {
                signal(&tree(running.child.id()), "STOP");
                sleep(PAUSE);
                signal(&tree(running.child.id()), "CONT");
                Ok(())
            }
            Fault::Kill | Fault::Restart => {
                running.end(if fault == Fault::Kill { "KILL" } else { "TERM" });
                spawn(&self.faults.server).map(|child| running.child = child)
            }
        };
        running.done.push(fault);
        if let Err(error) = made {
            let message = Some(format!("the server cannot be started again: {error}"));
            control.stop(StopReason::Database, Some(StopCause { message, ..StopCause::default() }));
        }
    }

    /// What was done to the server, in words.
    pub(super) fn told(&self) -> String {
        let done = self.running().done.clone();
        let times = |fault: &Fault| done.iter().filter(|other| *other == fault).count();
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
        self.running().end("KILL");
    }
}

impl Running {
    /// Ends the server and all that it has started, and waits until they are gone: whoever starts it
    /// anew would find its files in use. Who does not end when asked is killed in the end.
    fn end(&mut self, how: &str) {
        let root = self.child.id();
        let mut members = tree(root);
        // A server that is asked to end sees to its children itself.
        match how {
            "KILL" => signal(&members, how),
            how => signal(&[root], how),
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The first was started here, so its end has to be asked for.
            let _ = self.child.try_wait();
            for late in tree(root) {
                if !members.contains(&late) {
                    members.push(late);
                }
            }
            let left: Vec<u32> = members.iter().copied().filter(|pid| is_running(*pid)).collect();
            if left.is_empty() {
                let _ = self.child.wait();
                return;
            }
            if how == "KILL" || Instant::now() > deadline {
                signal(&left, "KILL");
            }
            sleep(POLL);
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

/// Reads of all keys, a few at a time; none where reads by key would not show what was written.
pub(super) fn last_reads(workload: &Workload) -> Vec<Vec<PlannedOp>> {
    let read = |key: u64| match workload.kind {
        Kind::Mini | Kind::General => Some(PlannedOp::Read { key }),
        // The keys of lists change all the time.
        _ => None,
    };
    let reads: Vec<PlannedOp> = (0..u64::from(workload.keys)).filter_map(read).collect();
    reads.chunks(KEYS_AT_ONCE).map(<[PlannedOp]>::to_vec).collect()
}
