//! Other checkers: how they are called, and what they answer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// What is known of another checker's command line.
#[derive(Debug)]
pub struct Adapter {
    /// By which it is asked for, and found in the name of a program.
    pub name: &'static str,
    /// The format that it reads, by our name for it.
    pub format: &'static str,
    /// What a history must be called; some look for a fixed name in a directory.
    file_name: &'static str,
    /// The levels that it decides, and what it calls them.
    levels: &'static [(&'static str, &'static str)],
    /// What it is called with: `{level}`, `{file}` and `{directory}` stand for what they say.
    arguments: &'static [&'static str],
    answers: Answers,
    /// Whether it was ever seen to work. The others go by the checkers' own documentation.
    pub is_tested: bool,
}

/// How a checker says what it found.
#[derive(Debug)]
enum Answers {
    /// Zero: satisfied. One: violated.
    ExitCode,
    /// Words in what it prints, in lower case.
    Words { violated: &'static str, satisfied: &'static str },
}

/// All that are known.
pub static ADAPTERS: &[Adapter] = &[
    Adapter {
        name: "isolario",
        format: "isolario",
        file_name: "history.iso",
        levels: &[
            ("read-committed", "rc"),
            ("read-atomic", "ra"),
            ("causal", "cc"),
            ("snapshot-isolation", "si"),
            ("serializable", "ser"),
            ("strict-serializable", "sser"),
        ],
        arguments: &["-q", "check", "--level", "{level}", "{file}"],
        answers: Answers::ExitCode,
        is_tested: true,
    },
    Adapter {
        name: "awdit",
        format: "plume",
        file_name: "history.txt",
        levels: &[
            ("read-committed", "read-committed"),
            ("read-atomic", "read-atomic"),
            ("causal", "causal"),
        ],
        arguments: &["check", "-i", "{level}", "{file}"],
        answers: Answers::Words { violated: "inconsistent", satisfied: "consistent" },
        is_tested: false,
    },
    Adapter {
        name: "plume",
        format: "plume",
        file_name: "history.txt",
        levels: &[("read-committed", "RC"), ("read-atomic", "RA"), ("causal", "TCC")],
        arguments: &["-t", "PLUME", "-i", "{level}", "{file}"],
        answers: Answers::Words { violated: "reject", satisfied: "accept" },
        is_tested: false,
    },
    Adapter {
        name: "elle",
        format: "elle-edn",
        file_name: "history.edn",
        levels: &[
            ("snapshot-isolation", "snapshot-isolation"),
            ("serializable", "serializable"),
            ("strict-serializable", "strict-serializable"),
        ],
        arguments: &["--model", "rw-register", "--consistency-models", "{level}", "{file}"],
        answers: Answers::Words { violated: "\tfalse", satisfied: "\ttrue" },
        is_tested: false,
    },
    Adapter {
        name: "dbcop",
        format: "dbcop",
        file_name: "history.bincode",
        levels: &[("causal", "cc"), ("snapshot-isolation", "si"), ("serializable", "ser")],
        arguments: &["verify", "-d", "{directory}", "-o", "{directory}", "-c", "{level}"],
        answers: Answers::ExitCode,
        is_tested: false,
    },
    Adapter {
        name: "veristrong",
        format: "dbcop",
        file_name: "history.bincode",
        levels: &[("snapshot-isolation", "si"), ("serializable", "ser")],
        arguments: &[
            "--history-type",
            "dbcop",
            "--pruning",
            "fast",
            "--isolation-level",
            "{level}",
            "{file}",
        ],
        answers: Answers::Words { violated: "accept: false", satisfied: "accept: true" },
        is_tested: false,
    },
];

impl Adapter {
    /// That of a name, or that whose name stands in the name of the program.
    pub fn find(name: Option<&str>, program: &Path) -> Result<&'static Adapter, Failure> {
        let known = || ADAPTERS.iter().map(|adapter| adapter.name).collect::<Vec<_>>().join(", ");
        let file = program.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let wanted = |adapter: &&Adapter| match name {
            Some(name) => adapter.name == name,
            None => file.contains(adapter.name),
        };
        ADAPTERS.iter().find(wanted).ok_or_else(|| match name {
            Some(name) => format!("no checker is known as {name}; known are {}", known()).into(),
            None => format!("which checker is {file}? --as NAME tells: {}", known()).into(),
        })
    }

    /// The levels that it decides, by our names.
    pub fn levels(&self) -> impl Iterator<Item = &'static str> {
        self.levels.iter().map(|(ours, _)| *ours)
    }

    /// Where its history goes in a directory.
    pub fn file_in(&self, directory: &Path) -> PathBuf {
        directory.join(self.file_name)
    }

    /// Asks the program about the history in a directory, and waits so long.
    pub fn ask(
        &self,
        program: &Path,
        level: &str,
        directory: &Path,
        patience: Duration,
    ) -> Result<Reply, Failure> {
        let mut command = self.command(program, level, directory)?;
        // To files: nobody has to read while it runs, whatever it prints.
        let said = directory.join("said");
        let out = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let begun = Instant::now();
        let mut child =
            command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begun.elapsed() > patience {
                child.kill()?;
                child.wait()?;
                return Ok(Reply { time: None, holds: None });
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let time = Some(begun.elapsed());
        let text = String::from_utf8_lossy(&std::fs::read(&said)?).to_lowercase();
        let holds = self.answers.read(status.code(), &text);
        if holds.is_none() && !status.success() {
            let last = text.lines().next_back().unwrap_or("it said nothing").to_owned();
            return Err(format!("{} failed ({status}): {last}", program.display()).into());
        }
        Ok(Reply { time, holds })
    }

    fn command(&self, program: &Path, level: &str, directory: &Path) -> Result<Command, Failure> {
        let theirs = self.levels.iter().find(|(ours, _)| *ours == level);
        let (_, theirs) = theirs.ok_or_else(|| format!("{} knows no {level}", self.name))?;
        let mut command = match program.extension().is_some_and(|extension| extension == "jar") {
            true => Command::new("java"),
            false => Command::new(program),
        };
        if command.get_program() == "java" {
            command.arg("-jar").arg(program);
        }
        for argument in self.arguments {
            match *argument {
                "{level}" => command.arg(theirs),
                "{file}" => command.arg(self.file_in(directory)),
                "{directory}" => command.arg(directory),
                word => command.arg(word),
            };
        }
        Ok(command)
    }
}

impl Answers {
    fn read(&self, code: Option<i32>, text: &str) -> Option<bool> {
        match self {
            Answers::ExitCode => match code {
                Some(0) => Some(true),
                Some(1) => Some(false),
                _ => None,
            },
            Answers::Words { violated, .. } if text.contains(violated) => Some(false),
            Answers::Words { satisfied, .. } => text.contains(satisfied).then_some(true),
        }
    }
}

/// What came of asking another checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How long it took, with the start of its process; none if it was given up.
    pub time: Option<Duration>,
    /// Whether the level holds, as far as its answer could be read.
    pub holds: Option<bool>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A program that says something, in a directory with a history.
    fn fake(name: &str, script: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = crate::scratch().unwrap();
        let program = directory.path().join(name);
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        (directory, program)
    }

    /// Asks a fake checker. A file that was just written cannot be run while another test's process
    /// that was started meanwhile still holds it open.
    fn ask(name: &str, level: &str, script: &str) -> Result<Reply, Failure> {
        let (directory, program) = fake(name, script);
        let adapter = Adapter::find(None, &program).unwrap();
        for _ in 0..100 {
            match adapter.ask(&program, level, directory.path(), LONG) {
                Err(error) if error.to_string().contains("Text file busy") => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                answer => return answer,
            }
        }
        Err("always busy".into())
    }

    #[test]
    fn checkers_are_called_as_they_want_it_and_understood() {
        let script = r#"[ "$1 $2 $3" = "check -i causal" ] || exit 7
case $4 in */history.txt) echo "History is INCONSISTENT" ;; esac"#;
        assert_eq!(ask("awdit", "causal", script).unwrap().holds, Some(false));
        let said = ask("my-awdit-2", "read-atomic", "echo consistent").unwrap();
        assert_eq!(said.holds, Some(true));
        assert!(said.time.is_some());
        let script = r#"[ "$1 $2 $6" = "verify -d -c" ] || exit 7"#;
        assert_eq!(ask("dbcop", "serializable", script).unwrap().holds, Some(true));
        assert_eq!(ask("veristrong", "serializable", "echo hm").unwrap().holds, None);
        assert_eq!(ask("isolario", "causal", "exit 1").unwrap().holds, Some(false));
    }

    #[test]
    fn a_checker_that_fails_is_an_error_with_its_last_words() {
        let error = ask("awdit", "causal", "echo out of memory >&2; exit 3").unwrap_err();
        assert!(error.to_string().ends_with("out of memory"), "{error}");
        let error = ask("isolario", "linearizable", "exit 0").unwrap_err();
        assert_eq!(error.to_string(), "isolario knows no linearizable");
    }

    #[test]
    fn a_checker_that_takes_too_long_is_given_up() {
        let (directory, program) = fake("awdit", "sleep 600");
        let adapter = Adapter::find(Some("awdit"), &program).unwrap();
        let patience = Duration::from_millis(20);
        let reply = loop {
            match adapter.ask(&program, "causal", directory.path(), patience) {
                Err(error) if error.to_string().contains("Text file busy") => {}
                reply => break reply.unwrap(),
            }
        };
        assert_eq!(reply, Reply { time: None, holds: None });
    }

    #[test]
    fn an_unknown_checker_is_refused_with_those_that_are_known() {
        let error = Adapter::find(None, Path::new("/bin/checker")).unwrap_err().to_string();
        assert!(error.starts_with("which checker is checker? --as NAME tells: isolario, awdit"));
        assert!(Adapter::find(Some("awdti"), Path::new("x")).is_err());
        assert_eq!(Adapter::find(None, Path::new("Plume-1.0.jar")).unwrap().name, "plume");
    }

    #[test]
    fn programs_of_java_are_run_by_java() {
        let adapter = Adapter::find(Some("plume"), Path::new("x")).unwrap();
        let command = adapter.command(Path::new("/p/P.jar"), "causal", Path::new("/d")).unwrap();
        let said: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(said, ["-jar", "/p/P.jar", "-t", "PLUME", "-i", "TCC", "/d/history.txt"]);
    }
}
