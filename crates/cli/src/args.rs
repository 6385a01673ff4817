//! The flags as they are typed. What they mean is settled in `config`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isolario::formats::{EXTENSIONS, FORMATS};
use isolario::model::KeyAssumption;

use crate::generate::{self, GenArgs};
use crate::probe::{self, ProbeArgs};
use crate::run::{self, RunArgs};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  isolario run                                stress embedded SQLite
  isolario run --db postgres://user@host/db   stress your own database
  isolario probe --db postgres://user@host/db show which anomalies its isolation levels allow
  isolario check history.txt                  show which levels a history satisfies
  isolario check --level rc,ra history.edn    check only read committed and read atomic
  isolario show history.txt T7                show a transaction, key or session
  isolario shrink history.iso                 reduce a violation to a few transactions
  isolario stats history.iso                  show the size, skew and concurrency of a history
  isolario explain lost-update                explain an anomaly or a level
  isolario convert history.edn history.iso    convert a history to another format
  isolario gen history -o history.iso         generate a synthetic history

Exit codes of `run` and `check`: 0 every requested level is satisfied; 1 a violation was found; 2 an
error; 3 undecided: a limit was reached first. For `probe`, `verify` and `shrink`, see their help.";

const CHECK_EXAMPLES: &str = "\
Examples:
  isolario check h.txt                        check every level that applies
  isolario check --level adya-read-committed h.txt
  isolario check --pattern TAP-k,non-repeatable-read h.txt
  isolario check --level all --json *.edn     print one line of JSON per history
  isolario check --level si --junit si.xml h.txt
  zcat h.txt.gz | isolario check -            read standard input
  isolario check --join host1 host2 host3     join the parts that several hosts recorded
  isolario check --follow --level cc h.iso    check a recording as it grows
  isolario check --spill /tmp --level cc h.iso  check a history larger than memory

Exit codes:
  0  every requested level is satisfied; with --pattern, none of the anomalies was found
  1  a violation was found
  2  an error: usage, a file that cannot be read or written, a level named explicitly that does not
     apply, nothing to check
  3  undecided: a limit was reached first, and no violation was found
With several histories or levels, the first of 2, 1, 3, 0 that occurred counts. Without --level, the
exit code is that of the weakest level that applies, not counting cut-isolation.

With several histories, a table at the end counts the histories that show each anomaly; in JSON, it
is one more line, with the schema isolario.summary/1.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  isolario check --proof h.proof h.iso        check a history, and write a proof of the verdicts
  isolario verify h.iso h.proof               verify the proof against the history alone
  isolario verify isolario-runs/TIME-SEED     verify the proof in a run directory

Exit codes: 0 the proof is valid, whatever its verdicts; 1 it is invalid, or for another history;
2 an error: a file cannot be read, or is not a proof; 3 the memory limit was reached first.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  isolario convert h.edn h.iso                detect the formats by content and extension
  isolario convert --to jsonl h.iso -         write JSON lines to standard output
  isolario convert --from plume --to text history.log h.txt";

const STATS_EXAMPLES: &str = "\
Examples:
  isolario stats h.iso
  isolario stats --json h.edn";

const SHOW_EXAMPLES: &str = "\
Examples:
  isolario show h.txt T7                      a transaction, by its name in reports
  isolario show h.txt balance                 a key: its versions, their writers and readers
  isolario show h.txt session alice           with the kind, if the name alone is ambiguous
  isolario show --json h.txt key 1";

const SHRINK_EXAMPLES: &str = "\
Examples:
  isolario shrink h.iso                       show the violation in as few transactions as possible
  isolario shrink isolario-runs/TIME-SEED     shrink the history of a run; findings of the sql
                                              workload are rerun and made smaller
  isolario shrink h.iso --level si -o small.txt
  isolario shrink h.iso --anomaly lost-update --to rust
                                              write a test in Rust that uses Isolario's recorder

Without -o, the result goes to standard output, as text. Exit codes: 0 success; 2 an error, or
nothing to shrink.";

const LEVELS_EXAMPLES: &str = "\
Examples:
  isolario levels                             names and aliases, weakest first
  isolario levels --verbose                   what each level promises, forbids and applies to";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  isolario explain                            the names of all levels and anomalies
  isolario explain lost-update                what it means, an example, which levels forbid it
  isolario explain TAP-k                      an anomaly, by Plume's name
  isolario explain G2-item                    an ambiguous name: lists what it may mean
  isolario explain si                         a level, by name or alias";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  isolario completions bash > /usr/share/bash-completion/completions/isolario
  isolario completions zsh > ~/.zfunc/_isolario";

const MAN_EXAMPLES: &str = "\
Examples:
  isolario man | man -l -                     show all pages, one after another
  isolario man --dir man/man1                 write one file per command";

/// Charts the isolation a database really gives.
///
/// Stresses a database with concurrent transactions, records what its clients observe, decides
/// which isolation levels the recorded history satisfies, and explains why it violates stronger
/// ones.
#[derive(Debug, Parser)]
#[command(name = "isolario", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    // Far more threads than cores only wake each other.
    /// Number of threads [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// When to use colour; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// Print only the result, errors and essential warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print more: what was ignored in the input, and timing; with `levels`, what each level means
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Output format: text for people, or JSON with one object per line; `check` and `run` can also
    /// write JUnit XML or annotations for GitHub Actions [default: human]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<ReportForm>,

    /// Same as `--output json`
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The forms a verdict can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    Human,
    Json,
    Junit,
    Github,
}

/// Who knows what the language of predicates has no form for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatchesBy {
    Sqlite,
}

/// What to make of times that contradict themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadTimesPolicy {
    Unknown,
}

/// The forms every other result can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    Human,
    Json,
}

impl ReportForm {
    /// The form of a result that is not a verdict, if there is one.
    pub(crate) fn plain(self) -> Option<OutputForm> {
        match self {
            ReportForm::Human => Some(OutputForm::Human),
            ReportForm::Json => Some(OutputForm::Json),
            ReportForm::Junit | ReportForm::Github => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stress a database, record what its clients observe, and check that history
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),

    /// Show which anomalies each isolation level of a database allows
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),

    /// Check which isolation levels recorded histories satisfy
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Box<CheckArgs>),

    /// Convert a history from one format to another
    #[command(after_help = with_extensions(CONVERT_EXAMPLES))]
    Convert(ConvertArgs),

    /// Generate synthetic histories
    #[command(subcommand, after_help = with_extensions(generate::EXAMPLES))]
    Gen(GenArgs),

    /// Verify a proof against its history, independently of the checkers
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),

    /// Describe a history: size, skew, aborts, concurrency
    #[command(after_help = STATS_EXAMPLES)]
    Stats(StatsArgs),

    /// Show a transaction, key or session: operations, times, and which transactions read from it
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),

    /// Reduce a history to a minimal part that still shows an anomaly
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(Box<ShrinkArgs>),

    /// Explain an anomaly or a level: what it means, an example, which levels forbid it
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Name of an anomaly or a level, in upper or lower case; without it, all names are listed
        #[arg(value_name = "ANOMALY|LEVEL")]
        name: Vec<String>,
    },

    /// List the isolation levels that can be checked
    #[command(after_help = LEVELS_EXAMPLES)]
    Levels,

    /// Print the completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to print completions for
        shell: Shell,
    },

    /// Print the manual pages of all commands
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Write one file per command to this directory instead; it is created if necessary
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Histories: files, run directories, directories with one file per session, or directories that
    /// contain any of these; `-` is standard input
    #[arg(required_unless_present = "join", value_name = "HISTORY")]
    pub(crate) histories: Vec<PathBuf>,

    /// Parts of one history that several hosts recorded: run directories of `run --host`, or files
    #[arg(long, value_name = "PART", num_args = 1.., conflicts_with = "histories")]
    pub(crate) join: Vec<PathBuf>,

    /// Write the joined history to FILE, for `verify`, `show` and `shrink`; FILE must not exist yet
    #[arg(long, value_name = "FILE")]
    pub(crate) joined: Option<PathBuf>,

    /// Check a recording (.iso) or a file of JSON lines while it is being written; new transactions
    /// are checked without starting over. Stops at the first violation, or when the recording is
    /// complete. Requires --level
    #[arg(long)]
    pub(crate) follow: bool,

    /// With --follow: also stop after this long without new data, such as `30s` [default: never]
    #[arg(long, value_name = "D", value_parser = units::duration, requires = "follow")]
    pub(crate) until_idle: Option<Duration>,

    /// Check the levels in bounded memory, however large the history is, by reading it from front
    /// to back. DIR holds temporary files: transactions that are recorded far out of the order in
    /// which they finished are sorted there, and the orders for --proof are collected there.
    /// Requires --level
    #[arg(long, value_name = "DIR")]
    pub(crate) spill: Option<PathBuf>,

    /// Levels to check: names or aliases from `isolario levels`, or `all` [default: every level
    /// that applies; for a run directory, those that the run checked]
    #[arg(long, value_name = "L[,L...]", value_delimiter = ',')]
    pub(crate) level: Vec<String>,

    /// Search for these anomalies instead of checking levels: names from `isolario explain`, or
    /// `all`
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',')]
    pub(crate) pattern: Vec<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("Format of the history"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    #[command(flatten)]
    pub(crate) semantics: SemanticsArgs,

    /// Time limit for each level that needs search, such as `10s` or `5m` [default: 60s without --level,
    /// none with it]
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Memory limit for each level that needs search, such as `500MB` or `2GB`. With --level, a
    /// history too large to load within the limit is read from front to back, as with --spill,
    /// where possible
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) memory: Option<u64>,

    /// Maximum number of anomalies to print in full
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) max_anomalies: usize,

    /// Treat a history with nothing to check as satisfied, not as an error
    #[arg(long)]
    pub(crate) allow_empty: bool,

    /// Write a proof of every verdict to FILE, for `isolario verify` (single history only)
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,

    /// Whether every flag is one that --spill honours.
    #[arg(skip)]
    pub(crate) can_spill: bool,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

/// What to make of the times of a history.
#[derive(Debug, ClapArgs)]
pub(crate) struct TimesArgs {
    /// Accept transactions that finish before they start: `unknown` leaves out both times of such a
    /// transaction, since either may be wrong. Without this flag, a history that contains one is
    /// refused
    #[arg(long, value_name = "unknown", hide_possible_values = true)]
    pub(crate) bad_times: Option<BadTimesPolicy>,
}

/// What the order of a history means.
#[derive(Debug, ClapArgs)]
pub(crate) struct SemanticsArgs {
    /// Ignore the order of transactions within a session
    #[arg(long)]
    pub(crate) no_session_order: bool,

    /// Maximum error of each client's clock, such as `100us` or `5ms`: a transaction may have started
    /// that much earlier and finished that much later than recorded
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) clock_skew: Option<Duration>,
}

/// What helps the levels that need search, and shows what they search for.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    /// File of version orders, one JSON object per line: a key and its values (or their writers),
    /// earliest first; keys and values may be missing. Without --trust-version-order, the orders
    /// are only hints that the search tries first
    #[arg(long, value_name = "FILE")]
    pub(crate) version_order: Option<PathBuf>,

    /// Take the orders of --version-order as given: a history that contradicts them is a violation
    #[arg(long, requires = "version_order")]
    pub(crate) trust_version_order: bool,

    /// Assumptions about each register separately: `sequential-keys` (within a session, a later
    /// transaction never accesses an earlier version of a key), `linearizable-keys` (the same
    /// across sessions, if the later transaction starts after the earlier one has finished), `wfr`
    /// (a transaction that reads a key and then writes it writes a later version; every level
    /// implies this). Each implies version orders; a history that contradicts them is a violation.
    /// To state an order of whole transactions, use --serialization-order
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', value_parser = assumption)]
    pub(crate) assume: Vec<KeyAssumption>,

    /// Order in which the database promises that transactions take effect: a file with one JSON object
    /// per line, {"order": ["T1", "T2"]}, or `timestamps` for the database's timestamps in the history.
    /// A history that this order does not explain is a violation, even if another order does
    #[arg(long, value_name = "FILE|timestamps")]
    pub(crate) serialization_order: Option<PathBuf>,

    /// In-memory database to evaluate the predicates that Isolario cannot evaluate, such as those
    /// with function calls; that database's semantics apply
    #[arg(long, value_name = "DATABASE")]
    pub(crate) matches: Option<MatchesBy>,

    /// Do not minimize the evidence, nor the excerpt of the history at the start of each report
    #[arg(long)]
    pub(crate) no_minimize: bool,
}

/// The reports that go to files beside the result on standard output.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// Write an HTML report: one self-contained file with diagrams and the history, and with an
    /// index if there are several histories
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Write the graphs of the anomalies in the DOT language, for Graphviz
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,

    /// Write the graphs of the anomalies as an SVG image
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a bug report in Markdown: what was tested, the relevant transactions, how to reproduce
    /// it
    #[arg(long, value_name = "FILE.md")]
    pub(crate) bug_report: Option<PathBuf>,

    /// Write JUnit XML: a test suite per history, a test case per level
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// An assumption by its name.
fn assumption(name: &str) -> Result<KeyAssumption, String> {
    KeyAssumption::by_name(name).ok_or_else(|| {
        let names = KeyAssumption::ALL.map(KeyAssumption::name);
        format!("expected one of: {}", names.join(", "))
    })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// The history, or a run directory; `-` is standard input
    pub(crate) history: PathBuf,

    /// The proof that `isolario check --proof` wrote [default: the one in the run directory]
    pub(crate) proof: Option<PathBuf>,

    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "auto",
        help = format_help("Format of the history")
    )]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    /// File of version orders, as given to `isolario check`
    #[arg(long, value_name = "FILE")]
    pub(crate) version_order: Option<PathBuf>,

    /// Take the orders of --version-order as given, as the proof does; without this flag they are not used
    #[arg(long, requires = "version_order")]
    pub(crate) trust_version_order: bool,

    /// Assumptions about each register, as given to `isolario check`
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', value_parser = assumption)]
    pub(crate) assume: Vec<KeyAssumption>,

    /// Order of transactions, as given to `isolario check`
    #[arg(long, value_name = "FILE|timestamps")]
    pub(crate) serialization_order: Option<PathBuf>,

    /// Database that evaluates predicates, as given to `isolario check`
    #[arg(long, value_name = "DATABASE")]
    pub(crate) matches: Option<MatchesBy>,

    /// Memory limit for verifying a proof from `check --spill`, such as `500MB` [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) memory: Option<u64>,

    /// Whether every flag is one that is honoured where a history is not loaded.
    #[arg(skip)]
    pub(crate) can_go_by_pieces: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConvertArgs {
    /// The history to read, or a run directory; `-` is standard input
    pub(crate) from: PathBuf,

    /// The file or directory to write; `-` is standard output
    pub(crate) to: PathBuf,

    #[arg(
        id = "from-format",
        long = "from",
        value_name = "FORMAT",
        default_value = "auto",
        help = format_help("Format of FROM")
    )]
    pub(crate) from_format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    /// Format of TO [default: by its extension]
    #[arg(id = "to-format", long = "to", value_name = "FORMAT")]
    pub(crate) to_format: Option<String>,

    /// Replace TO if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    /// The history, or a run directory; `-` is standard input
    pub(crate) history: PathBuf,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("Format of the history"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The history, or a run directory; `-` is standard input
    pub(crate) history: PathBuf,

    /// Name of a transaction, key or session; if the name is ambiguous, `txn NAME`, `key NAME` or
    /// `session NAME`
    #[arg(required = true, value_name = "TXN|KEY|SESSION")]
    pub(crate) name: Vec<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("Format of the history"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShrinkArgs {
    /// The history, or a run directory; `-` is standard input
    pub(crate) history: PathBuf,

    /// Level that the result must still violate [default: the weakest violated level]
    #[arg(long, value_name = "L")]
    pub(crate) level: Option<String>,

    /// Anomaly that the result must still show [default: of those that violate the level, the one that
    /// involves the fewest transactions]
    #[arg(long, value_name = "NAME")]
    pub(crate) anomaly: Option<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("Format of the history"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    #[command(flatten)]
    pub(crate) semantics: SemanticsArgs,

    /// Time limit; if it is reached, the result may not be minimal [default: 60s]. For a run of the
    /// sql workload, the limit applies to each kind of anomaly [default: none]
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,

    /// Database on which to rerun a run of the sql workload; repeat the flag for several nodes
    /// [default: the database of the run]
    #[arg(long, value_name = "URL")]
    pub(crate) db: Vec<String>,

    /// Format to write, or `rust` for a test in Rust [default: by the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Write the result to FILE, and explain it on standard output
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Write a proof that the result violates the level to FILE, for `isolario verify`
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
}

/// The help of a command that writes a history.
pub(crate) fn with_extensions(examples: &str) -> String {
    let usual: Vec<_> = EXTENSIONS.iter().map(|(end, format)| format!(".{end} {format}")).collect();
    format!(
        "{examples}\n\nFormats by extension: {}.\nA history that the format cannot express is refused; nothing is dropped.",
        usual.join(", ")
    )
}

fn format_help(what: &str) -> String {
    let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
    format!("{what}: auto (detected from its content), {}", names.join(", "))
}
