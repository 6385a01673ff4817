//! `isolario show`.

use serde_json::Value;

use crate::sandbox::{AMBIGUOUS, Sandbox};

/// Two transfers, of which one did not see the other.
const BANK: &str = "\
initial 100
session alice
  T1 [1000, 2000]: r balance 100, w balance 130
  T2 [3000, 4000] aborted: w balance 7
session bob
  T3 [1500, 2500]: r balance 100, w balance 150, r balance 150
session carol
  T4: r balance 7, r balance 9, append log 1
  T5: r log [1], r log []
";

fn bank() -> Sandbox {
    Sandbox::new().file("bank.txt", BANK)
}

#[test]
fn a_transaction_with_its_operations_times_and_neighbours() {
    let sandbox = bank();
    let shown: Vec<_> = ["T1", "T2", "T3", "T4", "T5"]
        .iter()
        .map(|name| sandbox.transcript(&["show", "bank.txt", name]))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_key_with_its_versions_writers_and_readers() {
    let sandbox = bank();
    let balance = sandbox.transcript(&["show", "bank.txt", "balance"]);
    let log = sandbox.transcript(&["show", "bank.txt", "key", "log"]);
    insta::assert_snapshot!([balance, log].join("\n"));
}

#[test]
fn a_session_with_its_transactions() {
    insta::assert_snapshot!(bank().transcript(&["show", "bank.txt", "session", "alice"]));
}

#[test]
fn what_the_history_leaves_open_is_not_decided() {
    let sandbox = Sandbox::new().file("a.txt", AMBIGUOUS);
    let read = sandbox.transcript(&["show", "a.txt", "T3"]);
    let key = sandbox.transcript(&["show", "a.txt", "x"]);
    insta::assert_snapshot!([read, key].join("\n"));
}

#[test]
fn statements_and_errors_are_shown_where_they_are_known() {
    let sandbox = Sandbox::new().file(
        "h.jsonl",
        "{\"session\":1,\"id\":7,\"outcome\":\"aborted\",\"error\":\"40001: no\\u0007\",\
         \"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",1]],\"sql\":{\"1\":\"UPDATE t SET v = 1\"}}\n",
    );
    let shown = sandbox.transcript(&["show", "h.jsonl", "T7"]);
    assert!(shown.contains("40001: no\\u{7}"), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn names_that_are_not_there_or_mean_several_things() {
    let sandbox = bank().file("n.txt", "session 1\n  1: w 1 1\n");
    let shown: Vec<_> = [
        ["show", "bank.txt", "T33"],
        ["show", "bank.txt", "balnce"],
        ["show", "bank.txt", "something-else"],
        ["show", "n.txt", "1"],
    ]
    .iter()
    .map(|args| sandbox.transcript(args))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
    for name in ["T1", "txn 1", "key 1", "session 1"] {
        assert_eq!(sandbox.code(&["show", "n.txt", name]), 0, "{name}");
    }
}

#[test]
fn for_programs() {
    let sandbox = bank();
    let json = |name: &str| -> Value {
        serde_json::from_str(&sandbox.stdout(&["show", "--json", "bank.txt", name])).unwrap()
    };
    let txn = json("T3");
    assert_eq!(txn["schema"], "isolario.show/1");
    assert_eq!(txn["transaction"]["session"], "bob");
    assert_eq!(txn["transaction"]["start"], 1500);
    assert_eq!(txn["transaction"]["ops"][0]["read_from"], serde_json::json!(["init"]));
    assert_eq!(txn["transaction"]["ops"][1]["read_by"], serde_json::json!(["T3"]));
    let key = json("balance");
    assert_eq!(key["key"]["versions"][0]["read_by"], serde_json::json!(["T1", "T3"]));
    let thin = key["key"]["versions"].as_array().unwrap().iter();
    let thin = thin.filter(|version| version["written_by"].as_array().unwrap().is_empty());
    assert_eq!(thin.count(), 1);
    let session = json("session alice");
    assert_eq!(session["session"]["transactions"][1]["outcome"], "aborted");
}

/// Whatever a report calls a transaction, that finds it.
#[test]
fn reports_name_transactions_so_that_they_can_be_shown() {
    let sandbox = Sandbox::new().file(
        "odd.jsonl",
        "{\"session\":\"a b\",\"id\":\"pay\\u001b[2J 1\",\"ops\":[[\"r\",\"x\",7]]}\n\
         {\"session\":\"c\",\"ops\":[[\"r\",\"x\",8]]}\n",
    );
    let report = sandbox.stdout(&["check", "--level", "rc", "odd.jsonl"]);
    for name in ["pay\\u{1b}[2J 1", "#1"] {
        assert!(report.contains(name), "{report}");
        assert_eq!(sandbox.code(&["show", "odd.jsonl", name]), 0, "{name}");
    }
    assert_eq!(sandbox.code(&["show", "odd.jsonl", "session", "a b"]), 0);
}
