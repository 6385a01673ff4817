//! The README and the book show what the program really prints.
//!
//! Every block that is called `console` is a session at a terminal, and is repeated here: the commands
//! after `$`, in the root of the source, so to speak. `…` at the end of a line stands for whatever is
//! printed from there on, and times may differ. `cat FILE` makes the file that it shows.
//!
//! Where the program has changed, `UPDATE_TRANSCRIPTS=1` writes the new sessions into the pages; look
//! at the difference before you keep it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

const BEGIN: &str = "```console\n";
const END: &str = "```";
/// Printed between the outputs of commands.
const MARK: &str = "=== the next command ===";

#[test]
fn the_pages_show_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut pages = vec![root.join("README.md")];
    find_pages(&root.join("docs/book/src"), &mut pages);
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let terminal = Terminal::in_copy_of(&root);
        let repeated = repeat(&text, &mut |session| {
            count += 1;
            terminal.repeat(session)
        });
        if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
            fs::write(&page, repeated).unwrap();
        } else {
            assert_eq!(repeated, text, "{} (UPDATE_TRANSCRIPTS=1 mends it)", page.display());
        }
    }
    assert!(count > 15, "{count} sessions were found");
}

fn find_pages(directory: &Path, pages: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            find_pages(&entry, pages);
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            pages.push(entry);
        }
    }
}

/// A page with what its sessions come to.
fn repeat(page: &str, repeat_session: &mut dyn FnMut(&str) -> String) -> String {
    let mut parts = page.split(BEGIN);
    let mut repeated = parts.next().unwrap().to_owned();
    for part in parts {
        let (session, rest) = part.split_once(END).unwrap();
        repeated += &[BEGIN, &repeat_session(session), END, rest].concat();
    }
    repeated
}

/// A command, and what a page shows that it prints.
struct Shown {
    command: String,
    output: String,
}

fn commands(session: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in session.lines() {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => {
                shown.push(Shown { command: command.to_owned(), output: String::new() });
            }
            (None, Some(last)) if last.output.is_empty() && last.command.ends_with('\\') => {
                last.command += &format!("\n{line}");
            }
            (None, Some(last)) => last.output += &format!("{line}\n"),
            (None, None) => panic!("a session begins with a command: {line}"),
        }
    }
    shown
}

/// A directory that looks like the root of the source.
struct Terminal {
    directory: TempDir,
}

impl Terminal {
    fn in_copy_of(root: &Path) -> Terminal {
        let directory = TempDir::new().unwrap();
        std::os::unix::fs::symlink(root.join("examples"), directory.path().join("examples"))
            .unwrap();
        Terminal { directory }
    }

    /// A session as it should be: as it is where it is right.
    fn repeat(&self, session: &str) -> String {
        let shown = commands(session);
        for Shown { command, output } in &shown {
            if let Some(file) = command.strip_prefix("cat ") {
                fs::write(self.directory.path().join(file), output).unwrap();
            }
        }
        let printed = self.print(&shown);
        let mut session = String::new();
        for (Shown { command, output }, printed) in shown.iter().zip(&printed) {
            let right = if is_right(output, printed) { output } else { printed };
            session += &format!("$ {command}\n{right}");
        }
        session
    }

    /// What commands print, one after the other in one shell.
    fn print(&self, shown: &[Shown]) -> Vec<String> {
        let mut script = "exec 2>&1\n".to_owned();
        for Shown { command, .. } in shown {
            // The next command may ask how this one ended.
            script += &format!("{command}\ncode=$?\necho '{MARK}'\n(exit $code)\n");
        }
        let bin = Path::new(env!("CARGO_BIN_EXE_isolario")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(self.directory.path()).env("PATH", path);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            shell.env_remove(name);
        }
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mark = format!("{MARK}\n");
        let printed: Vec<String> = text.split(&mark).map(str::to_owned).collect();
        assert_eq!(printed.len(), shown.len() + 1, "{text}");
        printed
    }
}

/// Whether a page shows what was printed, but for times and for what it leaves out.
fn is_right(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (without_times(shown), without_times(printed));
    let parts: Vec<&str> = shown.split("…\n").collect();
    let [first, middle @ .., last] = &parts[..] else { return shown == printed };
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn without_times(text: &str) -> String {
    let mut text = text.to_owned();
    for (begin, end) in [("(took ", ")"), ("loaded in ", "\n"), ("\"timing\":{", "}")] {
        let mut parts = text.split(begin);
        let mut kept = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            kept += &[begin, &part[part.find(end).unwrap_or(0)..]].concat();
        }
        text = kept;
    }
    text
}

#[test]
fn what_is_left_out_may_be_anything_and_nothing_else() {
    assert!(is_right("a\nb\n", "a\nb\n") && !is_right("a\n", "a\nb\n"));
    assert!(is_right("a\n…\nd\n", "a\nb\nc\nd\n") && !is_right("a\n…\nd\n", "a\nb\n"));
    assert!(is_right("…\nb\n…\n", "a\nb\nc\n") && !is_right("…\nx\n…\n", "a\nb\nc\n"));
    assert!(is_right("(took 0.1 s)\n", "(took 22.0 s)\n") && !is_right("(took 0.1 s)\n", "(x)\n"));
}
