//! The modes of each command, and the flags that each mode honours: one table.
//!
//! A flag that has no effect in the mode that a command line selects is refused before any work is done.
//! The refusal, what the help says of a flag, and whether a history can be read piece by piece all follow
//! from [`TABLE`].

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use isolario::workload::{Application, Kind, Preset};

use crate::failure::Failure;
use crate::run_directory::record_in;
use crate::workload_flags::SQL;

/// A set of modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes(u64);

impl Modes {
    const fn and(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    const fn without(self, other: Modes) -> Modes {
        Modes(self.0 & !other.0)
    }

    fn has(self, mode: Modes) -> bool {
        self.0 & mode.0 == mode.0
    }

    fn meets(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }
}

/// A mode that a flag selects, or the only mode of a command.
struct Mode {
    mode: Modes,
    /// The end of the message "--flag has no effect …".
    context: &'static str,
    /// The remedy.
    hint: &'static str,
}

const fn bit(number: u32) -> Modes {
    Modes(1 << number)
}

// Workloads of `run` and `gen`.
const MINI: Modes = bit(0);
const GENERAL: Modes = bit(1);
const APPEND: Modes = bit(2);
const LWT: Modes = bit(3);
const PREDICATE: Modes = bit(4);
const APPLICATION: Modes = bit(5);
const RANDOM_SQL: Modes = bit(6);
// What else changes how `run` works.
const AIM: Modes = bit(7);
const HOST: Modes = bit(8);
const REPEAT: Modes = bit(9);
const HUNT: Modes = bit(10);
const CRASH: Modes = bit(11);
// Modes of `check`.
const LEVELS: Modes = bit(12);
const PATTERNS: Modes = bit(13);
const FOLLOW: Modes = bit(14);
pub(crate) const SPILL: Modes = bit(15);
const JOIN: Modes = bit(16);
const PROMISED: Modes = bit(17);
// Modes of `verify`: with the history in memory, and piece by piece. The second is chosen where it can be.
const WHOLE: Modes = bit(18);
pub(crate) const PIECES: Modes = bit(19);
// Modes of `shrink`.
const SHRINK: Modes = bit(20);
const SHRINK_SQL: Modes = bit(21);
// Commands with one mode.
const PROBE: Modes = bit(22);
const CONVERT: Modes = bit(23);
const STATS: Modes = bit(24);
const SHOW: Modes = bit(25);
const EXPLAIN: Modes = bit(26);
const LIST_LEVELS: Modes = bit(27);
const COMPLETIONS: Modes = bit(28);
const MAN: Modes = bit(29);
const GEN: Modes = bit(30);
const RUN: Modes = bit(31);
const CHECK: Modes = bit(32);
/// A proof that rests on stated orders, assumptions or matches: its history has to be loaded.
const STATED: Modes = bit(33);

const REGISTERS: Modes = MINI.and(GENERAL).and(APPEND).and(LWT);
/// Workloads with flags for their keys and operations.
const SHAPED: Modes = REGISTERS.and(PREDICATE);
const KEYED: Modes = SHAPED.and(APPLICATION);
const SEVERAL: Modes = HOST.and(REPEAT);
const ANY_RUN: Modes = KEYED.and(RANDOM_SQL).and(AIM).and(SEVERAL).and(HUNT).and(CRASH);
const ANY_CHECK: Modes = LEVELS.and(PATTERNS).and(FOLLOW).and(SPILL).and(JOIN).and(PROMISED);
const OF_LEVELS: Modes = ANY_CHECK.without(PATTERNS);
const LOADED: Modes = LEVELS.and(JOIN);
const VERIFY: Modes = WHOLE.and(PIECES);
const ANY_SHRINK: Modes = SHRINK.and(SHRINK_SQL);
const ALL: Modes = Modes(u64::MAX);
const NONE: Modes = Modes(0);
/// Commands that have several modes, as a whole.
const SPLIT: Modes = RUN.and(CHECK).and(GEN);
const COMMANDS: Modes = SPLIT
    .and(VERIFY)
    .and(ANY_SHRINK)
    .and(PROBE)
    .and(CONVERT)
    .and(STATS)
    .and(SHOW)
    .and(EXPLAIN)
    .and(LIST_LEVELS)
    .and(COMPLETIONS)
    .and(MAN);

/// The modes that flags of a command honour. The first word of a command is enough.
type Row = (&'static str, &'static [&'static str], Modes);

/// For each flag of each command that has more than one mode, the modes that honour it. Flags of other
/// commands, and positional arguments, have no row: their commands honour them.
const TABLE: &[Row] = &[
    ("", &["color", "quiet", "verbose"], ALL),
    (
        "",
        &["threads"],
        RUN.and(CHECK).and(PROBE).and(CONVERT).and(STATS).and(SHOW).and(VERIFY).and(ANY_SHRINK),
    ),
    (
        "",
        &["output", "json"],
        RUN.and(CHECK)
            .and(GEN)
            .and(PROBE)
            .and(STATS)
            .and(SHOW)
            .and(VERIFY)
            .and(EXPLAIN)
            .and(LIST_LEVELS),
    ),
    ("check", &["format", "bad_times", "max_anomalies"], ANY_CHECK),
    ("check", &["no_session_order"], ANY_CHECK),
    ("check", &["allow_empty", "report", "dot", "svg", "bug_report", "junit"], ANY_CHECK),
    ("check", &["level", "clock_skew", "proof"], OF_LEVELS),
    ("check", &["timeout", "memory"], OF_LEVELS.without(PROMISED)),
    ("check", &["no_minimize"], LOADED.and(FOLLOW)),
    ("check", &["pattern"], PATTERNS.and(JOIN)),
    ("check", &["join", "joined"], LEVELS.and(PATTERNS).and(PROMISED).and(JOIN)),
    ("check", &["follow", "until_idle"], LEVELS.and(FOLLOW)),
    ("check", &["spill"], LEVELS.and(SPILL)),
    ("check", &["version_order", "trust_version_order"], LOADED),
    ("check", &["assume"], LOADED.and(PATTERNS)),
    ("check", &["serialization_order"], LOADED.and(PROMISED)),
    ("check", &["matches"], LOADED.and(PATTERNS).and(PROMISED)),
    ("verify", &["format", "bad_times"], VERIFY.and(STATED).and(PROMISED)),
    ("verify", &["memory"], VERIFY),
    ("verify", &["version_order", "trust_version_order", "assume"], WHOLE.and(STATED)),
    ("verify", &["serialization_order"], WHOLE.and(STATED).and(PROMISED)),
    ("verify", &["matches"], WHOLE.and(STATED).and(PROMISED)),
    ("shrink", &["anomaly", "timeout"], ANY_SHRINK),
    ("shrink", &["level", "format", "bad_times", "no_session_order", "clock_skew"], SHRINK),
    ("shrink", &["to", "file", "force", "proof"], SHRINK),
    ("shrink", &["db"], SHRINK_SQL),
    ("run", &["again", "db", "isolation", "out", "seed", "statement_timeout"], ANY_RUN),
    ("run", &["check", "timeout", "shrink", "no_shrink"], ANY_RUN.without(HOST)),
    ("run", &["max_anomalies"], ANY_RUN.without(HOST).without(RANDOM_SQL)),
    ("run", &["whitebox", "shadow"], KEYED.and(AIM).and(REPEAT).and(HUNT)),
    ("run", &["workload"], KEYED.and(RANDOM_SQL).and(AIM).and(SEVERAL)),
    ("run", &["sessions", "txns", "duration"], KEYED.and(RANDOM_SQL).and(AIM).and(SEVERAL)),
    ("run", &["preset", "keys", "distribution"], SHAPED.and(SEVERAL)),
    ("run", &["aim"], MINI.and(RANDOM_SQL).and(AIM).and(SEVERAL)),
    ("run", &["ops"], GENERAL.and(APPEND).and(PREDICATE).and(RANDOM_SQL).and(SEVERAL)),
    ("run", &["absent_ratio"], MINI.and(GENERAL).and(AIM).and(SEVERAL)),
    ("run", &["slow_ratio"], MINI.and(GENERAL).and(SEVERAL)),
    ("run", &["read_ratio"], REGISTERS.and(SEVERAL)),
    ("run", &["rmw_ratio"], GENERAL.and(SEVERAL)),
    ("run", &["scale", "sql_tables"], APPLICATION.and(SEVERAL)),
    ("run", &["list_length"], APPEND.and(SEVERAL)),
    ("run", &["mix"], PREDICATE.and(RANDOM_SQL).and(SEVERAL)),
    ("run", &["rate"], KEYED.and(AIM).and(SEVERAL).and(HUNT)),
    ("run", &["think"], KEYED.and(AIM).and(SEVERAL)),
    ("run", &["value_size"], MINI.and(GENERAL).and(LWT).and(APPLICATION).and(AIM).and(SEVERAL)),
    ("run", &["max_retries"], KEYED.and(AIM).and(SEVERAL).and(HUNT).and(CRASH)),
    ("run", &["host"], KEYED.and(AIM).and(HOST)),
    ("run", &["repeat"], KEYED.and(AIM).and(REPEAT)),
    ("run", &["stop_on_violation"], KEYED.and(RANDOM_SQL).and(AIM).and(REPEAT)),
    ("run", &["fault", "server", "server_pid"], KEYED.and(AIM).and(REPEAT)),
    ("run", &["disk"], KEYED.and(AIM).and(REPEAT).and(HUNT).and(CRASH)),
    ("run", &["hunt", "crash"], HUNT.and(CRASH)),
    ("run", &["to_be_killed"], KEYED.and(AIM)),
    ("run", &["round", "tables", "columns", "rows", "depth"], RANDOM_SQL),
    ("run", &["templates", "predicates", "keep"], RANDOM_SQL),
    ("gen", &["level", "anomaly", "workload", "txns", "sessions"], KEYED),
    ("gen", &["concurrency", "abort_ratio", "unknown_ratio", "seed"], KEYED),
    ("gen", &["format", "file", "force", "version_order_out", "serialization_order_out"], KEYED),
    ("gen", &["preset", "keys", "distribution"], SHAPED),
    ("gen", &["ops"], GENERAL.and(APPEND).and(PREDICATE)),
    ("gen", &["read_ratio"], REGISTERS),
    ("gen", &["rmw_ratio"], GENERAL),
    ("gen", &["duplicate_ratio"], MINI.and(GENERAL).and(LWT)),
    ("gen", &["version_order_ratio"], REGISTERS.and(APPLICATION)),
    ("gen", &["scale"], APPLICATION),
    ("gen", &["mix", "defect"], PREDICATE),
];

/// The workloads, by the names that `--workload` takes.
fn workloads() -> impl Iterator<Item = (Modes, &'static str)> {
    let kinds = Kind::ALL.into_iter().map(|kind| (of_kind(kind), kind.name()));
    let applications = Application::ALL.into_iter().map(|one| (APPLICATION, one.name()));
    kinds.chain(applications).chain([(RANDOM_SQL, SQL)])
}

fn of_kind(kind: Kind) -> Modes {
    match kind {
        Kind::General => GENERAL,
        Kind::Append => APPEND,
        Kind::Lwt => LWT,
        Kind::Predicate => PREDICATE,
        _ => MINI,
    }
}

/// The modes other than workloads.
const MODES: &[Mode] = &[
    Mode {
        mode: HUNT,
        context: "with --hunt",
        hint: "omit it: a hunt varies the workload, and starts many runs on its own",
    },
    Mode {
        mode: CRASH,
        context: "with --crash",
        hint: "omit it: the process that has the store open is killed at full speed",
    },
    Mode {
        mode: AIM,
        context: "with --aim",
        hint: "omit it, or --aim: an aim determines keys and operations",
    },
    Mode {
        mode: HOST,
        context: "with --host",
        hint: "omit it: one of several hosts only records its part, and `isolario check --join` \
               checks all parts",
    },
    Mode { mode: REPEAT, context: "with --repeat", hint: "omit it, or --repeat" },
    Mode {
        mode: PATTERNS,
        context: "with --pattern",
        hint: "omit it, or check levels: replace --pattern by --level",
    },
    Mode {
        mode: FOLLOW,
        context: "with --follow",
        hint: "omit it, or check the complete history without --follow",
    },
    Mode {
        mode: SPILL,
        context: "with --spill",
        hint: "omit it, or check the complete history without --spill",
    },
    Mode { mode: JOIN, context: "with --join", hint: "join the parts with --joined first" },
    Mode {
        mode: PROMISED,
        context: "with --serialization-order",
        hint: "omit it, or --serialization-order",
    },
    Mode {
        mode: STATED,
        context: "with --version-order, --assume or --matches",
        hint: "omit it: the history is loaded as a whole",
    },
    Mode {
        mode: SHRINK_SQL,
        context: "on a run of the sql workload",
        hint: "its findings are run again, and the scripts go to the run directory",
    },
    Mode {
        mode: SHRINK,
        context: "on a history",
        hint: "--db only applies to run directories of the sql workload; `isolario convert` writes \
               the result in other formats",
    },
    Mode {
        mode: CONVERT,
        context: "on `isolario convert`",
        hint: "omit it; --to jsonl writes the history as JSON",
    },
    Mode { mode: EXPLAIN, context: "on `isolario explain`", hint: OMIT },
    Mode { mode: LIST_LEVELS, context: "on `isolario levels`", hint: OMIT },
    Mode { mode: COMPLETIONS, context: "on `isolario completions`", hint: OMIT },
    Mode { mode: MAN, context: "on `isolario man`", hint: OMIT },
    Mode { mode: GEN, context: "on `isolario gen`", hint: OMIT },
];

const OMIT: &str = "omit it: the command has nothing that it could change";

/// The modes that a flag of a command honours; all where the command has but one.
fn honouring(command: &str, flag: &str) -> Modes {
    let is_row = |(of, flags, _): &&Row| (of.is_empty() || *of == command) && flags.contains(&flag);
    TABLE.iter().find(is_row).map_or(ALL, |(.., modes)| *modes)
}

/// The modes that a command line selects. All of them must honour each of its flags.
fn selected(command: &str, matches: &ArgMatches) -> Modes {
    let given = |flag: &str| is_given(matches, flag);
    let with = |modes: Modes, flags: &[(&str, Modes)]| {
        let more = flags.iter().filter(|(flag, _)| given(flag));
        more.fold(modes, |modes, (_, mode)| modes.and(*mode))
    };
    match command {
        "run" if given("hunt") => with(RUN.and(HUNT), &[("crash", CRASH)]),
        "run" => {
            let workload = workload(matches, ANY_RUN);
            let is_aimed = given("aim") && workload != RANDOM_SQL;
            let modes = RUN.and(workload).and(if is_aimed { AIM } else { workload });
            with(modes, &[("host", HOST), ("repeat", REPEAT)])
        }
        "gen" => GEN.and(workload(matches, KEYED)),
        "check" => {
            let asked = CHECK.and(if given("pattern") { PATTERNS } else { LEVELS });
            let flags = [
                ("follow", FOLLOW),
                ("spill", SPILL),
                ("join", JOIN),
                ("serialization_order", PROMISED),
            ];
            with(asked, &flags)
        }
        "verify" => {
            let stated = ["version_order", "assume", "matches"].map(|flag| (flag, STATED));
            with(with(WHOLE, &[("serialization_order", PROMISED)]), &stated)
        }
        "shrink" => {
            let path = matches.get_one::<std::path::PathBuf>("history");
            let record = path.and_then(|path| record_in(path));
            let is_sql = record.is_some_and(|record| record.workload.kind == SQL);
            if is_sql { SHRINK_SQL } else { SHRINK }
        }
        "probe" => PROBE,
        "convert" => CONVERT,
        "stats" => STATS,
        "show" => SHOW,
        "explain" => EXPLAIN,
        "levels" => LIST_LEVELS,
        "completions" => COMPLETIONS,
        _ => MAN,
    }
}

/// The workload that is named, or the one of the preset that is. Empty if the command has no such
/// workload: it says so itself.
fn workload(matches: &ArgMatches, of_command: Modes) -> Modes {
    let text = |flag: &str| matches.get_one::<String>(flag).map(String::as_str);
    if let Some(name) = text("workload") {
        let mut known = workloads().filter(|(mode, _)| of_command.has(*mode));
        return known.find(|(_, known)| *known == name).map_or(NONE, |(mode, _)| mode);
    }
    let preset = text("preset").and_then(Preset::find);
    preset.map_or(MINI, |preset| of_kind(preset.workload().kind))
}

fn is_given(matches: &ArgMatches, flag: &str) -> bool {
    matches.value_source(flag) == Some(ValueSource::CommandLine)
}

/// The command that was called, by its first name, and its arguments.
fn called<'m>(
    root: &'m Command,
    matches: &'m ArgMatches,
) -> Option<(&'m Command, &'m str, &'m ArgMatches)> {
    let (name, mut matches) = matches.subcommand()?;
    let mut command = root.find_subcommand(name)?;
    while let Some((below, more)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(below)?, more);
    }
    Some((command, name, matches))
}

/// Refuses a flag that would have no effect.
pub(crate) fn refuse_idle(root: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((command, name, matches)) = called(root, matches) else { return Ok(()) };
    let selected = selected(name, matches);
    let flags = command.get_arguments().filter(|flag| !flag.is_positional());
    for flag in flags.filter(|flag| is_given(matches, flag.get_id().as_str())) {
        let honouring = honouring(name, flag.get_id().as_str());
        // Of flags that all commands have, the table says which commands honour them.
        let concerned = if flag.is_global_set() { COMMANDS } else { ALL.without(SPLIT) };
        let idle =
            |mode: &Modes| selected.has(*mode) && concerned.has(*mode) && !honouring.has(*mode);
        let typed = match (flag.get_long(), flag.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, short) => short.map(|short| format!("-{short}")).unwrap_or_default(),
        };
        if let Some(mode) = MODES.iter().find(|mode| idle(&mode.mode)) {
            return Err(Failure::new(format!("{typed} has no effect {}", mode.context))
                .with_hint(mode.hint));
        }
        if let Some((_, workload)) = workloads().find(|(mode, _)| idle(mode)) {
            let named = matches.get_one::<String>("workload").map_or(workload, String::as_str);
            let others = workloads().filter(|(mode, _)| honouring.has(*mode));
            let others: Vec<_> = others.map(|(_, name)| name).collect();
            let hint = match &others[..] {
                [] => "omit it".to_owned(),
                _ => format!("it only applies to --workload {}", others.join(", ")),
            };
            return Err(Failure::new(format!("{typed} has no effect on the {named} workload"))
                .with_hint(hint));
        }
    }
    Ok(())
}

/// Whether a mode honours every flag that is given, so that it can be chosen.
pub(crate) fn suits(root: &Command, matches: &ArgMatches, mode: Modes) -> bool {
    called(root, matches).is_some_and(|(command, name, matches)| {
        let mut flags = command.get_arguments().filter(|flag| !flag.is_positional());
        flags.all(|flag| {
            let id = flag.get_id().as_str();
            flag.is_global_set() || !is_given(matches, id) || honouring(name, id).has(mode)
        })
    })
}

/// Adds to the help of each flag where it has an effect, if that is not everywhere.
pub(crate) fn with_modes(root: Command) -> Command {
    let name = |command: &Command| command.get_name().to_owned();
    let names: Vec<String> = root.get_subcommands().map(name).collect();
    names
        .into_iter()
        .fold(root, |root, name| root.mut_subcommand(&name, |command| below(command, &name)))
}

fn below(command: Command, name: &str) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = names
        .into_iter()
        .fold(command, |command, one| command.mut_subcommand(one, |command| below(command, name)));
    command.mut_args(|flag| {
        let restriction = restriction(name, honouring(name, flag.get_id().as_str()));
        let help = flag.get_help().map(ToString::to_string);
        match (restriction, help) {
            (Some(restriction), Some(help)) if !flag.is_positional() => {
                let at = help.find(" [default").unwrap_or(help.len());
                let (text, default) = help.split_at(at);
                flag.help(format!("{text} ({restriction}){default}"))
            }
            _ => flag,
        }
    })
}

/// The modes of a command that honour a flag, where not all of them do: workloads by their names, the
/// flags that exclude it.
fn restriction(command: &str, honouring: Modes) -> Option<String> {
    let all = match command {
        "run" => ANY_RUN,
        "gen" => KEYED,
        "check" => ANY_CHECK,
        _ => return None,
    };
    let is_of = |mode: &Modes| all.has(*mode);
    let (with, without): (Vec<_>, Vec<_>) =
        workloads().filter(|(mode, _)| is_of(mode)).partition(|(mode, _)| honouring.has(*mode));
    // Applications are alike.
    let names = |some: Vec<(Modes, &'static str)>| {
        let mut names: Vec<_> = some
            .into_iter()
            .map(|(mode, name)| if mode == APPLICATION { "applications" } else { name })
            .collect();
        names.dedup();
        names.join(", ")
    };
    let workloads = match (with.len(), without.len()) {
        (0, _) | (_, 0) => None,
        // The heading says it.
        _ if honouring == RANDOM_SQL => None,
        (with, without_count) if without_count < with => Some(format!("not {}", names(without))),
        _ => Some(names(with)),
    };
    let may_exclude = honouring.meets(KEYED.and(LEVELS).and(PATTERNS));
    let is_excluded = |mode: &&Mode| is_of(&mode.mode) && may_exclude && !honouring.has(mode.mode);
    let flags: Vec<_> = MODES
        .iter()
        .filter(is_excluded)
        .filter(|mode| mode.mode != CRASH || honouring.has(HUNT))
        .filter_map(|mode| mode.context.strip_prefix("with "))
        .collect();
    let flags = (!flags.is_empty()).then(|| format!("not with {}", flags.join(", ")));
    let parts: Vec<_> = workloads.into_iter().chain(flags).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
