//! Files that are no proofs: each complaint says where, what was expected and what was found.

use isolario_model::History;
use isolario_oracle::history;
use isolario_verify::{VerifyOptions, proof};

use crate::support::{oddly_named, proof_of, results, write};

/// The levels that the proofs are about.
const LEVELS: [&str; 11] = [
    "adya-read-committed",
    "read-committed",
    "cut-isolation",
    "read-atomic",
    "causal",
    "prefix",
    "snapshot-isolation",
    "strong-snapshot-isolation",
    "serializable",
    "strict-serializable",
    "linearizable",
];

/// What is wrong with a proof in which something was replaced.
fn complaint(history: &History, from: &str, to: &str) -> String {
    // Complaints have lines and columns, which must not move with every new level.
    let mut results = results(history, &VerifyOptions::default());
    results.retain(|result| LEVELS.contains(&result.level.name()));
    // Versions differ in length, and columns with them.
    let file = write(history, &results, &VerifyOptions::default());
    let file = file.replace(env!("CARGO_PKG_VERSION"), "0");
    assert!(file.contains(from), "{from} is not in\n{file}");
    let changed = file.replacen(from, to, 1);
    let error = proof::read(history, changed.as_bytes()).expect_err("malformed");
    format!("{from}  ->  {to}\n    {error}\n")
}

fn complaints(history: &History, changes: &[(&str, &str)]) -> String {
    changes.iter().map(|(from, to)| complaint(history, from, to)).collect()
}

#[test]
fn complaints_about_the_header() {
    let history = history("a: w x 1\n b: r x 1");
    let shown = complaints(
        &history,
        &[
            ("isolario.proof/2", "isolario.proof/3"),
            (r#""schema":"#, r#""scheme":"#),
            (r#""tool":"#, r#""tools":"#),
            (r#""session_order":true"#, r#""session_order":1"#),
            (r#""session_order":true"#, r#""session_order":true,"clock_skew":-5"#),
            (r#""session_order":true"#, r#""session_order":true,"time_zone":5"#),
            ("sha256:", "md5:"),
            (r#""levels":["#, r#""levels":["all","#),
            (r#""levels":["#, r#""levels":["adya-read-committed","#),
            (r#""levels":["#, r#""levels":"#),
            ("{", ""),
            ("{", "\n{"),
            ("{", "[{"),
        ],
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn complaints_about_sections() {
    let history = history("a: w x 1\n b: r x 1");
    let shown = complaints(
        &history,
        &[
            (r#""verdict":"satisfied""#, r#""verdict":"maybe""#),
            (r#""verdict":"satisfied""#, r#""verdict":"violated""#),
            (r#"{"level":"adya-read-committed""#, r#"{"level":"read-committed""#),
            (r#""checker":"weak""#, r#""checker":"strange""#),
            (r#""witness":"commit-order""#, r#""witness":"eye""#),
            (r#""witness":"commit-order""#, r#""witness":"points""#),
            (r#""count":2"#, r#""count":3"#),
            (r#""count":2"#, r#""count":1"#),
            (r#""count":2"#, r#""count":-2"#),
            (r#""count":2"#, r#""count":18446744073709551615"#),
            (r#""count":2"#, r#""count":2,"total":2"#),
            (r#"{"order":["#, r#"{"order":[],"order":["#),
            (r#"{"order":["#, r#"{"order":[["#),
            ("\n{\"level\"", "\n\n{\"level\""),
        ],
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn complaints_about_names() {
    let history = oddly_named();
    let shown = complaints(
        &history,
        &[
            ("[7,", "[8,"),
            ("[7,", "[\"twice\","),
            ("[7,", "[1.5,"),
            ("[7,", "[[7],"),
            ("[7,", "[{\"#\":-1},"),
            ("[7,", "[{\"#\":12},"),
            ("[7,", "[{\"#\":4294967295},"),
            ("[7,", "[{\"#\":\"first\"},"),
            ("[7,", "[{\"#\":0,\"keyword\":\"7\"},"),
            ("[7,", "[{\"symbol\":\"7\"},"),
            ("[7,", "[99999999999999999999,"),
            ("[7,", "[\"\\ud800\","),
            ("[7,", "[\"\\x\","),
        ],
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn complaints_about_evidence() {
    let history = history("a: w x 1, w y 1\n b: r x 1, r y nil, w x 3\n a: r z 7");
    let shown = complaints(
        &history,
        &[
            ("ThinAirRead", "Thin-air"),
            (r#""evidence":"read""#, r#""evidence":"hearsay""#),
            (r#""evidence":"read""#, r#""evidence":"reads""#),
            (r##""read":[{"#":1},0]"##, r##""read":[{"#":1}]"##),
            (r##""read":[{"#":1},0]"##, r##""read":[{"#":1},9]"##),
            (r##""read":[{"#":1},0]"##, r##""read":[{"#":"init"},0]"##),
            (r##""read":[{"#":1},0]"##, r#""read":null"#),
            (r#""rule":"read-committed""#, r#""rule":"rc""#),
            (r#""why":"visible""#, r#""why":"seen""#),
            (r#""key":"x""#, r#""key":"w""#),
            (r#""exact":true"#, r#""exact":"yes""#),
        ],
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn bytes_that_are_no_text_and_depth_without_end_are_refused() {
    let history = history("a: w x 1\n b: r x nil, r x 1, r x nil");
    let mut file = proof_of(&history).into_bytes();
    let end = file.len() - 3;
    file[end] = 0xff;
    let error = proof::read(&history, &file).expect_err("no text").to_string();
    assert!(error.ends_with("found bytes that are not UTF-8"), "{error}");

    let edge = r##"{"from":{"#":0},"to":{"#":0},"why":"refuted","cycle":["##;
    for (deep, expected) in [
        (edge.repeat(100_000), "found the end of the line"),
        (edge.repeat(50_000) + &"]}".repeat(50_000) + ",", "at most 48 reasons within each other"),
        ("[".repeat(1_000_000), "expected JSON"),
    ] {
        let file = proof_of(&history);
        let changed = file.replacen("\"edges\":[", &format!("\"edges\":[{deep}"), 1);
        assert_ne!(changed, file);
        let error = proof::read(&history, changed.as_bytes()).expect_err("too deep").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
