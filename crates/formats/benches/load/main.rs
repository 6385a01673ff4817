//! How fast and in how much memory a large register history is loaded.
//!
//! `cargo bench -p isolario-formats --bench load [-- --txns N]`, or `scripts/bench load`. Without
//! `--bench`, which cargo adds, it only checks on a small history that everything works.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod measure;
mod synthesis;

use std::path::{Path, PathBuf};

use isolario_formats::{HistoryFormat, Source, Target};
use isolario_model::History;

use measure::{Failure, Job, Sample};

const TXNS: u64 = 1_000_000;
const TXNS_WHEN_ONLY_TESTED: u64 = 1_000;
const THREADS: [usize; 2] = [1, 2];

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == measure::IN_CHILD) {
        println!("{}", measure::run_in_child(&arguments[1..])?);
        return Ok(());
    }
    let txns = match arguments.iter().position(|argument| argument == "--txns") {
        Some(at) => arguments.get(at + 1).ok_or("--txns needs a number")?.parse()?,
        None if arguments.iter().any(|argument| argument == "--bench") => TXNS,
        None => TXNS_WHEN_ONLY_TESTED,
    };
    let directory = Scratch::new()?;
    println!(
        "{txns} transactions of {} operations, {} sessions, {} keys; medians of 5 processes",
        synthesis::OPS_PER_TXN,
        synthesis::SESSIONS,
        synthesis::KEYS
    );
    for target in &TARGETS {
        match isolario_formats::find(target.format) {
            Some(format) => bench_format(format, target, txns, &directory.0)?,
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
    let mut writer = format.writer(Target::Path(file.clone()))?;
    synthesis::synthesise(txns, &mut *writer)?;
    writer.finish()?;

    let megabytes = std::fs::metadata(&file)?.len() as f64 / 1e6;
    let ops = (txns * synthesis::OPS_PER_TXN) as f64;
    println!("\n{}: {megabytes:.1} MB", format.name());
    println!("threads  job             ms    MB/s  bytes/op  x copy  target");
    for threads in THREADS {
        let copy = measure::median(Job::Copy, &file, threads)?;
        let count = measure::median(Job::Count, &file, threads)?;
        let load = measure::median(Job::Load(format.name()), &file, threads)?;
        let row = |job: &str, sample: &Sample, target: &str| {
            let seconds = sample.time.as_secs_f64();
            println!(
                "{threads:7}  {job:<10} {:7.1} {:7.0} {:9.1} {:7.1}  {target}",
                seconds * 1e3,
                megabytes / seconds,
                sample.peak_bytes as f64 / ops,
                seconds / copy.time.as_secs_f64(),
            );
        };
        row("count", &count, "");
        row("copy", &copy, "");
        row(
            "load",
            &load,
            &if threads == 2 { judge(target, &load, megabytes, ops) } else { String::new() },
        );
    }
    same_for_any_number_of_threads(format, &file)
}

fn judge(target: &Target2Cores, load: &Sample, megabytes: f64, ops: f64) -> String {
    let word = |reached| if reached { "reached" } else { "MISSED" };
    let fast = (target.reached)(load.time.as_secs_f64(), megabytes);
    let small = (load.peak_bytes as f64 / ops) < BYTES_PER_OP;
    format!("{} {}, {BYTES_PER_OP} bytes/op {}", target.speed, word(fast), word(small))
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
        let same_ids = one.op_keys() == other.op_keys() && one.op_words() == other.op_words();
        if one != other || !same_ids {
            return Err(format!("1 and {threads} threads give different histories").into());
        }
    }
    println!("the same history with {THREADS:?} threads");
    Ok(())
}

/// A directory that is removed in the end, also after an error.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("isolario-load-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing better can be done with an error here than to leave the files behind.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
