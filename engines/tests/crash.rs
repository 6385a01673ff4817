//! A store that takes its process along leaves somebody to tell.

#![cfg(feature = "redb")]
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isolario::formats;
use rustix::process::{Pid, Signal, kill_process};

/// How long the run may take to begin: the machine may be very busy.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_process_that_dies_is_told_and_what_it_recorded_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let command = Command::new(env!("CARGO_BIN_EXE_isolario-engines"))
        .args(["run", "--db", "redb:", "--duration", "60s", "--think", "1ms", "--out"])
        .arg(&out)
        // What is temporary is left behind by who dies: it goes with ours.
        .env("TMPDIR", directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let history = out.join("history.iso");
    let begun = Instant::now();
    while !formats::read(&history).is_ok_and(|read| read.history.txn_count() > 10) {
        assert!(begun.elapsed() < PATIENCE, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = command.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let child = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(child, Signal::ABORT).unwrap();
    let ended = command.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("the store ended its process by signal 6"), "{said}");
    assert!(formats::read(&history).is_ok());
}
