//! Ctrl-C: during `isolario check`, and while a history is written.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::sandbox::{CYCLE, FINE, Sandbox, signal};

/// More than a pipe holds: once all of it is written, somebody reads.
const MORE_THAN_A_PIPE_HOLDS: usize = 1 << 20;

/// A check that has begun to read a history from its standard input, and waits for the rest.
struct Waiting {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Waiting {
    fn start(sandbox: &Sandbox, args: &[&str], history: &str) -> Waiting {
        let mut command = sandbox.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let comments = "# nothing\n".repeat(MORE_THAN_A_PIPE_HOLDS / 10);
        input.write_all(format!("{history}{comments}").as_bytes()).unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        child.stdin = Some(input);
        Waiting { child, stderr }
    }

    fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits until the command says that it heard.
    fn hears(&mut self) {
        let mut line = String::new();
        while !line.contains("again to stop now") {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended without a word");
        }
    }

    /// Ends the history; gives back the code and the output.
    fn end(mut self) -> (i32, String) {
        drop(self.child.stdin.take());
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (self.child.wait().unwrap().code().unwrap(), stdout)
    }
}

#[test]
fn what_was_decided_is_reported_and_the_rest_is_undecided() {
    let sandbox = Sandbox::new();
    let args = ["check", "--json", "--junit", "junit.xml", "fine.txt", "-", "cycle.txt"];
    for signal in ["-INT", "-TERM"] {
        let mut waiting = Waiting::start(&sandbox, &args, CYCLE);
        waiting.signal(signal);
        waiting.hears();
        let (code, stdout) = waiting.end();
        assert_eq!(code, 3, "{stdout}");
        let objects: Vec<Value> =
            stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects[0]["results"][0]["verdict"], "satisfied");
        let undecided = objects[1]["results"].as_array().unwrap();
        assert!(undecided.iter().all(|result| result["verdict"] == "undecided"));
        assert!(undecided[0]["reason"].as_str().unwrap().contains("interrupted"));
        assert!(objects[2]["error"].as_str().unwrap().contains("interrupted"));
        let junit = sandbox.read("junit.xml");
        assert_eq!(junit.matches("<testsuite ").count(), 3, "{junit}");
        assert!(junit.ends_with("</testsuites>\n"), "{junit}");
    }
}

#[test]
fn every_file_that_was_asked_for_is_written() {
    let sandbox = Sandbox::new();
    let files = ["page.html", "graph.dot", "graph.svg", "junit.xml", "proof"];
    let [page, dot, svg, junit, proof] = files;
    let args = [
        "check", "--report", page, "--dot", dot, "--svg", svg, "--junit", junit, "--proof", proof,
        "-",
    ];
    let mut waiting = Waiting::start(&sandbox, &args, FINE);
    waiting.signal("-INT");
    waiting.hears();
    let (code, stdout) = waiting.end();
    assert_eq!(code, 3, "{stdout}");
    assert!(stdout.contains("interrupted"), "{stdout}");
    for file in files {
        assert!(!sandbox.read(file).is_empty(), "{file}");
    }
    assert!(sandbox.read(page).contains("interrupted"));
}

/// Nobody could read half a file.
#[test]
fn files_in_the_making_are_removed_and_that_is_said() {
    let sandbox = Sandbox::new();
    let before = sandbox.names();
    let args = ["gen", "history", "--txns", "1000000000000", "-o", "h.iso"];
    let args = [&args[..], &["--version-order-out", "v"]].concat();
    for wait in [0, 10, 20, 50] {
        let mut command = sandbox.command(&args);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while sandbox.names() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: interrupted: the file"), "{said}");
        assert_eq!(sandbox.names(), before);
    }
}

#[test]
fn the_second_time_ends_at_once() {
    let sandbox = Sandbox::new();
    let mut waiting = Waiting::start(&sandbox, &["check", "-"], FINE);
    waiting.signal("-INT");
    waiting.hears();
    waiting.signal("-INT");
    // Its input is still open: it does not wait for the rest.
    assert_eq!(waiting.child.wait().unwrap().code(), Some(2));
}
