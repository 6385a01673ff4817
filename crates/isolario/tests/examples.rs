//! The examples do what they say.

#![allow(dead_code, reason = "examples are programs, and nobody calls their `main`")]

use isolario::run::Judgement;

#[path = "../examples/check_file.rs"]
mod check_file;
#[path = "../examples/database_of_your_own.rs"]
mod database_of_your_own;
#[path = "../examples/workload_of_your_own.rs"]
mod workload_of_your_own;

const FRONT: &str = include_str!("../examples/record_from_threads/first_test.rs");

fn root(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn a_file_is_checked() {
    let mut text = Vec::new();
    let path = root("examples/histories/causality-violation.txt");
    assert!(!check_file::check_file(&path, &mut text).unwrap());
    assert!(String::from_utf8(text).unwrap().contains("T3 read question=nil"));
}

mod record_from_threads {
    include!("../examples/record_from_threads/first_test.rs");

    #[test]
    fn threads_are_recorded() {
        main();
    }
}

#[test]
fn a_careless_database_is_found_out() {
    let out = tempfile::tempdir().unwrap();
    let outcome = database_of_your_own::stress(out.path()).unwrap();
    assert_eq!(outcome.judgement(), Judgement::Violated);
    let said = outcome.promise().to_string();
    assert!(
        said.starts_with("Careless 1.0 broke its promise, serializability, in this run"),
        "{said}"
    );
    for file in ["run.json", "history.iso", "verdict.json", "proof", "report.html"] {
        assert!(out.path().join(file).metadata().unwrap().len() > 0, "{file}");
    }
}

#[test]
fn a_workload_runs() {
    let out = tempfile::tempdir().unwrap();
    let outcome = workload_of_your_own::transfer("sqlite:", out.path()).unwrap();
    assert_eq!(outcome.judgement(), Judgement::Satisfied);
    assert_eq!(outcome.record.counts.committed, 1000);
}

/// Whoever reads the README or the book sees the example that is compiled.
#[test]
fn the_first_test_is_the_same_everywhere() {
    let block = format!("```rust\n{FRONT}```");
    for page in ["README.md", "docs/book/src/guide/in-your-tests.md"] {
        let text = std::fs::read_to_string(root(page)).unwrap();
        assert!(text.contains(&block), "{page} shows another first test");
    }
}
