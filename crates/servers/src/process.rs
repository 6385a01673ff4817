//! Signals to a server and all processes it has started.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often a process is asked whether it is still there.
const POLL: Duration = Duration::from_millis(10);

/// Sends a signal to one process. A process that is gone needs no signal.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a server and its children. PostgreSQL serves each connection by a process of
/// its own, in a process group of its own: stopping the parent alone stops nobody.
pub(crate) fn signal_tree(pid: u32, what: Signal) {
    // Children first and last: the parent might start one in between.
    for child in children(pid) {
        signal(child, what);
    }
    signal(pid, what);
    for child in children(pid) {
        signal(child, what);
    }
}

/// Stops a server and its children in their tracks, and waits until they stand still. On a busy
/// machine that takes a while: a process stops when the thread that got the signal has its turn,
/// and until then the others go on. False: they have not, and the time is over.
pub(crate) fn freeze(pid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        // Again, since the parent may have started a child before it stopped.
        signal_tree(pid, Signal::STOP);
        if is_still(pid) && children(pid).into_iter().all(is_still) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        sleep(POLL);
    }
}

/// Whether no thread of a process does anything: all are stopped or have ended.
fn is_still(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| stat_at(&thread.path().join("stat")))
        .all(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
}

/// Waits until a process has ended. False: it has not, and the time is over.
pub(crate) fn wait_for_end(pid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while is_running(pid) {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(POLL);
    }
    true
}

/// Whether a process runs; one that has ended but was not waited for does not.
pub(crate) fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != 'Z')
}

/// The command line of a process, its arguments separated by spaces.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
}

/// The processes that a process has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| stat(pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

struct Stat {
    state: char,
    parent: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    stat_at(Path::new(&format!("/proc/{pid}/stat")))
}

/// Reads the `stat` of a process or a thread: `PID (NAME) STATE PARENT …`, where NAME may hold
/// spaces and brackets.
fn stat_at(path: &Path) -> Option<Stat> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Stat { state, parent })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        assert!(is_running(child.id()));
        signal(child.id(), Signal::KILL);
        // Not waited for yet, so still in the table; it counts as ended all the same.
        assert!(wait_for_end(child.id(), Duration::from_secs(60)));
        child.wait().unwrap();
    }

    #[test]
    fn who_is_frozen_stands_still() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        assert!(freeze(child.id(), Duration::from_secs(60)));
        assert!(is_still(child.id()) && is_running(child.id()));
        signal(child.id(), Signal::KILL);
        child.wait().unwrap();
        assert!(!is_still(std::process::id()));
    }

    #[test]
    fn waiting_gives_up() {
        assert!(!wait_for_end(std::process::id(), Duration::from_millis(20)));
    }
}
