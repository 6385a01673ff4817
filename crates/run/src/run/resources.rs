//! What the process used.

/// The most memory the process held at a time. Linux tells; elsewhere it is unknown.
pub fn peak_rss_bytes() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_found_among_other_lines() {
        let status = "Name:\tisolario\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_in(status), Some(2 << 20));
        assert_eq!(peak_in("Name:\tisolario\n"), None);
        assert_eq!(peak_in("VmHWM:\tmuch\n"), None);
    }
}
