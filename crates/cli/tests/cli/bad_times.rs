//! Transactions that finish before they start: refused, or without both of their times.

use crate::sandbox::Sandbox;

/// Times from which nothing but a wrong clock follows: T1 finishes before it starts, and only its start says
/// that it came after T2.
const LINES: &str = "{\"isolario\":2,\"initial\":null}\n\
    {\"session\":0,\"id\":\"T1\",\"start\":10,\"finish\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
    {\"session\":1,\"id\":\"T2\",\"start\":5,\"finish\":7,\"ops\":[[\"r\",\"x\",1]]}\n\
    {\"session\":2,\"id\":\"T3\",\"start\":30,\"finish\":20,\"ops\":[[\"r\",\"x\",1]]}\n";

fn sandbox() -> Sandbox {
    Sandbox::new().file("h.jsonl", LINES)
}

/// Ends with 2, names the line and the way out; and with `--bad-times unknown` ends with the code that it is
/// to have, and says what was left out even where only errors are wanted.
fn refused_and_left_out(sandbox: &Sandbox, arguments: &[&str], code: i32) {
    let refused = sandbox.run(arguments);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(
        said.contains("h.jsonl:2: transaction T1 finishes at 1, before its start at 10"),
        "{said}"
    );
    assert!(said.contains("--bad-times unknown"), "{said}");
    let flags = ["-q", "--bad-times", "unknown"];
    let done = sandbox.run(&[arguments, &flags].concat());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains("both times of each are left out"), "{arguments:?}: {said}");
}

#[test]
fn every_command_refuses_them_or_leaves_them_out() {
    let sandbox = sandbox();
    let check = ["check", "--level", "sser", "--proof", "p", "h.jsonl"];
    refused_and_left_out(&sandbox, &check, 0);
    for arguments in [
        &["check", "--level", "sser", "--format", "jsonl", "h.jsonl"][..],
        &["check", "--level", "sser", "--json", "h.jsonl"],
        &["check", "--level", "sser,si", "--spill", ".", "h.jsonl"],
        &["check", "--level", "sser", "--follow", "--until-idle", "0s", "h.jsonl"],
        &["check", "--level", "sser", "--clock-skew", "0s", "--join", "h.jsonl"],
        &["verify", "h.jsonl", "p"],
        &["stats", "h.jsonl"],
        &["show", "h.jsonl", "T1"],
        &["convert", "h.jsonl", "h.iso", "--force"],
    ] {
        refused_and_left_out(&sandbox, arguments, 0);
    }
    // What is written has no such times any more.
    assert_eq!(sandbox.code(&["check", "--level", "sser", "h.iso"]), 0);
    // Nothing to shrink: the times were all that was wrong.
    refused_and_left_out(&sandbox, &["shrink", "h.jsonl"], 2);
    // A spilled proof is verified piece by piece.
    let spilled = ["check", "--bad-times", "unknown", "--level", "sser", "--spill", "."];
    assert_eq!(sandbox.code(&[&spilled[..], &["--proof", "q", "h.jsonl"]].concat()), 0);
    refused_and_left_out(&sandbox, &["verify", "h.jsonl", "q"], 0);
}

#[test]
fn the_refusal_names_the_first_and_the_lines_of_the_others() {
    insta::assert_snapshot!(sandbox().transcript(&["check", "--level", "sser", "h.jsonl"]));
}

#[test]
fn times_that_are_left_out_are_said_even_if_quiet() {
    let check = ["check", "-q", "--bad-times", "unknown", "--level", "sser", "h.jsonl"];
    insta::assert_snapshot!(sandbox().transcript(&check));
}

#[test]
fn convert_names_all_lines() {
    let line = |n: usize| {
        format!(
            "{{\"session\":{n},\"id\":\"T{n}\",\"start\":{n},\"finish\":0,\"ops\":[[\"w\",\"x\",{n}]]}}\n"
        )
    };
    let text: String = (1..=15).map(line).collect();
    let sandbox = Sandbox::new().file("h.jsonl", &text);
    let said = |arguments: &[&str]| String::from_utf8(sandbox.run(arguments).stderr).unwrap();
    let all = "15: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 and 15)";
    assert!(said(&["convert", "h.jsonl", "h.iso"]).contains(all));
    assert!(said(&["convert", "--bad-times", "unknown", "h.jsonl", "h.iso"]).contains(all));
    let few = said(&["check", "h.jsonl"]);
    assert!(few.contains("15: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 5 more)"), "{few}");
}

/// A finish counted as missing would leave the start, by which T1 came after T2.
#[test]
fn a_session_is_not_accused_for_a_wrong_clock() {
    let text = "{\"session\":0,\"id\":\"T1\",\"start\":10,\"finish\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
        {\"session\":0,\"id\":\"T2\",\"start\":5,\"finish\":7,\"ops\":[[\"w\",\"x\",2]]}\n";
    let sandbox = Sandbox::new().file("h.jsonl", text);
    for check in [
        &["check", "--level", "sser,strong-si,lin", "h.jsonl"][..],
        &["check", "--level", "sser,strong-si", "--spill", ".", "h.jsonl"],
    ] {
        assert_eq!(sandbox.code(check), 2);
        assert_eq!(sandbox.code(&[check, &["--bad-times", "unknown"]].concat()), 0);
    }
}
