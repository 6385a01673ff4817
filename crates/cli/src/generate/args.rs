//! The flags of `isolario gen`, as they are typed.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use isolario::sim::{Config, Mix, Workload};

use crate::args::with_extensions;
use crate::units::share;
use crate::workload_flags::{SCALE, preset_help, workload_help};

pub(crate) const EXAMPLES: &str = "\
Examples:
  isolario gen history                        1000 serializable transactions, as JSON lines
  isolario gen history --level causal --txns 1000000 -o causal.iso
  isolario gen history --anomaly LostUpdate -o lost.txt
  isolario gen history --workload append --keys 20 -o lists.edn
  isolario gen history --preset general-rh --sessions 50 -o general-rh.iso
  isolario gen history --workload predicate --anomaly predicate-write-skew -o skew.iso

The same options give the same history, byte for byte. Options override those of a preset. A
planted anomaly has keys and sessions of its own; the rest of the history satisfies the level.";

/// What to generate.
#[derive(Debug, Subcommand)]
pub(crate) enum GenArgs {
    /// Generate a history that satisfies a level, optionally with planted anomalies
    #[command(after_help = with_extensions(EXAMPLES))]
    History(Box<HistoryArgs>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// Level that the history satisfies: a name or alias from `isolario levels`
    #[arg(long, value_name = "L", default_value = "serializable")]
    pub(crate) level: String,

    /// Anomalies to plant: names from `isolario explain`; with the predicate workload, phantom or
    /// predicate-write-skew
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',')]
    pub(crate) anomaly: Vec<String>,

    #[arg(long, value_name = "KIND", help = workload_help(&[]))]
    pub(crate) workload: Option<String>,

    #[arg(long, value_name = "NAME", help = preset_help())]
    pub(crate) preset: Option<String>,

    #[arg(
        long,
        value_name = "N",
        help = or(
            "Number of transactions, whatever their outcome, not counting planted ones",
            defaults().txns
        )
    )]
    pub(crate) txns: Option<u64>,

    // Each session is kept in memory; a million is more than any database has clients.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        help = or(
            "Number of sessions, not counting those of planted anomalies",
            defaults().sessions
        )
    )]
    pub(crate) sessions: Option<u32>,

    // A transaction is kept in memory as a whole.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        help = or(
            "Operations per transaction",
            format!("{}; 5 for predicate", shape().ops)
        )
    )]
    pub(crate) ops: Option<u32>,

    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        help = or("Number of keys; for append, of lists in use at a time", shape().keys)
    )]
    pub(crate) keys: Option<u32>,

    #[arg(
        long,
        value_name = "R",
        value_parser = share,
        help = or("Share of reads; for mini, of read-only transactions", shape().read_ratio)
    )]
    pub(crate) read_ratio: Option<f64>,

    #[arg(
        long,
        value_name = "R",
        value_parser = share,
        help = or("Share of read-modify-writes", shape().rmw_ratio)
    )]
    pub(crate) rmw_ratio: Option<f64>,

    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help = or(
            "Distribution of operations over keys: uniform; zipf:S, with exponent S; \
             hotspot:H,O, with share O of the operations on share H of the keys; exponential:L, \
             with rate L",
            shape().distribution
        )
    )]
    pub(crate) distribution: Option<String>,

    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help = SCALE)]
    pub(crate) scale: Option<u32>,

    #[arg(
        long,
        value_name = "OP:SHARE,...",
        help = or("Relative frequency of each operation", Mix::default())
    )]
    pub(crate) mix: Option<String>,

    /// Defect to simulate in the store: predicate-lock, stale-scan, lost-delete
    #[arg(long, value_name = "NAME")]
    pub(crate) defect: Option<String>,

    /// Share of the sessions that have a transaction in progress at any time
    #[arg(long, value_name = "R", value_parser = share, default_value = "1")]
    pub(crate) concurrency: f64,

    /// Share of the transactions that abort
    #[arg(long, value_name = "R", value_parser = share, default_value = "0")]
    pub(crate) abort_ratio: f64,

    /// Share of the transactions whose outcome the client never learns
    #[arg(long, value_name = "R", value_parser = share, default_value = "0")]
    pub(crate) unknown_ratio: f64,

    #[arg(
        long,
        value_name = "R",
        value_parser = share,
        help = or(
            "Share of the writes that repeat a value",
            shape().duplicate_ratio
        )
    )]
    pub(crate) duplicate_ratio: Option<f64>,

    /// Seed; a different seed gives a different history
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Format to write [default: by the extension of FILE; jsonl on standard output]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// File or directory to write; `-` is standard output
    #[arg(short = 'o', value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,

    /// Also write the true order of versions, for `isolario check --version-order`
    #[arg(long, value_name = "FILE")]
    pub(crate) version_order_out: Option<PathBuf>,

    /// Share of the versions to write to the file of --version-order-out
    #[arg(
        long,
        value_name = "R",
        value_parser = share,
        default_value = "1",
        requires = "version_order_out"
    )]
    pub(crate) version_order_ratio: f64,

    /// Also write the true order of transactions, for `isolario check --serialization-order`
    #[arg(long, value_name = "FILE")]
    pub(crate) serialization_order_out: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

fn defaults() -> Config {
    Config::default()
}

fn shape() -> Workload {
    Workload::default()
}

/// A help text with the default of a flag that a preset may set as well.
fn or(help: &str, default: impl Display) -> String {
    format!("{help} [default: {default}]")
}
