//! Mini-transactions against general ones on PostgreSQL: aborts, time and memory, as in Figures
//! 10, 11 and 17 of the MTC paper.

use std::path::Path;

use isolario_bench::{Align, Effort, Failure, Table, median};
use isolario_check::check;
use isolario_formats::read;
use isolario_model::{History, Level, Outcome, Verdict};
use isolario_servers::{Durability, Kind as Server, Servers};
use isolario_workload::Kind;

use crate::Sizes;
use crate::work::{Run, Work, without_encryption};

/// By which it is selected.
pub const NAME: &str = "workloads";

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("{} transactions on PostgreSQL, without retries", sizes.compared);
    let mut table = Table::new(&[
        ("setting", Align::Left),
        ("level", Align::Left),
        ("workload", Align::Left),
        ("sessions", Align::Right),
        ("aborted", Align::Right),
        ("run ms", Align::Right),
        ("MB", Align::Right),
        ("load and check ms", Align::Right),
        ("MB", Align::Right),
        ("verdict", Align::Left),
    ]);
    let postgres = Servers::start(Server::Postgres, Durability::Fast)?;
    let (file, history) = (directory.join("run"), directory.join("history.iso"));
    for (isolation, level) in
        [("repeatable-read", Level::SnapshotIsolation), ("serializable", Level::Serializable)]
    {
        for &sessions in &sizes.sessions {
            for kind in [Kind::Mini, Kind::General] {
                let run = Run {
                    url: without_encryption(&postgres),
                    isolation: isolation.to_owned(),
                    kind,
                    sessions,
                    txns: sizes.compared,
                    history: Some(history.clone()),
                };
                run.write(&file)?;
                let ran = median(&Work::Run, &file, 1, effort.runs)?;
                let checked = median(&Work::Check(level), &history, 2, effort.runs)?;
                let recorded = read(&history)?.history;
                table.row([
                    isolation.to_owned(),
                    level.name().to_owned(),
                    kind.name().to_owned(),
                    sessions.to_string(),
                    format!("{:.1}%", aborted(&recorded) * 100.0),
                    ran.wall.as_millis().to_string(),
                    format!("{:.0}", ran.peak_bytes as f64 / 1e6),
                    checked.wall.as_millis().to_string(),
                    format!("{:.0}", checked.peak_bytes as f64 / 1e6),
                    verdict(&recorded, level).to_owned(),
                ]);
            }
        }
    }
    println!("{table}");
    Ok(())
}

/// The share of transactions that the database refused.
fn aborted(history: &History) -> f64 {
    let aborted = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Aborted).count();
    aborted as f64 / history.txns().count().max(1) as f64
}

fn verdict(history: &History, level: Level) -> &'static str {
    let options = isolario_check::CheckOptions::default();
    match check(history, &[level], &options).remove(0).verdict {
        Verdict::Satisfied(_) => "satisfied",
        Verdict::Violated(_) => "violated",
        Verdict::NotApplicable(_) => "not applicable",
        _ => "undecided",
    }
}
