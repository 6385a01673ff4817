//! `--assume`, of `isolario check` and `isolario verify`.

use crate::sandbox::Sandbox;

/// Carol and dan saw two keys change in opposite orders.
const HISTORY: &str = "\
session alice
  T1: w x 1, w y 1
session bob
  T2: w x 2, w y 2
session carol
  T3: r x 1
  T4: r x 2
session dan
  T5: r y 2
  T6: r y 1
";

/// Carol went back to the earlier version.
const BACK: &str = "\
session alice
  T1 [0, 1]: w x 1
session bob
  T2 [2, 3]: w x 2
session carol
  T3 [4, 5]: r x 2
  T4 [6, 7]: r x 1
";

const CHECK: [&str; 5] = ["check", "--level", "read-uncommitted", "--proof", "h.proof"];

fn check<'a>(assume: &'a str, history: &'a str) -> Vec<&'a str> {
    [&CHECK[..], &["--assume", assume, history]].concat()
}

#[test]
fn what_is_assumed_orders_versions_and_is_named_in_the_argument() {
    let sandbox = Sandbox::new().file("h.txt", HISTORY).file("back.txt", BACK);
    let shown = [
        sandbox.transcript(&["check", "--level", "read-uncommitted", "h.txt"]),
        sandbox.transcript(&check("wfr,sequential-keys", "h.txt")),
        sandbox.transcript(&check("linearizable-keys", "back.txt")),
        sandbox.transcript(&check("linearizable-keys", "h.txt")),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_proof_that_rests_on_an_assumption_is_verified_with_it_alone() {
    let sandbox = Sandbox::new().file("h.txt", HISTORY);
    assert_eq!(sandbox.code(&check("sequential-keys", "h.txt")), 1);
    let shown = [
        sandbox.transcript(&["verify", "--assume", "sequential-keys", "h.txt", "h.proof"]),
        sandbox.transcript(&["verify", "h.txt", "h.proof"]),
        sandbox.transcript(&["verify", "--assume", "linearizable-keys", "h.txt", "h.proof"]),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_wrong_assumption_is_refused_with_the_right_names() {
    let sandbox = Sandbox::new().file("h.txt", HISTORY);
    let promised = ["check", "--assume", "wfr", "--serialization-order", "timestamps", "h.txt"];
    let shown = [sandbox.transcript(&check("linear", "h.txt")), sandbox.transcript(&promised)];
    insta::assert_snapshot!(shown.join("\n"));
}
