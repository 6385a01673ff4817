//! `isolario run --again DIR`: repeats a run by the command in its record.

use std::ffi::OsString;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use isolario::report::shell_word;

use crate::args::Command;
use crate::failure::Failure;
use crate::run_directory::{record_in, refuse_masked};

const FLAG: &str = "--again";

/// The arguments that repeat a run: those that were typed, without the flag, and after them the flags of the recorded
/// command that were not typed. With them goes a note that shows these. Nothing where no run is to be repeated.
pub(crate) fn repeating(
    typed: &[OsString],
    command: &Command,
    matches: &ArgMatches,
) -> Result<Option<(Vec<OsString>, String)>, Failure> {
    let (Command::Run(run), Some((name, given))) = (command, matches.subcommand()) else {
        return Ok(None);
    };
    let Some(directory) = &run.again else { return Ok(None) };
    let mut arguments = Vec::new();
    let mut typed = typed.iter();
    while let Some(argument) = typed.next() {
        if argument == FLAG {
            // Its value goes with it.
            typed.next();
        } else if !argument.to_string_lossy().starts_with(&format!("{FLAG}=")) {
            arguments.push(argument.clone());
        }
    }
    let all = crate::command();
    let Some(flags) = all.find_subcommand(name) else { return Ok(None) };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let recorded = not_given(flags, recorded(directory)?, is_given);
    refuse_masked(recorded.iter().filter_map(|flag| flag.strip_prefix("--db=")))?;
    // Some of them name programs that will be started, and the record may come from anybody.
    let repeated: Vec<_> = recorded.iter().map(|flag| shell_word(flag)).collect();
    let note = format!("repeats what {} has: {}", directory.display(), repeated.join(" "));
    arguments.extend(recorded.into_iter().map(OsString::from));
    Ok(Some((arguments, note)))
}

/// The recorded flags that were not given anew, each in one piece with its value, which may look like a flag.
fn not_given(
    flags: &clap::Command,
    recorded: Vec<String>,
    is_given: impl Fn(&str) -> bool,
) -> Vec<String> {
    let find = |name: &str| flags.get_arguments().find(|flag| flag.get_long() == Some(name));
    let (mut kept, mut parts) = (Vec::new(), recorded.into_iter());
    while let Some(part) = parts.next() {
        let flag = part.strip_prefix("--").and_then(find);
        let takes_value = flag.is_some_and(|flag| flag.get_action().takes_values());
        let value = if takes_value { parts.next() } else { None };
        if flag.is_some_and(|flag| is_given(flag.get_id().as_str())) {
            continue;
        }
        kept.push(match value {
            Some(value) => format!("{part}={value}"),
            None => part,
        });
    }
    kept
}

/// The flags, each followed by its value, of the command in the record of a run.
fn recorded(directory: &Path) -> Result<Vec<String>, Failure> {
    let record = record_in(directory);
    let command = record.as_ref().map(|record| unquoted(&record.replay));
    let flags = match command.as_deref() {
        Some([program, run, flags @ ..]) if program == "isolario" && run == "run" => flags.to_vec(),
        _ => {
            return Err(Failure::new(format!(
                "{} is not the directory of a run",
                directory.display()
            ))
            .with_hint("give a directory that `isolario run` has left, with its run.json"));
        }
    };
    let is_crash = record.is_some_and(|record| !record.outages.is_empty())
        && !flags.iter().any(|flag| flag == "--fault");
    if is_crash {
        let message = format!(
            "{} has a phase of a hunt that ended with a crash, which cannot be repeated by itself",
            directory.display()
        );
        return Err(Failure::new(message).with_hint("hunt again: --db URL --hunt D --crash"));
    }
    Ok(flags)
}

/// The words of a command line in which each was written by [`shell_word`](isolario::report::shell_word).
fn unquoted(line: &str) -> Vec<String> {
    let (mut parts, mut is_quoted) = (vec![String::new()], false);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, parts.last_mut()) {
            (' ', _) if !is_quoted => parts.push(String::new()),
            ('\'', _) => is_quoted = !is_quoted,
            ('\\', Some(part)) if !is_quoted => part.extend(characters.next()),
            (character, Some(part)) => part.push(character),
            (_, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use isolario::report::shell_word;

    use super::{not_given, unquoted};

    #[test]
    fn a_value_may_begin_with_two_dashes() {
        let all = crate::command();
        let recorded = "--fault kill --server --quick --whitebox --db --seed --seed 7";
        let kept = |given: &'static str| {
            let parts = recorded.split(' ').map(str::to_owned).collect();
            not_given(all.find_subcommand("run").unwrap(), parts, |id| id == given).join(" ")
        };
        let with =
            |server: &str, last: &str| format!("--fault=kill {server}--whitebox --db=--seed{last}");
        assert_eq!(kept(""), with("--server=--quick ", " --seed=7"));
        assert_eq!(kept("seed"), with("--server=--quick ", ""));
        assert_eq!(kept("server"), with("", " --seed=7"));
    }

    #[test]
    fn quoting_is_undone() {
        let all = ["isolario", "it's here", "a\\b", "", "--mix", "read:20,x:1"];
        let line: Vec<_> = all.iter().map(|part| shell_word(part)).collect();
        assert_eq!(unquoted(&line.join(" ")), all);
    }
}
