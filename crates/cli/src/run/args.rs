//! The flags of `isolario run`, as they are typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use isolario::db::drivers;
use isolario::run::Host;
use isolario::workload::Mix;

use super::part::host;
use super::relational::SqlArgs;
use crate::units::{duration, share, statement_timeout};
use crate::workload_flags::{SCALE, SQL, aim_help, preset_help, workload_help};

pub(crate) const EXAMPLES: &str = "\
Examples:
  isolario run                                mini-transactions on embedded SQLite
  isolario run --db postgres://user@host/db --isolation repeatable-read
  isolario run --db mysql://root@127.0.0.1/test --check si --stop-on-violation
  isolario run --db mysql://n1/t --db mysql://n2/t --db mysql://n3/t --sessions 30
  isolario run --workload append --duration 30s --rate 500
  isolario run --db postgres://user@host/db --isolation repeatable-read --aim write-skew --check ser
  isolario run --workload predicate --mix read:20,update:20,range-read:40,insert:20
  isolario run --workload tpcc --sql-tables --db postgres://user@host/db
  isolario run --workload predicate --db postgres://user@host/db --whitebox
  isolario run --again isolario-runs/TIME-SEED  repeat a run
  isolario run --hunt 60s                     many workloads and settings, one after another
  isolario run --host 2/3 --seed 7 --db …     the second of three hosts that stress one database
  isolario run --db 'exec:python3 driver.py'  any database, through your own driver

Without --check, the history must satisfy the levels that the database claims for the workload at
that isolation level. A run writes a directory with run.json, history.iso, verdict.json, proof and
report.html; after a violation, also the few transactions that show it (shrunk.txt, shrunk.proof)
and bug-report.md. Ctrl-C ends a run early; what was recorded until then is checked.

Exit codes: 0 every requested level is satisfied; 1 a violation was found; 2 an error, including one
of the database; 3 undecided: a limit was reached first.";

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    #[arg(long, value_name = "URL", default_value = "sqlite:", help = db_help())]
    pub(crate) db: Vec<String>,

    /// Repeat the run that left DIR: with all flags of its recorded command, but for those that are given here.
    /// They are printed first: among them may be commands that will be run (--server, --db exec:…). Passwords are
    /// not recorded; give --db for a database that needs one. Of --hunt and --repeat, each run is repeated by itself;
    /// one that ended with --crash cannot be
    #[arg(long, value_name = "DIR")]
    pub(crate) again: Option<PathBuf>,

    /// Isolation level, by the name that the database uses [default: its strongest]
    #[arg(long, value_name = "NAME")]
    pub(crate) isolation: Option<String>,

    /// Levels that the history must satisfy: names or aliases from `isolario levels`, or `all`
    /// [default: the levels that the database claims]
    #[arg(long, value_name = "L[,L...]", value_delimiter = ',')]
    pub(crate) check: Vec<String>,

    /// Also check against the database's own log: its order of versions, and the order of
    /// transactions that the database promises
    #[arg(long)]
    pub(crate) whitebox: bool,

    /// With --whitebox on PostgreSQL: confirm each transaction's snapshot with a second transaction
    /// that reads all rows in it
    #[arg(long, requires = "whitebox")]
    pub(crate) shadow: bool,

    /// Time limit for checking each level
    #[arg(long, value_name = "D", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,

    /// Run directory [default: isolario-runs/TIME-SEED]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Maximum number of anomalies to print in full
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_anomalies: usize,

    /// Shrink a violation until it is minimal, however long that takes [default: stop after 5s]
    #[arg(long, overrides_with = "no_shrink")]
    pub(crate) shrink: bool,

    /// Do not shrink violations
    #[arg(long, overrides_with = "shrink")]
    pub(crate) no_shrink: bool,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    #[command(flatten)]
    pub(crate) drive: DriveArgs,

    #[command(flatten)]
    pub(crate) sql: SqlArgs,
}

/// What the clients ask for.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Workload")]
pub(crate) struct ShapeArgs {
    #[arg(long, value_name = "KIND", help = workload_help(&[SQL]))]
    pub(crate) workload: Option<String>,

    #[arg(long, value_name = "NAME", help = preset_help())]
    pub(crate) preset: Option<String>,

    #[arg(long, value_name = "ANOMALY", help = aim_help())]
    pub(crate) aim: Option<String>,

    /// Number of sessions, each with a connection of its own [default: 8; 25 for general]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,

    /// Number of transactions to commit, over all sessions [default: 10000; 5000 for general; no limit
    /// with --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) txns: Option<u64>,

    /// Duration of the run, such as `30s`
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    /// Operations per transaction [default: 20 for general; 4 for
    /// append; 5 for predicate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) ops: Option<u32>,

    /// Number of keys; for append, of lists in use at a time; for predicate, maximum number of rows
    /// [default: 10; 10000 for general; 1000 for predicate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: Option<u32>,

    /// Share of the keys that start absent; each is replaced by a new absent key after about four
    /// writes (mini, general) [default: 0.5; 0 for presets]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) absent_ratio: Option<f64>,

    /// Share of slow transactions, which let up to 20 others commit after their first read and then
    /// access a key that is about to come into use (mini, general) [default: 0.1; 0 for presets]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) slow_ratio: Option<f64>,

    /// Share of reads; for mini, of read-only transactions [default: 0.5; 0.25 for mini]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) read_ratio: Option<f64>,

    /// Share of read-modify-writes [default: 0]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) rmw_ratio: Option<f64>,

    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help = SCALE)]
    pub(crate) scale: Option<u32>,

    /// Keep the rows of an application in SQL tables instead of registers (PostgreSQL, MariaDB,
    /// MySQL, SQLite)
    #[arg(long)]
    pub(crate) sql_tables: bool,

    /// Distribution of operations over keys: uniform; zipf:S, with exponent S; hotspot:H,O, with
    /// share O of the operations on share H of the keys; exponential:L, with rate L [default:
    /// uniform]
    #[arg(long, value_name = "DISTRIBUTION")]
    pub(crate) distribution: Option<String>,

    /// Average number of elements that a list receives before a list under a new key replaces it
    /// [default: 32]
    #[arg(long, value_name = "N")]
    pub(crate) list_length: Option<u32>,

    #[arg(long, value_name = "OP:SHARE,...", help = mix_help())]
    pub(crate) mix: Option<String>,

    /// Seed that determines the operations; printed at the start and the end [default: a new one each
    /// time]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
}

/// How the clients are driven.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Execution")]
pub(crate) struct DriveArgs {
    /// Begin at most N transactions per second, over all sessions [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,

    /// Pause for a random time of at most D before each operation and each commit [default: no pause]
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) think: Option<Duration>,

    /// Minimum size of a register in bytes (embedded stores only) [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=16_777_216))]
    pub(crate) value_size: Option<u32>,

    /// Maximum number of retries of a transaction that the database refused
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(0..=1000)
    )]
    pub(crate) max_retries: u32,

    /// Time limit for the database to answer a statement, from 1ms to 24h
    #[arg(long, value_name = "D", value_parser = statement_timeout, default_value = "5s")]
    pub(crate) statement_timeout: Duration,

    /// Run as host K of N, such as `2/3`: all N hosts stress one database together, with the same
    /// flags and seed; `check --join` then checks what they recorded
    #[arg(
        long,
        value_name = "K/N",
        value_parser = host,
        requires = "seed"
    )]
    pub(crate) host: Option<Host>,

    /// Check the history every few seconds as it grows, and stop at the first violation
    #[arg(long)]
    pub(crate) stop_on_violation: bool,

    /// Faults to inject, one after another: kill, pause, restart, power (a power loss of the server),
    /// partition (of the clients from one node)
    #[arg(long, value_name = "FAULT[,FAULT...]", value_delimiter = ',')]
    pub(crate) fault: Vec<String>,

    /// Command that runs the server in the foreground; the run starts and stops the server with it
    #[arg(long, value_name = "COMMAND", requires = "fault")]
    pub(crate) server: Option<String>,

    /// File that begins with the process ID of a server that is already running; a supervisor must
    /// restart the server when that process ends
    #[arg(long, value_name = "FILE", requires = "fault", conflicts_with = "server")]
    pub(crate) server_pid: Option<PathBuf>,

    /// Directory with the files of the server (--fault power) or of the store (--crash); everything
    /// in it that was not synced is lost when the power fails (Linux)
    #[arg(long, value_name = "DIR")]
    pub(crate) disk: Option<PathBuf>,

    /// Run N times, with consecutive seeds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub(crate) repeat: u64,

    /// Vary the workload, the numbers of keys and sessions, value sizes and pauses, until D has
    /// passed or a violation of what the database claims is found
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) hunt: Option<Duration>,

    /// End each phase of a hunt by killing the process that has the embedded store open; then reopen the
    /// store and read all keys
    #[arg(long, requires = "hunt")]
    pub(crate) crash: bool,

    /// Drive the workload as a process that its parent will kill, under this number
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) to_be_killed: Option<u64>,
}

pub(crate) fn db_help() -> String {
    let forms: Vec<_> = drivers().map(|driver| driver.form).collect();
    format!(
        "URL of the database; repeat the flag to spread the sessions over several nodes. One of: {}",
        forms.join(", ")
    )
}

fn mix_help() -> String {
    format!("Relative frequency of each operation [default for predicate: {}]", Mix::default())
}
