//! What is left of a store whose process dies, and who tells.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Command;

use isolario_engines::DRIVERS;
use serde_json::Value;

fn isolario() -> Command {
    Command::new(env!("CARGO_BIN_EXE_isolario-engines"))
}

/// Every store with files is killed, at the end of each phase of a hunt. Whether it keeps its claim meanwhile is
/// measured elsewhere.
#[test]
fn a_store_that_is_asked_to_keep_what_it_acknowledges_does() {
    for driver in DRIVERS.iter().filter(|driver| driver.form.ends_with("[DIRECTORY]")) {
        let directory = tempfile::tempdir().unwrap();
        let scheme = driver.schemes[0];
        let url = format!("{scheme}:{}", directory.path().join("store").display());
        let hunted = isolario()
            .args(["run", "--db", &url, "--hunt", "5s", "--crash", "--seed", "1"])
            .args(["--json", "--quiet", "--out"])
            .arg(directory.path().join("hunted"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&hunted.stderr);
        assert_ne!(hunted.status.code(), Some(2), "{scheme} cannot be opened again: {said}");
        let lines = hunted.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let told: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let lost = told.iter().filter_map(|line| line["lost_commits"].as_u64()).sum::<u64>();
        assert_eq!(lost, 0, "{scheme}: {}", String::from_utf8_lossy(&hunted.stdout));
        let phases = told.iter().find_map(|line| line["phases"].as_array()).unwrap();
        let committed = phases.iter().filter_map(|phase| phase["committed"].as_u64()).sum::<u64>();
        assert!(committed > 0, "{scheme} has committed nothing");
    }
}

/// With a run of redb that goes on until it is stopped.
#[cfg(feature = "redb")]
mod going_on {
    use std::process::{Child, Stdio};
    use std::time::{Duration, Instant};

    use isolario::formats;
    use redb::{ReadableDatabase, TableDefinition, TableError};
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// How long the run may take to begin: the machine may be very busy.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A run that has recorded something in this directory.
    fn begun(directory: &Path, url: &str) -> Child {
        let command = isolario()
            .args(["run", "--db", url, "--duration", "60s", "--think", "1ms", "--out"])
            .arg(directory.join("run"))
            // What is temporary is left behind by who dies: it goes with ours.
            .env("TMPDIR", directory)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !formats::read(&history(directory)).is_ok_and(|read| read.history.txn_count() > 10) {
            assert!(begun.elapsed() < PATIENCE, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(50));
        }
        command
    }

    fn history(directory: &Path) -> std::path::PathBuf {
        directory.join("run/history.iso")
    }

    /// Ends the process that has the store open, and tells what its parent says to that.
    fn end(command: Child, signal: Signal) -> (Option<i32>, String) {
        let pid = command.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let child = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
        kill_process(child, signal).unwrap();
        let ended = command.wait_with_output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    }

    #[test]
    fn a_process_that_dies_is_told_and_what_it_recorded_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let (code, said) = end(begun(directory.path(), "redb:"), Signal::ABORT);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("the store ended its process by signal 6"), "{said}");
        assert!(formats::read(&history(directory.path())).is_ok());
    }

    /// Where nobody asks what survives, redb is told not to persist, and does not: not even the table is there.
    #[test]
    fn redb_without_durability_forgets_everything() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        end(begun(directory.path(), &format!("redb:{}", store.display())), Signal::KILL);
        let database = redb::Database::create(store.join("isolario.redb")).unwrap();
        let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("isolario");
        let found = database.begin_read().unwrap().open_table(table).map(drop);
        assert!(matches!(found, Err(TableError::TableDoesNotExist(_))), "{found:?}");
    }
}
