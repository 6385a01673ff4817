//! The values that flags are given, and what shows that they have an effect.

use crate::modes::{Mode, WRONG};

/// One way to give a flag.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The commands, or modes, that it is for; all where there are none.
    of: &'static [&'static str],
    /// The flag with its value.
    pub(crate) given: &'static [&'static str],
    /// What is given in both cases, with and without the flag.
    pub(crate) with: &'static [&'static str],
    pub(crate) history: &'static str,
    pub(crate) level: &'static str,
    pub(crate) effect: Effect,
}

/// What shows that a flag is honoured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The outcome differs from that without the flag.
    Differs,
    /// A number in the record of the run is at least this. It would not be without the flag.
    AtLeast(&'static str, f64),
    /// A number in the record of the run is this.
    Is(&'static str, f64),
    /// The process has at least this many threads.
    Threads(usize),
    /// Nothing that a test could rely on: it takes load, or time, or there is nothing to leave out.
    Reason(#[expect(dead_code, reason = "it is for those who read the table")] &'static str),
}

const fn given(given: &'static [&'static str]) -> Trial {
    Trial { of: &[], given, with: &[], history: "h.jsonl", level: "ser", effect: Effect::Differs }
}

impl Trial {
    const fn of(self, of: &'static [&'static str]) -> Trial {
        Trial { of, ..self }
    }

    const fn with(self, with: &'static [&'static str]) -> Trial {
        Trial { with, ..self }
    }

    const fn in_history(self, history: &'static str) -> Trial {
        Trial { history, ..self }
    }

    const fn at(self, level: &'static str) -> Trial {
        Trial { level, ..self }
    }

    const fn shows(self, effect: Effect) -> Trial {
        Trial { effect, ..self }
    }

    const fn because(self, reason: &'static str) -> Trial {
        Trial { effect: Effect::Reason(reason), ..self }
    }
}

/// The trials of a flag in a mode, in this order: the first one that shows an effect counts.
pub(crate) fn trials(mode: &Mode, flag: &str) -> Vec<&'static Trial> {
    let command = mode.command.join(" ");
    let is_for = |of: &&str| *of == command || *of == mode.name;
    let is_meant = |trial: &&Trial| {
        trial.given.first() == Some(&flag) && (trial.of.is_empty() || trial.of.iter().any(|of| is_for(&of)))
    };
    TRIALS.iter().filter(is_meant).collect()
}

const QUIET: &str = "the command prints nothing but its result";
const VERBOSE: &str = "there is no more to say about this";
const PLAIN: &str = "its result has no colours; error messages have";

const TRIALS: &[Trial] = &[
    // Flags of all commands.
    given(&["--threads", "200"]).shows(Effect::Threads(200)),
    given(&["--color", "always"]),
    given(&["--color", "always"]).because(PLAIN),
    given(&["--quiet"]),
    given(&["--quiet"]).because(QUIET),
    given(&["--verbose"]),
    given(&["--verbose"]).because(VERBOSE),
    given(&["--output", "json"]),
    given(&["--output", "json"]).of(&["gen history"]).with(&["-o", "g.iso"]),
    given(&["--json"]),
    given(&["--json"]).of(&["gen history"]).with(&["-o", "g.iso"]),
    // check
    given(&["--join", "fine.jsonl"]).of(&["check"]),
    given(&["--joined", "whole.jsonl"]).of(&["check join"]),
    given(&["--joined", "whole.jsonl"]).of(&["check"]).with(&["--join", "fine.jsonl"]),
    given(&["--follow", "--until-idle", "0s"]).of(&["check"]).in_history("fine.jsonl"),
    given(&["--until-idle", "0s"]).of(&["check"]),
    given(&["--spill", "."]).of(&["check"]).in_history("fine.jsonl"),
    given(&["--level", "cc"]).of(&["check"]),
    given(&["--pattern", "thin-air-read"]).of(&["check"]),
    given(&["--format", "text"]).of(&["check", "verify", "stats", "show"]),
    given(&["--bad-times", "unknown"]).of(&["check", "convert", "stats", "show"]).in_history("bad.jsonl"),
    given(&["--no-session-order"]).of(&["check"]).in_history("sessions.jsonl"),
    given(&["--clock-skew", "1ms"]).of(&["check"]).in_history("times.jsonl").at("sser"),
    given(&["--timeout", "0s"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--memory", "1B"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--max-anomalies", "0"]).of(&["check"]).at("rc,ser"),
    given(&["--allow-empty"]).of(&["check"]).in_history("empty.jsonl"),
    given(&["--proof", "new.proof"]).of(&["check", "shrink"]),
    given(&["--version-order", "order"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--trust-version-order"])
        .of(&["check"])
        .with(&["--version-order", "order"])
        .in_history("blind.jsonl"),
    given(&["--assume", "sequential-keys"]).of(&["check"]).in_history("blind.jsonl").at("ru"),
    given(&["--serialization-order", "serial"]).of(&["check"]).in_history("promised.jsonl"),
    given(&["--matches", "sqlite"]).of(&["check"]).in_history("matches.jsonl"),
    given(&["--no-minimize"]).of(&["check"]),
    given(&["--report", "r.html"]).of(&["check"]),
    given(&["--dot", "r.dot"]).of(&["check"]),
    given(&["--svg", "r.svg"]).of(&["check"]),
    given(&["--bug-report", "r.md"]).of(&["check"]),
    given(&["--junit", "r.xml"]).of(&["check"]),
    // run
    given(&["--db", "sqlite:other.db"]).of(&["run"]),
    given(&["--isolation", "chaos"]).of(&["run"]),
    given(&["--check", "rc"]).of(&["run"]),
    given(&["--whitebox"]).of(&["run"]),
    given(&["--shadow"]).of(&["run"]).with(&["--whitebox"]),
    given(&["--timeout", "0s"]).of(&["run"]),
    given(&["--out", "p"]).of(&["run"]),
    given(&["--max-anomalies", "0"]).of(&["run"]).with(&["--db", WRONG]),
    given(&["--shrink"]).of(&["run"]).with(&["--no-shrink", "--db", WRONG]),
    given(&["--no-shrink"]).of(&["run"]).with(&["--db", WRONG]),
    given(&["--workload", "append"]).of(&["run", "gen history"]),
    given(&["--preset", "general-rh"]).of(&["run", "gen history"]),
    given(&["--aim", "write-skew"]).of(&["run"]).with(&["--sessions", "4"]),
    given(&["--sessions", "3"]).of(&["run", "gen history"]),
    given(&["--txns", "17"]).of(&["run", "gen history"]),
    given(&["--duration", "1us"]).of(&["run"]),
    given(&["--ops", "3"]).of(&["run", "gen history"]),
    given(&["--keys", "3"]).of(&["run", "gen history"]),
    given(&["--absent-ratio", "0"]).of(&["run"]),
    given(&["--read-ratio", "0.9"]).of(&["run", "gen history"]),
    given(&["--rmw-ratio", "0.4"]).of(&["run", "gen history"]),
    given(&["--scale", "2"]).of(&["run", "gen history"]),
    given(&["--sql-tables"]).of(&["run"]),
    given(&["--distribution", "zipf:1.5"]).of(&["run", "gen history"]),
    given(&["--list-length", "2"]).of(&["run"]),
    given(&["--mix", "read:1"]).of(&["run", "gen history"]),
    given(&["--seed", "8"]).of(&["run", "gen history"]),
    given(&["--rate", "400"]).of(&["run"]).shows(Effect::AtLeast("run_ms", 90.0)),
    given(&["--think", "5ms"]).of(&["run"]).shows(Effect::AtLeast("run_ms", 40.0)),
    given(&["--value-size", "100000"]).of(&["run"]).with(&["--db", "sqlite:store.db"]),
    given(&["--max-retries", "0"])
        .of(&["run"])
        .with(&["--db", "sim:ser", "--keys", "2", "--sessions", "8", "--txns", "300"])
        .shows(Effect::Is("counts.retries", 0.0)),
    given(&["--statement-timeout", "1ms"]).of(&["run"]),
    given(&["--host", "1/1"]).of(&["run"]),
    given(&["--stop-on-violation"]).of(&["run"]).with(&["--db", WRONG, "--txns", "20000"]),
    given(&["--fault", "partition"]).of(&["run"]),
    given(&["--server", "true"]).of(&["run"]).with(&["--fault", "kill"]),
    given(&["--server-pid", "pid"]).of(&["run"]).with(&["--fault", "kill"]),
    given(&["--disk", "."]).of(&["run"]),
    given(&["--repeat", "2"]).of(&["run"]),
    given(&["--hunt", "100ms"]).of(&["run"]),
    given(&["--crash"]).of(&["run"]).with(&["--hunt", "100ms", "--db", "sqlite:store.db"]),
    given(&["--to-be-killed", "5"]).of(&["run"]),
    given(&["--round", "5"]).of(&["run"]),
    given(&["--tables", "1"]).of(&["run"]),
    given(&["--columns", "1"]).of(&["run"]),
    given(&["--rows", "1"]).of(&["run"]),
    given(&["--depth", "0"]).of(&["run"]),
    given(&["--templates", "templates"]).of(&["run"]),
    given(&["--predicates"]).of(&["run"]),
    given(&["--keep"]).of(&["run"]).with(&["--db", "sqlite:kept.db"]),
    // probe
    given(&["--db", "sqlite:other.db"]).of(&["probe"]),
    given(&["--isolation", "chaos"]).of(&["probe"]),
    given(&["--script", "one.probe"]).of(&["probe"]),
    given(&["--trace", "two"]).of(&["probe"]),
    given(&["--report", "r.html"]).of(&["probe"]),
    given(&["--statement-timeout", "1ms"]).of(&["probe"]),
    // gen
    given(&["--level", "rc"]).of(&["gen history"]),
    given(&["--anomaly", "LostUpdate"]).of(&["gen history"]),
    given(&["--anomaly", "phantom"]).of(&["gen history predicate"]),
    given(&["--defect", "stale-scan"]).of(&["gen history"]),
    given(&["--concurrency", "0"]).of(&["gen history"]),
    given(&["--abort-ratio", "0.5"]).of(&["gen history"]),
    given(&["--unknown-ratio", "0.5"]).of(&["gen history"]),
    given(&["--duplicate-ratio", "0.5"]).of(&["gen history"]),
    given(&["--format", "text"]).of(&["gen history"]),
    given(&["-o", "g.iso"]).of(&["gen history"]),
    given(&["--version-order-out", "orders"]).of(&["gen history"]),
    given(&["--version-order-ratio", "0.5"])
        .of(&["gen history"])
        .with(&["--version-order-out", "orders"]),
    given(&["--serialization-order-out", "orders"]).of(&["gen history"]),
    given(&["--force"]).of(&["gen history"]).with(&["-o", "fine.jsonl"]),
    // convert, verify, shrink, man
    given(&["--from", "text"]).of(&["convert"]).with(&["--to", "jsonl"]),
    given(&["--to", "text"]).of(&["convert"]),
    given(&["--bad-times", "unknown"]).of(&["convert"]).with(&["--to", "jsonl"]).in_history("bad.jsonl"),
    given(&["--force"]).of(&["convert"]),
    given(&["--level", "rc"]).of(&["shrink"]),
    given(&["--anomaly", "AbortedRead"]).of(&["shrink"]),
    given(&["--format", "text"]).of(&["shrink"]),
    given(&["--bad-times", "unknown"]).of(&["shrink"]).in_history("bad.jsonl"),
    given(&["--no-session-order"]).of(&["shrink"]).in_history("sessions.jsonl"),
    given(&["--clock-skew", "1ms"]).of(&["shrink"]).in_history("times.jsonl"),
    given(&["--timeout", "0s"]).of(&["shrink"]),
    given(&["--db", "sqlite:other.db"]).of(&["shrink"]),
    given(&["--to", "jsonl"]).of(&["shrink"]),
    given(&["-o", "small.txt"]).of(&["shrink"]),
    given(&["--force"]).of(&["shrink"]).with(&["--to", "jsonl", "-o", "fine.jsonl"]),
    given(&["--dir", "pages"]).of(&["man"]),
];
