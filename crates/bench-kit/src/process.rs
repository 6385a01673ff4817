//! What the system knows of this process.

use std::time::Duration;

use crate::Failure;

/// The most memory this process had resident at any time, mapped files included.
pub fn peak_resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// The processor time of the threads that are alive. It may lag by a tick of the scheduler, a few
/// milliseconds. `/proc/self/stat` would know ended threads too, but counts in hundredths of a
/// second; jobs run on a pool that outlives them.
pub(crate) fn processor_time() -> Result<Duration, Failure> {
    time_of("self")
}

fn time_of(process: impl std::fmt::Display) -> Result<Duration, Failure> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end while the list is read.
        let Ok(figures) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let first = figures.split_whitespace().next().ok_or("an empty schedstat")?;
        nanos += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The processor time of this process so far, with that of threads that have ended.
pub fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The processor time of the processes that this one has started and waited for, in hundredths of a second.
pub fn time_of_ended_children() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name may hold anything; after it come the state, the parent and so on: proc(5).
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let times = after_name.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    let ticks: u64 = times.sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

/// The processor time so far of the processes that this one has started, and of those that they have
/// started, as far as they are still there.
pub fn time_of_descendants() -> Result<Duration, Failure> {
    let mut processes: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let parent = after_name.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
        processes.extend(parent.map(|parent| (process, parent)));
    }
    let mut family = vec![std::process::id()];
    let mut time = Duration::ZERO;
    while let Some(parent) = family.pop() {
        for (process, _) in processes.iter().filter(|(_, of)| *of == parent) {
            family.push(*process);
            time += time_of(*process).unwrap_or_default();
        }
    }
    Ok(time)
}
