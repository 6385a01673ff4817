//! Names, values, statements, errors and files called to do something to a terminal do nothing.

use serde_json::json;

use crate::sandbox::Sandbox;

/// Clears the screen, sets the title, writes backwards, and begins a line of its own.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;evil\u{7}\u{9b}31m\u{202e}\nerror: evil\r";

/// A history in which everything that has a name is called that.
fn history() -> String {
    let first = json!({
        "session": EVIL, "id": EVIL, "ops": [["w", EVIL, EVIL], ["r", EVIL, "thin"]],
        "sql": {"0": EVIL},
    });
    let second = json!({
        "session": format!("2{EVIL}"), "id": format!("2{EVIL}"), "outcome": "aborted", "error": EVIL,
        "ops": [["r", EVIL, EVIL]],
    });
    let third = json!({
        "session": 3, "id": format!("3{EVIL}"), "ops": [["w", EVIL, EVIL], ["r", EVIL, "air"]],
    });
    format!("{first}\n{second}\n{third}\n")
}

/// Whether a terminal would only show this, with colours of ours.
fn is_harmless(text: &str) -> bool {
    let mut plain = text.replace(['\n', '\t'], " ");
    for colour in ["0", "1", "2", "31", "32", "33", "36", "1;31", "1;33"] {
        plain = plain.replace(&format!("\u{1b}[{colour}m"), "");
    }
    let is_obeyed = |c: char| c.is_control() || c == '\u{202e}';
    !plain.contains(is_obeyed) && !text.lines().any(|line| line.starts_with("error: evil"))
}

#[test]
fn nothing_reaches_a_terminal_that_it_would_obey() {
    let file = format!("{}.jsonl", EVIL.replace('/', ""));
    let sandbox =
        Sandbox::new().file(&file, &history()).file("bad\u{1b}[2J.txt", "sesion\u{1b}[2J\n");
    let evil_flag = format!("--level={EVIL}");
    let (txn, second) = (EVIL, format!("2{EVIL}"));
    for args in [
        &["check", &file][..],
        &["check", "-v", &file],
        &["check", "--level", "ser", &file],
        &["check", "--pattern", "all", &file],
        &["check", "--json", &file],
        &["check", "--output", "github", &file],
        &["check", "--output", "junit", &file],
        &["check", &evil_flag, &file],
        &["check", &format!("--output={EVIL}"), &file],
        &["check", &format!("--{EVIL}"), &file],
        &["run", &format!("--timeout={EVIL}")],
        &[EVIL],
        &["check", "--report", &file, &file],
        &["check", "bad\u{1b}[2J.txt", "missing\u{1b}[2J.txt"],
        &["check", "--proof", "proof", &file],
        &["verify", &file, "proof"],
        &["verify", &file, &file],
        &["stats", &file],
        &["stats", "--json", &file],
        &["show", &file, "txn", txn],
        &["show", &file, "txn", &second],
        &["show", &file, "key", EVIL],
        &["show", &file, "session", EVIL],
        &["show", "--json", &file, "key", EVIL],
        &["show", &file, "txn", "no such\u{1b}[2J"],
        &["convert", &file, &format!("{EVIL}.edn")],
        &["convert", &file, EVIL],
        &["explain", EVIL],
        &["gen", "history", "--workload", EVIL],
    ] {
        for colour in ["never", "always"] {
            let output = sandbox.run(&[args, &["--color", colour]].concat());
            for stream in [output.stdout, output.stderr] {
                let text = String::from_utf8(stream).unwrap();
                assert!(is_harmless(&text), "{args:?}: {text:?}");
            }
        }
    }
}
