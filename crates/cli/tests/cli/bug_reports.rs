//! Bug reports that a stranger can follow: what happened, who did what when, and how to try it.

use crate::sandbox::Sandbox;

/// Increments of a few counters, two of which miss each other among others that do not.
const LOST_UPDATE: &str = "\
initial nil
session 0
  _ [1000000, 4000000]: r 3 nil, w 3 11
  _ [21000000, 26000000]: r 7 nil, r 3 11, w 7 12
session 1
  _ [2000000, 3500000]: r 5 nil, w 5 13
  _ [22000000, 27500000]: r 7 nil, w 7 14
session 2
  _ [6000000, 9000000]: r 3 11, w 3 15
  _ [30000000, 31000000]: r 5 13, r 3 15
";

const POSTGRES: &str = r#"{
  "schema": "isolario.run/1", "isolario": "0.1.0", "began_unix_s": 951827696,
  "urls": ["postgres://db.example/test"], "database": "postgres",
  "database_version": "PostgreSQL 15.4", "isolation": "repeatable-read",
  "workload": {"kind": "mini", "sessions": 3, "ops": 4, "keys": 10, "distribution": "uniform"},
  "seed": "7", "replay": "isolario run --db postgres://db.example/test --isolation repeatable-read --seed 7",
  "claim": ["snapshot-isolation"], "claim_words": "the manual, 13.2.2"
}"#;

/// Two lists, appended to on two nodes, and readers who saw the appends in opposite orders.
const LONG_FORK: &str = "\
initial nil
session 0
  _ [1000, 2000]: append 1 10
session 1
  _ [1100, 2100]: append 2 20
session 2
  _ [3000, 4000]: r 1 [10], r 2 []
session 3
  _ [3100, 4100]: r 1 [], r 2 [20]
session 4
  _ [9000, 9900]: append 3 30, r 3 [30]
";

const GALERA: &str = r#"{
  "schema": "isolario.run/1", "isolario": "0.1.0", "began_unix_s": 951827696,
  "urls": ["mysql://n1/test", "mysql://n2/test"], "database": "galera",
  "database_version": "MariaDB Galera 10.11", "isolation": "repeatable-read",
  "workload": {"kind": "append", "sessions": 5, "ops": 2, "keys": 3, "distribution": "uniform"},
  "seed": "8", "replay": "isolario run --db mysql://n1/test --db mysql://n2/test --workload append --seed 8",
  "claim": ["snapshot-isolation"], "claim_words": "its documentation"
}"#;

/// Statements of an application, recorded with what they read and wrote.
const STATEMENTS: &str = r#"{"isolario": 2, "initial": 0}
{"session": "web", "id": "withdraw", "ops": [["r", "balance", 0], ["w", "balance", -5]], "sql": {"0": "SELECT amount\n  FROM balance", "1": "UPDATE balance SET amount = -5"}}
{"session": "batch", "id": "interest", "ops": [["r", "balance", 0], ["w", "balance", 1]], "sql": {"0": "SELECT amount FROM balance;", "1": "UPDATE balance SET amount = 1"}}
{"session": "batch", "id": "report", "ops": [["r", "rate", 0]], "sql": {"0": "SELECT rate FROM rates"}}
"#;

/// The bug report on a history, without what changes from day to day.
fn report(sandbox: &Sandbox, history: &str, level: &str) -> String {
    let check = ["check", history, "--level", level, "--bug-report", "bug.md", "-q"];
    assert_eq!(sandbox.code(&check), 1);
    let text = sandbox.read("bug.md").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let stays = |line: &&str| !line.starts_with("| Date |");
    text.lines().filter(stays).collect::<Vec<_>>().join("\n")
}

fn run_directory(record: &str, history: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("run")).unwrap();
    sandbox.file("run/run.json", record).file("run/history.iso", history)
}

#[test]
fn a_lost_update_of_a_run_against_postgresql() {
    insta::assert_snapshot!(report(&run_directory(POSTGRES, LOST_UPDATE), "run", "si"));
}

#[test]
fn a_long_fork_of_a_run_against_two_nodes() {
    insta::assert_snapshot!(report(&run_directory(GALERA, LONG_FORK), "run", "si"));
}

#[test]
fn statements_that_were_recorded() {
    let sandbox = Sandbox::new().file("h.jsonl", STATEMENTS);
    insta::assert_snapshot!(report(&sandbox, "h.jsonl", "ser"));
}

#[test]
fn the_shrunk_history_of_a_bug_report_is_a_history_that_shows_it() {
    let sandbox = run_directory(POSTGRES, LOST_UPDATE);
    let text = report(&sandbox, "run", "si");
    let history = text.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let sandbox = sandbox.file("shrunk.txt", history);
    let again = ["check", "--level", "snapshot-isolation", "shrunk.txt", "--proof", "shrunk.proof"];
    assert_eq!(sandbox.code(&again), 1);
    assert_eq!(sandbox.code(&["verify", "shrunk.txt", "shrunk.proof"]), 0);
}

#[test]
fn a_run_leaves_the_smallest_part_unless_it_is_told_not_to() {
    let sandbox = Sandbox::new();
    let run = |out: &str, more: &[&str]| {
        let db = "sim:serializable?anomaly=lost-update";
        let run = ["run", "--db", db, "--txns", "300", "--seed", "7", "--out", out, "-q"];
        assert_eq!(sandbox.code(&[&run[..], more].concat()), 1);
    };
    run("a", &[]);
    run("b", &["--no-shrink"]);
    run("c", &["--no-shrink", "--shrink"]);
    assert_eq!(sandbox.code(&["verify", "a/shrunk.txt", "a/shrunk.proof"]), 0);
    assert!(sandbox.read("a/report.html").contains("id=\"smallest\""));
    assert!(sandbox.read("a/bug-report.md").contains(&sandbox.read("a/shrunk.txt")));
    assert!(!sandbox.path("b/shrunk.txt").exists());
    assert!(!sandbox.read("b/report.html").contains("id=\"smallest\""));
    assert_eq!(sandbox.code(&["verify", "c/shrunk.txt", "c/shrunk.proof"]), 0);
    let kept = ["run", "--db", "sim:serializable", "--txns", "300", "--out", "d", "-q"];
    assert_eq!(sandbox.code(&kept), 0);
    assert!(!sandbox.path("d/shrunk.txt").exists());
}
