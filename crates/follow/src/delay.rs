//! How long it takes until what is added to a file has been looked at.

use std::time::{Duration, Instant};

/// How many transactions were looked at how long after they were added: in classes that each reach a
/// sixteenth further than the one before, so that memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    classes: Vec<u64>,
    count: u64,
}

/// Classes per doubling.
const PER_DOUBLING: f64 = 12.0;

impl Delays {
    /// Adds so many transactions.
    pub fn add(&mut self, delay: Duration, txns: u64) {
        let class = (PER_DOUBLING * (1.0 + delay.as_secs_f64() * 1e6).log2()).ceil() as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += txns;
        self.count += txns;
    }

    /// After how long this share of the transactions had been looked at; none if there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        let class = self.classes.iter().position(|txns| {
            so_far += txns;
            so_far >= wanted
        })?;
        Some(Duration::from_secs_f64(((class as f64 / PER_DOUBLING).exp2() - 1.0) / 1e6))
    }
}

/// Watches how far a file that grows has been looked at. When a transaction was added is not known, only
/// that it was after the last time at which nothing more was there: delays are upper bounds.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) delays: Delays,
    /// How many transactions have been looked at.
    covered: u64,
    /// When there was nothing more; none before the end of the file was reached for the first time.
    nothing_more: Option<Instant>,
}

impl Watch {
    /// So many have been looked at. If there was nothing more after them, that was then.
    pub(super) fn covered(&mut self, txns: u64, nothing_more: Option<Instant>) {
        if let (Some(since), true) = (self.nothing_more, txns > self.covered) {
            self.delays.add(since.elapsed(), txns - self.covered);
        }
        self.covered = self.covered.max(txns);
        self.nothing_more = nothing_more.or(self.nothing_more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_told_to_a_sixteenth() {
        let mut delays = Delays::default();
        assert_eq!(delays.quantile(0.5), None);
        (1..=1000).for_each(|ms| delays.add(Duration::from_millis(ms), 3));
        for (share, ms) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let told = delays.quantile(share).unwrap().as_secs_f64() * 1e3;
            assert!((ms..ms * 17.0 / 16.0).contains(&told), "{share}: {told}");
        }
    }

    #[test]
    fn what_was_there_before_and_what_is_read_again_has_no_delay() {
        let mut watch = Watch::default();
        watch.covered(100, None);
        watch.covered(100, Some(Instant::now()));
        assert_eq!(watch.delays.count, 0);
        watch.covered(130, None);
        // Everything is read again, and then more.
        watch.covered(60, None);
        watch.covered(131, Some(Instant::now()));
        assert_eq!(watch.delays.count, 31);
    }
}
