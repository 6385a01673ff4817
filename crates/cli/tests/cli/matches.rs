//! `--matches`, of `isolario check` and `isolario verify`.

use crate::sandbox::Sandbox;

/// Ada is written, and somebody looks for names that begin with an A: in a form that only a database knows.
fn history(found: &str) -> Sandbox {
    let row = r#"[{"table":"people","row":{"id":1}},{"row":{"name":"Ada"}}]"#;
    let other = r#"{"table":"people","row":{"id":2}},{"row":{"name":"Bob"}}"#;
    let found = if found.is_empty() { "" } else { row };
    let write = row.trim_matches(['[', ']']);
    let text = format!(
        r#"{{"isolario":2,"initial":null}}
{{"session":"a","id":"T1","ops":[["w",{write}],["w",{other}]]}}
{{"session":"a","id":"T2","ops":[["select","FROM people WHERE substr(name, 1, 1) = 'A'",[{found}]]]}}
"#
    );
    Sandbox::new().file("h.jsonl", &text)
}

const ASKING: [&str; 8] =
    ["check", "--level", "ser", "--matches", "sqlite", "--proof", "h.proof", "h.jsonl"];
const VERIFY: [&str; 5] = ["verify", "--matches", "sqlite", "h.jsonl", "h.proof"];

#[test]
fn what_cannot_be_evaluated_is_decided_by_asking_a_database() {
    let right = history("Ada");
    assert_eq!(right.code(&["check", "--level", "ser", "h.jsonl"]), 2);
    assert_eq!((right.code(&ASKING), right.code(&VERIFY)), (0, 0));
    let wrong = history("");
    let shown = [
        wrong.transcript(&["check", "--level", "ser", "h.jsonl"]),
        wrong.transcript(&ASKING),
        wrong.transcript(&VERIFY),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_proof_that_rests_on_what_a_database_said_is_verified_by_asking_it() {
    let sandbox = history("");
    assert_eq!(sandbox.code(&ASKING), 1);
    assert_eq!(sandbox.code(&["verify", "h.jsonl", "h.proof"]), 1);
}
