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
  isolario run                                stress a database: embedded SQLite, for a start
  isolario run --db postgres://user@host/db   one of your own
  isolario probe --db postgres://user@host/db which anomalies can happen at which of its levels
  isolario check history.txt                  which levels it satisfies, and why no others
  isolario check --level rc,ra history.edn    whether it satisfies these
  isolario show history.txt T7                one transaction, key or session
  isolario shrink history.iso                 the few transactions that matter
  isolario stats history.iso                  how large, skewed and concurrent it is
  isolario explain lost-update                what an anomaly or a level means
  isolario convert history.edn history.iso    from one format to another
  isolario gen history -o history.iso         a synthetic history

Exit codes: 0 done, every requested level is satisfied; 1 a violation was found; 2 an error;
3 undecided within the limits.";

const CHECK_EXAMPLES: &str = "\
Examples:
  isolario check h.txt                        every level that applies
  isolario check --level adya-read-committed h.txt
  isolario check --pattern TAP-k,non-repeatable-read h.txt
  isolario check --level all --json *.edn     one JSON object per history, one per line
  isolario check --level si --junit si.xml h.txt
  zcat h.txt.gz | isolario check -            from standard input
  isolario check --join host1 host2 host3     one history that several hosts recorded
  isolario check --follow --level cc h.iso    while it is recorded, until a violation or Ctrl-C
  isolario check --spill /tmp --level cc h.iso  however large it is

Exit codes:
  0  every requested level is satisfied; with --pattern: none of the anomalies was found
  1  a violation was found
  2  an error: usage, a file that cannot be read or written, a level named explicitly that does not
     apply, nothing to check
  3  undecided: a limit was reached first, and no violation was found
With several histories or levels, the first of 2, 1, 3, 0 that occurred counts. Without --level, the
exit code follows the weakest level that applies, not counting cut-isolation.

With several histories, a table at the end says how many show which anomaly; in JSON, that is one
more line, with the schema isolario.summary/1.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  isolario check --proof h.proof h.iso        decide, and write down why
  isolario verify h.iso h.proof               re-check that against the history alone
  isolario verify isolario-runs/LAST          the proof of a run, by its directory

Exit codes: 0 the proof is right, whatever its verdict; 1 it is wrong, or about another history;
2 an error: a file cannot be read, or is not a proof; 3 it takes more memory than may be used.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  isolario convert h.edn h.iso                formats from content and extension
  isolario convert --to jsonl h.iso -         to standard output
  isolario convert --from plume --to text history.log h.txt";

const STATS_EXAMPLES: &str = "\
Examples:
  isolario stats h.iso
  isolario stats --json h.edn";

const SHOW_EXAMPLES: &str = "\
Examples:
  isolario show h.txt T7                      a transaction, as reports call it
  isolario show h.txt balance                 a key: its versions, who wrote and who read them
  isolario show h.txt session alice           where a name is ambiguous, say which kind
  isolario show --json h.txt key 1";

const SHRINK_EXAMPLES: &str = "\
Examples:
  isolario shrink h.iso                       what is wrong with it, in as few transactions as possible
  isolario shrink isolario-runs/LAST          the history of a run, by its directory; what the sql
                                              workload found is run again and made smaller
  isolario shrink h.iso --level si -o small.txt
  isolario shrink h.iso --anomaly lost-update --to rust
                                              as a test in Rust, with Isolario's recorder

Without -o, the part goes to standard output, as text. Exit codes: 0 done; 2 an error, or nothing to
shrink.";

const LEVELS_EXAMPLES: &str = "\
Examples:
  isolario levels                             names and aliases, weakest first
  isolario levels --verbose                   what each one promises, forbids and applies to";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  isolario explain                            the names of all levels and anomalies
  isolario explain lost-update                what it means, an example, which levels forbid it
  isolario explain TAP-k                      by Plume's letter
  isolario explain G2-item                    by its name elsewhere; lists what that may mean
  isolario explain si                         a level, by name or alias";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  isolario completions bash > /usr/share/bash-completion/completions/isolario
  isolario completions zsh > ~/.zfunc/_isolario";

const MAN_EXAMPLES: &str = "\
Examples:
  isolario man | man -l -                     all pages, one after the other
  isolario man --dir man/man1                 one file per command";

/// Charts the isolation a database really gives.
///
/// Stresses databases with transactions, records what their clients saw, and decides which isolation
/// levels that history satisfies, and why not stronger ones.
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
    /// How many threads to use [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// When to use colour; `auto` means on terminals, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// Print only the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print more: what was ignored in the input, how long it took, what each level means
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// The form of the result: text for people, or JSON, one object per line; for `check` and
    /// `run` also JUnit XML or GitHub Actions annotations [default: human]
    #[arg(long, global = true, value_name = "FORM")]
    pub(crate) output: Option<ReportForm>,

    /// Short for `--output json`
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
    /// Stress a database, record what its clients see, and check it
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),

    /// Show which anomalies can happen at which isolation level of a database
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

    /// Re-check a proof against its history, independently of the checkers
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),

    /// Describe a history: size, skew, aborts, concurrency
    #[command(after_help = STATS_EXAMPLES)]
    Stats(StatsArgs),

    /// Show one transaction, key or session: operations, times, who read from whom
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),

    /// Shrink a history to the smallest part that still shows an anomaly
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(Box<ShrinkArgs>),

    /// Explain an anomaly or a level: what it means, an example, which levels forbid it
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// The name of an anomaly or level, in any case; without one, all names are listed
        #[arg(value_name = "ANOMALY|LEVEL")]
        name: Vec<String>,
    },

    /// List the isolation levels that can be checked
    #[command(after_help = LEVELS_EXAMPLES)]
    Levels,

    /// Print the completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Print the manual pages of all commands
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Write one file per command into this directory instead; it is created if necessary
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// The histories: files, directories that are a history or hold some, directories of runs; `-` is
    /// standard input
    #[arg(required_unless_present = "join", value_name = "HISTORY")]
    pub(crate) histories: Vec<PathBuf>,

    /// Parts of one history, recorded on several hosts: files, or directories of runs with --host
    #[arg(long, value_name = "PART", num_args = 1.., conflicts_with = "histories")]
    pub(crate) join: Vec<PathBuf>,

    /// Write the joined history to a file, for `verify`, `show` and `shrink`; it must not exist
    #[arg(long, value_name = "FILE", requires = "join")]
    pub(crate) joined: Option<PathBuf>,

    /// Check a recording (.iso) or a file of JSON lines while it is written, at a cost that depends on what is
    /// new; ends at the first violation, and where the recording does
    #[arg(long, conflicts_with_all = ["join", "pattern", "version_order", "serialization_order", "assume", "matches"])]
    pub(crate) follow: bool,

    /// With --follow, end when nothing was added for so long, too: `30s`; never if not given
    #[arg(long, value_name = "D", value_parser = units::duration, requires = "follow")]
    pub(crate) until_idle: Option<Duration>,

    /// Decide the levels in bounded memory, however large the history is, by reading it from front to back;
    /// transactions that are not about in the order in which they finished are sorted in this directory, and
    /// the orders that --proof writes are kept there meanwhile
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "join", "follow", "pattern", "version_order", "serialization_order", "assume", "matches"
        ]
    )]
    pub(crate) spill: Option<PathBuf>,

    /// The levels to decide, or `all`; names and aliases as `isolario levels` lists them
    #[arg(long, value_name = "L[,L...]", value_delimiter = ',')]
    pub(crate) level: Vec<String>,

    /// Look for these anomalies instead of deciding levels, or for `all`; names as `isolario
    /// explain` lists them
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', conflicts_with = "level")]
    pub(crate) pattern: Vec<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("The format"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    #[command(flatten)]
    pub(crate) semantics: SemanticsArgs,

    /// How long each level that needs search may take: `10s`, `5m`; 60 seconds if no level is named
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,

    /// How much memory a level that needs search may take: `500MB`, `2GB`. A history that would take more to
    /// load is read from front to back where --spill could do so
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) memory: Option<u64>,

    /// How many anomalies to print in full
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) max_anomalies: usize,

    /// Treat a history with nothing to check as satisfied instead of as an error
    #[arg(long)]
    pub(crate) allow_empty: bool,

    /// Write the proof of every answer to a file, for `isolario verify`; takes one history
    #[arg(long, value_name = "FILE", conflicts_with = "pattern")]
    pub(crate) proof: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

/// What to make of the times of a history.
#[derive(Debug, ClapArgs)]
pub(crate) struct TimesArgs {
    /// What to make of a transaction that finishes before it starts: `unknown` leaves out both of its
    /// times, since either may be wrong; without this flag, a history with such a transaction is refused
    #[arg(long, value_name = "unknown", hide_possible_values = true)]
    pub(crate) bad_times: Option<BadTimesPolicy>,
}

/// What the order of a history means.
#[derive(Debug, ClapArgs)]
pub(crate) struct SemanticsArgs {
    /// Ignore the order of transactions within a session
    #[arg(long)]
    pub(crate) no_session_order: bool,

    /// How far each client's clock may be off, such as `100us` or `5ms`: transactions may have
    /// begun that much earlier and finished that much later than recorded
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) clock_skew: Option<Duration>,
}

/// What helps the levels that need search, and shows what they search for.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    /// A file of known version orders, tried first: one JSON object per line, with a key and its
    /// values (or their writers), earliest first; any of them may be missing
    #[arg(long, value_name = "FILE")]
    pub(crate) version_order: Option<PathBuf>,

    /// Take these orders as given: a history that contradicts them is violated
    #[arg(long, requires = "version_order")]
    pub(crate) trust_version_order: bool,

    /// What to assume of every register by itself: `sequential-keys` (along a session, versions of a
    /// key only get later), `linearizable-keys` (the same in real time), `wfr` (who read a key and then
    /// wrote it wrote a later version, as every level takes for granted anyway). The version orders
    /// that follow are part of the question: a history that contradicts them is violated. For a stated
    /// order of whole transactions, see --serialization-order
    #[arg(long, value_name = "ASSUMPTION", value_delimiter = ',', value_parser = assumption)]
    pub(crate) assume: Vec<KeyAssumption>,

    /// The order in which the database promises that transactions take effect: a file with a JSON
    /// object per line, {"order": ["T1", "T2"]}, or `timestamps` for those in the history. A history
    /// that does not come out right in that order is violated, even if another one explains it
    #[arg(
        long,
        value_name = "FILE|timestamps",
        conflicts_with_all = ["version_order", "assume", "pattern"]
    )]
    pub(crate) serialization_order: Option<PathBuf>,

    /// Who says which rows satisfy a predicate that Isolario cannot evaluate, such as one with a function:
    /// a database in memory, by its own rules
    #[arg(long, value_name = "DATABASE")]
    pub(crate) matches: Option<MatchesBy>,

    /// Do not look for smaller arguments, nor for the smallest part of a history that reports begin with
    #[arg(long)]
    pub(crate) no_minimize: bool,
}

/// The reports that go to files beside the result on standard output.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// Write an HTML report: a single self-contained file, with pictures and the history; of several
    /// histories, with an index
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Write the graphs of the anomalies in DOT, for Graphviz
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,

    /// Write the graphs of the anomalies as an SVG picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a bug report in Markdown: what was tested, the transactions that matter, how to repeat it
    #[arg(long, value_name = "FILE.md")]
    pub(crate) bug_report: Option<PathBuf>,

    /// Write JUnit XML: a suite per history, a case per level
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// An assumption by its name.
fn assumption(name: &str) -> Result<KeyAssumption, String> {
    KeyAssumption::by_name(name).ok_or_else(|| {
        let names = KeyAssumption::ALL.map(KeyAssumption::name);
        format!("the assumptions are {}", names.join(", "))
    })
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// The history, or the directory of a run; `-` is standard input
    pub(crate) history: PathBuf,

    /// The proof, as `isolario check --proof` wrote it [default: that of the run]
    pub(crate) proof: Option<PathBuf>,

    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "auto",
        help = format_help("The format of the history")
    )]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    /// The file of version orders that `isolario check` was given
    #[arg(long, value_name = "FILE")]
    pub(crate) version_order: Option<PathBuf>,

    /// The proof takes these orders as given; without this flag they prove nothing
    #[arg(long, requires = "version_order")]
    pub(crate) trust_version_order: bool,

    /// What `isolario check` was told to assume of every register
    #[arg(long, value_name = "ASSUMPTION", value_delimiter = ',', value_parser = assumption)]
    pub(crate) assume: Vec<KeyAssumption>,

    /// The order of transactions that `isolario check` was given
    #[arg(
        long,
        value_name = "FILE|timestamps",
        conflicts_with_all = ["version_order", "assume"]
    )]
    pub(crate) serialization_order: Option<PathBuf>,

    /// Who `isolario check` was told to ask for what predicates match
    #[arg(long, value_name = "DATABASE")]
    pub(crate) matches: Option<MatchesBy>,

    /// How much memory the proof of a spilled history may take: `500MB`; 4 GB if not given
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConvertArgs {
    /// The history to read, or the directory of a run; `-` is standard input
    pub(crate) from: PathBuf,

    /// The file or directory to write; `-` is standard output
    pub(crate) to: PathBuf,

    #[arg(
        id = "from-format",
        long = "from",
        value_name = "FORMAT",
        default_value = "auto",
        help = format_help("The format of FROM")
    )]
    pub(crate) from_format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    /// The format of TO [default: by its extension]
    #[arg(id = "to-format", long = "to", value_name = "FORMAT")]
    pub(crate) to_format: Option<String>,

    /// Replace TO if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    /// The history, or the directory of a run; `-` is standard input
    pub(crate) history: PathBuf,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("The format"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The history, or the directory of a run; `-` is standard input
    pub(crate) history: PathBuf,

    /// The name of a transaction, key or session; `txn NAME`, `key NAME` or `session NAME` where it
    /// is ambiguous
    #[arg(required = true, value_name = "TXN|KEY|SESSION")]
    pub(crate) name: Vec<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("The format"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShrinkArgs {
    /// The history, or the directory of a run; `-` is standard input
    pub(crate) history: PathBuf,

    /// The level that stays violated [default: the weakest that is]
    #[arg(long, value_name = "L")]
    pub(crate) level: Option<String>,

    /// The anomaly that stays [default: the smallest that violates the level]
    #[arg(long, value_name = "NAME")]
    pub(crate) anomaly: Option<String>,

    #[arg(long, value_name = "FORMAT", default_value = "auto", help = format_help("The format"))]
    pub(crate) format: String,

    #[command(flatten)]
    pub(crate) times: TimesArgs,

    #[command(flatten)]
    pub(crate) semantics: SemanticsArgs,

    /// How long it may take [default: 60s]; what is left by then may not be minimal. For a run of the sql
    /// workload, how long it may take for each kind of anomaly [default: as long as it takes]
    #[arg(long, value_name = "D", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,

    /// The database that a run of the sql workload is run on again [default: that of the run]; several:
    /// its nodes
    #[arg(long, value_name = "URL")]
    pub(crate) db: Vec<String>,

    /// The format to write, or `rust` for a test [default: by the extension of the file, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,

    /// Write the part to this file, and explain it on standard output
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Write the proof that the part violates the level to a file, for `isolario verify`
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
}

/// The help of a command that writes a history.
pub(crate) fn with_extensions(examples: &str) -> String {
    let usual: Vec<_> = EXTENSIONS.iter().map(|(end, format)| format!(".{end} {format}")).collect();
    format!(
        "{examples}\n\nExtensions: {}.\nWhat the format cannot express is refused, never dropped.",
        usual.join(", ")
    )
}

fn format_help(what: &str) -> String {
    let names: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
    format!("{what}: auto (by content), {}", names.join(", "))
}
