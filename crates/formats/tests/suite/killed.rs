//! Recorders in processes that are killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use isolario_formats::{LiveRecorder, read};
use isolario_model::{Meta, Op, Outcome, TxnEnd, TxnStart, Value, ValueRef};

/// The file that the child records into, and how many transactions each of its sessions has.
const FILE: &str = "ISOLARIO_KILLED_FILE";
const TXNS: &str = "ISOLARIO_KILLED_TXNS";
/// Number of children to kill.
const KILLS: &str = "ISOLARIO_KILLS";

const SESSIONS: i64 = 4;

/// Writes a line to the parent in one piece, past the test harness, which would keep what is printed.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// The child: each session reports the name of a transaction once the recorder has it.
#[test]
#[ignore = "run by a_killed_recorder_loses_nothing_that_it_acknowledged, in a process of its own"]
fn record_until_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let txns: i64 = std::env::var(TXNS).unwrap().parse().unwrap();
    let recorder = LiveRecorder::create(Path::new(&file), &Meta::default()).unwrap();
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let mut records = recorder.session();
            scope.spawn(move || {
                for name in (session * txns)..((session + 1) * txns) {
                    let write = Op::Write { key: ValueRef::Text("x"), value: name.into() };
                    let id = Some(name.into());
                    let start = TxnStart { session: session.into(), id, line: None };
                    records.begin(&start, Some(name), &[write]).unwrap();
                    records.op(&write).unwrap();
                    records.end(&TxnEnd::new(Outcome::Committed)).unwrap();
                    records.flush().unwrap();
                    report(&format!("recorded {name}"));
                }
            });
        }
    });
    report("packing");
    recorder.finish().unwrap();
    report("packed");
}

/// Kills a child some time after its first report. Returns the names that it reported, and its last line.
fn killed(file: &Path, txns: u64, after: Duration) -> (BTreeSet<i64>, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["killed::record_until_killed", "--exact", "--include-ignored", "--nocapture"])
        .envs([(FILE, file.as_os_str()), (TXNS, txns.to_string().as_ref())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let (first, started) = channel();
    let reader = thread::spawn(move || {
        let (mut names, mut last) = (BTreeSet::new(), String::new());
        // A line that the kill cut short was not reported.
        for line in lines.lines().map_while(Result::ok) {
            if let Some(name) = line.strip_prefix("recorded ") {
                names.insert(name.parse().unwrap());
                let _ = first.send(());
            } else if line.starts_with("pack") {
                last = line;
            }
        }
        (names, last)
    });
    started.recv().unwrap();
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn a_killed_recorder_loses_nothing_that_it_acknowledged() {
    let kills: u64 = std::env::var(KILLS).map_or(8, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut ends) = (0, BTreeSet::new());
    for kill in 0..kills {
        let file = directory.path().join(format!("{kill}.iso"));
        // Few, so that the file is being packed or is packed by then, or more than there is time for.
        let txns = [20, 200, 2_000, 20_000][kill as usize % 4];
        let after = Duration::from_micros(kill * 7_919 % 60_000);
        let (names, last) = killed(&file, txns, after);
        acknowledged += names.len();
        ends.insert(last);
        let history = read(&file).unwrap().history;
        let committed = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
        let found: BTreeSet<i64> = committed
            .filter(|txn| history.txn_ops(*txn).len() == 1)
            .filter_map(|txn| match history.txn_name(txn)?.to_owned() {
                Value::Int(name) => Some(name),
                _ => None,
            })
            .collect();
        let lost: Vec<_> = names.difference(&found).collect();
        assert!(lost.is_empty(), "kill {kill}: {lost:?} of {}", names.len());
    }
    println!("{kills} kills, {acknowledged} transactions acknowledged, at the end: {ends:?}");
    assert!(acknowledged > 0);
}
