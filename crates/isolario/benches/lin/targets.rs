//! The table of targets: a large history, from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Job, Table, judge, median};

use crate::Sizes;
use crate::history::Recipe;
use crate::work::Work;

/// What the check must reach, in seconds.
const SECONDS: f64 = 0.5;

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!("{} single operations, 50 sessions", sizes.many_ops);
    let mut table = Table::new(&[
        ("history", Align::Left),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("MB", Align::Right),
        ("target", Align::Left),
    ]);
    let conditional = Recipe::CONDITIONAL;
    for (name, recipe, has_target) in [
        ("compare-and-sets, 1000 keys", conditional, true),
        ("compare-and-sets, one key", Recipe { keys: 1, ..conditional }, true),
        ("of which 1 % unknown", Recipe { unknown_ratio: 0.01, ..conditional }, true),
        ("reads and plain writes, 1000 keys", Recipe::PLAIN, false),
    ] {
        let file = directory.join("targets");
        Recipe { ops: sizes.many_ops, ..recipe }.write(&file)?;
        let level = Level::Linearizable;
        for (work, is_target) in [
            (Work::Load, false),
            (Work::Check(level), has_target),
            (Work::LoadAndCheck(level), false),
        ] {
            let sample = median(&work, &file, effort.threads, effort.runs)?;
            let wall = sample.wall.as_secs_f64();
            table.row([
                name.to_owned(),
                work.name(),
                format!("{:.1}", wall * 1e3),
                format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                format!("{:.0}", sample.peak_bytes as f64 / 1e6),
                if is_target {
                    format!("{SECONDS} s {}", judge(wall <= SECONDS))
                } else {
                    String::new()
                },
            ]);
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}
