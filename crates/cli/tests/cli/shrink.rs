//! `isolario shrink`.

use crate::sandbox::Sandbox;

/// Two increments of `x` lose an update, among others that do not.
const NOISE: &str = "\
initial 0
session alice
  T1: r x 0, w x 1, w z 9
  T3: r x 1, w y 3
session bob
  T2: r x 0, r y 0, w x 2
session carol
  T4: r y 3, w y 4
  T5: r z 9, r y 4
";

fn noise() -> Sandbox {
    Sandbox::new().file("noise.txt", NOISE)
}

#[test]
fn the_part_goes_to_standard_output_or_to_a_file_with_its_explanation() {
    let sandbox = noise();
    let printed = sandbox.transcript(&["shrink", "noise.txt"]);
    let tested = sandbox.transcript(&["shrink", "noise.txt", "--level", "si", "--to", "rust"]);
    let file = sandbox.transcript(&[
        "shrink",
        "noise.txt",
        "--anomaly",
        "lost-update",
        "-o",
        "small.txt",
        "--proof",
        "small.proof",
    ]);
    let verified = sandbox.transcript(&["verify", "small.txt", "small.proof"]);
    insta::assert_snapshot!([printed, tested, file, verified].join("\n"));
    assert!(sandbox.read("small.txt").contains("r x 0, w x 1"));
}

#[test]
fn what_cannot_be_shrunk_is_said() {
    let sandbox = noise();
    let answers = [
        &["shrink", "fine.txt"][..],
        &["shrink", "noise.txt", "--level", "causal"],
        &["shrink", "noise.txt", "--anomaly", "write-skew"],
        &["shrink", "noise.txt", "--anomaly", "lost-updat"],
        &["shrink", "noise.txt", "-o", "noise.txt"],
        &["shrink", "noise.txt", "-o", "fine.txt"],
        &["shrink", "noise.txt", "-o", "small.unheard"],
    ];
    let answers: Vec<_> = answers.iter().map(|arguments| sandbox.transcript(arguments)).collect();
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn a_time_limit_that_was_reached_is_said_even_if_quiet() {
    let sandbox = noise();
    let quiet = sandbox.transcript(&["shrink", "noise.txt", "--timeout", "0s", "-q"]);
    insta::assert_snapshot!(quiet);
}
