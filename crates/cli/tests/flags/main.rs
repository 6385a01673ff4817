//! A flag that is given is honoured, or refused with exit code 2 and a hint.
//!
//! The test walks the tree of commands that clap has, and gives every flag to every command in each of
//! its modes. What the command prints, the files it writes or the database it leaves must differ from
//! those of the same command without the flag, unless the flag is refused. The values to give are in
//! `values`, the modes in `modes`. A flag without a row in the table of values fails the test.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod modes;
mod outcome;
mod scene;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use modes::{MODES, Mode};
use scene::Scene;
use values::{Effect, FORMS, Trial, trials};

/// Result of giving a flag to a command in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Honoured,
    /// It has no effect that a test could show; the row says why.
    Explained,
    Refused,
}

/// Fewer comparisons than this, and something was skipped.
const LEAST_COMPARED: usize = 700;
const LEAST_REFUSED: usize = 380;

#[test]
fn a_flag_that_is_given_is_honoured_or_refused() {
    let scene = Scene::new();
    let (mut answers, mut ignored) = (BTreeMap::new(), Vec::new());
    let mut commands = BTreeSet::new();
    for mode in MODES {
        let flags = flags(mode.command);
        assert!(!flags.is_empty(), "{mode:?}: there is no such command");
        commands.insert(mode.command.join(" "));
        for flag in flags {
            match answer(&scene, mode, &flag) {
                Ok(answer) => _ = answers.insert((flag, mode.name), answer),
                Err(why) => ignored.push(format!("{} {flag}: {why}", mode.name)),
            }
        }
    }
    assert_eq!(commands, all_commands(), "each command has a mode");
    assert!(ignored.is_empty(), "{} flags are ignored:\n{}", ignored.len(), ignored.join("\n"));
    let count = |wanted| answers.values().filter(|answer| **answer == wanted).count();
    let (honoured, refused) = (count(Answer::Honoured), count(Answer::Refused));
    println!("{honoured} honoured, {refused} refused, {} explained", count(Answer::Explained));
    assert!(honoured >= LEAST_COMPARED && refused >= LEAST_REFUSED, "{honoured}, {refused}");
    insta::assert_snapshot!(table(&answers));
}

#[test]
fn a_form_that_a_command_does_not_have_is_refused() {
    let scene = Scene::new();
    for mode in MODES {
        for trial in &FORMS {
            if let Err(why) = tried(&scene, mode, "--output", trial) {
                panic!("{}: {why}", mode.name);
            }
        }
    }
}

/// Gives a flag to a command. The error describes how the flag was ignored.
fn answer(scene: &Scene, mode: &Mode, flag: &str) -> Result<Answer, String> {
    let all = trials(mode, flag);
    if all.is_empty() {
        return Err("there is no row for it in the table of values".to_owned());
    }
    let mut why = Vec::new();
    for trial in all {
        match tried(scene, mode, flag, trial) {
            Ok(answer) => return Ok(answer),
            Err(one) => why.push(one),
        }
    }
    Err(why.join("; "))
}

fn tried(scene: &Scene, mode: &Mode, flag: &str, trial: &Trial) -> Result<Answer, String> {
    let (plain, given) = (mode.arguments(trial, &[]), mode.arguments(trial, trial.given));
    let command_line = || given.join(" ");
    let repeatable = trial.repeatable.unwrap_or(mode.repeatable);
    if let Effect::Threads(least) = trial.effect {
        let outcome = scene.run(&given, repeatable);
        return match outcome.refuses(flag) {
            true => Ok(Answer::Refused),
            false if scene.starts_threads(&given, least) => Ok(Answer::Honoured),
            false => Err(format!("`{}` starts fewer than {least} threads", command_line())),
        };
    }
    let outcome = scene.run(&given, repeatable);
    // What the flag requires may be what does not exist here.
    if outcome.refuses(flag) || outcome.is_refused() {
        return Ok(Answer::Refused);
    }
    let has_effect = match trial.effect {
        Effect::Reason(_) => return Ok(Answer::Explained),
        Effect::Threads(_) => false,
        Effect::Differs => {
            let plain = scene.base(&plain, repeatable)?;
            // An error shows nothing, unless it is the error that the flag avoids or leads to.
            outcome != plain && (outcome.code != 2 || plain.code == 2)
        }
        Effect::Fails(message) => outcome.code == 2 && outcome.says(message),
        Effect::Says(text) => outcome.says(text),
        Effect::AtLeast(field, least) => outcome.number(field).is_some_and(|n| n >= least),
        Effect::AtMost(field, most) => outcome.number(field).is_some_and(|n| n <= most),
        Effect::Is(field, value) => outcome.number(field) == Some(value),
    };
    match has_effect {
        true => Ok(Answer::Honoured),
        false => Err(format!("`{}` is as without it (code {})", command_line(), outcome.code)),
    }
}

/// The flags of a command, hidden ones too, as they are typed.
fn flags(path: &[&str]) -> Vec<String> {
    let mut command = isolario_cli::command();
    command.build();
    let mut command = &command;
    for name in path {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => return Vec::new(),
        }
    }
    let flags = command.get_arguments().filter(|arg| !arg.is_positional());
    let typed = flags.map(|arg| match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => format!("-{}", short.unwrap()),
    });
    typed.filter(|flag| flag != "--help" && flag != "--version").collect()
}

/// The commands that do something, by their paths.
fn all_commands() -> BTreeSet<String> {
    let mut root = isolario_cli::command();
    root.build();
    let mut found = BTreeSet::new();
    let mut left: Vec<(String, &clap::Command)> =
        root.get_subcommands().map(|command| (command.get_name().to_owned(), command)).collect();
    while let Some((path, command)) = left.pop() {
        if !command.has_subcommands() {
            found.insert(path.clone());
        }
        let below = command.get_subcommands();
        left.extend(below.map(|command| (format!("{path} {}", command.get_name()), command)));
    }
    found
}

/// For each flag of a command, the modes that honour it.
fn table(answers: &BTreeMap<(String, &'static str), Answer>) -> String {
    let mut table = String::new();
    let mut commands: Vec<String> = MODES.iter().map(|mode| mode.command.join(" ")).collect();
    commands.dedup();
    for command in commands {
        writeln!(table, "{command}").unwrap();
        let modes = || MODES.iter().filter(|mode| mode.command.join(" ") == command);
        let name = modes().next().unwrap().name;
        for (flag, _) in answers.keys().filter(|(_, mode)| *mode == name) {
            let with = |wanted| {
                let is = |mode: &&Mode| answers.get(&(flag.clone(), mode.name)) == Some(&wanted);
                let names = modes().filter(is).map(Mode::short);
                names.collect::<Vec<_>>().join(" ")
            };
            let (honoured, explained) = (with(Answer::Honoured), with(Answer::Explained));
            let refused = with(Answer::Refused);
            write!(table, "  {flag}: {honoured}").unwrap();
            for (label, names) in [("unseen", explained), ("refused", refused)] {
                if !names.is_empty() {
                    write!(table, "; {label}: {names}").unwrap();
                }
            }
            table.push('\n');
        }
    }
    table
}
