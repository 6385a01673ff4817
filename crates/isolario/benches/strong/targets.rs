//! The table of targets: from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Table, judge, median};

use crate::history::{Clues, Recipe};
use crate::question::Question;

const SER: Level = Level::Serializable;
const SI: Level = Level::SnapshotIsolation;

/// A history, and what the levels must reach on it.
struct Target {
    recipe: Recipe,
    levels: &'static [Level],
    seconds: f64,
    megabytes: Option<f64>,
}

const fn recipe(name: &'static str, txns: u64, ops: u32, keys: u32, reads: f64) -> Recipe {
    Recipe { name, txns, sessions: 24, ops, keys, reads, duplicates: 0.0 }
}

/// That which is measured with and without the order of its versions.
pub const WRITES_95: Recipe = recipe("writes-95", 10_000, 20, 10_000, 0.05);

/// Reads that may have seen several writes.
const fn duplicates(name: &'static str, txns: u64, ops: u32, keys: u32, share: f64) -> Recipe {
    Recipe { sessions: 50, duplicates: share, ..recipe(name, txns, ops, keys, 0.5) }
}

static TARGETS: [Target; 10] = [
    Target {
        recipe: duplicates("duplicates-10", 10_000, 20, 5_000, 0.1),
        levels: &[SER],
        seconds: 1.5,
        megabytes: None,
    },
    Target {
        recipe: duplicates("duplicates-10", 10_000, 20, 5_000, 0.1),
        levels: &[SI],
        seconds: 2.0,
        megabytes: None,
    },
    Target {
        recipe: duplicates("duplicates-1", 100_000, 8, 20_000, 0.01),
        levels: &[SER, SI],
        seconds: 3.0,
        megabytes: None,
    },
    Target {
        recipe: recipe("blindw-rw", 10_000, 8, 10_000, 0.5),
        levels: &[SER, SI],
        seconds: 0.15,
        megabytes: None,
    },
    Target { recipe: WRITES_95, levels: &[SER, SI], seconds: 0.6, megabytes: None },
    Target {
        recipe: Recipe { sessions: 25, ..recipe("general-wh", 16_000, 20, 10_000, 0.3) },
        levels: &[SER, SI],
        seconds: 1.0,
        megabytes: None,
    },
    Target {
        recipe: recipe("large-half", 100_000, 20, 10_000, 0.5),
        levels: &[SER],
        seconds: 8.0,
        megabytes: Some(1000.0),
    },
    Target {
        recipe: recipe("large-writes-70", 100_000, 20, 10_000, 0.3),
        levels: &[SER, SI],
        seconds: 15.0,
        megabytes: Some(1500.0),
    },
    Target {
        recipe: recipe("contention", 2_000, 8, 20, 0.5),
        levels: &[SER, SI],
        seconds: 2.0,
        megabytes: None,
    },
    Target {
        recipe: recipe("million", 1_000_000, 8, 100_000, 0.5),
        levels: &[SI],
        seconds: 120.0,
        megabytes: Some(8000.0),
    },
];

/// Measures and prints the table; the million only in full.
pub fn bench(
    part: &str,
    shrink: u64,
    full: bool,
    effort: &Effort,
    directory: &Path,
) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("history", Align::Left),
        ("transactions", Align::Right),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("MB", Align::Right),
        ("target", Align::Left),
    ]);
    let chosen = |target: &&Target| {
        target.recipe.name.starts_with(part) && (full || target.recipe.txns < 1_000_000)
    };
    if !TARGETS.iter().any(|target| chosen(&target)) {
        return Ok(());
    }
    for Target { recipe, levels, seconds, megabytes } in TARGETS.iter().filter(chosen) {
        for level in *levels {
            let file = directory.join("history.iso");
            recipe.write(*level, shrink, Clues { times: true, versions: 0.0 }, &file)?;
            let work = Question::of(*level);
            let sample = median(&work, &file, effort.threads, effort.runs)?;
            let (wall, bytes) = (sample.wall.as_secs_f64(), sample.peak_bytes as f64 / 1e6);
            let memory = megabytes
                .map_or_else(String::new, |most| format!(", {most} MB {}", judge(bytes < most)));
            table.row([
                recipe.name.to_owned(),
                (recipe.txns / shrink).to_string(),
                isolario_bench::Job::name(&work),
                format!("{:.1}", wall * 1e3),
                format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                format!("{bytes:.0}"),
                format!("{seconds} s {}{memory}", judge(wall <= *seconds)),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}
