//! `isolario probe`, against the SQLite that is compiled in.

use crate::sandbox::Sandbox;

const TRANSFER: &str = "\
title Two transfers
anomaly LostUpdate
setup: write balance 100
T1: begin
T2: begin
T1: read balance    --> 100
T2: read balance    --> 100
T1: write balance 20
T2: write balance 21
T1: commit
T2: commit
";

/// What an engine that claims to be strictly serializable does not prevent is not an anomaly: here, the
/// script is wrong, and the checkers say so.
const HARMLESS: &str = "\
anomaly LostUpdate
T1: begin
T1: read x
T1: write x 1
T1: read x  --> 1
T1: commit
";

fn without_version(transcript: &str) -> String {
    let words: Vec<&str> = transcript.split(' ').collect();
    let at = words.iter().position(|word| word.ends_with("SQLite"));
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if let Some(at) = at {
        words[at + 1] = "VERSION:".to_owned();
    }
    words.join(" ")
}

#[test]
fn a_script_of_ones_own_as_a_table_and_as_a_transcript() {
    let sandbox = Sandbox::new().file("transfer.probe", TRANSFER);
    let table = sandbox.transcript(&["probe", "--script", "transfer.probe"]);
    let trace = ["probe", "--script", "transfer.probe", "--trace", "transfer"];
    let trace = sandbox.transcript(&trace);
    insta::assert_snapshot!([table, trace].map(|text| without_version(&text)).join("\n"));
}

#[test]
fn a_contradiction_between_script_and_checkers_is_said_loudly() {
    let sandbox = Sandbox::new().file("harmless.probe", HARMLESS);
    let transcript = sandbox.transcript(&["probe", "--script", "harmless.probe"]);
    insta::assert_snapshot!(without_version(&transcript));
}

#[test]
fn mistakes_exit_with_2_a_place_and_a_remedy() {
    let sandbox = Sandbox::new()
        .file("misspelt.probe", "T1: begin\nT1: rea x\n")
        .file("sql.probe", "T1: begin\nT1: SELECT v FROM nowhere\nT1: commit\n")
        .file("cluster.probe", "nodes 3\nT1: begin\nT1: read x\nT1: commit\n");
    let answers = [
        &["probe", "--script", "misspelt.probe"][..],
        &["probe", "--script", "missing.probe"],
        &["probe", "--script", "sql.probe", "--json"],
        &["probe", "--script", "cluster.probe"],
        &["probe", "--trace", "lost-updat"],
        &["probe", "--isolation", "chaos"],
        &["probe", "--db", "oracle://x"],
        &["probe", "--output", "junit"],
    ];
    let answers: Vec<_> = answers.iter().map(|arguments| sandbox.transcript(arguments)).collect();
    let answers: Vec<_> = answers.iter().map(|answer| without_version(answer)).collect();
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn every_shipped_probe_at_once_as_json_and_as_a_page() {
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["probe", "--json", "--report", "probes.html", "--quiet"]);
    assert_eq!(done.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["schema"], "isolario.probe/1");
    assert_eq!(json["settings"][0]["in_effect"], serde_json::json!(["strict-serializable"]));
    let probes = json["probes"].as_array().unwrap();
    assert!(probes.len() >= 30);
    for probe in probes {
        let result = &probe["results"][0];
        assert!(result.get("disagreement").is_none(), "{probe}");
        let outcome = result["outcome"].as_str().unwrap();
        assert!(["waits", "aborts", "not-shown"].contains(&outcome), "{probe}");
    }
    assert!(sandbox.read("probes.html").contains("G2-item write skew"));
}
