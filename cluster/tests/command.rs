//! What the command says, and how it ends.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use isolario_cluster::write_history;
use isolario_oracle::history;

fn run(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolario-cluster"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

#[test]
fn a_history_that_is_not_a_table_is_called_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    write_history(&history("a: w x 1\n b: r x 1"), &directory.path().join("x.iso")).unwrap();
    let output = run(&["check", "--level", "rc", "x.iso"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: x.iso: this is a history file (isolario), not a table of operations; \
                    make one with `isolario-cluster convert x.iso x.parquet`\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);

    let output = run(&["convert", "x.iso", "x.parquet"], directory.path());
    assert_eq!(output.status.code(), Some(0));
    let output = run(&["check", "--level", "rc", "x.parquet"], directory.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"read-committed: satisfied"), "{output:?}");
}

#[test]
fn what_is_nothing_is_no_parquet_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("x.parquet"), "abc").unwrap();
    let output = run(&["check", "--level", "rc", "x.parquet"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.ends_with(b"x.parquet: this is not a Parquet file\n"), "{output:?}");
}
