//! The processes of a server: one, and all that it has started.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolario_db::Control;

/// How long a server may take to start, or to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const POLL: Duration = Duration::from_millis(10);

/// Ends a server and all that it has started, and waits until they are gone: whoever starts it
/// anew would find its files in use. Who does not end when asked is killed in the end.
pub(super) fn end(root: u32, mut child: Option<&mut Child>, how: &str) {
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
pub(super) fn pid_in(file: &Path) -> io::Result<u32> {
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
pub(super) fn wait_for_another(old: u32, file: &Path, control: &Control) -> io::Result<()> {
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
pub(super) fn spawn(command: &str) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.args(["-c", &format!("exec {command}")]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Sends a signal. A process that is gone needs none, so the shell's complaints do not count.
pub(super) fn signal(pids: &[u32], what: &str) {
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
