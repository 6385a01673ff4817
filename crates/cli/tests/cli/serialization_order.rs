//! `--serialization-order`, of `isolario check` and `isolario verify`.

use crate::sandbox::Sandbox;

/// Alice and bob open accounts; carol looks for the rich ones, and bob's is not among them.
const HISTORY: &str = "\
initial nil
session alice
  T1 db [1, 2]: w accounts(id=1) (balance=30)
session bob
  T2 db [3, 4]: w accounts(id=2) (balance=20)
session carol
  T3 db [5, 5]: select from accounts where balance > 10 -> {accounts(id=1): (balance=30)}
  T4: aggregate sum(balance) from accounts where true -> 50
";

const AS_PROMISED: &str = "{\"order\": [\"T1\", \"T2\", \"T3\"]}\n";
const AS_IT_WAS: &str = "{\"order\": [\"T1\", \"T3\"]}\n{\"order\": [\"T2\"]}\n";

fn promising(order: &str) -> Sandbox {
    Sandbox::new().file("h.txt", HISTORY).file("order", order)
}

const CHECK: [&str; 8] =
    ["check", "--level", "ser", "--serialization-order", "order", "--proof", "h.proof", "h.txt"];
const VERIFY: [&str; 5] = ["verify", "--serialization-order", "order", "h.txt", "h.proof"];

#[test]
fn what_does_not_come_out_right_in_the_promised_order_is_violated() {
    let sandbox = promising(AS_PROMISED);
    let shown = [sandbox.transcript(&CHECK), sandbox.transcript(&VERIFY)];
    insta::assert_snapshot!(shown.join("\n"));
    let sandbox = promising(AS_IT_WAS);
    assert_eq!((sandbox.code(&CHECK), sandbox.code(&VERIFY)), (0, 0));
}

#[test]
fn timestamps_of_the_history_are_a_promise_for_snapshots_too() {
    let sandbox = promising("");
    let by_stamps =
        |level| ["check", "--level", level, "--serialization-order", "timestamps", "h.txt"];
    let codes = ["si", "ser", "prefix"].map(|level| sandbox.code(&by_stamps(level)));
    assert_eq!(codes, [1, 1, 1]);
    // What a promise does not decide is an error if it is asked for, and left out if not.
    assert_eq!(sandbox.code(&by_stamps("rc")), 2);
    insta::assert_snapshot!(sandbox.transcript(&[
        "check",
        "--serialization-order",
        "order",
        "h.txt"
    ]));
}

#[test]
fn a_proof_that_rests_on_a_promise_is_verified_with_it_alone() {
    let sandbox = promising(AS_PROMISED);
    assert_eq!(sandbox.code(&CHECK), 1);
    let missing = sandbox.transcript(&["verify", "h.txt", "h.proof"]);
    let other = sandbox.file("order", AS_IT_WAS).transcript(&VERIFY);
    insta::assert_snapshot!([missing, other].join("\n"));
}

#[test]
fn promises_that_cannot_be_meant_exit_with_2_a_place_and_a_remedy() {
    let mut shown = Vec::new();
    for order in ["{\"order\": [\"T1\", \"T1\"]}\n", "{\"order\": [\"T9\"]}\n", "T1, T2\n"] {
        shown.push(promising(order).transcript(&CHECK));
    }
    let sandbox = promising(AS_PROMISED);
    shown.push(sandbox.transcript(&["check", "--serialization-order", "missing", "h.txt"]));
    let bare = Sandbox::new().file("h.txt", "session a\n  T1: w x 1\n");
    shown.push(bare.transcript(&["check", "--serialization-order", "timestamps", "h.txt"]));
    insta::assert_snapshot!(shown.join("\n"));
}
