//! Many transactions at the strongest setting: how fast they pass, and whether the verdict holds.

use std::path::Path;

use isolario_bench::{Align, Effort, Failure, Table, judge, median};
use isolario_check::check;
use isolario_formats::read;
use isolario_model::{Level, Verdict};
use isolario_servers::{Durability, Kind as Server, Servers};
use isolario_verify::verify;
use isolario_workload::Kind;

use crate::Sizes;
use crate::work::{Run, Work, without_encryption};

/// By which it is selected.
pub const NAME: &str = "targets";

/// What SQLite is to reach, in transactions per second.
const SQLITE_PER_SECOND: f64 = 20_000.0;

const SESSIONS: u32 = 8;

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("{} mini-transactions, {SESSIONS} sessions", sizes.many);
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("level", Align::Left),
        ("run ms", Align::Right),
        ("per second", Align::Right),
        ("MB", Align::Right),
        ("load and check ms", Align::Right),
        ("MB", Align::Right),
        ("proof", Align::Left),
        ("target", Align::Left),
    ]);
    let postgres = Servers::start(Server::Postgres, Durability::Fast)?;
    for (name, url, level, target) in [
        ("SQLite", "sqlite:", Level::StrictSerializable, Some(SQLITE_PER_SECOND)),
        ("PostgreSQL", &without_encryption(&postgres), Level::Serializable, None),
    ] {
        let (file, history) = (directory.join("run"), directory.join("history.iso"));
        let run = Run {
            url: url.to_owned(),
            isolation: "serializable".to_owned(),
            kind: Kind::Mini,
            sessions: SESSIONS,
            txns: sizes.many,
            history: Some(history.clone()),
        };
        run.write(&file)?;
        let ran = median(&Work::Run, &file, 1, effort.runs)?;
        let checked = median(&Work::Check(level), &history, 2, effort.runs)?;
        let per_second = sizes.many as f64 / ran.wall.as_secs_f64();
        table.row([
            name.to_owned(),
            level.name().to_owned(),
            ran.wall.as_millis().to_string(),
            format!("{per_second:.0}"),
            format!("{:.0}", ran.peak_bytes as f64 / 1e6),
            checked.wall.as_millis().to_string(),
            format!("{:.0}", checked.peak_bytes as f64 / 1e6),
            proof(&history, level)?.to_owned(),
            target.map_or(String::new(), |target| judge(per_second >= target).to_owned()),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Whether the level is satisfied, by a proof that holds.
fn proof(history: &Path, level: Level) -> Result<&'static str, Failure> {
    let history = read(history)?.history;
    let result = check(&history, &[level], &isolario_check::CheckOptions::default()).remove(0);
    let holds = verify(&history, &result, &isolario_verify::VerifyOptions::default()).is_ok();
    Ok(match (&result.verdict, holds) {
        (Verdict::Satisfied(_), true) => "satisfied",
        (Verdict::Violated(_), true) => "VIOLATED",
        (_, true) => "UNDECIDED",
        (_, false) => "WRONG",
    })
}
