//! The modes of the commands, each with a command line that the flags are added to.

use crate::outcome::Repeatable;
use crate::values::Trial;

/// A way in which a command works.
#[derive(Debug)]
pub(crate) struct Mode {
    /// The command and what is special.
    pub(crate) name: &'static str,
    pub(crate) command: &'static [&'static str],
    /// Arguments without which it would be another mode, or could not be repeated. Words in capitals
    /// are replaced by the values of a trial.
    base: &'static [&'static str],
    pub(crate) repeatable: Repeatable,
}

const CHECK: &[&str] = &["check"];
const RUN: &[&str] = &["run"];
const GEN: &[&str] = &["gen", "history"];

const fn mode(
    name: &'static str,
    command: &'static [&'static str],
    base: &'static [&'static str],
) -> Mode {
    Mode { name, command, base, repeatable: Repeatable::Everything }
}

/// A mode in which threads take turns.
const fn threaded(
    name: &'static str,
    command: &'static [&'static str],
    base: &'static [&'static str],
) -> Mode {
    Mode { name, command, base, repeatable: Repeatable::Words }
}

/// A mode that draws how much it does from the time that it takes.
const fn chancy(
    name: &'static str,
    command: &'static [&'static str],
    base: &'static [&'static str],
) -> Mode {
    Mode { name, command, base, repeatable: Repeatable::Shape }
}

/// A store in which one read in a hundred is wrong, however threads take turns.
pub(crate) const WRONG: &str = "sim:rc?anomaly=thin-air-read";

pub(crate) const MODES: &[Mode] = &[
    mode("check levels", CHECK, &["--level", "LEVEL", "HISTORY"]),
    mode("check open", CHECK, &["HISTORY"]),
    mode("check patterns", CHECK, &["--pattern", "all", "HISTORY"]),
    mode("check follow", CHECK, &["--follow", "--until-idle", "0s", "--level", "LEVEL", "HISTORY"]),
    mode("check spill", CHECK, &["--spill", ".", "--level", "LEVEL", "HISTORY"]),
    mode("check memory", CHECK, &["--memory", "1B", "--level", "LEVEL", "HISTORY"]),
    mode("check join", CHECK, &["--level", "LEVEL", "--join", "HISTORY"]),
    mode(
        "check promised",
        CHECK,
        &["--level", "LEVEL", "--serialization-order", "SERIAL", "HISTORY"],
    ),
    mode("run mini", RUN, &["--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"]),
    mode(
        "run general",
        RUN,
        &["--workload", "general", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run append",
        RUN,
        &["--workload", "append", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run lwt",
        RUN,
        &["--workload", "lwt", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run predicate",
        RUN,
        &[
            "--workload",
            "predicate",
            "--sessions",
            "1",
            "--txns",
            "40",
            "--seed",
            "7",
            "--out",
            "o",
        ],
    ),
    mode(
        "run application",
        RUN,
        &["--workload", "twitter", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run sql",
        RUN,
        &["--workload", "sql", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    threaded(
        "run aim",
        RUN,
        &["--aim", "lost-update", "--sessions", "2", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run host",
        RUN,
        &["--host", "1/1", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    mode(
        "run repeat",
        RUN,
        &["--repeat", "2", "--sessions", "1", "--txns", "40", "--seed", "7", "--out", "o"],
    ),
    chancy("run hunt", RUN, &["--hunt", "60s", "--db", WRONG, "--seed", "7", "--out", "o"]),
    chancy(
        "run crash",
        RUN,
        &["--hunt", "100ms", "--crash", "--db", "sqlite:store.db", "--seed", "7", "--out", "o"],
    ),
    mode("probe", &["probe"], &["--script", "two.probe"]),
    mode("gen history", GEN, &["--txns", "40"]),
    mode("gen history general", GEN, &["--workload", "general", "--txns", "40"]),
    mode("gen history append", GEN, &["--workload", "append", "--txns", "40"]),
    mode("gen history lwt", GEN, &["--workload", "lwt", "--txns", "40"]),
    mode("gen history predicate", GEN, &["--workload", "predicate", "--txns", "40"]),
    mode("gen history application", GEN, &["--workload", "twitter", "--txns", "40"]),
    mode("convert", &["convert"], &["--to", "jsonl", "HISTORY", "TARGET"]),
    mode("verify", &["verify"], &["HISTORY", "PROOF"]),
    mode(
        "verify promised",
        &["verify"],
        &["--serialization-order", "serial", "promised.jsonl", "promised.proof"],
    ),
    mode("stats", &["stats"], &["HISTORY"]),
    mode("show", &["show"], &["HISTORY", "T1"]),
    mode("shrink", &["shrink"], &["HISTORY"]),
    mode("shrink sql", &["shrink"], &["sql"]),
    mode("explain", &["explain"], &["lost-update"]),
    mode("levels", &["levels"], &[]),
    mode("completions", &["completions"], &["bash"]),
    mode("man", &["man"], &[]),
];

impl Mode {
    /// The command line with a flag, which replaces the one of that name in the base.
    pub(crate) fn arguments<'a>(&self, trial: &'a Trial, given: &[&'a str]) -> Vec<&'a str> {
        let replaced = |flag: &str| given.contains(&flag) || trial.with.contains(&flag);
        let mut arguments: Vec<&str> = self.command.to_vec();
        arguments.extend(trial.with);
        arguments.extend(given);
        let mut base = self.base.iter().peekable();
        while let Some(argument) = base.next() {
            if argument.starts_with("--") && replaced(argument) {
                // The value goes with it.
                base.next_if(|next| !next.starts_with("--"));
                continue;
            }
            arguments.push(match *argument {
                "HISTORY" => trial.history,
                "LEVEL" => trial.level,
                "SERIAL" => trial.serial,
                "PROOF" => trial.proof,
                "TARGET" => trial.target,
                argument => argument,
            });
        }
        arguments
    }

    /// Its name without that of the command.
    pub(crate) fn short(&self) -> &'static str {
        match self.name.rsplit_once(' ') {
            Some((command, rest)) if command == self.command.join(" ") => rest,
            _ => self.command[self.command.len() - 1],
        }
    }
}
