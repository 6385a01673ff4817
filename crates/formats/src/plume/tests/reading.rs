//! What text means, and what is wrong with bad text.

use isolario_model::{Initial, Value};

use super::{parse, show};
use crate::plume::{Plume, read};
use crate::{HistoryFormat, Meter, Position, Source};

/// The error as the user sees it.
fn error(text: &str) -> String {
    let source = Source::from_bytes("h.txt", text.into()).unwrap();
    Plume.read(&source).unwrap_err().to_string()
}

fn show_all(text: &str) -> Vec<String> {
    let history = parse(text).unwrap();
    history.txns().map(|txn| show(&history, txn)).collect()
}

#[test]
fn transactions_are_grouped_by_session_in_order_of_first_appearance() {
    let text = "w(1,1,7,20)\nr(1,1,3,10)\nw(2,2,7,20)\nw(2,3,7,5)\nr(2,2,3,10)\n";
    assert_eq!(
        show_all(text),
        ["7 20 Committed w1=1 w2=2", "7 5 Committed w2=3", "3 10 Committed r1=1 r2=2"]
    );
}

#[test]
fn operations_of_different_transactions_may_interleave_in_one_session() {
    assert_eq!(
        show_all("w(1,1,0,1)\nw(1,2,0,2)\nr(1,1,0,1)\nr(1,2,0,2)"),
        ["0 1 Committed w1=1 r1=1", "0 2 Committed w1=2 r1=2"]
    );
}

#[test]
fn a_run_of_minus_ones_in_a_session_is_one_aborted_transaction() {
    let text = "w(1,1,0,-1)\nw(1,2,1,-1)\nw(2,3,0,-1)\nw(1,4,0,8)\nw(2,5,0,-1)\nw(2,6,1,-1)\n";
    assert_eq!(
        show_all(text),
        [
            "0 - Aborted w1=1 w2=3",
            "0 8 Committed w1=4",
            "0 - Aborted w2=5",
            "1 - Aborted w1=2 w2=6"
        ]
    );
}

#[test]
fn numbers_go_up_to_64_bits() {
    let max = u64::MAX;
    assert_eq!(
        show_all(&format!("w({max},{max},{max},{max})\nr({max},0,{max},{max})\n")),
        [format!("{max} {max} Committed w{max}={max} r{max}=0")]
    );
}

#[test]
fn spaces_blank_lines_windows_line_ends_and_a_missing_last_one_are_of_no_account() {
    let plain = parse("r(1,0,2,3)\nw(1,4,2,3)\nw(1,5,2,-1)\n").unwrap();
    for text in [
        "r(1,0,2,3)\nw(1,4,2,3)\nw(1,5,2,-1)",
        "r(1,0,2,3)\r\nw(1,4,2,3)\r\nw(1,5,2,-1)\r\n",
        "r(1,0,2,3)  \n\tw ( 1 , 4 , 2 , 3 ) \r\n w(1,5,2, -1 )\n\n  \r\n\t",
        "r(1,0,2,3)\nw(1,4,2,003)\nw(01,5,2,-01)\n",
    ] {
        assert_eq!(parse(text).unwrap(), plain, "{text:?}");
    }
}

#[test]
fn the_line_of_a_transaction_is_that_of_its_first_operation() {
    let text = "\nw(1,1,0,1)\n\n\nw(1,2,1,2)\nw(2,3,0,1)\nw(1,4,1,-1)\n";
    for size in [1, 12, usize::MAX] {
        let history = read(text.as_bytes(), size, &Meter::default()).unwrap();
        let lines: Vec<_> = history.txns().map(|txn| history.line(txn)).collect();
        assert_eq!(lines, [Some(2), Some(5), Some(7)], "chunks of {size}");
    }
}

#[test]
fn zero_is_the_initial_value_of_keys_on_which_nobody_writes_it() {
    for text in ["", "\n", "r(1,0,0,0)\n"] {
        let history = parse(text).unwrap();
        assert_eq!(history.initial(), &Initial::UnlessWritten(Value::Int(0)));
    }
}

#[test]
fn every_malformed_line_is_an_error_with_its_place() {
    let op = "r(key,value,session,txn) or w(key,value,session,txn)";
    let txn = "a transaction: a number from 0 on, or -1 for an aborted one";
    for (line, column, expected, found) in [
        ("x(1,2,3,4)", 1, op, "x(1,2,3,4)"),
        ("  1", 3, op, "1"),
        ("r", 2, "an opening parenthesis", "the end of the line"),
        ("r[1,2,3,4]", 2, "an opening parenthesis", "[1,2,3,4]"),
        ("r(", 3, "a key: a number from 0 on", "the end of the line"),
        ("r(x,2,3,4)", 3, "a key: a number from 0 on", "x,2,3,4)"),
        ("r(-1,2,3,4)", 3, "a key: a number from 0 on", "-1,2,3,4)"),
        ("r(1 2,3,4)", 5, "a comma", "2,3,4)"),
        ("r(1,,3,4)", 5, "a value: a number from 0 on", ",3,4)"),
        ("r(1,2.5,3,4)", 6, "a comma", ".5,3,4)"),
        ("w(1,2,-1,4)", 7, "a session: a number from 0 on", "-1,4)"),
        ("w(1,2)", 6, "a comma", ")"),
        ("w(1,2,3)", 8, "a comma", ")"),
        ("w(1,2,3,)", 9, txn, ")"),
        ("w(1,2,3,-2)", 9, txn, "-2)"),
        ("w(1,2,3,-)", 9, txn, "-)"),
        ("w(1,2,3,- 1)", 9, txn, "- 1)"),
        ("w(1,2,3,-x)", 9, txn, "-x)"),
        ("w(1,2,3,4", 10, "a closing parenthesis", "the end of the line"),
        ("w(1,2,3,4,5)", 10, "a closing parenthesis", ",5)"),
        ("w(1,2,3,4) r(1,2,3,4)", 12, "the end of the line", "r(1,2,3,4)"),
        ("w(1,2,3,4);", 11, "the end of the line", ";"),
        (
            "w(1,18446744073709551616,3,4)",
            5,
            "a number up to 18446744073709551615",
            "18446744073709551616",
        ),
    ] {
        for (before, after) in [("", ""), ("\nr(1,0,3,4)\n", "\nr(1,0,3,4)\n"), ("", "\r\n")] {
            let number = before.lines().count() + 1;
            let text = format!("{before}{line}{after}");
            assert_eq!(
                error(&text),
                format!("h.txt:{number}:{column}: expected {expected}, found {found}"),
                "{text:?}"
            );
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_an_error() {
    let fault = read(b"r(1,0,0,0)\nw(\xff\0", usize::MAX, &Meter::default()).unwrap_err();
    assert_eq!(fault.at, 13);
    assert!(fault.problem.to_string().contains('\u{fffd}'), "{fault:?}");
}

#[test]
fn a_tail_that_was_seen_before_does_not_hide_what_follows_it() {
    assert_eq!(
        error("w(1,1,0,1)\nw(1,2,0,1)x\n"),
        "h.txt:2:11: expected the end of the line, found x"
    );
    assert_eq!(show_all("w(1,1,0,1)\nw(1,2,0,1)"), ["0 1 Committed w1=1 w1=2"]);
    assert_eq!(
        show_all("w(1,1,0,1)\nw(1,2,0,11)\n"),
        ["0 1 Committed w1=1", "0 11 Committed w1=2"]
    );
}

#[test]
fn a_transaction_in_two_sessions_is_an_error_on_the_line_that_says_so() {
    let text = "w(1,1,4,9)\nw(1,2,5,-1)\nw(1,3,5,8)\n\nw(1,4,5,9)\nw(1,5,6,9)\n";
    for size in [1, usize::MAX] {
        let fault = read(text.as_bytes(), size, &Meter::default()).unwrap_err();
        assert_eq!(Position::in_text(text.as_bytes(), fault.at), Position::Column(5, 1));
        let message = "transaction 9 belongs to session 4 and to session 5";
        assert_eq!(fault.problem.to_string(), message);
    }
}

#[test]
fn the_sniffer_knows_an_operation_from_other_lines() {
    let sniff = |text: &str| Plume.sniff(&Source::from_bytes("h", text.into()).unwrap());
    for text in ["r(1,2,3,4)", "\n\n  w(1,2,3,-1)\r\nanything", "w(1,2,3,4)\n"] {
        assert!(sniff(text), "{text:?}");
    }
    for text in ["", "\n", "w 1 2\n", "r(1,2,3)\n", "r(x,2,3,4)\n", "{:type :ok}", "[1]"] {
        assert!(!sniff(text), "{text:?}");
    }
    assert!(!Plume.sniff(&Source::from_files("d", Vec::new())));
}
