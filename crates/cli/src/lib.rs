//! The `isolario` command: flags, wiring and exit codes around the library.
//!
//! A program that knows more databases [registers](isolario::db::register) them, and calls [`main`].

mod args;
mod clashes;
mod commands;
mod config;
mod console;
mod exit;
mod failure;
mod generate;
mod histories;
mod interrupt;
mod join;
mod load;
mod modes;
mod outfile;
mod output;
mod probe;
mod progress;
mod reports;
mod run;
mod run_directory;
mod suggest;
mod terminal;
mod units;
mod workload_flags;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use isolario::report::printable;

use args::Args;
use config::Config;
use console::Console;
use exit::Outcome;
use failure::Failure;
use interrupt::Interrupt;

/// Does what the arguments of the process say.
pub fn main() -> ExitCode {
    run(std::env::args_os()).into()
}

fn run(args: impl IntoIterator<Item = OsString>) -> Outcome {
    let typed: Vec<_> = args.into_iter().collect();
    let (mut args, mut matches) = match parse(&typed) {
        Ok(parsed) => parsed,
        Err(stop) => return usage(&stop, &typed),
    };
    let mut console = Console::new(&args.global);
    let mut note = None;
    match run::repeating(&typed, &args.command, &matches) {
        Ok(None) => {}
        Ok(Some((repeating, repeated))) => match parse(&repeating) {
            Ok(parsed) => {
                (args, matches) = parsed;
                note = Some(repeated);
            }
            Err(stop) => return usage(&stop, &repeating),
        },
        Err(failure) => {
            console.error(&failure);
            return Outcome::Error;
        }
    }
    let mut command = command();
    command.build();
    let config = modes::refuse_idle(&command, &matches).and_then(|()| Config::build(args));
    if let (Ok(_), Some(note)) = (&config, &note) {
        console.info(note);
    }
    let result = config.and_then(|config| execute(&config, &mut console));
    let result = result.and_then(|outcome| Ok(console.finish().map(|()| outcome)?));
    result.unwrap_or_else(|failure| {
        console.error(&failure);
        Outcome::Error
    })
}

/// Prints what clap has to say: help and the version are not errors. A usage error quotes what was
/// typed, so the arguments are parsed once more, with everything escaped that a terminal would obey.
fn usage(stop: &clap::Error, args: &[OsString]) -> Outcome {
    let shown = args.iter().map(|arg| printable(&arg.to_string_lossy()).into_owned());
    let escaped = if stop.use_stderr() { parse(shown).err() } else { None };
    // A closed pipe is not an error, and if anything else fails, there is nobody left to tell.
    let _ = escaped.as_ref().unwrap_or(stop).print();
    if stop.use_stderr() { Outcome::Error } else { Outcome::Done }
}

/// The tree of commands and flags.
pub fn command() -> clap::Command {
    modes::with_modes(Args::command())
}

/// The arguments, also as they were typed.
fn parse(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<(Args, ArgMatches), clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(args)?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if let args::Command::Check(check) = &mut args.command {
        check.can_spill = modes::suits(&command, &matches, modes::SPILL);
    }
    if let args::Command::Verify(verify) = &mut args.command {
        verify.can_go_by_pieces = modes::suits(&command, &matches, modes::PIECES);
    }
    Ok((args, matches))
}

fn execute(config: &Config, console: &mut Console) -> Result<Outcome, Failure> {
    // Before there is anything to leave behind.
    Interrupt::listen(console.quiet)?;
    if let Some(threads) = config.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global();
        pool.map_err(|error| Failure::new(format!("cannot start {threads} threads: {error}")))?;
    }
    commands::dispatch(&config.command, config.output, console)
}
