//! The values that flags are given, and the evidence of their effect.

use crate::modes::{Mode, WRONG};
use crate::outcome::Repeatable;

/// One way to give a flag.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The commands or modes of the trial; empty for all.
    of: &'static [&'static str],
    /// The flag with its value.
    pub(crate) given: &'static [&'static str],
    /// Further arguments, given with and without the flag.
    pub(crate) with: &'static [&'static str],
    pub(crate) history: &'static str,
    pub(crate) level: &'static str,
    pub(crate) serial: &'static str,
    pub(crate) proof: &'static str,
    pub(crate) target: &'static str,
    /// Overrides the repeatable part of the mode.
    pub(crate) repeatable: Option<Repeatable>,
    pub(crate) effect: Effect,
}

/// Evidence that a flag is honoured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The outcome differs from that without the flag.
    Differs,
    /// A number in the record of the run is at least this. It would not be without the flag.
    AtLeast(&'static str, f64),
    /// A number in the record of the run is at most this. It would not be without the flag.
    AtMost(&'static str, f64),
    /// A number in the record of the run is this.
    Is(&'static str, f64),
    /// The command fails with a message about the value: nothing else can be repeated.
    Fails(&'static str),
    /// The command prints this, which it would not without the flag.
    Says(&'static str),
    /// The process has at least this many threads.
    Threads(usize),
    /// Nothing that a test could rely on: it takes load, or time, or there is nothing to leave out.
    Reason(
        #[expect(dead_code, reason = "it explains the row to a reader of the table")] &'static str,
    ),
}

const fn given(given: &'static [&'static str]) -> Trial {
    Trial {
        of: &[],
        given,
        with: &[],
        history: "h.jsonl",
        level: "ser",
        serial: "serial",
        proof: "h.proof",
        target: "converted",
        repeatable: None,
        effect: Effect::Differs,
    }
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

    const fn in_order(self, serial: &'static str) -> Trial {
        Trial { serial, ..self }
    }

    const fn by(self, proof: &'static str) -> Trial {
        Trial { proof, ..self }
    }

    const fn onto(self, target: &'static str) -> Trial {
        Trial { target, ..self }
    }

    const fn only(self, repeatable: Repeatable) -> Trial {
        Trial { repeatable: Some(repeatable), ..self }
    }

    const fn fails(self, message: &'static str) -> Trial {
        self.shows(Effect::Fails(message))
    }

    const fn says(self, text: &'static str) -> Trial {
        self.shows(Effect::Says(text))
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
        trial.given.first() == Some(&flag) && (trial.of.is_empty() || trial.of.iter().any(is_for))
    };
    TRIALS.iter().filter(is_meant).collect()
}

const QUIET: &str = "the command prints nothing but its result";
const VERBOSE: &str = "there is no more to say about this";
const OWN: &str = "it is the flag of this mode: the other modes of the command show what it does";
const SEARCH: &str = "histories of one session are decided without search";
const SLOW: &str = "it takes a database that does not answer";
const SOUND: &str =
    "it takes a database that breaks its claim with random SQL, and SQLite does not";
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
    given(&["--join", "fine.jsonl"]).of(&CHECKS_OF_FILES).fails("cannot be used with"),
    given(&["--joined", "whole.jsonl"]).of(&["check join"]),
    given(&["--joined", "whole.jsonl"]).of(&["check"]),
    given(&["--follow", "--until-idle", "0s"]).of(&["check follow"]).because(OWN),
    given(&["--follow", "--until-idle", "0s"]).of(&["check"]).in_history("fine.jsonl"),
    given(&["--follow"]).of(&["check open"]).fails("--follow needs --level"),
    given(&["--until-idle", "0s"])
        .of(&["check follow"])
        .because("without it, following does not end"),
    given(&["--until-idle", "0s"]).of(&["check"]),
    given(&["--spill", "templates"]).of(&["check spill"]).because(OWN),
    given(&["--spill", "."])
        .of(&["check"])
        .with(&["--verbose"])
        .in_history("fine.jsonl")
        .says("read from front to back"),
    given(&["--spill", "."]).of(&["check open"]).fails("--spill needs --level"),
    given(&["--level", "cc"]).of(&["check"]),
    given(&["--level", "si"]).of(&["check promised"]).in_history("promised.jsonl"),
    given(&["--pattern", "thin-air-read"]).of(&["check"]),
    given(&["--format", "text"])
        .of(&["check", "verify", "stats", "show", "shrink"])
        .fails("h.jsonl:1"),
    given(&["--format", "text"])
        .of(&["check follow", "check spill"])
        .fails("cannot be read incrementally"),
    given(&["--format", "text"]).of(&["verify promised"]).fails("promised.jsonl:1"),
    given(&["--bad-times", "unknown"]).of(&["check", "stats", "show"]).in_history("bad.jsonl"),
    given(&["--no-session-order"]).of(&["check"]).in_history("sessions.jsonl").in_order("reversed"),
    given(&["--clock-skew", "1ms"])
        .of(&["check"])
        .in_history("times.jsonl")
        .in_order("reversed")
        .at("sser"),
    given(&["--timeout", "0s"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--memory", "1B"]).of(&["check memory"]).because(OWN),
    given(&["--memory", "1B"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--max-anomalies", "0"]).of(&["check"]).at("rc,ser"),
    given(&["--max-anomalies", "0"]).of(&["check promised"]).in_history("promised.jsonl"),
    given(&["--allow-empty"]).of(&["check"]).in_history("empty.jsonl").in_order("none"),
    given(&["--proof", "new.proof"]).of(&["check", "shrink"]).in_history("fine.jsonl"),
    given(&["--proof", "new.proof"]).of(&["check join"]).with(&["--joined", "whole.jsonl"]),
    given(&["--proof", "new.proof"]).of(&["shrink"]),
    given(&["--version-order", "strange"]).of(&["check"]).in_history("blind.jsonl"),
    given(&["--trust-version-order"])
        .of(&["check"])
        .with(&["--version-order", "order"])
        .in_history("blind.jsonl"),
    given(&["--assume", "sequential-keys"]).of(&["check"]).in_history("blind.jsonl").at("ru"),
    given(&["--serialization-order", "reversed"])
        .of(&["check promised"])
        .in_history("promised.jsonl"),
    given(&["--serialization-order", "serial"]).of(&["check"]).in_history("promised.jsonl"),
    given(&["--serialization-order", "serial"])
        .of(&["check join"])
        .in_history("fine.jsonl")
        .fails("in the promised order"),
    given(&["--matches", "sqlite"]).of(&["check"]).in_history("matches.jsonl"),
    given(&["--no-minimize"]).of(&["check"]),
    given(&["--no-minimize"]).of(&["check"]).with(&["--bug-report", "r.md"]),
    given(&["--report", "r.html"]).of(&["check"]),
    given(&["--dot", "r.dot"]).of(&["check"]),
    given(&["--svg", "r.svg"]).of(&["check"]),
    given(&["--bug-report", "r.md"]).of(&["check"]),
    given(&["--junit", "r.xml"]).of(&["check"]),
    // run
    given(&["--db", "sim:ser?anomaly=LostUpdate"]).of(&["run hunt"]),
    given(&["--db", "sqlite:other.db"]).of(&["run"]),
    given(&["--isolation", "chaos"]).of(&["run"]).fails("chaos"),
    given(&["--check", "prefix"]).of(&["run predicate"]),
    given(&["--check", "rc"]).of(&["run"]),
    given(&["--check", "chaos"]).of(&["run crash", "run hunt"]).fails("there is no level `chaos`"),
    given(&["--whitebox"]).of(&["run"]),
    given(&["--whitebox"]).of(&["run hunt"]).fails("own log"),
    given(&["--whitebox"]).of(&["run lwt"]).says("own log"),
    given(&["--shadow"])
        .of(&["run"])
        .with(&["--whitebox"])
        .fails("a shadow transaction takes PostgreSQL"),
    given(&["--shadow"]).of(&["run hunt"]).with(&["--whitebox"]).because("it takes PostgreSQL"),
    given(&["--timeout", "0s"]).of(&["run"]).because(SEARCH),
    given(&["--out", "p"]).of(&["run"]),
    given(&["--out", "p"])
        .of(&["run crash"])
        .because("a hunt that finds nothing leaves nothing there"),
    given(&["--max-anomalies", "0"])
        .of(&["run"])
        .with(&["--db", WRONG])
        .says("--max-anomalies N shows more"),
    given(&["--max-anomalies", "0"])
        .of(&UNBROKEN)
        .because("it takes a store that breaks its claim"),
    given(&["--shrink"]).of(&["run"]).with(&["--no-shrink", "--db", WRONG]).only(Repeatable::Shape),
    given(&["--shrink"]).of(&["run sql"]).because(SOUND),
    given(&["--shrink"]).of(&UNBROKEN).because("it takes a store that breaks its claim"),
    given(&["--no-shrink"]).of(&["run"]).with(&["--db", WRONG]).only(Repeatable::Shape),
    given(&["--no-shrink"]).of(&["run sql"]).because(SOUND),
    given(&["--no-shrink"]).of(&UNBROKEN).because("it takes a store that breaks its claim"),
    given(&["--workload", "append"]).of(&["run", "gen history"]),
    given(&["--workload", "general"]).of(&["run append", "gen history append"]),
    given(&["--preset", "general-rh"]).of(&["run", "gen history"]),
    given(&["--preset", "emme-ranges"]).of(&["run predicate", "gen history predicate"]),
    given(&["--aim", "WriteSkew"]).of(&["run sql"]),
    given(&["--aim", "write-skew"]).of(&["run aim"]).says("aim write-skew"),
    given(&["--aim", "write-skew"]).of(&["run"]).with(&["--sessions", "4"]).only(Repeatable::Shape),
    given(&["--aim", "write-skew"])
        .of(&["run repeat"])
        .with(&["--sessions", "4"])
        .says("aim write-skew"),
    given(&["--sessions", "3"]).of(&["run aim"]).says("3 sessions"),
    given(&["--sessions", "3"]).of(&["run", "gen history"]),
    given(&["--txns", "17"]).of(&["run", "gen history"]),
    given(&["--txns", "200"]).of(&["run sql"]),
    given(&["--txns", "200"]).of(&["run aim"]).shows(Effect::AtLeast("counts.committed", 60.0)),
    given(&["--duration", "30ms"])
        .of(&["run"])
        .with(&["--txns", "50000000"])
        .shows(Effect::AtMost("counts.committed", 49_999_999.0)),
    given(&["--ops", "3"]).of(&["run", "gen history"]),
    given(&["--keys", "3"]).of(&["run", "gen history"]),
    given(&["--absent-ratio", "0"]).of(&["run"]),
    given(&["--absent-ratio", "0"]).of(&["run aim"]).only(Repeatable::Shape),
    given(&["--slow-ratio", "0"]).of(&["run"]),
    given(&["--read-ratio", "0.9"]).of(&["run", "gen history"]),
    given(&["--rmw-ratio", "0.4"]).of(&["run", "gen history"]),
    given(&["--scale", "2"]).of(&["run", "gen history"]),
    given(&["--sql-tables"]).of(&["run"]),
    given(&["--distribution", "zipf:1.5"]).of(&["run", "gen history"]),
    given(&["--list-length", "2"]).of(&["run"]),
    given(&["--mix", "read:1"]).of(&["run", "gen history"]),
    given(&["--mix", "select:1"]).of(&["run sql"]),
    given(&["--again", "ran"]).of(&["run"]),
    given(&["--seed", "8"]).of(&["run", "gen history"]),
    given(&["--seed", "8"]).of(&["run crash"]).with(&["--json"]),
    given(&["--seed", "8"]).of(&["run aim"]).only(Repeatable::Shape),
    given(&["--rate", "400"]).of(&["run hunt"]).shows(Effect::Is("workload.rate", 400.0)),
    given(&["--rate", "400"]).of(&["run"]).shows(Effect::AtLeast("run_ms", 90.0)),
    given(&["--think", "20ms"]).of(&["run"]).shows(Effect::AtLeast("run_ms", 40.0)),
    given(&["--value-size", "100"]).of(&["run"]).fails("--value-size"),
    given(&["--max-retries", "0"]).of(&["run hunt"]).shows(Effect::Is("workload.max_retries", 0.0)),
    given(&["--max-retries", "0"]).of(&["run"]).shows(Effect::Is("workload.max_retries", 0.0)),
    given(&["--max-retries", "0"]).of(&["run crash"]).because("as in any phase of a hunt"),
    given(&["--statement-timeout", "1ms"]).of(&["run", "probe"]).because(SLOW),
    given(&["--host", "1/1"]).of(&["run host"]).because(OWN),
    given(&["--host", "1/1"]).of(&["run"]),
    given(&["--stop-on-violation"])
        .of(&["run predicate", "run append", "run lwt"])
        .because("the simulated store has no such defect for this workload"),
    given(&["--stop-on-violation"]).of(&["run sql"]).because(SOUND),
    given(&["--stop-on-violation"])
        .of(&["run"])
        .with(&["--db", WRONG, "--txns", "60000", "--no-shrink"])
        .says("stopped at a violation"),
    given(&["--fault", "partition"])
        .of(&["run"])
        .fails("does not give the host and port of a server"),
    given(&["--server", "true"])
        .of(&["run"])
        .with(&["--fault", "kill"])
        .fails("the fault kill needs a server, but sqlite"),
    given(&["--server-pid", "pid"])
        .of(&["run"])
        .with(&["--fault", "kill"])
        .fails("the fault kill needs a server, but sqlite"),
    given(&["--disk", "."])
        .of(&["run crash"])
        .because("SQLite keeps what it committed, without power too"),
    given(&["--disk", "."]).of(&["run"]).fails("--disk only applies to"),
    given(&["--repeat", "3"]).of(&["run"]),
    given(&["--hunt", "50ms"])
        .of(&["run hunt"])
        .with(&["--db", "sim:ser"])
        .says("Nothing was found after"),
    given(&["--hunt", "100ms"]).of(&["run crash"]).because(OWN),
    given(&["--hunt", "100ms"]).of(&["run"]),
    given(&["--crash"]).of(&["run crash"]).because(OWN),
    given(&["--crash"]).of(&["run hunt"]).fails("no way to resume the run of a killed process"),
    given(&["--crash"]).of(&["run"]),
    given(&["--to-be-killed", "5"]).of(&["run"]),
    given(&["--to-be-killed", "5"]).of(&["run aim"]).because("only its keys have other names"),
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
    given(&["--isolation", "chaos"]).of(&["probe"]).fails("chaos"),
    given(&["--script", "one.probe"]).of(&["probe"]).fails("one.probe"),
    given(&["--trace", "two"]).of(&["probe"]),
    given(&["--report", "r.html"]).of(&["probe"]),
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
    given(&["--version-order-ratio", "0.5"]).of(&["gen history"]).with(&[
        "--version-order-out",
        "orders",
        "--txns",
        "400",
    ]),
    given(&["--serialization-order-out", "orders"]).of(&["gen history"]),
    given(&["--force"]).of(&["gen history"]).with(&["-o", "fine.jsonl"]),
    // verify
    given(&["--bad-times", "unknown"]).of(&["verify"]).in_history("bad.jsonl").by("bad.proof"),
    given(&["--bad-times", "unknown"])
        .of(&["verify promised"])
        .because("its history has no bad times"),
    given(&["--version-order", "strange"]).of(&["verify"]),
    given(&["--trust-version-order"])
        .of(&["verify"])
        .with(&["--version-order", "order"])
        .in_history("blind.jsonl")
        .by("trusted.proof"),
    given(&["--assume", "sequential-keys"])
        .of(&["verify"])
        .in_history("blind.jsonl")
        .by("assumed.proof"),
    given(&["--serialization-order", "reversed"]).of(&["verify promised"]),
    given(&["--serialization-order", "serial"])
        .of(&["verify"])
        .in_history("promised.jsonl")
        .by("promised.proof"),
    given(&["--matches", "sqlite"]).of(&["verify"]).in_history("matches.jsonl").by("matches.proof"),
    given(&["--matches", "sqlite"])
        .of(&["verify promised"])
        .because("its history has no predicates"),
    given(&["--memory", "1B"]).of(&["verify"]).in_history("fine.jsonl").by("spilled.proof"),
    given(&["--memory", "1B"])
        .of(&["verify"])
        .because("the history is in order, so that little is kept"),
    // convert, shrink, man
    given(&["--from", "text"]).of(&["convert"]).fails("h.jsonl:1"),
    given(&["--to", "text"]).of(&["convert"]),
    given(&["--bad-times", "unknown"]).of(&["convert"]).in_history("bad.jsonl"),
    given(&["--force"]).of(&["convert"]).onto("fine.jsonl"),
    given(&["--level", "rc"]).of(&["shrink"]),
    given(&["--anomaly", "chaos"]).of(&["shrink sql"]).fails("there is no anomaly `chaos`"),
    given(&["--anomaly", "lost-update"]).of(&["shrink"]),
    given(&["--bad-times", "unknown"]).of(&["shrink"]).in_history("bad.jsonl"),
    given(&["--no-session-order"])
        .of(&["shrink"])
        .in_history("sessions.jsonl")
        .fails("nothing to shrink"),
    given(&["--clock-skew", "1ms"])
        .of(&["shrink"])
        .in_history("times.jsonl")
        .fails("nothing to shrink"),
    given(&["--timeout", "0s"]).of(&["shrink sql"]).because(SOUND),
    given(&["--timeout", "0s"]).of(&["shrink"]),
    given(&["--db", "nowhere"]).of(&["shrink"]).fails("nowhere"),
    given(&["--to", "jsonl"]).of(&["shrink"]),
    given(&["-o", "small.txt"]).of(&["shrink"]),
    given(&["--force"]).of(&["shrink"]).with(&["--to", "jsonl", "-o", "fine.jsonl"]),
    given(&["--dir", "pages"]).of(&["man"]),
];

/// The forms that not every command has, which the value decides and not the flag.
pub(crate) const FORMS: [Trial; 2] =
    [given(&["--output", "junit"]), given(&["--output", "github"])];

/// Modes in which `--join` comes together with a history.
const CHECKS_OF_FILES: [&str; 7] = [
    "check levels",
    "check open",
    "check patterns",
    "check follow",
    "check spill",
    "check memory",
    "check promised",
];

/// Modes in which the simulated store keeps its claim.
const UNBROKEN: [&str; 5] = ["run append", "run lwt", "run predicate", "run aim", "run crash"];
