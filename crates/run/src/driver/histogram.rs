//! How long transactions took, in a fixed amount of memory.

use std::sync::atomic::{AtomicU64, Ordering};

use isolario_model::Latency;

/// Each power of two is split into so many buckets: a quantile is off by 3% at most.
const SPLIT: u64 = 32;
const SPLIT_BITS: u32 = SPLIT.trailing_zeros();
/// Up to 2⁴⁴ nanoseconds, which are five hours.
const BUCKETS: usize = ((44 - SPLIT_BITS + 1) as usize) * SPLIT as usize;

/// Counts durations. Sessions add to it while one observer takes what is there.
pub(super) struct SharedHistogram {
    buckets: Box<[AtomicU64]>,
    max: AtomicU64,
}

/// Counts of durations, of one owner.
#[derive(Clone)]
pub(super) struct Histogram {
    buckets: Box<[u64]>,
    max: u64,
}

impl SharedHistogram {
    pub(super) fn new() -> SharedHistogram {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        SharedHistogram { buckets, max: AtomicU64::new(0) }
    }

    /// Counts a duration.
    #[inline]
    pub(super) fn add(&self, nanoseconds: u64) {
        self.buckets[bucket(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        // Hardly ever a new one: reading is cheaper than writing.
        if nanoseconds > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Takes all that was counted since the last time.
    pub(super) fn take(&self) -> Histogram {
        let buckets = self.buckets.iter().map(|bucket| bucket.swap(0, Ordering::Relaxed));
        Histogram { buckets: buckets.collect(), max: self.max.swap(0, Ordering::Relaxed) }
    }
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram { buckets: vec![0; BUCKETS].into_boxed_slice(), max: 0 }
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        for (mine, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += other;
        }
        self.max = self.max.max(other.max);
    }

    pub(super) fn latency(&self) -> Latency {
        Latency {
            p50_us: self.quantile(0.5),
            p90_us: self.quantile(0.9),
            p99_us: self.quantile(0.99),
            p999_us: self.quantile(0.999),
            max_us: self.max as f64 / 1e3,
        }
    }

    /// The upper end of the bucket that the quantile is in, in microseconds.
    fn quantile(&self, share: f64) -> f64 {
        let count: u64 = self.buckets.iter().sum();
        let rank = (share * count as f64).ceil() as u64;
        let mut seen = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            seen += bucket;
            if seen >= rank && seen > 0 {
                return upper_end(at).min(self.max) as f64 / 1e3;
            }
        }
        0.0
    }
}

/// Short durations have a bucket each; then 32 per power of two.
fn bucket(nanoseconds: u64) -> usize {
    let bits = 64 - nanoseconds.leading_zeros();
    let shift = bits.saturating_sub(SPLIT_BITS + 1);
    let at = u64::from(shift) * SPLIT + (nanoseconds >> shift);
    (at as usize).min(BUCKETS - 1)
}

/// The longest duration of a bucket.
fn upper_end(at: usize) -> u64 {
    let at = at as u64;
    let shift = (at / SPLIT).saturating_sub(1);
    let start = (at - shift * SPLIT) << shift;
    start + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for nanoseconds in (0..200).chain((3..43).flat_map(|bits| [(1 << bits) - 1, 1 << bits])) {
            let end = upper_end(bucket(nanoseconds));
            assert!(end >= nanoseconds, "{nanoseconds}");
            assert!(end - nanoseconds <= nanoseconds / SPLIT, "{nanoseconds}: {end}");
        }
        assert!((0..BUCKETS - 1).all(|at| bucket(upper_end(at) + 1) == at + 1));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_a_thousand() {
        let shared = SharedHistogram::new();
        (1..=1000).for_each(|micros| shared.add(micros * 1000));
        let mut histogram = Histogram::new();
        assert_eq!(histogram.latency(), Latency::default());
        histogram.merge(&shared.take());
        let latency = histogram.latency();
        for (found, right) in [
            (latency.p50_us, 500.0),
            (latency.p90_us, 900.0),
            (latency.p99_us, 990.0),
            (latency.p999_us, 999.0),
        ] {
            assert!((right..=right * 1.04).contains(&found), "{found} for {right}");
        }
        assert_eq!(latency.max_us, 1000.0);
        assert_eq!(shared.take().latency(), Latency::default(), "taken is gone");
    }
}
