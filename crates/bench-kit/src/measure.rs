//! One measurement: a job on one file with so many threads, in a process of its own, so that no
//! measurement profits from memory or threads of an earlier one.

use std::any::Any;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{peak_resident, processor_time};
use crate::{Arguments, Failure};

/// What a job leaves behind. It is thrown away only after the clock has stopped: that is not part
/// of the work.
pub type Kept = Box<dyn Any>;

/// Work on a file.
pub trait Job: Sized + Sync {
    /// Its name, by which the child is told.
    fn name(&self) -> String;

    /// The job of a name.
    fn of_name(name: &str) -> Result<Self, Failure>;

    /// Does the work. The stopwatch is running; what is only preparation ends with a
    /// [`restart`](Stopwatch::restart).
    fn run(&self, file: &Path, stopwatch: &mut Stopwatch) -> Result<Kept, Failure>;

    /// Whether all of the file is mapped into memory, which does not count as memory in use.
    fn maps_file(&self) -> bool {
        true
    }
}

/// Measures from its making, or from its last restart.
#[derive(Debug)]
pub struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    fn start() -> Result<Stopwatch, Failure> {
        Ok(Stopwatch { cpu: processor_time()?, wall: Instant::now() })
    }

    /// Forgets the time so far.
    pub fn restart(&mut self) -> Result<(), Failure> {
        *self = Stopwatch::start()?;
        Ok(())
    }

    fn stop(&self) -> Result<(Duration, Duration), Failure> {
        let wall = self.wall.elapsed();
        Ok((wall, processor_time()?.saturating_sub(self.cpu)))
    }
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time that passed.
    pub wall: Duration,
    /// The time that processors spent, over all threads. Other programs disturb it less.
    pub cpu: Duration,
    /// The most memory that was in use, without the mapped file.
    pub peak_bytes: u64,
}

impl Sample {
    fn to_text(self) -> String {
        format!("{} {} {}", self.wall.as_nanos(), self.cpu.as_nanos(), self.peak_bytes)
    }

    fn of_text(text: &str) -> Result<Sample, Failure> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let [wall, cpu, peak_bytes] = numbers?[..] else { return Err("no measurement".into()) };
        let (wall, cpu) = (Duration::from_nanos(wall), Duration::from_nanos(cpu));
        Ok(Sample { wall, cpu, peak_bytes })
    }
}

/// The option by which a benchmark calls itself.
const IN_CHILD: &str = "--measure";

/// The median of several runs, each figure by itself.
pub fn median<J: Job>(
    job: &J,
    file: &Path,
    threads: usize,
    runs: usize,
) -> Result<Sample, Failure> {
    let mut samples = Vec::new();
    for _ in 0..runs {
        let output = Command::new(std::env::current_exe()?)
            .args([IN_CHILD, &job.name(), &threads.to_string()])
            .arg(file)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        samples.push(Sample::of_text(&String::from_utf8(output.stdout)?)?);
    }
    if samples.is_empty() {
        return Err("no runs, no median".into());
    }
    Ok(Sample {
        wall: middle(&samples, |sample| sample.wall),
        cpu: middle(&samples, |sample| sample.cpu),
        peak_bytes: middle(&samples, |sample| sample.peak_bytes),
    })
}

fn middle<T: Ord + Copy>(samples: &[Sample], figure: fn(&Sample) -> T) -> T {
    let mut figures: Vec<T> = samples.iter().map(figure).collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

/// The child's side. If this process is one, it does its job and says what to print.
pub fn answer_if_child<J: Job>(arguments: &Arguments) -> Result<Option<String>, Failure> {
    match arguments.all() {
        [first, job, threads, file] if first == IN_CHILD => {
            let sample = measure(&J::of_name(job)?, Path::new(file), threads.parse()?)?;
            Ok(Some(sample.to_text()))
        }
        [first, ..] if first == IN_CHILD => Err("expected a job, threads and a file".into()),
        _ => Ok(None),
    }
}

fn measure<J: Job>(job: &J, file: &Path, threads: usize) -> Result<Sample, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    // The clock is read inside, while all threads are alive: their times are added up.
    let (wall, cpu) = pool.install(|| {
        let mut stopwatch = Stopwatch::start()?;
        let kept = job.run(file, &mut stopwatch)?;
        let times = stopwatch.stop()?;
        black_box(kept);
        Ok::<_, Failure>(times)
    })?;
    let mapped = if job.maps_file() { std::fs::metadata(file)?.len() } else { 0 };
    Ok(Sample { wall, cpu, peak_bytes: peak_resident()?.saturating_sub(mapped) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_the_way_from_the_child() {
        let sample = Sample {
            wall: Duration::from_nanos(1_234_567_890),
            cpu: Duration::from_nanos(2),
            peak_bytes: 3,
        };
        assert_eq!(Sample::of_text(&sample.to_text()).unwrap(), sample);
        assert!(Sample::of_text("1 2").is_err());
        assert!(Sample::of_text("1 2 x").is_err());
    }

    #[test]
    fn the_median_takes_each_figure_by_itself() {
        let sample = |wall, cpu| Sample {
            wall: Duration::from_secs(wall),
            cpu: Duration::from_secs(cpu),
            peak_bytes: 0,
        };
        let samples = [sample(3, 1), sample(1, 2), sample(2, 9)];
        assert_eq!(middle(&samples, |sample| sample.wall), Duration::from_secs(2));
        assert_eq!(middle(&samples, |sample| sample.cpu), Duration::from_secs(2));
    }

    #[test]
    fn processor_time_does_not_stand_still() {
        let stopwatch = Stopwatch::start().unwrap();
        let mut sum = 0u64;
        while stopwatch.stop().unwrap().1.is_zero() {
            sum = (0..1_000_000).fold(sum, |sum, i| black_box(sum ^ i));
        }
        assert!(peak_resident().unwrap() > 0);
    }
}
