//! A program, its arguments and the account it runs under: as data, so that a server can be
//! started again.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::{io, thread};

use crate::ServerError;
use crate::error::Doing;
use crate::user::User;

/// Whether a server ends with this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It gets this signal when our process ends, however that happens.
    Ours(&'static str),
    /// It stays until somebody stops it.
    Detached,
}

/// How to run a program.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    user: Option<User>,
    directory: PathBuf,
}

impl Launch {
    pub(crate) fn new(program: PathBuf, directory: &Path) -> Self {
        Self { program, arguments: Vec::new(), user: None, directory: directory.to_owned() }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn user(mut self, user: Option<User>) -> Self {
        self.user = user;
        self
    }

    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Runs it to its end; what it printed goes into the error.
    pub(crate) fn run(&self) -> Result<(), ServerError> {
        let output = self
            .command(None)
            .stdin(Stdio::null())
            .output()
            .doing(|| format!("run {}", self.program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(ServerError::Command { program: self.program.clone(), output: text })
    }

    /// Starts it as a server; what it prints goes to the end of a log.
    pub(crate) fn start(&self, lifetime: Lifetime, log: &Path) -> Result<Child, ServerError> {
        let doing = || format!("start {}", self.program.display());
        let output = File::options().create(true).append(true).open(log).doing(doing)?;
        let errors = output.try_clone().doing(doing)?;
        let death = match lifetime {
            Lifetime::Ours(signal) => Some(signal),
            Lifetime::Detached => None,
        };
        let mut command = self.command(death);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        // A Ctrl-C in the terminal is for the developer's program, not for the servers.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        spawn(command).doing(doing)
    }

    /// `setpriv` replaces itself by the program, so the process id is the server's own.
    fn command(&self, death_signal: Option<&str>) -> Command {
        let mut command = if self.user.is_some() || death_signal.is_some() {
            let mut command = Command::new("setpriv");
            if let Some(User { uid, gid }) = self.user {
                command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
                command.arg("--clear-groups");
            }
            if let Some(signal) = death_signal {
                command.arg(format!("--pdeathsig={signal}"));
            }
            command.arg("--").arg(&self.program);
            command
        } else {
            Command::new(&self.program)
        };
        command.args(&self.arguments).current_dir(&self.directory);
        command
    }
}

/// A request to start a command, and where the answer goes.
type Request = (Command, Sender<io::Result<Child>>);

/// Starts a command from a thread that lives as long as the process. The signal on the parent's
/// death counts the death of the *thread* that started the child, and tests run in short-lived
/// threads.
fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Request>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, requests) = channel::<Request>();
        thread::spawn(move || {
            for (mut command, answer) in requests {
                // Nobody waits for the answer only if the asking thread is gone.
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let gone = || io::Error::other("the thread that starts servers is gone");
    let (answer, child) = channel();
    starter.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_shows_what_it_printed() {
        let launch = Launch::new("/bin/sh".into(), Path::new("/"))
            .args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = launch.run().unwrap_err();
        assert_eq!(error.to_string(), "/bin/sh failed:\nout\nerr\n");
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let launch = Launch::new("/bin/sleep".into(), Path::new("/")).arg("30");
        let asking = thread::spawn(move || launch.start(Lifetime::Ours("KILL"), &log).unwrap());
        let mut child = asking.join().unwrap();
        thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(child.try_wait().unwrap(), None, "it died with the asking thread");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
