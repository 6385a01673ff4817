//! The table of targets: large histories, from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Table, judge, median};
use isolario_sim::Distribution;

use crate::Sizes;
use crate::history::Recipe;
use crate::work::Work;

/// What each level must stay under, beyond the mapped file.
const MEGABYTES: f64 = 800.0;

/// A file, and what each of these levels must reach on it, in seconds.
struct Target {
    recipe: Recipe,
    levels: &'static [Level],
    seconds: f64,
}

const SERIAL: Level = Level::Serializable;
const SNAPSHOT: Level = Level::SnapshotIsolation;
const STRICT: Level = Level::StrictSerializable;

fn targets(sizes: &Sizes) -> Vec<Target> {
    let mut targets = Vec::new();
    for distribution in
        [Distribution::Zipf { exponent: 0.99 }, Distribution::Exponential { rate: 10.0 }]
    {
        let base = Recipe { txns: sizes.txns, distribution, ..Recipe::default() };
        // Plume text has no times, so that the strict level takes another text.
        let formats: [(&str, &[Level]); 3] = [
            ("plume", &[SERIAL, SNAPSHOT]),
            ("text", &[STRICT]),
            ("isolario", &[SERIAL, SNAPSHOT, STRICT]),
        ];
        targets.extend(formats.map(|(format, levels)| Target {
            recipe: Recipe { format, ..base },
            levels,
            seconds: 0.8,
        }));
    }
    let many = Recipe { txns: sizes.many_txns, ..Recipe::default() };
    targets.push(Target { recipe: many, levels: &[SERIAL, SNAPSHOT, STRICT], seconds: 6.0 });
    targets
}

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("Load and check mini-transactions, 50 sessions, 10000 keys");
    let mut table = Table::new(&[
        ("transactions", Align::Right),
        ("keys", Align::Left),
        ("format", Align::Left),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("MB", Align::Right),
        ("target", Align::Left),
    ]);
    for Target { recipe, levels, seconds } in targets(sizes) {
        let file = directory.join("targets");
        recipe.write(&file)?;
        let checks = levels.iter().map(|level| (Work::LoadAndCheck(*level), Some(seconds)));
        for (work, limit) in [(Work::Load, None)].into_iter().chain(checks) {
            let sample = median(&work, &file, effort.threads, effort.runs)?;
            let (wall, bytes) = (sample.wall.as_secs_f64(), sample.peak_bytes as f64 / 1e6);
            let target = limit.map_or_else(String::new, |limit| {
                let memory = if recipe.txns > 1_000_000 {
                    String::new()
                } else {
                    format!(", {MEGABYTES} MB {}", judge(bytes < MEGABYTES))
                };
                format!("{limit} s {}{memory}", judge(wall <= limit))
            });
            table.row([
                recipe.txns.to_string(),
                recipe.distribution.to_string(),
                recipe.format.to_owned(),
                isolario_bench::Job::name(&work),
                format!("{:.1}", wall * 1e3),
                format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                format!("{bytes:.0}"),
                target,
            ]);
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}
