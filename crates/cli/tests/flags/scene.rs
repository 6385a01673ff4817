//! A directory with the files that commands work on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::{Outcome, Repeatable, contents};

/// Files by name. Each command has a copy of them.
pub(crate) struct Scene {
    files: BTreeMap<String, Vec<u8>>,
    /// Outcomes of commands without a flag.
    known: RefCell<BTreeMap<(Vec<String>, Repeatable), Outcome>>,
}

/// Increments of `x` lose an update; one read is of an aborted write; `T7` reads what was overwritten
/// before it began.
const HISTORY: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","start":0,"finish":10,"ops":[["r","x",0],["w","x",1],["w","z",9]]}
{"session":"b","id":"T2","start":5,"finish":15,"ops":[["r","x",0],["r","y",0],["w","x",2]]}
{"session":"a","id":"T3","start":20,"finish":30,"ops":[["r","x",1],["w","y",3]]}
{"session":"c","id":"T4","start":22,"finish":32,"outcome":"aborted","ops":[["w","q",5]]}
{"session":"c","id":"T5","start":40,"finish":50,"ops":[["r","q",5],["r","z",9]]}
{"session":"d","id":"T6","start":42,"finish":52,"ops":[["r","x",0],["w","x",4]]}
{"session":"d","id":"T7","start":60,"finish":70,"ops":[["r","y",0]]}
"#;

/// Nothing is wrong in it.
const FINE: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","start":0,"finish":10,"ops":[["r","x",0],["w","x",1]]}
{"session":"b","id":"T2","start":20,"finish":30,"ops":[["r","x",1]]}
"#;

/// The second transaction misses a write of the first one, of the same session.
const SESSIONS: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","ops":[["r","x",0],["w","x",1]]}
{"session":"a","id":"T2","ops":[["r","x",0]]}
"#;

/// The second transaction misses a write that was done just before it.
const TIMES: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","start":0,"finish":10000,"ops":[["r","x",0],["w","x",1]]}
{"session":"b","id":"T2","start":10100,"finish":20000,"ops":[["r","x",0]]}
"#;

const BAD_TIMES: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","start":10,"finish":1,"ops":[["r","x",0],["w","x",1]]}
{"session":"b","id":"T2","start":5,"finish":7,"ops":[["r","x",1]]}
"#;

const EMPTY: &str = "{\"isolario\":2,\"initial\":0}\n";

/// Two blind writes, in no order.
const BLIND: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","ops":[["w","x",1],["w","y",1]]}
{"session":"b","id":"T2","ops":[["w","x",2],["w","y",2]]}
{"session":"c","id":"T3","ops":[["r","x",1]]}
{"session":"c","id":"T4","ops":[["r","x",2]]}
{"session":"d","id":"T5","ops":[["r","y",2]]}
{"session":"d","id":"T6","ops":[["r","y",1]]}
"#;

/// A read of one key before and of the other after.
const READ_SKEW: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","ops":[["w","x",1],["w","y",1]]}
{"session":"b","id":"T2","ops":[["w","x",2],["w","y",2]]}
{"session":"c","id":"T3","ops":[["r","x",1],["r","y",2]]}
"#;

const ORDER: &str = r#"{"key": "x", "writers": ["T2", "T1"]}
{"key": "y", "writers": ["T2", "T1"]}
"#;

const PROMISED: &str = r#"{"isolario":2,"initial":0}
{"session":"a","id":"T1","db_start":1,"db_commit":2,"ops":[["r","x",0],["w","x",1]]}
{"session":"b","id":"T2","db_start":3,"db_commit":4,"ops":[["r","x",0]]}
"#;

const SERIAL: &str = "{\"order\": [\"T1\", \"T2\"]}\n";

const SQL_RUN: &str = r#"{"schema":"isolario.run/1","urls":["sqlite:"],"workload":{"kind":"sql"}}"#;

const MATCHES: &str = r#"{"isolario":2,"initial":null}
{"session":"a","id":"T1","ops":[["w",{"table":"people","row":{"id":1}},{"row":{"name":"Ada"}}]]}
{"session":"a","id":"T2","ops":[["select","FROM people WHERE substr(name, 1, 1) = 'A'",[]]]}
"#;

const SCRIPT: &str = "\
title Two transfers
anomaly LostUpdate
setup: write balance 100
T1: begin
T2: begin
T1: read balance    --> 100
T2: read balance    --> 100
T1: write balance 20
T2: write balance 21
T1: commit
T2: commit
";

const TEMPLATE: &str = "\
CREATE TABLE t (c INTEGER UNIQUE);
INSERT INTO t (c) VALUES (1);
/* session 1, T1 */ BEGIN;
/* session 1, T1 */ INSERT INTO t (c) VALUES (1);
/* session 1, T1 */ COMMIT;
";

impl Scene {
    pub(crate) fn new() -> Scene {
        let texts = [
            ("h.jsonl", HISTORY),
            ("fine.jsonl", FINE),
            ("sessions.jsonl", SESSIONS),
            ("times.jsonl", TIMES),
            ("bad.jsonl", BAD_TIMES),
            ("empty.jsonl", EMPTY),
            ("blind.jsonl", BLIND),
            ("skew.jsonl", READ_SKEW),
            ("order", ORDER),
            ("promised.jsonl", PROMISED),
            ("serial", SERIAL),
            ("reversed", "{\"order\": [\"T2\", \"T1\"]}\n"),
            ("strange", "{\"key\": \"nowhere\", \"values\": []}\n"),
            // A run of the sql workload, as far as its record goes.
            ("sql/run.json", SQL_RUN),
            ("matches.jsonl", MATCHES),
            ("two.probe", SCRIPT),
            ("templates/one.sql", TEMPLATE),
            // A name without an extension.
            ("history", HISTORY),
        ];
        let files =
            texts.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into_iter();
        let mut scene = Scene { files: files.collect(), known: RefCell::default() };
        for command in [
            // A run that found something, with its proof.
            &["run", "--db", "sim:rc?anomaly=thin-air-read", "--seed", "7", "--sessions", "1"][..],
            &["check", "--level", "ser", "--proof", "h.proof", "h.jsonl"],
            &[
                "check",
                "--level",
                "ser",
                "--proof",
                "bad.proof",
                "--bad-times",
                "unknown",
                "bad.jsonl",
            ],
            &["check", "--level", "ser", "--proof", "spilled.proof", "--spill", ".", "fine.jsonl"],
            &[
                "check",
                "--level",
                "ser",
                "--proof",
                "trusted.proof",
                "--version-order",
                "order",
                "--trust-version-order",
                "blind.jsonl",
            ],
            &[
                "check",
                "--level",
                "ru",
                "--proof",
                "assumed.proof",
                "--assume",
                "sequential-keys",
                "blind.jsonl",
            ],
            &[
                "check",
                "--level",
                "ser",
                "--proof",
                "promised.proof",
                "--serialization-order",
                "serial",
                "promised.jsonl",
            ],
            &[
                "check",
                "--level",
                "ser",
                "--proof",
                "matches.proof",
                "--matches",
                "sqlite",
                "matches.jsonl",
            ],
            &[
                "gen",
                "history",
                "--level",
                "rc",
                "--txns",
                "40",
                "--keys",
                "3",
                "-o",
                "cycles.jsonl",
            ],
        ] {
            let more: &[&str] = match command[0] {
                "run" => &["--txns", "200", "--out", "ran"],
                _ => &[],
            };
            let directory = scene.directory();
            scene.command(&[command, more].concat(), &directory).output().unwrap();
            scene.files.extend(contents(directory.path().join("here").as_path()));
        }
        scene
    }

    /// A copy of the files, and a directory for temporary ones.
    fn directory(&self) -> TempDir {
        let directory = TempDir::new().unwrap();
        for name in ["here", "temporary"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        for (name, content) in &self.files {
            let path = directory.path().join("here").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        directory
    }

    fn command(&self, args: &[impl AsRef<std::ffi::OsStr>], directory: &TempDir) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolario"));
        command.args(args).current_dir(directory.path().join("here")).stdin(Stdio::null());
        command.env("TMPDIR", directory.path().join("temporary"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command in a directory of its own.
    pub(crate) fn run(&self, args: &[&str], repeatable: Repeatable) -> Outcome {
        let directory = self.directory();
        let output = finished(self.command(args, &directory), args);
        let here: &Path = &directory.path().join("here");
        Outcome::of(&output, here, &self.files, repeatable)
    }

    /// The outcome of a command without a flag, which must be the same each time.
    pub(crate) fn base(&self, args: &[&str], repeatable: Repeatable) -> Result<Outcome, String> {
        let owned = args.iter().map(|arg| (*arg).to_owned()).collect();
        let key: (Vec<String>, Repeatable) = (owned, repeatable);
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let (first, second) = (self.run(args, repeatable), self.run(args, repeatable));
        if first != second {
            let args = args.join(" ");
            return Err(format!("`{args}` differs from run to run:\n{first:#?}\n{second:#?}"));
        }
        self.known.borrow_mut().insert(key, first.clone());
        Ok(first)
    }

    /// Whether a command has at least this many threads at some time. It has them from start to end, but
    /// the end may come before anything is seen of it.
    pub(crate) fn starts_threads(&self, args: &[&str], least: usize) -> bool {
        (0..20).any(|_| {
            let directory = self.directory();
            let mut command = self.command(args, &directory);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let tasks = format!("/proc/{}/task", child.id());
            let mut most = 0;
            while child.try_wait().unwrap().is_none() && most < least {
                most = most.max(fs::read_dir(&tasks).map_or(0, Iterator::count));
            }
            child.wait().unwrap();
            most >= least
        })
    }
}

/// Time limit for a command on a few transactions.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command to its end, which must come.
fn finished(mut command: Command, args: &[&str]) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let (done, is_done) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE).is_err() {
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
            }
        });
        let output = child.wait_with_output().unwrap();
        let _ = done.send(());
        assert!(output.status.code().is_some(), "`{}` does not end", args.join(" "));
        output
    })
}
