//! What a run counts while it goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use isolario_model::{AbortReason, Counts, Latency, RunSecond};

use super::histogram::{Histogram, SharedHistogram};
use isolario_db::{DbError, ErrorClass};

/// Counts what sessions do.
pub(super) struct Meter {
    committed: AtomicU64,
    aborted: AtomicU64,
    unknown: AtomicU64,
    retries: AtomicU64,
    reconnects: AtomicU64,
    operations: AtomicU64,
    latencies: SharedHistogram,
    reasons: Mutex<Reasons>,
}

/// Why transactions did not commit.
#[derive(Default)]
struct Reasons {
    by_code: BTreeMap<(ErrorClass, String), AbortReason>,
    last: Option<LastError>,
}

/// An error, and the node that gave it.
#[derive(Clone)]
pub(super) struct LastError {
    pub(super) node: usize,
    pub(super) error: DbError,
}

/// More reasons than this explain nothing; the others are counted together.
const MOST_REASONS: usize = 200;

impl Meter {
    pub(super) fn new() -> Meter {
        Meter {
            committed: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            latencies: SharedHistogram::new(),
            reasons: Mutex::default(),
        }
    }

    pub(super) fn committed(&self, took: Duration) {
        self.latencies.add(took.as_nanos() as u64);
        self.committed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, node: usize, error: &DbError) {
        let unknown = error.class == ErrorClass::Unknown;
        let counter = if unknown { &self.unknown } else { &self.aborted };
        counter.fetch_add(1, Ordering::Relaxed);
        self.reasons().add(node, error);
    }

    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection could not be opened: no transaction failed, but it is the last thing known.
    pub(super) fn unreachable(&self, node: usize, error: &DbError) {
        self.reasons().last = Some(LastError { node, error: error.clone() });
    }

    pub(super) fn operations(&self, count: u64) {
        self.operations.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            reconnects: self.reconnects.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
        }
    }

    /// Why transactions did not commit, most frequent first.
    pub(super) fn abort_reasons(&self) -> Vec<AbortReason> {
        let mut reasons: Vec<_> = self.reasons().by_code.values().cloned().collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        reasons
    }

    /// The last thing that went wrong.
    pub(super) fn last_error(&self) -> Option<LastError> {
        self.reasons().last.clone()
    }

    fn reasons(&self) -> std::sync::MutexGuard<'_, Reasons> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reasons {
    /// Messages name rows and processes, codes do not: where there is a code, it is the reason.
    fn add(&mut self, node: usize, error: &DbError) {
        self.last = Some(LastError { node, error: error.clone() });
        let full = self.by_code.len() >= MOST_REASONS;
        let name = error.code.clone().unwrap_or_else(|| without_numbers(&error.message));
        let mut key = (error.class, name);
        if full && !self.by_code.contains_key(&key) {
            key.1 = String::new();
        }
        let reason = self.by_code.entry(key).or_insert_with(|| AbortReason {
            code: error.code.clone().filter(|_| !full),
            message: if full { "other reasons".to_owned() } else { error.message.clone() },
            class: error.class.name().to_owned(),
            count: 0,
        });
        reason.count += 1;
    }
}

/// A message without what differs from row to row and from process to process.
fn without_numbers(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for letter in message.chars() {
        match letter {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            other => text.push(other),
        }
    }
    text
}

/// Second by second, what the meter counted.
pub(super) struct Chronicle {
    before: Counts,
    all: Histogram,
    pub(super) seconds: Vec<RunSecond>,
}

impl Chronicle {
    pub(super) fn new() -> Chronicle {
        Chronicle { before: Counts::default(), all: Histogram::new(), seconds: Vec::new() }
    }

    /// Closes a second.
    pub(super) fn close(&mut self, meter: &Meter) {
        let (now, latencies) = (meter.counts(), meter.latencies.take());
        self.seconds.push(RunSecond {
            committed: now.committed - self.before.committed,
            aborted: now.aborted - self.before.aborted,
            unknown: now.unknown - self.before.unknown,
            latency: latencies.latency(),
        });
        self.before = now;
        self.all.merge(&latencies);
    }

    /// Transactions that committed per second: in the last second that is over, or so far.
    pub(super) fn throughput(&self, counts: &Counts, elapsed: Duration) -> f64 {
        match self.seconds.last() {
            Some(second) => second.committed as f64,
            None => counts.committed as f64 / elapsed.as_secs_f64().max(1e-3),
        }
    }

    pub(super) fn latency(&self) -> Latency {
        self.all.latency()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_by_code_and_not_without_end() {
        let meter = Meter::new();
        for row in 0..300 {
            meter.failed(0, &DbError::retryable(format!("row {row}")).with_code("40001"));
            meter.failed(0, &DbError::aborted(format!("row {}", "x".repeat(row))));
        }
        meter.failed(0, &DbError::unknown("gone"));
        let reasons = meter.abort_reasons();
        assert_eq!(reasons[0].count, 300);
        assert_eq!((reasons[0].code.as_deref(), &*reasons[0].message), (Some("40001"), "row 0"));
        assert_eq!((reasons[1].count, &*reasons[1].message), (101, "other reasons"));
        assert_eq!(reasons.iter().map(|reason| reason.count).sum::<u64>(), 601);
        assert_eq!((meter.counts().aborted, meter.counts().unknown), (600, 1));
        assert_eq!(meter.last_error().map(|last| last.error.message).as_deref(), Some("gone"));
    }

    #[test]
    fn reasons_that_differ_in_numbers_alone_are_one() {
        let meter = Meter::new();
        for row in [7, 12, 345] {
            meter.failed(0, &DbError::aborted(format!("row {row} is locked by process {row}00")));
        }
        meter.failed(0, &DbError::aborted("row 7 is gone"));
        let reasons = meter.abort_reasons();
        assert_eq!(reasons.len(), 2);
        assert_eq!((reasons[0].count, &*reasons[0].message), (3, "row 7 is locked by process 700"));
    }

    #[test]
    fn seconds_add_up() {
        let (meter, mut chronicle) = (Meter::new(), Chronicle::new());
        for second in 0..3 {
            for _ in 0..=second {
                meter.committed(Duration::from_micros(100 * (second + 1)));
            }
            chronicle.close(&meter);
        }
        let committed: Vec<_> = chronicle.seconds.iter().map(|second| second.committed).collect();
        assert_eq!(committed, [1, 2, 3]);
        assert_eq!(chronicle.seconds[1].latency.max_us, 200.0);
        assert_eq!(chronicle.latency().max_us, 300.0);
    }
}
