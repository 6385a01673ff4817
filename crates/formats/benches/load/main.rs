//! How fast and in how much memory a large register history is loaded.
//!
//! `cargo bench -p isolario-formats --bench load [-- --txns N]`, or `scripts/bench load`. Without
//! `--bench`, which cargo adds, it only checks on a small history that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod job;
mod synthesis;

use std::path::Path;

use isolario_bench::{Align, Arguments, Failure, Sample, Table, answer_if_child, judge, median};
use isolario_formats::{HistoryFormat, OutputTarget, Source};
use isolario_model::History;

use job::Work;

const TXNS: u64 = 1_000_000;
const TXNS_WHEN_ONLY_TESTED: u64 = 1_000;
const THREADS: [usize; 2] = [1, 2];
const RUNS: usize = 5;

/// What a format must reach with both cores, and how to tell.
struct Target2Cores {
    format: &'static str,
    speed: &'static str,
    reached: fn(seconds: f64, megabytes: f64) -> bool,
}

const TARGETS: [Target2Cores; 2] = [
    Target2Cores {
        format: "plume",
        speed: "400 MB/s",
        reached: |seconds, megabytes| megabytes / seconds >= 400.0,
    },
    Target2Cores { format: "isolario", speed: "0.3 s", reached: |seconds, _| seconds < 0.3 },
];

const BYTES_PER_OP: f64 = 60.0;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if let Some(answer) = answer_if_child::<Work>(&arguments)? {
        println!("{answer}");
        return Ok(());
    }
    let usual = if arguments.in_earnest() { TXNS } else { TXNS_WHEN_ONLY_TESTED };
    let txns = arguments.value("--txns")?.unwrap_or(usual);
    let directory = isolario_bench::scratch()?;
    println!(
        "{txns} transactions of {} operations, {} sessions, {} keys; medians of {RUNS} processes",
        synthesis::OPS_PER_TXN,
        synthesis::SESSIONS,
        synthesis::KEYS
    );
    for target in &TARGETS {
        match isolario_formats::find(target.format) {
            Some(format) => bench_format(format, target, txns, directory.path())?,
            None => println!("\n{}: not among the formats", target.format),
        }
    }
    Ok(())
}

fn bench_format(
    format: &'static dyn HistoryFormat,
    target: &Target2Cores,
    txns: u64,
    directory: &Path,
) -> Result<(), Failure> {
    let file = directory.join(format.name());
    let mut writer = format.writer(OutputTarget::Path(file.clone()))?;
    synthesis::synthesise(txns, &mut *writer)?;
    writer.finish()?;

    let megabytes = std::fs::metadata(&file)?.len() as f64 / 1e6;
    let ops = (txns * synthesis::OPS_PER_TXN) as f64;
    println!("\n{}: {megabytes:.1} MB", format.name());
    let mut table = Table::new(&[
        ("threads", Align::Right),
        ("job", Align::Left),
        ("ms", Align::Right),
        ("cpu ms", Align::Right),
        ("MB/s", Align::Right),
        ("bytes/op", Align::Right),
        ("x copy", Align::Right),
        ("target", Align::Left),
    ]);
    for threads in THREADS {
        let copy = median(&Work::Copy, &file, threads, RUNS)?;
        let count = median(&Work::Count, &file, threads, RUNS)?;
        let load = median(&Work::Load(format.name()), &file, threads, RUNS)?;
        let mut row = |job: &str, sample: &Sample, target: String| {
            let seconds = sample.wall.as_secs_f64();
            table.row([
                threads.to_string(),
                job.to_owned(),
                format!("{:.1}", seconds * 1e3),
                format!("{:.1}", sample.cpu.as_secs_f64() * 1e3),
                format!("{:.0}", megabytes / seconds),
                format!("{:.1}", sample.peak_bytes as f64 / ops),
                format!("{:.1}", seconds / copy.wall.as_secs_f64()),
                target,
            ]);
        };
        row("count", &count, String::new());
        row("copy", &copy, String::new());
        let met = if threads == 2 { met(target, &load, megabytes, ops) } else { String::new() };
        row("load", &load, met);
    }
    print!("{table}");
    same_for_any_number_of_threads(format, &file)
}

/// Whether the target was met.
fn met(target: &Target2Cores, load: &Sample, megabytes: f64, ops: f64) -> String {
    let fast = (target.reached)(load.wall.as_secs_f64(), megabytes);
    let small = (load.peak_bytes as f64 / ops) < BYTES_PER_OP;
    format!("{} {}, {BYTES_PER_OP} bytes/op {}", target.speed, judge(fast), judge(small))
}

/// Loads with each number of threads and compares, ids and all.
fn same_for_any_number_of_threads(format: &dyn HistoryFormat, file: &Path) -> Result<(), Failure> {
    let source = Source::open(file)?;
    let load = |threads| -> Result<History, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        Ok(pool.install(|| format.read(&source))?.history)
    };
    let one = load(THREADS[0])?;
    for threads in &THREADS[1..] {
        let other = load(*threads)?;
        let same_ids =
            one.op_keys() == other.op_keys() && one.encoded_values() == other.encoded_values();
        if one != other || !same_ids {
            return Err(format!("1 and {threads} threads give different histories").into());
        }
    }
    println!("the same history with {THREADS:?} threads");
    Ok(())
}
