//! One measurement: a job on one file with so many threads, in a process of its own, so that no
//! measurement profits from memory or threads of an earlier one.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

use isolario_formats::Source;
use rayon::prelude::*;

/// Any error; it may have come from another thread.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What is measured.
#[derive(Clone, Copy)]
pub enum Job {
    /// A floor: count the newlines.
    Count,
    /// A floor: copy the bytes.
    Copy,
    /// Open and parse to a history, in the format of this name.
    Load(&'static str),
}

impl Job {
    fn name(self) -> &'static str {
        match self {
            Job::Count => "count",
            Job::Copy => "copy",
            Job::Load(format) => format,
        }
    }

    fn of_name(name: &str) -> Result<Job, Failure> {
        match name {
            "count" => Ok(Job::Count),
            "copy" => Ok(Job::Copy),
            _ => Ok(Job::Load(isolario_formats::find(name).ok_or("no such format")?.name())),
        }
    }
}

/// What came out.
#[derive(Clone, Copy)]
pub struct Sample {
    pub time: Duration,
    /// The most memory that was in use, without the mapped file.
    pub peak_bytes: u64,
}

/// The option by which the benchmark calls itself.
pub const IN_CHILD: &str = "--measure";

/// The median of several runs.
pub fn median(job: Job, file: &Path, threads: usize) -> Result<Sample, Failure> {
    const RUNS: usize = 5;
    let mut samples = Vec::new();
    for _ in 0..RUNS {
        let output = Command::new(std::env::current_exe()?)
            .args([IN_CHILD, job.name(), &threads.to_string()])
            .arg(file)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        samples.push(read_sample(&String::from_utf8(output.stdout)?)?);
    }
    samples.sort_by_key(|sample| sample.time);
    Ok(samples[RUNS / 2])
}

fn read_sample(text: &str) -> Result<Sample, Failure> {
    let (nanos, peak) = text.trim().split_once(' ').ok_or("no measurement")?;
    Ok(Sample { time: Duration::from_nanos(nanos.parse()?), peak_bytes: peak.parse()? })
}

/// The child's side: nanoseconds and bytes, as text.
pub fn run_in_child(arguments: &[String]) -> Result<String, Failure> {
    let [job, threads, file] = arguments else { return Err("job, threads, file".into()) };
    let (job, file) = (Job::of_name(job)?, Path::new(file));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let time = pool.install(|| timed(job, file))?;
    let mapped = std::fs::metadata(file)?.len();
    Ok(format!("{} {}", time.as_nanos(), peak_resident()?.saturating_sub(mapped)))
}

fn timed(job: Job, file: &Path) -> Result<Duration, Failure> {
    const PIECE: usize = 1 << 20;
    let start = Instant::now();
    let source = Source::open(file)?;
    let bytes = source.require_file()?;
    match job {
        Job::Count => {
            let count = |piece: &[u8]| memchr::memchr_iter(b'\n', piece).count();
            black_box(bytes.par_chunks(PIECE).map(count).sum::<usize>());
        }
        Job::Copy => {
            let copies: Vec<Vec<u8>> = bytes.par_chunks(PIECE).map(<[u8]>::to_vec).collect();
            black_box(copies);
        }
        Job::Load(format) => {
            let format = isolario_formats::find(format).ok_or("no such format")?;
            let loaded = format.read(&source)?;
            // The history is still in use when the clock stops: throwing it away is not loading.
            let time = start.elapsed();
            black_box(loaded);
            return Ok(time);
        }
    }
    Ok(start.elapsed())
}

/// The most memory this process had resident at any time, mapped files included.
fn peak_resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(u64::from_str(line.trim().trim_end_matches(" kB"))? * 1024)
}
