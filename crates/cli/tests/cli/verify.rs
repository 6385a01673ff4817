//! `isolario check --proof` and `isolario verify`.

use isolario::model::Level;
use serde_json::Value;

use crate::sandbox::{FINE, Sandbox};

/// Half of what T1 wrote is seen.
const FRACTURED: &str = "\
initial 0
session alice
  T1: w x 1, w y 1
session bob
  T2: r y 0, r x 1
";

/// A sandbox with the proof of a history, `h.proof`.
fn proved(history: &str) -> Sandbox {
    let sandbox = Sandbox::new().file("h.txt", history);
    let output = sandbox.run(&["check", "--proof", "h.proof", "h.txt"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "note: wrote the proof to h.proof\n");
    sandbox
}

/// The same with something in the proof replaced.
fn forged(history: &str, from: &str, to: &str) -> Sandbox {
    let sandbox = proved(history);
    let proof = sandbox.read("h.proof");
    assert!(proof.contains(from), "{proof}");
    sandbox.file("h.proof", &proof.replacen(from, to, 1))
}

const VERIFY: [&str; 3] = ["verify", "h.txt", "h.proof"];

#[test]
fn a_proof_is_lines_of_json_in_the_users_own_names() {
    let proof = proved(FRACTURED).read("h.proof");
    let stable = proof.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(stable);
    for line in proof.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok());
    }
}

#[test]
fn a_right_proof_exits_with_0_whatever_its_verdict() {
    let satisfied = proved(FINE).transcript(&VERIFY);
    let violated = proved(FRACTURED).transcript(&VERIFY);
    insta::assert_snapshot!([satisfied, violated].join("\n"));
}

#[test]
fn a_proof_that_a_level_does_not_apply_is_re_checked_too() {
    let sandbox = Sandbox::new();
    sandbox.run(&["check", "--level", "rc", "--proof", "h.proof", "ambiguous.txt"]);
    insta::assert_snapshot!(sandbox.transcript(&["verify", "ambiguous.txt", "h.proof"]));
}

/// The shipped examples: files, and the weakest levels that forbid what they show.
fn examples() -> Vec<(String, Vec<Level>)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/histories");
    let table = std::fs::read_to_string(format!("{directory}/README.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ["));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let file = cells[1].split(['[', ']']).nth(1).unwrap();
        let levels = cells[3].split(", ").map(|name| Level::find(name).unwrap());
        (format!("{directory}/{file}"), levels.collect())
    })
    .collect()
}

#[test]
fn what_forbids_an_example_is_violated_by_it_whether_it_applies_or_not() {
    let sandbox = Sandbox::new();
    let mut implied = 0;
    for (file, weakest) in examples() {
        let forbids = |level: &Level| weakest.iter().any(|weaker| level.implies(*weaker));
        for level in Level::decided().filter(forbids) {
            let check = ["check", "--level", level.name(), &file, "--json", "--proof", "h.proof"];
            let output = sandbox.run(&check);
            assert_eq!(output.status.code(), Some(1), "{file} at {level}");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let results = report["results"].as_array().unwrap();
            let own = &results[0];
            assert_eq!(own["level"], level.name());
            match own["verdict"].as_str().unwrap() {
                // By itself: nothing else is decided.
                "violated" => assert_eq!(results.len(), 1, "{file} at {level}"),
                // By what it implies: that has the proof.
                "not-applicable" => {
                    implied += 1;
                    assert!(results.len() > 1, "{file} at {level}");
                    for source in &results[1..] {
                        assert_eq!(source["verdict"], "violated", "{file} at {level}");
                        let weaker = Level::find(source["level"].as_str().unwrap()).unwrap();
                        assert!(level.is_ruled_out_by(weaker), "{file} at {level}: {weaker}");
                    }
                }
                other => assert_eq!(other, "violated", "{file} at {level}"),
            }
            assert_eq!(sandbox.code(&["verify", &file, "h.proof"]), 0, "{file} at {level}");
        }
    }
    assert!(implied > 0);
}

#[test]
fn the_directory_of_a_run_is_its_history_and_has_its_proof() {
    let sandbox = Sandbox::new();
    let run =
        ["run", "--db", "sim:serializable?anomaly=lost-update", "--txns", "200", "--out", "r"];
    assert_eq!(sandbox.code(&[&run[..], &["--seed", "7", "-q"]].concat()), 1);
    let of_history = sandbox.stdout(&["verify", "r/history.iso", "r/proof"]);
    assert_eq!(sandbox.stdout(&["verify", "r"]), of_history);
    assert_eq!(sandbox.stdout(&["verify", "r", "r/proof"]), of_history);
    assert_eq!(sandbox.stdout(&["stats", "r"]), sandbox.stdout(&["stats", "r/history.iso"]));
    let show = |place| sandbox.stdout(&["show", place, "session", "1"]);
    assert_eq!(show("r"), show("r/history.iso"));
    let shrink = |place| sandbox.stdout(&["shrink", place]);
    assert_eq!(shrink("r"), shrink("r/history.iso"));
    assert!(shrink("r").starts_with("initial "));
    insta::assert_snapshot!(sandbox.transcript(&["verify", "fine.txt"]));
}

#[test]
fn a_wrong_proof_exits_with_1_and_says_what_is_wrong() {
    let order = forged(FINE, r#"["T1","T2"]"#, r#"["T2","T1"]"#);
    let edge = forged(FRACTURED, r#""anomaly":"FracturedReadCO""#, r#""anomaly":"CyclicCO""#);
    let nobody = forged(FINE, r#"["T1","T2"]"#, r#"["T1","T3"]"#);
    let shown = [order, edge, nobody].map(|sandbox| sandbox.transcript(&VERIFY));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_proof_that_has_less_than_it_counts_is_a_wrong_one() {
    let shown = forged(FINE, r#"["T1","T2"]"#, r#"["T1"]"#).transcript(&VERIFY);
    assert!(shown.contains("the proof states 2 transactions but contains 1"), "{shown}");
    assert!(shown.contains("exit code 1"), "{shown}");
}

#[test]
fn a_proof_of_another_history_is_a_wrong_one() {
    let sandbox = proved(FRACTURED);
    insta::assert_snapshot!(sandbox.transcript(&["verify", "fine.txt", "h.proof"]));
}

#[test]
fn what_is_no_proof_is_an_error() {
    let sandbox = Sandbox::new().file("h.txt", FINE).file("empty", "");
    let shown = ["h.txt", "empty", "missing"].map(|p| sandbox.transcript(&["verify", "h.txt", p]));
    insta::assert_snapshot!(shown.join("\n"));
    let broken = forged(FINE, r#""verdict":"satisfied""#, r#""verdict":"surely""#);
    insta::assert_snapshot!("a_malformed_proof", broken.transcript(&VERIFY));
}

#[test]
fn json_says_the_same() {
    let right = proved(FINE).stdout(&["verify", "--json", "h.txt", "h.proof"]);
    let order = forged(FINE, r#"["T1","T2"]"#, r#"["T2","T1"]"#);
    let wrong = order.stdout(&["verify", "--json", "h.txt", "h.proof"]);
    let other = order.stdout(&["verify", "--json", "cycle.txt", "h.proof"]);
    insta::assert_snapshot!([right, wrong, other].concat());
}

#[test]
fn the_format_of_the_history_does_not_matter() {
    let sandbox = proved(FRACTURED);
    for converted in ["h.iso", "h.jsonl"] {
        assert_eq!(sandbox.code(&["convert", "h.txt", converted]), 0);
        assert_eq!(sandbox.code(&["verify", converted, "h.proof"]), 0, "{converted}");
    }
    let args = ["verify", "--format", "jsonl", "h.jsonl", "h.proof"];
    assert_eq!(sandbox.code(&args), 0);
}

#[test]
fn plume_and_native_histories_share_their_proofs() {
    let sandbox = Sandbox::new().file("h.plume", "w(0,1,0,0)\nr(0,1,1,1)\nw(1,2,1,1)\n");
    assert_eq!(sandbox.code(&["convert", "--from", "plume", "h.plume", "h.iso"]), 0);
    let args = ["check", "--format", "plume", "--proof", "h.proof", "h.plume"];
    assert_eq!(sandbox.code(&args), 0);
    assert_eq!(sandbox.code(&["verify", "h.iso", "h.proof"]), 0);
}

#[test]
fn the_flags_of_the_check_are_those_of_the_proof() {
    let sandbox =
        Sandbox::new().file("h.txt", "initial 0\nsession alice\n  T1: r x 1\n  T2: w x 1\n");
    let args = ["check", "--no-session-order", "--proof", "h.proof", "h.txt"];
    assert_eq!(sandbox.code(&args), 0);
    assert_eq!(sandbox.code(&VERIFY), 0);
}

#[test]
fn a_proof_is_of_one_history_and_leaves_nothing_half_written() {
    let sandbox = Sandbox::new();
    let before = sandbox.names();
    let several = ["check", "--proof", "h.proof", "fine.txt", "cycle.txt"];
    let nowhere = ["check", "--proof", "no/dir/h.proof", "fine.txt"];
    let shown = [sandbox.transcript(&several), sandbox.transcript(&nowhere)];
    insta::assert_snapshot!(shown.join("\n"));
    assert_eq!(sandbox.names(), before);
}
