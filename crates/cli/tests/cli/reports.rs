//! Reports of `isolario check`: for CI on standard output, and in files.

use std::fs;

use crate::sandbox::Sandbox;

/// Timings change from run to run.
fn without_times(xml: &str) -> String {
    let mut parts = xml.split(" time=\"");
    let mut stable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        stable.push_str(&part[part.find('"').unwrap() + 1..]);
    }
    stable
}

#[test]
fn junit_has_a_suite_per_history_and_a_case_per_level() {
    let sandbox = Sandbox::new();
    let args = ["check", "--level", "pl-2,rc", "--output", "junit", "cycle.txt", "missing.txt"];
    insta::assert_snapshot!(without_times(&sandbox.transcript(&args)));
}

#[test]
fn github_has_an_annotation_per_anomaly() {
    let sandbox = Sandbox::new();
    let args = ["check", "--level", "rc", "--output", "github", "cycle.txt", "fine.txt"];
    insta::assert_snapshot!(sandbox.transcript(&args));
}

#[test]
fn forms_for_ci_are_for_verdicts_only() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["levels", "--output", "junit"]));
}

#[test]
fn a_junit_file_holds_what_standard_output_would() {
    let sandbox = Sandbox::new();
    let histories = ["cycle.txt", "missing.txt", "fine.txt"];
    let beside = [&["check", "--level", "rc", "--junit", "out.xml"], &histories[..]].concat();
    let alone = [&["check", "--level", "rc", "--output", "junit"], &histories[..]].concat();
    assert_eq!(sandbox.code(&beside), 2);
    let written = without_times(&sandbox.read("out.xml"));
    assert_eq!(written, without_times(&sandbox.stdout(&alone)));
    assert_eq!(written.matches("<testsuite ").count(), 3);
}

/// Nobody waits for a check only to learn that its report has no place.
#[test]
fn a_place_where_no_file_can_be_is_refused_before_the_work() {
    let sandbox = Sandbox::new();
    let mut shown = Vec::new();
    for flag in ["--report", "--dot", "--svg", "--junit", "--proof"] {
        shown.push(sandbox.transcript(&["check", flag, "no-such-dir/out", "fine.txt"]));
    }
    shown.push(sandbox.transcript(&["check", "--report", ".", "fine.txt"]));
    shown.push(sandbox.transcript(&["convert", "fine.txt", "no-such-dir/out.iso"]));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn pictures_and_the_page_are_files_that_stand_alone() {
    let sandbox = Sandbox::new();
    let files = ["--report", "out.html", "--svg", "out.svg", "--dot", "out.dot"];
    let check = ["check", "--level", "rc", "cycle.txt"];
    assert_eq!(sandbox.code(&[&check[..], &files].concat()), 1);
    let (page, picture, graph) =
        (sandbox.read("out.html"), sandbox.read("out.svg"), sandbox.read("out.dot"));
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(graph.matches("digraph ").count(), 1, "{graph}");
    for text in [page, picture] {
        // Namespaces are names, and nothing is fetched from them.
        let addresses = text.replace("http://www.w3.org/", "");
        assert!(!addresses.contains("http://") && !addresses.contains("https://"));
    }
}

#[test]
fn a_picture_is_of_one_history() {
    for flag in ["--svg", "--dot"] {
        let output = Sandbox::new().run(&["check", flag, "out", "cycle.txt", "fine.txt"]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(&format!("{flag} takes one history, but 2 are given")), "{error}");
    }
}

#[test]
fn a_page_is_of_many_histories_also_those_of_a_directory_and_those_that_fail() {
    let sandbox = Sandbox::new();
    let check = ["check", "--level", "rc", "--report", "out.html"];
    let code = sandbox.code(&[&check[..], &["cycle.txt", "fine.txt", "missing.txt"]].concat());
    assert_eq!(code, 2);
    let page = sandbox.read("out.html");
    assert!(
        page.contains("<h1>3 histories: 1 violated, 1 satisfied, 1 not decided</h1>"),
        "{page}"
    );
    assert!(page.contains("missing.txt") && page.ends_with("</html>\n"));
    fs::create_dir(sandbox.path("many")).unwrap();
    fs::copy(sandbox.path("fine.txt"), sandbox.path("many/b.txt")).unwrap();
    fs::copy(sandbox.path("cycle.txt"), sandbox.path("many/a.txt")).unwrap();
    assert_eq!(sandbox.code(&[&check[..], &["many"]].concat()), 1);
    let page = sandbox.read("out.html");
    let (first, second) = (page.find("many/a.txt").unwrap(), page.find("many/b.txt").unwrap());
    assert!(first < second && page.contains("<h1>2 histories:"), "{page}");
}
