//! The processes of a server: one, and all that it has started.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::driver::Control;

/// How long a server may take to start, or to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const POLL: Duration = Duration::from_millis(10);
/// How long a process that has ended may be listed.
const REAPING: Duration = Duration::from_secs(2);
/// How long processes that are killed may take to end.
const KILLING: Duration = Duration::from_secs(30);

/// Ends a server and all that it has started, and waits until they are gone: whoever starts it
/// anew would find its files in use. Who does not end when asked is killed in the end.
pub(super) fn end(root: u32, mut child: Option<&mut Child>, how: &str) -> io::Result<()> {
    // A server that is asked to end sees to its children itself. They are waited for all the same: a program
    // that only started the server, such as `su` or a shell, ends before it, and may not have asked it.
    let mut members = if how == "KILL" { frozen_tree(root) } else { tree(root) };
    let mut children: Vec<u32> = members
        .iter()
        .copied()
        .filter(|pid| stat(*pid).is_some_and(|(_, of)| of == root))
        .collect();
    match how {
        "KILL" => signal(&members, how),
        _ => signal(&[root], how),
    }
    let begun = Instant::now();
    loop {
        if !is_running(root) {
            let left = std::mem::take(&mut children);
            signal(&left.into_iter().filter(|pid| is_running(*pid)).collect::<Vec<_>>(), how);
        }
        // If it was started here, its end has to be asked for.
        child.iter_mut().for_each(|child| _ = child.try_wait());
        for known in members.clone() {
            for late in tree(known) {
                if !members.contains(&late) {
                    members.push(late);
                }
            }
        }
        let left: Vec<u32> = members.iter().copied().filter(|pid| is_running(*pid)).collect();
        if left.is_empty() {
            child.iter_mut().for_each(|child| _ = child.wait());
            wait_for_parents(&members);
            return Ok(());
        }
        if begun.elapsed() > PATIENCE + KILLING {
            let left = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(io::Error::other(format!(
                "process {left} did not end when it was killed; it may belong to another user"
            )));
        }
        if how == "KILL" || begun.elapsed() > PATIENCE {
            signal(&left, "KILL");
        }
        sleep(POLL);
    }
}

/// Waits until nothing is left of processes that have ended, for as long as that is worth it. Those whose parent has
/// ended, too, are reaped by the system's first process; until then, PostgreSQL takes them for a running server.
fn wait_for_parents(members: &[u32]) {
    let deadline = Instant::now() + REAPING;
    while members.iter().any(|pid| stat(*pid).is_some()) && Instant::now() < deadline {
        sleep(POLL);
    }
}

/// The process that a file names. Neither the first process of the system nor this one is a server.
pub(super) fn pid_in(file: &Path) -> io::Result<u32> {
    let told = |words: &str| io::Error::other(format!("{}: {words}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| told(&error.to_string()))?;
    let pid = text.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
    match pid {
        Some(pid) if pid <= 1 || pid == std::process::id() => {
            Err(told("this is not the process id of a server"))
        }
        Some(pid) if !is_running(pid) => Err(told("the process has ended")),
        Some(pid) => Ok(pid),
        None => Err(told("it does not begin with a process id")),
    }
}

/// Waits until somebody has started the server again: its file names another process.
pub(super) fn wait_for_another(old: u32, file: &Path, control: &Control) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match pid_in(file) {
            Ok(pid) if pid != old => return Ok(()),
            _ if control.is_stopped() => return Ok(()),
            _ if Instant::now() > deadline => {
                let seconds = PATIENCE.as_secs();
                return Err(io::Error::other(format!(
                    "it was not started again within {seconds} seconds"
                )));
            }
            _ => sleep(POLL),
        }
    }
}

/// A server that was started here.
pub(super) struct Started {
    pub(super) child: Child,
    output: Output,
}

impl Started {
    /// Starts a server. Its process is that of the command itself, not that of a shell, and Ctrl-C on the
    /// run's terminal is not for it.
    pub(super) fn spawn(command: &str) -> io::Result<Started> {
        let mut shell = Command::new("sh");
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        shell.args(["-c", &format!("exec {command}")]);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn()?;
        let output = Output::default();
        output.read(child.stdout.take());
        output.read(child.stderr.take());
        Ok(Started { child, output })
    }

    /// How it ended, with the last lines of its output; nothing while it runs.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        // Its last words may be on their way.
        sleep(LAST_WORDS);
        Some(format!("it has ended ({status}){}", self.output.words()))
    }

    /// The last lines of its output, after what is said of it.
    pub(super) fn words(&self) -> String {
        self.output.words()
    }
}

/// How many lines of a server's output are kept.
const LINES: usize = 5;
/// How long the last lines of a server that has ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The last lines of the output of a server.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<VecDeque<String>>>);

impl Output {
    /// Reads a stream to its end, on a thread of its own.
    fn read(&self, stream: Option<impl io::Read + Send + 'static>) {
        let Some(stream) = stream else { return };
        let lines = Arc::clone(&self.0);
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() == LINES {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        });
    }

    fn words(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return "; it printed nothing".to_owned();
        }
        let lines: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
        format!("; its last lines: {}", lines.join(", "))
    }
}

/// Sends a signal. A process that is gone needs none, so the shell's complaints do not count.
pub(super) fn signal(pids: &[u32], what: &str) {
    if pids.is_empty() {
        return;
    }
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("kill -{what} {}", pids.join(" "))]);
    let _ = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// A process and all that it has started, directly or not. PostgreSQL serves each connection by a
/// process in a group of its own, so the group is not enough.
pub(super) fn tree(root: u32) -> Vec<u32> {
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

/// Whether one of these processes is stopped.
pub(super) fn is_stopped(pids: &[u32]) -> bool {
    pids.iter().any(|pid| stat(*pid).is_some_and(|(state, _)| matches!(state, 'T' | 't')))
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
