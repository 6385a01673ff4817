//! The README shows what the program really prints.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let session = readme.split("```console\n").nth(1).and_then(|rest| rest.split("```").next());
    let (command, shown) =
        session.and_then(|session| session.split_once('\n')).expect("a terminal session");
    let arguments = command.strip_prefix("$ isolario ").expect("a call of isolario");
    let output = Command::new(env!("CARGO_BIN_EXE_isolario"))
        .args(arguments.split(' '))
        .current_dir(root)
        .output()
        .expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
}
