//! Help, the version, and mistakes on the command line.

use std::process::Stdio;

use crate::sandbox::Sandbox;

#[test]
fn help_has_examples() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.transcript(&["--help"]));
    let commands = [
        "probe",
        "check",
        "verify",
        "convert",
        "gen",
        "stats",
        "show",
        "explain",
        "levels",
        "completions",
        "man",
    ];
    for command in commands {
        let help = sandbox.transcript(&[command, "--help"]);
        insta::assert_snapshot!(format!("help_{command}"), help);
        assert!(help.contains("Examples:"), "{command}");
    }
    insta::assert_snapshot!("help_gen_history", sandbox.transcript(&["gen", "history", "--help"]));
}

#[test]
fn the_version_is_the_package_version() {
    let version = Sandbox::new().stdout(&["--version"]);
    assert_eq!(version, format!("isolario {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn mistakes_exit_with_2_and_say_what_to_do() {
    let sandbox = Sandbox::new();
    let shown: Vec<_> = [
        &["chekc", "fine.txt"][..],
        &["check"],
        &["check", "--levle", "rc", "fine.txt"],
        &["check", "--threads", "0", "fine.txt"],
        &["check", "-q", "-v", "fine.txt"],
        &["check", "--output", "jsn", "fine.txt"],
        &["check", "--json", "--output", "junit", "fine.txt"],
        &["check", "--timeout", "60", "fine.txt"],
        &["run", "--duration", "10"],
        &["run", "--statement-timeout", "0s"],
    ]
    .iter()
    .map(|args| sandbox.transcript(args))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn without_a_command_the_help_is_shown() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: isolario"));
}

#[test]
fn help_into_a_closed_pipe_is_no_error() {
    let mut command = Sandbox::new().command(&["check", "--help"]);
    let mut child = command
        .current_dir(std::env::temp_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn one_form_may_be_asked_for_twice() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.code(&["check", "--json", "--output", "json", "fine.txt"]), 0);
}
