//! The HTML report in a real browser. The tests themselves are in `report.test.mjs`, for Node's own
//! test runner; here the reports are made that they open.
//!
//! Needs Node, npm and Chromium; `scripts/test` installs what is missing. Pictures of the pages are
//! kept in `target/tmp/browser/screenshots`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isolario::formats::{Source, find};
use isolario::model::{
    AbortReason, Counts, Latency, Level, RunEvent, RunEventKind, RunRecord, RunSecond, RunShape,
    StopReason,
};
use isolario::report::{Report, html};

/// Three versions of a key, in an order that everybody agrees on.
const VERSIONS: &str = "\
initial 0
session shop
  T1 [0, 10]: w stock 10
  T2 [20, 30]: r stock 10, w stock 9
  T3 [40, 50]: r stock 9, w stock 8
session audit
  T4 [60, 70]: r stock 8
";

/// A read of a value that two wrote, and whichever of the two it saw was overwritten by then.
const CASES: &str = "\
session a
  T1: w x 1
  T2: w x 2, w y 1
session b
  T3: w x 1
  T4: w x 3, w z 1
session c
  T5: r y 1, r z 1, r x 1
";

/// A cycle of reads down one session and back, where a straight arrow would cross the boxes between.
const SESSIONS: &str = "\
initial 0
session a
  T1: r k0 12, w k1 1
  T4: r k3 3, w k4 4
  T7: r k6 6, w k7 7
  T10: r k9 9, w k10 10
session b
  T2: r k1 1, w k2 2
  T5: r k4 4, w k5 5
  T8: r k7 7, w k8 8
  T11: r k10 10, w k11 11
session c
  T3: r k2 2, w k3 3
  T6: r k5 5, w k6 6
  T9: r k8 8, w k9 9
  T12: r k11 11, w k0 12
";

/// Names and values that try to break out of wherever they are put.
const HOSTILE: &str = include_str!("hostile.jsonl");

#[test]
fn the_report_works_in_a_browser() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(directory.join("screenshots")).unwrap();
    reports(&directory);
    let tests = installed(&directory);
    let status = Command::new("node")
        .args(["--test", "--test-reporter=spec", "report.test.mjs"])
        .current_dir(tests)
        .env("ISOLARIO_REPORTS", &directory)
        .status()
        .unwrap_or_else(|error| panic!("cannot run node ({error}): install nodejs"));
    assert!(status.success(), "see above; pictures are in {}", directory.display());
}

/// The tests, with the packages they need beside them.
fn installed(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let tests = directory.join("tests");
    fs::create_dir_all(&tests).unwrap();
    let lock = tests.join("package-lock.json");
    let wanted = fs::read(source.join("package-lock.json")).unwrap();
    let is_there = tests.join("node_modules").is_dir() && fs::read(&lock).ok() == Some(wanted);
    for file in ["package.json", "package-lock.json", "browser.mjs", "report.test.mjs"] {
        fs::copy(source.join(file), tests.join(file)).unwrap();
    }
    if !is_there {
        let status = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&tests)
            .status()
            .unwrap_or_else(|error| panic!("cannot run npm ({error}): install npm"));
        assert!(status.success(), "npm could not install the packages of the browser tests");
    }
    tests
}

fn isolario(directory: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_isolario"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    // A violation (1) is what most of these histories are for.
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 2), "{arguments:?}: {error}");
}

fn reports(directory: &Path) {
    fs::write(directory.join("versions.txt"), VERSIONS).unwrap();
    fs::write(directory.join("hostile.jsonl"), HOSTILE).unwrap();
    fs::write(directory.join("cases.txt"), CASES).unwrap();
    fs::write(directory.join("sessions.txt"), SESSIONS).unwrap();
    fs::write(directory.join("long.jsonl"), long_texts()).unwrap();
    fs::write(directory.join("many.txt"), many(120)).unwrap();
    for transactions in [12, 40, 120] {
        fs::write(directory.join(format!("ring{transactions}.txt")), ring(transactions)).unwrap();
    }
    let gen_history = |anomalies: &str, shape: &[&str], file: &str| {
        let common = ["gen", "history", "--force", "--workload", "general", "--anomaly", anomalies];
        let outcomes = ["--abort-ratio", "0.05", "--unknown-ratio", "0.02", "-o", file];
        isolario(directory, &[&common[..], shape, &outcomes].concat());
    };
    let reads = "thinairread,abortedread,intermediateread,cyclicco";
    let cycles = "fracturedreadco,coconflictcm,conflictcm,longfork,lostupdate,writeskew,staleread";
    let small = ["--txns", "600", "--keys", "40"];
    gen_history(reads, &small, "reads.jsonl");
    gen_history(cycles, &small, "anomalies.jsonl");
    let large = ["--txns", "100000", "--keys", "2000", "--sessions", "60"];
    gen_history("cyclicco", &large, "large.jsonl");
    for (history, levels) in [
        ("reads.jsonl", "rc,ra,cc"),
        ("anomalies.jsonl", "all"),
        ("large.jsonl", "rc,ra,cc"),
        ("versions.txt", "rc,ra,cc"),
        ("hostile.jsonl", "rc,ra,cc"),
        ("cases.txt", "ser"),
        ("ring12.txt", "ser"),
        ("ring40.txt", "ser"),
        ("ring120.txt", "ser"),
        ("sessions.txt", "cc"),
        ("long.jsonl", "rc"),
        ("many.txt", "rc"),
    ] {
        let report = Path::new(history).with_extension("html");
        let report = report.to_str().unwrap();
        isolario(directory, &["check", "--level", levels, history, "--report", report]);
    }
    isolario(directory, &["check", "versions.txt", "--report", "satisfied.html"]);
    let several = ["anomalies.jsonl", "versions.txt", "reads.jsonl", "hostile.jsonl"];
    let check =
        ["check", "--level", "rc,ra,cc,ser", "--report", "several.html", "--timeout", "20s"];
    isolario(directory, &[&check[..], &several].concat());
    let size = fs::metadata(directory.join("large.html")).unwrap().len();
    assert!(size < 5_000_000, "{size} bytes");
    run(&directory.join("run.html"));
    shrunk(directory);
}

/// A report on a run that found a lost update, with the smallest part that shows it.
fn shrunk(directory: &Path) {
    let run = directory.join("lost");
    fs::create_dir_all(&run).unwrap();
    let record = RunRecord { isolation: "repeatable-read".to_owned(), ..record() };
    let record = RunRecord { claim: vec![Level::SnapshotIsolation], ..record };
    fs::write(run.join("run.json"), serde_json::to_string(&record).unwrap()).unwrap();
    let small =
        ["--txns", "300", "--keys", "20", "--anomaly", "lostupdate", "-o", "lost/history.iso"];
    isolario(directory, &[&["gen", "history", "--force", "--seed", "5"], &small[..]].concat());
    let check = ["check", "lost", "--level", "si", "--report", "shrunk.html"];
    isolario(directory, &[&check[..], &["--bug-report", "shrunk.md"]].concat());
}

/// A cycle of so many transactions, each of which missed what the next one wrote, without times.
fn ring(transactions: usize) -> String {
    let one = |at: usize| {
        let next = (at + 1) % transactions;
        format!("session s{at}\n  T{}: r k{at} 0, w k{next} {}\n", at + 1, at + 1)
    };
    format!("initial 0\n{}", (0..transactions).map(one).collect::<String>())
}

/// So many reads of values that nobody wrote, all of one key.
fn many(reads: usize) -> String {
    let one = |at: usize| format!("  T{at} [{}, {}]: r k {at}\n", 20 * at, 20 * at + 10);
    format!("initial 0\nsession a\n{}", (1..=reads).map(one).collect::<String>())
}

/// Values that differ only at their ends, long names, and text from right to left.
fn long_texts() -> String {
    let (long, id) = ("x".repeat(80), "transfer-".repeat(12));
    let line = |session: &str, id: &str, ops: &str| {
        format!("{{\"session\": \"{session}\", \"id\": \"{id}\", \"ops\": [{ops}]}}\n")
    };
    [
        line("a", &id, &format!("[\"r\", \"k\", \"{long}-one\"], [\"r\", \"k\", \"{long}-two\"]")),
        line("שלום", "b", "[\"r\", \"מפתח\", \"שלום\"]"),
    ]
    .concat()
}

/// A report on a run that somebody interrupted.
fn run(file: &Path) {
    let source = Source::from_bytes("run", VERSIONS.into()).unwrap();
    let history = find("text").unwrap().read(&source).unwrap().history;
    let levels = [Level::ReadCommitted, Level::ReadAtomic, Level::Causal];
    let results =
        isolario::check::check(&history, &levels, &isolario::check::CheckOptions::default());
    let report = Report::new("run", &history, &results);
    html::write(&report, Some(&record()), &mut fs::File::create(file).unwrap()).unwrap();
}

fn record() -> RunRecord {
    let latency = |ms: f64| Latency {
        p50_us: ms * 400.0,
        p90_us: ms * 700.0,
        p99_us: ms * 1000.0,
        p999_us: ms * 1500.0,
        max_us: ms * 2000.0,
    };
    let seconds = (0..45u32).map(|at| RunSecond {
        committed: 900 + u64::from(at * 37 % 200),
        aborted: 40 + u64::from(at * 13 % 60),
        unknown: u64::from(at == 30) * 12,
        latency: latency(4.0 + f64::from(at * 7 % 5)),
    });
    RunRecord {
        schema: RunRecord::SCHEMA.to_owned(),
        urls: vec!["postgres://localhost/test".to_owned()],
        database: "postgres".to_owned(),
        database_version: "PostgreSQL 15.6".to_owned(),
        isolation: "repeatable read".to_owned(),
        workload: RunShape {
            kind: "mini".to_owned(),
            sessions: 10,
            ops: 4,
            keys: 100,
            read_ratio: 0.5,
            distribution: "zipf:1".to_owned(),
            ..RunShape::default()
        },
        seed: "42".to_owned(),
        replay: "isolario run --db postgres://localhost/test --seed 42".to_owned(),
        stopped: StopReason::Interrupted,
        counts: Counts { committed: 44_000, aborted: 2900, unknown: 12, ..Counts::default() },
        abort_reasons: vec![AbortReason {
            code: Some("40001".to_owned()),
            message: "could not serialize access due to concurrent update".to_owned(),
            class: "retryable".to_owned(),
            count: 2900,
        }],
        latency: latency(6.0),
        seconds: seconds.collect(),
        run_ms: 44_400.0,
        events: vec![
            RunEvent {
                kind: RunEventKind::NodeUnreachable,
                from_ms: 0.000_02,
                to_ms: Some(0.000_04),
                node: Some(0),
                message: "connection refused".to_owned(),
                count: 3,
                ..RunEvent::default()
            },
            RunEvent {
                kind: RunEventKind::Pause,
                from_ms: 0.000_055,
                count: 1,
                ..RunEvent::default()
            },
        ],
        check_ms: Some(300.0),
        claim: vec![Level::ReadCommitted],
        claim_source: "its documentation".to_owned(),
        ..RunRecord::default()
    }
}
