//! Memory: the maximum that the process used, and the limit for records.

/// Maximum number of bytes of records that a run keeps in memory for its check: about ten million transactions. A
/// larger history is read from its file.
const RECORDS: u64 = 1 << 30;
/// Records may take one part in `SHARE` of the free memory: the history that is built from them takes about as much
/// again, and its check needs memory, too.
const SHARE: u64 = 4;

/// The most memory the process held at a time. Linux tells; elsewhere it is unknown.
pub fn peak_rss_bytes() -> Option<u64> {
    bytes_in(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The maximum number of bytes of records for this machine. Only on Linux is the free memory known.
pub(super) fn bytes_for_records() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    records_with(&meminfo) as usize
}

fn records_with(meminfo: &str) -> u64 {
    let free = bytes_in(meminfo, "MemAvailable:");
    free.map_or(RECORDS, |free| RECORDS.min(free / SHARE))
}

/// The number in the line with this name.
fn bytes_in(lines: &str, name: &str) -> Option<u64> {
    let line = lines.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_found_among_other_lines() {
        let status = "Name:\tisolario\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(bytes_in(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(bytes_in("Name:\tisolario\n", "VmHWM:"), None);
        assert_eq!(bytes_in("VmHWM:\tmuch\n", "VmHWM:"), None);
    }

    #[test]
    fn records_leave_most_of_the_free_memory_to_others() {
        let with = |kibibytes: u64| {
            records_with(&format!("MemTotal: 9999999 kB\nMemAvailable:   {kibibytes} kB\n"))
        };
        assert_eq!(with(1 << 20), 1 << 28);
        assert_eq!(with(1 << 30), RECORDS);
        assert_eq!(with(0), 0);
        assert_eq!(records_with(""), RECORDS, "elsewhere it is not known");
    }
}
