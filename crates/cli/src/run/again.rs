//! `isolario run --again DIR`: repeats a run by the command in its record.

use std::ffi::OsString;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::args::Command;
use crate::failure::Failure;
use crate::run_directory::record_in;

const FLAG: &str = "--again";

/// The arguments that repeat a run: those that were typed, without the flag, and after them the flags of the recorded
/// command that were not typed. Nothing where no run is to be repeated.
pub(crate) fn repeating(
    typed: &[OsString],
    command: &Command,
    matches: &ArgMatches,
) -> Result<Option<Vec<OsString>>, Failure> {
    let (Command::Run(run), Some((_, given))) = (command, matches.subcommand()) else {
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
    let is_given = |flag: &str| {
        let mut ids = given.ids().map(clap::Id::as_str);
        let id = ids.find(|id| id.replace('_', "-") == flag);
        id.is_some_and(|id| given.value_source(id) == Some(ValueSource::CommandLine))
    };
    let recorded = recorded(directory)?;
    let mut is_left_out = false;
    for part in recorded {
        if let Some(flag) = part.strip_prefix("--") {
            is_left_out = is_given(flag);
        }
        if !is_left_out {
            arguments.push(part.into());
        }
    }
    Ok(Some(arguments))
}

/// The flags, each followed by its value, of the command in the record of a run.
fn recorded(directory: &Path) -> Result<Vec<String>, Failure> {
    let command = record_in(directory).map(|record| unquoted(&record.replay));
    match command.as_deref() {
        Some([program, run, flags @ ..]) if program == "isolario" && run == "run" => {
            Ok(flags.to_vec())
        }
        _ => Err(Failure::new(format!("{} is not the directory of a run", directory.display()))
            .with_hint("give a directory that `isolario run` has left, with its run.json")),
    }
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

    use super::unquoted;

    #[test]
    fn quoting_is_undone() {
        let all = ["isolario", "it's here", "a\\b", "", "--mix", "read:20,x:1"];
        let line: Vec<_> = all.iter().map(|part| shell_word(part)).collect();
        assert_eq!(unquoted(&line.join(" ")), all);
    }
}
