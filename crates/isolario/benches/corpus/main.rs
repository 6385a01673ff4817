//! How long it takes to find out what is wrong with real histories, and to say it in few words.
//!
//! `ISOLARIO_CORPUS=DIR scripts/bench corpus`: the histories of CockroachDB, Galera and AntidoteDB that
//! the corpus knows to violate a level. Without a corpus there is nothing to measure.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolario::check::{CheckOptions, Checker};
use isolario::formats::{self, Source};
use isolario::model::{History, Level};
use isolario::report::{Human, Renderer, Report, Style};
use isolario_bench::{Align, Arguments, Failure, Table, judge};

/// What the verdict may take, and what it may take with the smallest argument in words: half of the
/// histories in milliseconds.
const TARGETS: [f64; 2] = [10.0, 200.0];

/// The level and the column of the manifest that has what is expected of it.
const LEVELS: [(Level, &str); 2] =
    [(Level::SnapshotIsolation, "exp_SI"), (Level::Serializable, "exp_SER")];

const GROUPS: [(&str, &str); 3] =
    [("CockroachDB", "roachdb"), ("Galera", "galera"), ("AntidoteDB", "antidote")];

fn main() -> Result<(), Failure> {
    let in_earnest = Arguments::of_process().in_earnest();
    let Some(corpus) = std::env::var_os("ISOLARIO_CORPUS").filter(|_| in_earnest) else {
        println!("set ISOLARIO_CORPUS to the directory of the corpus");
        return Ok(());
    };
    let registers = PathBuf::from(corpus).join("registers");
    let manifest = std::fs::read_to_string(registers.join("manifest.tsv"))?;
    let mut table = Table::new(&[
        ("database", Align::Left),
        ("level", Align::Left),
        ("histories", Align::Right),
        ("verdict, median ms", Align::Right),
        ("slowest", Align::Right),
        ("target", Align::Left),
        ("in words, median ms", Align::Right),
        ("slowest", Align::Right),
        ("target", Align::Left),
    ]);
    for (database, name) in GROUPS {
        for (level, column) in LEVELS {
            let paths = violated(&manifest, name, column)?;
            let times: Result<Vec<[f64; 2]>, Failure> =
                paths.iter().map(|path| measure(&registers.join(path), level)).collect();
            let (mut times, mut cells) = (times?, Vec::new());
            for (at, target) in TARGETS.into_iter().enumerate() {
                times.sort_by(|one, other| one[at].total_cmp(&other[at]));
                let of = |index: usize| times.get(index).map_or(0.0, |times| times[at]);
                let (middle, slowest) = (of(times.len() / 2), of(times.len().saturating_sub(1)));
                cells.extend([format!("{middle:.1}"), format!("{slowest:.1}")]);
                cells.push(format!("{target} ms {}", judge(middle <= target)));
            }
            let count = times.len().to_string();
            table.row([database.to_owned(), level.to_string(), count].into_iter().chain(cells));
        }
    }
    println!("{table}");
    Ok(())
}

/// The histories of a database that violate a level.
fn violated<'m>(manifest: &'m str, name: &str, column: &str) -> Result<Vec<&'m str>, Failure> {
    let mut lines = manifest.lines();
    let header = lines.next().unwrap_or_default();
    let at = header.split('\t').position(|other| other == column);
    let at = at.ok_or_else(|| format!("the manifest has no column {column}"))?;
    let path = |line: &'m str| {
        let path = line.split('\t').next()?;
        let group = path.split('/').next()?;
        (group.contains(name) && line.split('\t').nth(at) == Some("invalid")).then_some(path)
    };
    Ok(lines.filter_map(path).collect())
}

/// How long the verdict takes in milliseconds, once the history is there, and how long with the
/// smallest argument in words.
fn measure(path: &Path, level: Level) -> Result<[f64; 2], Failure> {
    let source = Source::open(path)?;
    let format = formats::sniff(&source).ok_or("no known format")?;
    let history = format.read(&source)?.history;
    let verdict = timed(|| check(&history, level, false).map(|_| ()))?;
    let told = timed(|| {
        let results = check(&history, level, true)?;
        let report = Report::new("history", &history, &results);
        Ok(Human::new(Style::Plain).report(&report, &mut std::io::sink())?)
    })?;
    Ok([verdict, told].map(|time| time.as_secs_f64() * 1e3))
}

fn check(
    history: &History,
    level: Level,
    minimize: bool,
) -> Result<Vec<isolario::model::LevelResult>, Failure> {
    let mut options = CheckOptions::default();
    options.minimize = minimize;
    let result = Checker::new(history, options).check(level);
    match result.verdict.is_violated() {
        true => Ok(vec![result]),
        false => Err(format!("{level} should be violated and is not").into()),
    }
}

fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Result<Duration, Failure> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}
