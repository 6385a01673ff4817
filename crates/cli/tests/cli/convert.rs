//! `isolario convert`.

use crate::sandbox::{FINE, Sandbox, transcript};

#[test]
fn formats_come_from_content_and_extension() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["convert", "fine.txt", "fine.jsonl"]));
    assert_eq!(sandbox.code(&["convert", "fine.jsonl", "again.txt"]), 0);
    assert_eq!(sandbox.code(&["convert", "fine.txt", "once.txt"]), 0);
    assert_eq!(sandbox.read("again.txt"), sandbox.read("once.txt"));
}

#[test]
fn quiet_says_nothing() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["convert", "-q", "fine.txt", "fine.jsonl"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn dashes_are_standard_input_and_output() {
    let sandbox = Sandbox::new();
    let args = ["convert", "--to", "jsonl", "-", "-"];
    let output = sandbox.run_with_input(&args, FINE);
    insta::assert_snapshot!(transcript(&args, &output));
}

#[test]
fn an_existing_target_is_kept_unless_forced() {
    let sandbox = Sandbox::new().file("there.jsonl", "precious");
    insta::assert_snapshot!(sandbox.transcript(&["convert", "fine.txt", "there.jsonl"]));
    assert_eq!(sandbox.read("there.jsonl"), "precious");
    assert_eq!(sandbox.code(&["convert", "--force", "fine.txt", "there.jsonl"]), 0);
    assert_ne!(sandbox.read("there.jsonl"), "precious");
}

#[test]
fn a_directory_is_never_replaced() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("dir.jsonl")).unwrap();
    insta::assert_snapshot!(sandbox.transcript(&["convert", "--force", "fine.txt", "dir.jsonl"]));
}

#[test]
fn an_extension_that_says_nothing_needs_a_format() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["convert", "fine.txt", "fine.dat"]));
}

#[test]
fn a_misspelt_format_gets_a_suggestion() {
    let args = ["convert", "--to", "jsnl", "fine.txt", "-"];
    insta::assert_snapshot!(Sandbox::new().transcript(&args));
}

#[test]
fn what_a_format_cannot_express_is_refused_and_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let before = sandbox.names();
    let args = ["convert", "--to", "dbcop", "lists.txt", "lists.bincode"];
    insta::assert_snapshot!(sandbox.transcript(&args));
    assert_eq!(sandbox.names(), before);
}

#[test]
fn a_forced_conversion_that_fails_keeps_the_old_target() {
    let sandbox = Sandbox::new().file("old.bincode", "precious");
    let args = ["convert", "--force", "--to", "dbcop", "lists.txt", "old.bincode"];
    assert_eq!(sandbox.code(&args), 2);
    assert_eq!(sandbox.read("old.bincode"), "precious");
}

#[test]
fn a_target_that_cannot_be_written_is_named() {
    insta::assert_snapshot!(Sandbox::new().transcript(&["convert", "fine.txt", "no/dir/h.jsonl"]));
}
