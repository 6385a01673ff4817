//! The table of targets: a large history, from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Failure, Sample, Table, judge, median};
use isolario_sim::Distribution;

use crate::Effort;
use crate::history::{KEYS, OPS_PER_TXN, Recipe, SESSIONS};
use crate::job::Work;

/// What each level must reach with both cores, in seconds.
const SECONDS: [(Level, f64); 3] =
    [(Level::ReadCommitted, 0.8), (Level::ReadAtomic, 0.9), (Level::Causal, 1.8)];
/// What each must stay under, beyond the mapped file.
const MEGABYTES: f64 = 800.0;
const TARGET_THREADS: usize = 2;

/// Measures and prints the table.
pub fn bench(effort: &Effort, directory: &Path) -> Result<(), Failure> {
    println!(
        "Load and check: {} transactions of {OPS_PER_TXN} operations, {SESSIONS} sessions, {KEYS} keys",
        effort.txns
    );
    let mut table = Table::new(&[
        ("keys", Align::Left),
        ("threads", Align::Right),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("Mop/s", Align::Right),
        ("MB", Align::Right),
        ("x count", Align::Right),
        ("target", Align::Left),
    ]);
    for distribution in [Distribution::Uniform, Distribution::Zipf { exponent: 0.99 }] {
        let file = directory.join("targets");
        let ops =
            Recipe::simulated(effort.txns, SESSIONS, OPS_PER_TXN, distribution).write(&file)?;
        for threads in [2, 1] {
            let floor = median(&Work::Count, &file, threads, effort.runs)?;
            let mut row = |job: &str, sample: &Sample, target: String| {
                let seconds = sample.wall.as_secs_f64();
                table.row([
                    distribution.to_string(),
                    threads.to_string(),
                    job.to_owned(),
                    format!("{:.1}", seconds * 1e3),
                    format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                    format!("{:.2}", ops as f64 / seconds / 1e6),
                    format!("{:.0}", sample.peak_bytes as f64 / 1e6),
                    format!("{:.1}", seconds / floor.wall.as_secs_f64()),
                    target,
                ]);
            };
            row("count", &floor, String::new());
            row("load", &median(&Work::Load, &file, threads, effort.runs)?, String::new());
            for (level, limit) in SECONDS {
                let work = Work::LoadAndCheck(level);
                let sample = median(&work, &file, threads, effort.runs)?;
                let met =
                    if threads == TARGET_THREADS { met(&sample, limit) } else { String::new() };
                row(&format!("load + {level}"), &sample, met);
            }
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}

/// Whether the targets were met.
fn met(sample: &Sample, seconds: f64) -> String {
    format!(
        "{seconds} s {}, {MEGABYTES} MB {}",
        judge(sample.wall.as_secs_f64() <= seconds),
        judge(sample.peak_bytes as f64 / 1e6 < MEGABYTES)
    )
}
