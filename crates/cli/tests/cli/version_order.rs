//! `--version-order` and `--trust-version-order`, of `isolario check` and `isolario verify`.

use crate::sandbox::Sandbox;

/// Carol saw what alice wrote before what bob wrote; what dan wrote was rolled back.
const HISTORY: &str = "\
initial 0
session alice
  T1: w x 1
session bob
  T2: w x 2
session carol
  T3: r x 1
  T4: r x 2
session dan
  T5 aborted: w x 3
  T6: w y 1
session erin
  T7: w y 1
";

/// A sandbox with the history and an order of versions.
fn stating(order: &str) -> Sandbox {
    Sandbox::new().file("h.txt", HISTORY).file("order", order)
}

const RIGHT: &str = r#"{"key": "x", "values": [0, 1, 2]}"#;
const WRONG: &str = "# by commit position\n{\"key\": \"x\", \"writers\": [\"T2\", \"T1\"]}\n";

const CHECK: [&str; 6] = ["check", "--level", "ser", "--version-order", "order", "h.txt"];
const TRUST: [&str; 9] = [
    "check",
    "--level",
    "ser",
    "--version-order",
    "order",
    "--trust-version-order",
    "--proof",
    "h.proof",
    "h.txt",
];
const VERIFY: [&str; 6] =
    ["verify", "--version-order", "order", "--trust-version-order", "h.txt", "h.proof"];

#[test]
fn a_wrong_order_changes_nothing_unless_it_is_trusted() {
    let sandbox = stating(WRONG);
    let shown = [sandbox.transcript(&CHECK), sandbox.transcript(&TRUST)];
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(stating(RIGHT).code(&TRUST), 0);
}

#[test]
fn a_proof_that_rests_on_an_order_is_verified_with_it_alone() {
    let sandbox = stating(WRONG);
    assert_eq!(sandbox.code(&TRUST), 1);
    let right = sandbox.transcript(&VERIFY);
    let missing = sandbox.transcript(&["verify", "h.txt", "h.proof"]);
    let other = sandbox.file("order", RIGHT).transcript(&VERIFY);
    insta::assert_snapshot!([right, missing, other].join("\n"));
}

#[test]
fn a_proof_without_an_order_is_none_with_one() {
    let sandbox = stating(RIGHT);
    assert_eq!(sandbox.code(&[&CHECK[..], &["--proof", "h.proof"]].concat()), 0);
    assert_eq!(sandbox.code(&["verify", "h.txt", "h.proof"]), 0);
    assert_eq!(sandbox.code(&["verify", "--version-order", "order", "h.txt", "h.proof"]), 0);
    insta::assert_snapshot!(sandbox.transcript(&VERIFY));
}

#[test]
fn an_order_that_the_history_does_not_have_is_left_out_with_a_warning() {
    let order = "{\"key\":\"x\",\"values\":[1,9]}\n{\"key\":\"q\",\"values\":[]}\n";
    insta::assert_snapshot!(stating(order).transcript(&CHECK));
}

#[test]
fn orders_that_cannot_be_meant_exit_with_2_a_place_and_a_remedy() {
    let mut shown = Vec::new();
    for order in [
        r#"{"key":"x","values":[1,3]}"#,
        r#"{"key":"y","values":[1]}"#,
        "\n{\"key\":\"x\"}",
        "{\"key\":\"x\",\"values\":[1,}",
    ] {
        shown.push(stating(order).transcript(&CHECK));
    }
    let json = [&CHECK[..], &["--json"]].concat();
    shown.push(stating("[]").transcript(&json));
    let absent = ["check", "--version-order", "absent", "h.txt"];
    shown.push(stating("").transcript(&absent));
    insta::assert_snapshot!(shown.join("\n"));
}

/// By the certificate, carol met bob's row and returned alice's. In another order of the two she would have
/// been right.
#[test]
fn a_broken_certificate_is_told_with_what_would_have_been_without_it() {
    let history = "\
initial nil
session alice
  T1: w x 7
session bob
  T2: w x 1
session carol
  T3: select value > 5 -> {x: 7}, r x 7
session dan
  T4: select value > 100 -> {}
";
    let certificate = "\
{\"key\": \"x\", \"writers\": [\"T1\", \"T2\"]}
{\"txn\": \"T3\", \"op\": 0, \"versions\": [[\"x\", \"T2\"]]}
";
    let sandbox = Sandbox::new().file("h.txt", history).file("order", certificate);
    let trust =
        ["--version-order", "order", "--trust-version-order", "--report", "r.html", "h.txt"];
    let check = |more: &[&str]| sandbox.transcript(&[&["check"], more, &trust].concat());
    insta::assert_snapshot!(check(&["--level", "ru,pl-2,prefix,rr,ser"]));
    let json = check(&["--level", "ser", "--json"]);
    let expected = r#""stated":{"otherwise":[{"level":"serializable","verdict":"satisfied"}],"#;
    assert!(json.contains(expected), "{json}");
    let page = sandbox.read("r.html");
    assert!(page.contains("<p>Without it, serializable is satisfied"), "{page}");
}
