//! `isolario stats`, `explain`, `levels`, `completions` and `man`.

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn stats_for_people() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["stats", "cycle.txt"]));
}

#[test]
fn stats_for_programs() {
    let sandbox = Sandbox::new();
    let stats: Value =
        serde_json::from_str(&sandbox.stdout(&["stats", "--json", "ambiguous.txt"])).unwrap();
    assert_eq!(stats["schema"], "isolario.stats/1");
    assert_eq!(stats["size"]["transactions"], 3);
    assert_eq!(stats["findings"][0]["name"], "duplicate-value");
}

#[test]
fn stats_of_a_file_that_is_not_there() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["stats", "missing.txt"]));
}

#[test]
fn explanations_are_found_by_everybodys_names() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["explain", "tap-k"]));
    let shown: Vec<_> = [
        &["explain", "g2-item"][..],
        &["explain", "lost", "updaet"],
        &["explain", "serialisable"],
        &["explain", "something-else"],
    ]
    .iter()
    .map(|args| sandbox.transcript(args))
    .collect();
    insta::assert_snapshot!("explain_what_was_meant", shown.join("\n"));
    let page = sandbox.stdout(&["explain", "lost", "update"]);
    assert!(page.starts_with("LostUpdate: Lost update"), "{page}");
}

#[test]
fn explanations_for_programs() {
    let sandbox = Sandbox::new();
    let json = |args: &[&str]| -> Value { serde_json::from_str(&sandbox.stdout(args)).unwrap() };
    let page = json(&["explain", "--json", "causal"]);
    assert_eq!((&page["schema"], &page["kind"]), (&"isolario.explain/1".into(), &"level".into()));
    assert!(page["history"].as_str().unwrap().contains("session"));
    let all = json(&["explain", "--json"]);
    assert!(all["topics"].as_array().unwrap().len() > 40);
    let several = json(&["explain", "--json", "G1b"]);
    assert_eq!(several["topics"][1]["name"], "SingleAntiDependency");
}

#[test]
fn levels_in_short_and_in_full() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["levels"]));
    insta::assert_snapshot!("levels_verbose", sandbox.transcript(&["levels", "--verbose"]));
}

#[test]
fn levels_for_programs() {
    let levels: Value =
        serde_json::from_str(&Sandbox::new().stdout(&["levels", "--json"])).unwrap();
    assert_eq!(levels["schema"], "isolario.levels/1");
    assert_eq!(levels["levels"][0]["name"], "read-uncommitted");
    let levels = levels["levels"].as_array().unwrap();
    let strict = levels.iter().find(|level| level["name"] == "strict-serializable").unwrap();
    assert!(!strict["implies"].as_array().unwrap().is_empty());
}

#[test]
fn completions_for_every_shell_know_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.stdout(&["completions", shell]);
        assert!(script.contains("convert") && script.contains("max-anomalies"), "{shell}");
    }
    assert_eq!(sandbox.code(&["completions", "tcsh"]), 2);
}

#[test]
fn manual_pages_cover_every_command() {
    let sandbox = Sandbox::new();
    let all = sandbox.stdout(&["man"]);
    let commands = [
        "check",
        "convert",
        "gen",
        "gen-history",
        "stats",
        "explain",
        "levels",
        "completions",
        "man",
    ];
    for command in commands {
        assert!(all.contains(&format!(".TH isolario-{command} 1")), "{command}");
    }
    assert_eq!(sandbox.code(&["man", "--dir", "pages"]), 0);
    for command in commands {
        let page = sandbox.read(&format!("pages/isolario-{command}.1"));
        assert!(all.contains(&page), "{command}");
    }
    assert!(sandbox.read("pages/isolario.1").contains("isolario\\-check(1)"));
    insta::assert_snapshot!(sandbox.transcript(&["man", "--dir", "fine.txt"]));
}
