//! The `isolario-cluster` command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use isolario_cluster::{
    Answer, Conclusion, Error, Finding, Reason, Settings, check, from_table, serve, to_table,
    write_history,
};
use isolario_model::{Level, TxnId};

/// Histories as Parquet files, and their levels decided by query plans and windows
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a history as Parquet, or a Parquet file of operations as a history
    Convert {
        /// A history file, or a table: a Parquet file, or a directory of several
        from: PathBuf,
        /// `NAME.parquet`, a directory with --parts, or a history file
        to: PathBuf,
        /// Divide the keys among so many files
        #[arg(long, value_name = "N")]
        parts: Option<usize>,
    },
    /// Decide levels of the history in a table
    Check {
        /// A Parquet file of operations, or a directory of several
        table: PathBuf,
        /// The levels: rc, ra, cc, and where every write follows a read si, strong-si, ser, sser
        #[arg(long, value_name = "L", required = true, value_delimiter = ',', value_parser = level)]
        level: Vec<Level>,
        /// Write the parts that violate a level to this directory
        #[arg(long, value_name = "DIR")]
        evidence: Option<PathBuf>,
        /// Divide the parts of the table among so many processes
        #[arg(long, value_name = "N", default_value_t = 0)]
        workers: usize,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Carry out what `check --workers` asks for, line by line
    #[command(hide = true)]
    Work(EngineArgs),
}

#[derive(Args)]
struct EngineArgs {
    /// Mebibytes that plans may use before they go to disk
    #[arg(long, value_name = "MIB")]
    memory: Option<usize>,
    /// Partitions that are worked on at once [default: one per core]
    #[arg(long, value_name = "N")]
    partitions: Option<usize>,
    /// Where intermediate tables go [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
}

impl From<EngineArgs> for Settings {
    fn from(args: EngineArgs) -> Settings {
        let EngineArgs { memory, partitions, work } = args;
        Settings {
            memory: memory.map(|mebibytes| mebibytes << 20),
            partitions,
            work,
            ..Settings::default()
        }
    }
}

fn level(name: &str) -> Result<Level, String> {
    Level::find(name).ok_or_else(|| "there is no such level".to_owned())
}

/// How a command ended, in the order in which outcomes outweigh each other; the codes are those of `isolario`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Done,
    Undecided,
    Violated,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Violated) => ExitCode::from(1),
        Ok(Outcome::Undecided) => ExitCode::from(3),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<Outcome, Error> {
    match command {
        Command::Convert { from, to, parts } => convert(&from, &to, parts),
        Command::Work(engine) => {
            let input = std::io::stdin().lock();
            serve(&engine.into(), input, std::io::stdout().lock()).map(|()| Outcome::Done)
        }
        Command::Check { table, level, evidence, workers, engine } => {
            let settings = Settings { workers, ..engine.into() };
            let answers = check(&table, &level, &settings)?;
            let mut outcome = Outcome::Done;
            for answer in &answers {
                outcome = outcome.max(tell(answer, evidence.as_deref())?);
            }
            Ok(outcome)
        }
    }
}

fn convert(from: &Path, to: &Path, parts: Option<usize>) -> Result<Outcome, Error> {
    let is_parquet = to.extension().is_some_and(|extension| extension == "parquet");
    if !is_parquet && parts.is_none() {
        let count = from_table(from, to, &Settings::default())?;
        eprintln!("wrote {count} transactions to {}", to.display());
        return Ok(Outcome::Done);
    }
    let written = to_table(from, to, parts.unwrap_or(1))?;
    let (txns, ops) = (written.transactions, written.operations);
    eprintln!("wrote {txns} transactions with {ops} operations to {}", to.display());
    if written.shortened > 0 {
        eprintln!(
            "warning: the errors and database timestamps of {} transactions have no column",
            written.shortened
        );
    }
    Ok(Outcome::Done)
}

/// Prints an answer, and writes what shows it.
fn tell(answer: &Answer, evidence: Option<&Path>) -> Result<Outcome, Error> {
    let level = answer.level;
    let windows = match answer.windows {
        0 => "no windows".to_owned(),
        1 => format!("one window of {} transactions", answer.largest),
        count => format!("{count} windows, the largest of {} transactions", answer.largest),
    };
    if answer.too_large {
        eprintln!(
            "note: {level}: the largest window was checked by this process, since it is too large for a worker"
        );
    }
    match &answer.conclusion {
        Conclusion::Satisfied => {
            print(&format!("{level}: satisfied ({windows})"));
            Ok(Outcome::Done)
        }
        Conclusion::Violated(findings) => {
            print(&format!("{level}: violated"));
            for (finding, number) in findings.iter().zip(1..) {
                tell_finding(finding, level, number, evidence)?;
            }
            Ok(Outcome::Violated)
        }
        Conclusion::Undecided(reason) => {
            print(&format!("{level}: undecided: {}", why(*reason)));
            Ok(Outcome::Undecided)
        }
        _ => Ok(Outcome::Undecided),
    }
}

fn tell_finding(
    finding: &Finding,
    level: Level,
    number: usize,
    evidence: Option<&Path>,
) -> Result<(), Error> {
    let part = &finding.history;
    let kinds: Vec<_> =
        finding.result.verdict.anomalies().iter().map(|anomaly| anomaly.kind.to_string()).collect();
    let edges =
        finding.result.verdict.anomalies().iter().flat_map(|anomaly| anomaly.evidence.edges());
    let mut txns: Vec<TxnId> = edges.flat_map(|edge| [edge.from, edge.to]).collect();
    // A read that is wrong in itself has no edges, and a small part.
    if txns.is_empty() {
        txns = part.txns().collect();
    }
    txns.sort_unstable();
    txns.dedup();
    let mut names: Vec<String> = txns.iter().take(8).map(|txn| part.txn_label(*txn)).collect();
    if txns.len() > names.len() {
        names.push(format!("and {} more", txns.len() - names.len()));
    }
    print(&format!("  {}: {}", kinds.join(", "), names.join(" ")));
    let Some(directory) = evidence else { return Ok(()) };
    let failed = |source| Error::File { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let path = directory.join(format!("{}-{number}.iso", level.name()));
    write_history(part, &path)?;
    print(&format!("    isolario check --level {} {}", level.name(), path.display()));
    Ok(())
}

fn why(reason: Reason) -> String {
    let alone = "`isolario check` decides it on one machine";
    match reason {
        Reason::Ambiguous(txn) => {
            format!("transaction {txn} read what several may have written; {alone}")
        }
        Reason::SeveralInitial(txn) => {
            format!("transaction {txn} read one of several initial values of a key; {alone}")
        }
        Reason::BlindWrite(txn) => {
            format!("transaction {txn} wrote a key that it had not read; {alone}")
        }
        Reason::NoPlan => format!("there are no plans for this level; {alone}"),
        Reason::Between => {
            format!("read atomic holds, and snapshot isolation was not shown; {alone}")
        }
        Reason::NoTimes => "the history has no times".to_owned(),
        _ => format!("a part was left open; {alone}"),
    }
}

#[expect(clippy::print_stdout, reason = "what this command is for")]
fn print(line: &str) {
    println!("{line}");
}
