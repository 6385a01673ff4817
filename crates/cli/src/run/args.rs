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
  isolario run                                embedded SQLite, mini-transactions
  isolario run --db postgres://user@host/db --isolation repeatable-read
  isolario run --db mysql://root@127.0.0.1/test --check si --stop-on-violation
  isolario run --db mysql://n1/t --db mysql://n2/t --db mysql://n3/t --sessions 30
  isolario run --workload append --duration 30s --rate 500
  isolario run --db postgres://user@host/db --isolation repeatable-read --aim write-skew --check ser
  isolario run --workload predicate --mix read:20,update:20,range-read:40,insert:20
  isolario run --workload tpcc --sql-tables --db postgres://user@host/db
  isolario run --workload predicate --db postgres://user@host/db --whitebox
  isolario run --hunt 60s                     many shapes of workloads, one after the other
  isolario run --host 2/3 --seed 7 --db …     the second of three hosts that stress one database
  isolario run --db 'exec:python3 driver.py'  a database of your own

Without --check, the history must satisfy what the database claims for that setting and workload.
A run leaves a directory: run.json, history.iso, verdict.json, proof, report.html; where something is
violated, also the few transactions that matter (shrunk.txt, shrunk.proof) and bug-report.md. Ctrl-C
ends it early and checks what was recorded.

Exit codes: 0 everything asked for is satisfied; 1 a violation was found; 2 an error, also of the
database; 3 undecided within the limits.";

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    #[arg(long, value_name = "URL", default_value = "sqlite:", help = db_help())]
    pub(crate) db: Vec<String>,

    /// The isolation level, by the database's own name [default: its strongest]
    #[arg(long, value_name = "NAME")]
    pub(crate) isolation: Option<String>,

    /// What the history must satisfy, or `all`; names and aliases as `isolario levels` lists them
    /// [default: what the database claims]
    #[arg(long, value_name = "L[,L...]", value_delimiter = ',')]
    pub(crate) check: Vec<String>,

    /// Also check against the database's own log: the order of versions, and the order it promises
    #[arg(long)]
    pub(crate) whitebox: bool,

    /// With --whitebox on PostgreSQL: a second transaction reads every row in the snapshot of each
    #[arg(long, requires = "whitebox")]
    pub(crate) shadow: bool,

    /// How long each level may take to decide
    #[arg(long, value_name = "D", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,

    /// The run directory [default: isolario-runs/TIME-SEED]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// How many anomalies to print in full
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) max_anomalies: usize,

    /// Shrink what is found until nothing more can go, however long that takes [default: for 5s]
    #[arg(long, overrides_with = "no_shrink")]
    pub(crate) shrink: bool,

    /// Do not look for the smallest part that shows what is found
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

    #[arg(
        long,
        value_name = "ANOMALY",
        conflicts_with_all = ["preset", "keys", "read_ratio", "distribution"],
        help = aim_help()
    )]
    pub(crate) aim: Option<String>,

    /// How many sessions, each with a connection [default: 8; 25 for general]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,

    /// How many transactions to commit, over all sessions [default: 10000; 5000 for general;
    /// none with --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) txns: Option<u64>,

    /// How long to run
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    /// Operations per transaction [default: 20 for general; 4 for append; 5 for predicate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) ops: Option<u32>,

    /// How many keys; for append, how many lists are in use at a time; for predicate, how many rows
    /// there may be [default: 10; 10000 for general; 1000 for predicate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: Option<u32>,

    /// The share of the keys that begin absent, and that new ones keep replacing (mini, general)
    /// [default: 0.5; 0 for presets]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) absent_ratio: Option<f64>,

    /// The share of reads; for mini, of read-only transactions [default: 0.5; 0.25 for mini]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) read_ratio: Option<f64>,

    /// The share of read-modify-writes (general) [default: 0]
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) rmw_ratio: Option<f64>,

    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help = SCALE)]
    pub(crate) scale: Option<u32>,

    /// Keep the rows of an application in SQL tables of its own, instead of as registers: PostgreSQL, MariaDB and
    /// MySQL, SQLite
    #[arg(long)]
    pub(crate) sql_tables: bool,

    /// How operations spread over keys: uniform, zipf:S, hotspot:H,O, exponential:L [default:
    /// uniform]
    #[arg(long, value_name = "D")]
    pub(crate) distribution: Option<String>,

    /// How long lists grow, on average, before new keys take their place (append) [default: 32]
    #[arg(long, value_name = "N")]
    pub(crate) list_length: Option<u32>,

    #[arg(long, value_name = "OP:SHARE,...", help = mix_help())]
    pub(crate) mix: Option<String>,

    /// The seed, which determines the operations; printed at the start and the end [default: a new
    /// one each time]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
}

/// How the clients are driven.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Driving")]
pub(crate) struct DriveArgs {
    /// Begin at most N transactions per second, over all sessions [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,

    /// Pause before each operation and each commit, for a random time up to D [default: no pause]
    #[arg(long, value_name = "D", value_parser = duration)]
    pub(crate) think: Option<Duration>,

    /// Make registers take at least N bytes, in embedded stores [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=16_777_216))]
    pub(crate) value_size: Option<u32>,

    /// How many times to retry a transaction that the database refused
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(0..=1000)
    )]
    pub(crate) max_retries: u32,

    /// How long the database may take to answer a statement, from 1ms to 24h
    #[arg(long, value_name = "D", value_parser = statement_timeout, default_value = "5s")]
    pub(crate) statement_timeout: Duration,

    /// Which of how many hosts this is, such as `2/3`: all stress one database together, with the same flags
    /// and seed, and `check --join` checks what they recorded
    #[arg(
        long,
        value_name = "K/N",
        value_parser = host,
        requires = "seed",
        conflicts_with_all = ["repeat", "hunt", "stop_on_violation", "whitebox", "shrink", "check"]
    )]
    pub(crate) host: Option<Host>,

    /// Check the history every few seconds as it grows, and stop at the first violation
    #[arg(long)]
    pub(crate) stop_on_violation: bool,

    /// Make trouble, one after the other: kill, pause, restart, lost power of the server; partition of clients
    /// from one node
    #[arg(long, value_name = "FAULT[,FAULT...]", value_delimiter = ',', conflicts_with = "host")]
    pub(crate) fault: Vec<String>,

    /// The command that starts the server, in the foreground; the run starts and stops it
    #[arg(long, value_name = "COMMAND", requires = "fault")]
    pub(crate) server: Option<String>,

    /// A file that begins with the process id of the server; somebody else starts it again when it ends
    #[arg(long, value_name = "FILE", requires = "fault", conflicts_with = "server")]
    pub(crate) server_pid: Option<PathBuf>,

    /// The directory of the files of the server, or of the store that crashes; when its power fails, what was not
    /// synced is lost (Linux)
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

    /// Go through workloads, keys, sessions, value sizes and pauses, until the time is up or the claim
    /// is broken
    #[arg(
        long,
        value_name = "D",
        value_parser = duration,
        conflicts_with_all = [
            "repeat", "stop_on_violation", "workload", "preset", "aim", "sessions", "txns", "duration", "ops",
            "keys", "read_ratio", "rmw_ratio", "distribution", "list_length", "mix", "think", "value_size", "fault",
            "sql_tables",
        ]
    )]
    pub(crate) hunt: Option<Duration>,

    /// End each phase of a hunt by killing the process that has the embedded store open; then open it again
    /// and read all keys
    #[arg(long, requires = "hunt", conflicts_with = "whitebox")]
    pub(crate) crash: bool,

    /// Drive the workload for somebody who is going to end this process, under this number
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) to_be_killed: Option<u64>,
}

pub(crate) fn db_help() -> String {
    let forms: Vec<_> = drivers().map(|driver| driver.form).collect();
    format!(
        "The database; repeat it to spread the sessions over several nodes: {}",
        forms.join(", ")
    )
}

fn mix_help() -> String {
    format!("How often each operation comes (predicate) [default: {}]", Mix::default())
}
