//! When transactions ran, and how they lie in time.

use isolario_model::{Clock, Edge, History, TxnId};

use crate::names::{Names, listed};

/// Of more transactions than this, nobody reads how they lie in time.
const MOST_IN_TIME: usize = 12;

/// When a transaction began and ended, as the history has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TxnTimes {
    /// When it began: nanoseconds since the first transaction of the history began, or the number of
    /// an event.
    pub start: Option<i64>,
    /// When it ended, likewise; nothing where nobody was told.
    pub finish: Option<i64>,
    /// What the two are.
    pub clock: Clock,
}

impl TxnTimes {
    /// Those of a transaction; `first` is when the history began.
    pub fn of(history: &History, txn: TxnId, first: i64) -> TxnTimes {
        let clock = history.clock();
        let since = |time: i64| match clock {
            Clock::Nanoseconds => time.saturating_sub(first),
            _ => time,
        };
        let (start, finish) = (history.start(txn).map(since), history.finish(txn).map(since));
        TxnTimes { start, finish, clock }
    }

    /// In words: `at 1.204 s, for 3 ms`; nothing where the history has no times.
    pub fn describe(&self) -> Option<String> {
        match (self.clock, self.start, self.finish) {
            (_, None, None) => None,
            (Clock::Nanoseconds, Some(start), Some(finish)) => {
                let took = duration(finish.saturating_sub(start));
                Some(format!("at {}, for {took}", duration(start)))
            }
            (Clock::Nanoseconds, Some(start), None) => Some(format!("from {} on", duration(start))),
            (Clock::Nanoseconds, None, Some(finish)) => Some(format!("until {}", duration(finish))),
            (_, Some(start), Some(finish)) => Some(format!("events {start} to {finish}")),
            (_, Some(start), None) => Some(format!("from event {start} on")),
            (_, None, Some(finish)) => Some(format!("until event {finish}")),
        }
    }
}

/// When a history began: when the first of its transactions did.
pub fn began(history: &History) -> i64 {
    history.txns().filter_map(|txn| history.start(txn)).min().unwrap_or_default()
}

/// How transactions lie in time, a sentence for each but the first, in the order in which they
/// began: `T2 began 3 ms after T1 had ended`, `T3 began while T1 and T2 ran`. Nothing where the
/// history has no times, or where there are too many to be told.
pub fn in_time(names: Names<'_>, txns: &[TxnId]) -> Vec<String> {
    let history = names.history();
    let mut timed: Vec<(i64, TxnId)> =
        txns.iter().filter_map(|txn| Some((history.start(*txn)?, *txn))).collect();
    timed.sort_unstable();
    timed.dedup();
    if timed.len() > MOST_IN_TIME {
        return Vec::new();
    }
    let later = timed.iter().enumerate().skip(1);
    later.map(|(at, (start, txn))| began_after(names, *txn, *start, &timed[..at])).collect()
}

/// How a transaction lies to those that began before it.
fn began_after(names: Names<'_>, txn: TxnId, start: i64, before: &[(i64, TxnId)]) -> String {
    let history = names.history();
    let name = names.txn(txn);
    let has_ended = |txn: TxnId| history.finish(txn).filter(|finish| *finish < start);
    let running: Vec<String> = before
        .iter()
        .filter(|(_, other)| has_ended(*other).is_none())
        .map(|(_, other)| names.txn(*other))
        .collect();
    let last = before.iter().filter_map(|(_, other)| Some((has_ended(*other)?, *other))).max();
    let last = last.map(|(finish, other)| after(names, start, other, finish));
    match (&running[..], last) {
        ([], None) => format!("{name} began"),
        ([], Some(after)) => format!("{name} began {after}"),
        (running, None) => format!("{name} began while {} ran", listed(running)),
        (running, Some(after)) => {
            format!("{name} began {after}, while {} ran", listed(running))
        }
    }
}

/// How long after the end of another one a transaction began.
fn after(names: Names<'_>, start: i64, other: TxnId, finish: i64) -> String {
    let other = names.txn(other);
    match names.history().clock() {
        Clock::Nanoseconds => {
            let gap = duration(i128::from(start) - i128::from(finish));
            format!("{gap} after {other} had ended")
        }
        _ => format!("(event {start}) after {other} had ended (event {finish})"),
    }
}

/// That one transaction had finished before another one started.
pub(super) fn real_time(names: Names<'_>, edge: &Edge, finish: i64, start: i64) -> String {
    let (from, to) = (names.txn(edge.from), names.txn(edge.to));
    match names.history().clock() {
        Clock::Nanoseconds => {
            let gap = duration(i128::from(start) - i128::from(finish));
            format!("{from} had finished {gap} before {to} started")
        }
        _ => format!("{from} had finished (event {finish}) before {to} started (event {start})"),
    }
}

/// Nanoseconds in the largest unit of which there is at least one, to three places.
pub fn duration(nanoseconds: impl Into<i128>) -> String {
    let nanoseconds = nanoseconds.into();
    let (unit, size) = match nanoseconds {
        1_000_000_000.. => ("s", 1_000_000_000),
        1_000_000.. => ("ms", 1_000_000),
        1_000.. => ("µs", 1_000),
        _ => return format!("{nanoseconds} ns"),
    };
    let (whole, thousandths) = (nanoseconds / size, nanoseconds % size / (size / 1000));
    let shown = format!("{whole}.{thousandths:03}");
    format!("{} {unit}", shown.trim_end_matches('0').trim_end_matches('.'))
}
