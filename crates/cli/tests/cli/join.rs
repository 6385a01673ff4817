//! `check --join`: one history of the parts that several hosts recorded.

use std::fs;
use std::path::Path;

use crate::sandbox::Sandbox;

/// Both hosts call their session and their transaction alike. Neither saw the other's payment.
const BERLIN: &str = "\
initial 100
session client
  T1 [1000, 2000]: r balance 100, w balance 130
";
const ROME: &str = "\
initial 100
session client
  T1 [1500, 2500]: r balance 100, w balance 150
";

/// Paris paid in; later, by a clock that is five seconds ahead, Oslo did not see it.
const PARIS: &str = "\
initial 0
session client
  T1 [1000000, 2000000]: w balance 1
";
const OSLO: &str = "\
initial 0
session client
  T1 [5003000000, 5004000000]: r balance 0
";

fn payments() -> Sandbox {
    Sandbox::new().file("berlin.txt", BERLIN).file("rome.txt", ROME)
}

fn stale_read() -> Sandbox {
    Sandbox::new().file("paris.txt", PARIS).file("oslo.txt", OSLO)
}

/// The directory of a host's run: its history, and how its clock compares to the database's.
fn host(sandbox: &Sandbox, name: &str, text: &str, record: &str) {
    let directory = sandbox.path(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("part.txt"), text).unwrap();
    let (from, to) = (format!("{name}/part.txt"), format!("{name}/history.iso"));
    assert_eq!(sandbox.run(&["convert", &from, &to]).status.code(), Some(0));
    fs::write(directory.join("run.json"), record).unwrap();
}

fn record(seed: u32, number: u32, of: u32, offset_us: i64, bound_us: u64) -> String {
    let clock = format!(r#"{{"offset_us":{offset_us},"bound_us":{bound_us},"samples":3}}"#);
    let host = format!(r#"{{"number":{number},"of":{of},"clock":{clock}}}"#);
    format!(r#"{{"schema":"isolario.run/1","seed":"{seed}","host":{host}}}"#)
}

#[test]
fn parts_that_are_fine_alone_may_be_wrong_together() {
    let sandbox = payments();
    for part in ["berlin.txt", "rome.txt"] {
        assert_eq!(sandbox.run(&["check", "--level", "si", part]).status.code(), Some(0));
    }
    insta::assert_snapshot!(sandbox.transcript(&[
        "check",
        "--level",
        "si",
        "--join",
        "berlin.txt",
        "rome.txt"
    ]));
}

#[test]
fn the_whole_can_be_kept_and_its_proof_be_verified() {
    let sandbox = payments();
    let join = ["check", "--level", "si", "--join", "berlin.txt", "rome.txt"];
    let alone = sandbox.run(&[&join[..], &["--proof", "p"]].concat());
    assert_eq!(alone.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--joined FILE"));
    let kept = [&join[..], &["--joined", "whole.iso", "--proof", "p"]].concat();
    assert_eq!(sandbox.run(&kept).status.code(), Some(1));
    assert_eq!(sandbox.run(&["verify", "whole.iso", "p"]).status.code(), Some(0));
    // Nothing is replaced.
    let again = sandbox.run(&kept);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn times_count_where_the_clocks_are_known_to_agree() {
    let sandbox = stale_read();
    let code = |more: &[&str]| {
        let join = ["check", "--level", "sser", "--join", "paris.txt", "oslo.txt"];
        let done = sandbox.run(&[&join[..], more].concat());
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(code(&["--clock-skew", "1us"]).0, Some(1));
    assert_eq!(code(&["--clock-skew", "5s"]).0, Some(0));
    let (exit, said) = code(&[]);
    assert_ne!(exit, Some(1));
    assert!(said.contains("add --clock-skew D"), "{said}");
}

#[test]
fn hosts_that_know_their_clocks_are_put_on_one() {
    let exit = |oslo_offset: i64, bound: u64| {
        let sandbox = Sandbox::new();
        host(&sandbox, "paris", PARIS, &record(7, 1, 2, 0, 10));
        host(&sandbox, "oslo", OSLO, &record(7, 2, 2, oslo_offset, bound));
        sandbox.run(&["check", "--level", "sser", "--join", "paris", "oslo"]).status.code()
    };
    // By the database's clock, the read began one millisecond after the write was over.
    assert_eq!(exit(-5_000_000, 10), Some(1));
    // It may have been before, by what is known of the clocks.
    assert_eq!(exit(-5_000_000, 600), Some(0));
    // Or it was.
    assert_eq!(exit(-5_002_500, 10), Some(0));
}

#[test]
fn a_part_alone_is_refused_with_the_command_that_joins_all() {
    let sandbox = Sandbox::new();
    host(&sandbox, "paris", PARIS, &record(7, 1, 3, 0, 10));
    host(&sandbox, "oslo", OSLO, &record(7, 3, 3, 0, 10));
    host(&sandbox, "rome", OSLO, &record(8, 2, 3, 0, 10));
    for arguments in [
        &["check", "--level", "rc", "oslo"][..],
        &["check", "oslo"],
        &["check", "--level", "rc", "--spill", ".", "oslo"],
        &["check", "--level", "rc", "--follow", "oslo/history.iso"],
        &["shrink", "oslo"],
    ] {
        let done = sandbox.run(arguments);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("oslo is part 3 of 3 of a run by several hosts"), "{said}");
        assert!(said.contains("isolario check --join paris PART2 oslo\n"), "{said}");
    }
    // One bad part does not stop others.
    let both = sandbox.run(&["check", "--level", "rc", "oslo", "paris/part.txt"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&both.stdout).contains("satisfied"));
    host(&sandbox, "alone", PARIS, &record(9, 1, 1, 0, 10));
    assert_eq!(sandbox.code(&["check", "--level", "rc", "alone"]), 0);
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let refused = |records: [String; 2]| {
        let sandbox = Sandbox::new();
        for (name, record) in ["paris", "oslo"].iter().zip(&records) {
            host(&sandbox, name, PARIS, record);
        }
        let done = sandbox.run(&["check", "--join", "paris", "oslo"]);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let other_run = refused([record(7, 1, 2, 0, 0), record(8, 2, 2, 0, 0)]);
    assert!(other_run.contains("are not parts of one run"), "{other_run}");
    let gap = refused([record(7, 1, 3, 0, 0), record(7, 3, 3, 0, 0)]);
    assert!(gap.contains("the part of host 2 of 3 is missing"), "{gap}");
    let twice = refused([record(7, 1, 2, 0, 0), record(7, 1, 2, 0, 0)]);
    assert!(twice.contains("there are 2 parts of host 1"), "{twice}");
}

#[test]
fn bad_input_in_one_part_names_that_part() {
    let sandbox = payments().file("broken.txt", "initial 100\nsession client\n  T1: r balance\n");
    let done = sandbox.run(&["check", "--join", "berlin.txt", "broken.txt"]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("broken.txt:3"), "{said}");
    assert!(Path::new(&sandbox.path("broken.txt")).exists());
    let other = payments().file("zero.txt", "initial 0\nsession client\n  T1: r balance 0\n");
    let done = other.run(&["check", "--join", "berlin.txt", "zero.txt"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("berlin and zero have different initial states"), "{said}");
}
