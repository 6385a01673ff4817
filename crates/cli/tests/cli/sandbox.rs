//! A directory of small histories, and the command run in it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use isolario::formats::FORMATS;
use tempfile::TempDir;

/// Two transactions that read each other's writes, and a read of what nobody wrote.
pub(crate) const CYCLE: &str = "\
initial 0
session alice
  T1: r y 1, w x 1
session bob
  T2: r x 1, w y 1, r z 7
";

/// Nothing wrong at the weak levels.
pub(crate) const FINE: &str = "\
initial 0
session alice
  T1: r x 0, w x 1
session bob
  T2: r x 1
";

/// A read that may have seen either of two writes.
pub(crate) const AMBIGUOUS: &str = "\
initial 0
session alice
  T1: append x 1
session bob
  T2: append x 1
session carol
  T3: r x [1]
";

/// Lists, which few formats can express.
pub(crate) const LISTS: &str = "\
initial 0
session alice
  T1: append x 1
session bob
  T2: r x [1]
";

pub(crate) struct Sandbox {
    dir: TempDir,
    /// For what commands put aside: one that is killed cannot tidy up.
    temporary: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        let sandbox = Sandbox { dir: TempDir::new().unwrap(), temporary: TempDir::new().unwrap() };
        sandbox
            .file("cycle.txt", CYCLE)
            .file("fine.txt", FINE)
            .file("ambiguous.txt", AMBIGUOUS)
            .file("lists.txt", LISTS)
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Sandbox {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names of all files, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What commands have put aside and not removed yet.
    pub(crate) fn temporary_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.temporary.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The command, in this directory, in an environment that says nothing of colours.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolario"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("TMPDIR", self.temporary.path());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub(crate) fn code(&self, args: &[&str]) -> i32 {
        self.run(args).status.code().unwrap()
    }

    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        String::from_utf8(self.run(args).stdout).unwrap()
    }

    /// Everything a person sees, for snapshots.
    pub(crate) fn transcript(&self, args: &[&str]) -> String {
        transcript(args, &self.run(args))
    }

    /// Runs with something on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

/// Sends a signal, such as `-INT`.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

pub(crate) fn transcript(args: &[&str], output: &Output) -> String {
    let text = |bytes: &[u8]| stable(std::str::from_utf8(bytes).unwrap());
    let mut shown = format!("$ isolario {}\n{}", args.join(" "), text(&output.stdout));
    if !output.stderr.is_empty() {
        shown.push_str("--- stderr\n");
        shown.push_str(&text(&output.stderr));
    }
    shown.push_str(&format!("--- exit code {}\n", output.status.code().unwrap()));
    shown
}

/// Leaves out what changes from run to run, and the list of formats, which grows.
fn stable(text: &str) -> String {
    let formats: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
    let text = text.replace(&formats.join(", "), "FORMATS");
    let text = without(&text, "\"timing\":{", "}", "TIMING");
    let text = without(&text, "(took ", ")", "TIME");
    // The default may be on the next line.
    without(&text, "auto (detected from its content),", "auto]", " FORMATS [default: ")
}

/// Replaces what stands between two marks, wherever it does.
fn without(text: &str, begin: &str, end: &str, instead: &str) -> String {
    let mut parts = text.split(begin);
    let mut stable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let at = part.find(end).unwrap_or(0);
        stable.push_str(&[begin, instead, &part[at..]].concat());
    }
    stable
}
