//! How many transactions, and how fast.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Hands out transactions: as many as are to commit.
pub(super) struct Tickets {
    left: Option<AtomicU64>,
}

impl Tickets {
    pub(super) fn new(txns: Option<u64>) -> Tickets {
        Tickets { left: txns.map(AtomicU64::new) }
    }

    /// Takes one, if there is one left.
    pub(super) fn take(&self) -> bool {
        let Some(left) = &self.left else { return true };
        let one_less = |left: u64| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Gives one back that did not commit: somebody else's may.
    pub(super) fn give_back(&self) {
        if let Some(left) = &self.left {
            left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Spreads the beginnings of transactions evenly over time.
pub(super) struct Pace {
    rate: Option<u64>,
    next: AtomicU64,
    start: OnceLock<Instant>,
}

impl Pace {
    pub(super) fn new(rate: Option<u64>) -> Pace {
        Pace { rate, next: AtomicU64::new(0), start: OnceLock::new() }
    }

    /// When the next transaction may begin; at any time if there is no rate. Whoever is late does
    /// not make up for it by a burst: the rate is a limit.
    pub(super) fn next(&self) -> Option<Instant> {
        let rate = self.rate?;
        let start = *self.start.get_or_init(Instant::now);
        let due = |number: u64| {
            Duration::from_nanos(
                (u128::from(number) * 1_000_000_000 / u128::from(rate.max(1))) as u64,
            )
        };
        let now = start.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000;
        let advance = |number: u64| Some(number.max(now as u64) + 1);
        let number = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
        let number = number.unwrap_or(0).max(now as u64);
        Some(start + due(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_wanted_and_those_that_come_back() {
        let tickets = Tickets::new(Some(2));
        assert!(tickets.take() && tickets.take() && !tickets.take());
        tickets.give_back();
        assert!(tickets.take() && !tickets.take());
        assert!(Tickets::new(None).take());
    }

    #[test]
    fn beginnings_are_spread_and_missed_ones_are_not_made_up_for() {
        assert_eq!(Pace::new(None).next(), None);
        let pace = Pace::new(Some(1000));
        let moments: Vec<_> = (0..50).filter_map(|_| pace.next()).collect();
        let apart = Duration::from_millis(1);
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] >= apart));
        let late = Pace {
            start: OnceLock::from(Instant::now() - Duration::from_secs(9)),
            ..Pace::new(Some(10))
        };
        let (first, second) = (late.next().unwrap(), late.next().unwrap());
        assert_eq!(second - first, Duration::from_millis(100));
        assert!(first.elapsed() < Duration::from_secs(1));
    }
}
