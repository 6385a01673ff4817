//! The table of targets: large histories, from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Job, Table, judge, median};

use crate::history::Recipe;
use crate::work::Work;

/// A history, and what the levels must reach on it, in seconds.
struct Target {
    /// By which it is selected.
    name: &'static str,
    recipe: Recipe,
    levels: &'static [(Level, f64)],
    /// What every level must stay under, beyond the mapped file.
    megabytes: f64,
    /// Whether it takes gigabytes of memory and disk, so that one has to ask for it.
    is_huge: bool,
}

static TARGETS: [Target; 4] = [
    Target {
        name: "weak",
        recipe: Recipe::general(1_000_000, 8, 10_000, "plume"),
        levels: &[(Level::ReadCommitted, 0.35), (Level::ReadAtomic, 0.4), (Level::Causal, 0.6)],
        megabytes: 800.0,
        is_huge: false,
    },
    Target {
        name: "huge",
        recipe: Recipe::general(12_500_000, 8, 100_000, "isolario"),
        levels: &[(Level::ReadCommitted, 5.0), (Level::ReadAtomic, 6.0), (Level::Causal, 6.0)],
        megabytes: 5_600.0,
        is_huge: true,
    },
    Target {
        name: "mini",
        recipe: Recipe::mini(10_000_000, 10_000, "isolario"),
        levels: &[
            (Level::Serializable, 2.0),
            (Level::SnapshotIsolation, 2.0),
            (Level::StrictSerializable, 2.0),
        ],
        megabytes: 5_000.0,
        is_huge: false,
    },
    Target {
        name: "general",
        recipe: Recipe::general(1_000_000, 20, 100_000, "isolario"),
        levels: &[(Level::Serializable, 2.5)],
        megabytes: 8_000.0,
        is_huge: false,
    },
];

/// Measures and prints the rows whose names begin as `part`; those that take gigabytes only if they are
/// wanted. Histories are smaller by `shrink`.
pub fn bench(
    part: &str,
    shrink: u64,
    with_huge: bool,
    effort: &Effort,
    directory: &Path,
) -> Result<(), Failure> {
    let wanted = |target: &&Target| target.name.starts_with(part) && (with_huge || !target.is_huge);
    if !TARGETS.iter().any(|target| wanted(&target)) {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("part", Align::Left),
        ("history", Align::Left),
        ("format", Align::Left),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("Mop/s", Align::Right),
        ("MB", Align::Right),
        ("x copy", Align::Right),
        ("target", Align::Left),
    ]);
    for Target { name, recipe, levels, megabytes, .. } in TARGETS.iter().filter(wanted) {
        let recipe = Recipe { txns: recipe.txns / shrink, ..*recipe };
        let file = directory.join(*name);
        let ops = recipe.write(&file)?;
        let floor = median(&Work::Copy, &file, effort.threads, effort.runs)?;
        let checks = levels.iter().map(|(level, limit)| (Work::LoadAndCheck(*level), Some(*limit)));
        for (work, limit) in [(Work::Copy, None), (Work::Load, None)].into_iter().chain(checks) {
            let sample = match work {
                Work::Copy => floor,
                _ => median(&work, &file, effort.threads, effort.runs)?,
            };
            let (wall, bytes) = (sample.wall.as_secs_f64(), sample.peak_bytes as f64 / 1e6);
            let target = limit.map_or_else(String::new, |limit| {
                let (time, memory) = (judge(wall <= limit), judge(bytes < *megabytes));
                format!("{limit} s {time}, {megabytes} MB {memory}")
            });
            table.row([
                (*name).to_owned(),
                recipe.title(),
                recipe.format.to_owned(),
                work.name(),
                format!("{:.1}", wall * 1e3),
                format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                format!("{:.2}", ops as f64 / wall / 1e6),
                format!("{bytes:.0}"),
                format!("{:.1}", wall / floor.wall.as_secs_f64()),
                target,
            ]);
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}
