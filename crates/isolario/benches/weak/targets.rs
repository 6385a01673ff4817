//! The table of targets: a large history, from a file to a verdict.

use std::path::Path;

use isolario::model::Level;
use isolario_bench::{Align, Effort, Failure, Sample, Table, judge, median};
use isolario_sim::Distribution;

use crate::Sizes;
use crate::history::{KEYS, OPS_PER_TXN, Recipe, SESSIONS};
use crate::work::Work;

/// What each level must reach with both cores, in seconds.
const SECONDS: [(Level, f64); 3] =
    [(Level::ReadCommitted, 0.8), (Level::ReadAtomic, 0.9), (Level::Causal, 1.8)];
/// What each must stay under, beyond the mapped file.
const MEGABYTES: f64 = 800.0;
const TARGET_THREADS: usize = 2;

/// Measures and prints the table.
pub fn bench(sizes: &Sizes, effort: &Effort, directory: &Path) -> Result<(), Failure> {
    let txns = sizes.txns;
    println!(
        "Load and check: {txns} transactions of {OPS_PER_TXN} operations, {SESSIONS} sessions, {KEYS} keys"
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
        let ops = Recipe::simulated(txns, SESSIONS, OPS_PER_TXN, distribution).write(&file)?;
        for threads in [TARGET_THREADS, 1] {
            for row in rows(&file, ops, threads, effort.runs)? {
                let first = [distribution.to_string(), threads.to_string()];
                table.row(first.into_iter().chain(row));
            }
        }
        std::fs::remove_file(&file)?;
    }
    println!("{table}");
    Ok(())
}

/// The rows of one history with so many threads, the floor first.
fn rows(file: &Path, ops: u64, threads: usize, runs: usize) -> Result<Vec<[String; 7]>, Failure> {
    let floor = median(&Work::Count, file, threads, runs)?;
    let row = |job: String, sample: &Sample, target: String| {
        let seconds = sample.wall.as_secs_f64();
        [
            job,
            format!("{:.1}", seconds * 1e3),
            format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
            format!("{:.2}", ops as f64 / seconds / 1e6),
            format!("{:.0}", sample.peak_bytes as f64 / 1e6),
            format!("{:.1}", seconds / floor.wall.as_secs_f64()),
            target,
        ]
    };
    let load = median(&Work::Load, file, threads, runs)?;
    let mut rows = vec![
        row("count".to_owned(), &floor, String::new()),
        row("load".to_owned(), &load, String::new()),
    ];
    for (level, limit) in SECONDS {
        let sample = median(&Work::LoadAndCheck(level), file, threads, runs)?;
        let met = if threads == TARGET_THREADS { met(&sample, limit) } else { String::new() };
        rows.push(row(format!("load + {level}"), &sample, met));
    }
    Ok(rows)
}

/// Whether the targets were met.
fn met(sample: &Sample, seconds: f64) -> String {
    format!(
        "{seconds} s {}, {MEGABYTES} MB {}",
        judge(sample.wall.as_secs_f64() <= seconds),
        judge(sample.peak_bytes as f64 / 1e6 < MEGABYTES)
    )
}
