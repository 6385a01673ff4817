//! The `isolario` command, with embedded stores of others among its databases.
//!
//! What is to be done is done by a child: this program, started again. A store that takes its process
//! along is a finding, and somebody has to be left to tell.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// Tells the child that it is one.
const CHILD: &str = "ISOLARIO_ENGINES_CHILD";

/// The exit code for errors.
const ERROR: u8 = 2;

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        // Nobody would listen to an orphan. If this cannot be had, it ends a little later.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        isolario::db::register(isolario_engines::DRIVERS);
        return isolario_cli::main();
    }
    supervise().unwrap_or_else(|error| {
        eprintln!("error: cannot start another process: {error}");
        ExitCode::from(ERROR)
    })
}

fn supervise() -> std::io::Result<ExitCode> {
    let mut command = Command::new(std::env::current_exe()?);
    // With a group of its own, Ctrl-C reaches it by way of us alone, and so once.
    command.args(std::env::args_os().skip(1)).env(CHILD, "1").process_group(0);
    let mut child = command.spawn()?;
    let pid = Pid::from_raw(child.id() as i32);
    let passed_on = ctrlc::set_handler(move || {
        let _ = pid.map(|pid| kill_process(pid, Signal::INT));
    });
    if let Err(error) = passed_on {
        eprintln!("warning: cannot listen for Ctrl-C: {error}");
    }
    let status = child.wait()?;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(ExitCode::from(code as u8)),
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            eprintln!(
                "error: the store ended its process by signal {signal}; the run directory has what \
                 was recorded until then, and run.json there says how to repeat it"
            );
            Ok(ExitCode::from(ERROR))
        }
    }
}
