//! Real time: when transactions may have taken effect.

use isolario_model::{History, Outcome, TxnId};

use crate::Refusal;

/// When a transaction ran, by the clock of its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) outcome: Outcome,
    pub(crate) start: Option<i64>,
    pub(crate) finish: Option<i64>,
}

impl Interval {
    /// That of a transaction; `init` has none.
    pub(crate) fn of(history: &History, txn: TxnId) -> Interval {
        Interval {
            outcome: history.outcome(txn),
            start: history.start(txn),
            finish: history.finish(txn),
        }
    }

    /// When it had finished at the latest; none if that may be any time. One of unknown outcome may take
    /// effect at any time after.
    pub(crate) fn latest_finish(&self, clock_skew: u64) -> Option<i128> {
        let finish = self.finish.filter(|_| self.outcome == Outcome::Committed)?;
        Some(i128::from(finish) + i128::from(clock_skew))
    }

    /// When it had started at the earliest; none if that may be any time.
    pub(crate) fn earliest_start(&self, clock_skew: u64) -> Option<i128> {
        Some(i128::from(self.start?) - i128::from(clock_skew))
    }
}

/// The times of a history, on clocks that may differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times<'h> {
    history: &'h History,
    clock_skew: u64,
}

impl<'h> Times<'h> {
    pub(crate) fn new(history: &'h History, clock_skew: u64) -> Self {
        Times { history, clock_skew }
    }

    /// When a transaction had finished at the latest; none if that may be any time.
    pub(crate) fn latest_finish(&self, txn: TxnId) -> Option<i128> {
        self.interval(txn)?.latest_finish(self.clock_skew)
    }

    /// When a transaction had started at the earliest; none if that may be any time.
    pub(crate) fn earliest_start(&self, txn: TxnId) -> Option<i128> {
        self.interval(txn)?.earliest_start(self.clock_skew)
    }

    fn interval(&self, txn: TxnId) -> Option<Interval> {
        (!txn.is_init()).then(|| Interval::of(self.history, txn))
    }

    /// Whether one transaction finished before another started, however the clocks differ, and at
    /// these times.
    pub(crate) fn order(&self, first: TxnId, second: TxnId, finish: i64, start: i64) -> bool {
        let is_init = first.is_init() || second.is_init();
        !is_init
            && self.history.finish(first) == Some(finish)
            && self.history.start(second) == Some(start)
            && self.in_order(first, second)
    }

    /// Whether one transaction finished before another started, however the clocks differ.
    pub(crate) fn in_order(&self, first: TxnId, second: TxnId) -> bool {
        let known = self.latest_finish(first).zip(self.earliest_start(second));
        known.is_some_and(|(finish, start)| finish < start)
    }
}

/// Transactions that take effect one after the other: none had finished before an earlier one
/// started.
#[derive(Debug)]
pub(crate) struct InTurn<'h> {
    times: Times<'h>,
    latest: LatestStart<TxnId>,
}

impl<'h> InTurn<'h> {
    pub(crate) fn new(times: Times<'h>) -> Self {
        InTurn { times, latest: LatestStart::default() }
    }

    /// A transaction starts.
    pub(crate) fn start(&mut self, txn: TxnId) {
        self.latest.start(self.times.earliest_start(txn), txn);
    }

    /// Refuses a transaction's commit if it had finished before another one, which has started here,
    /// did so in real time.
    pub(crate) fn commit(&self, txn: TxnId) -> Result<(), Refusal> {
        match self.latest.after(self.times.latest_finish(txn)) {
            Some(second) => Err(Refusal::OutOfOrder { first: txn, second, why: REAL_TIME }),
            None => Ok(()),
        }
    }
}

/// Why one transaction comes before another.
pub(crate) const REAL_TIME: &str = "real time";

/// Of the transactions that have started, who did so last, and when. It is enough to compare others with
/// that one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatestStart<T>(Option<(i128, T)>);

impl<T> Default for LatestStart<T> {
    fn default() -> Self {
        LatestStart(None)
    }
}

impl<T: Copy + Ord> LatestStart<T> {
    /// One starts, not before this time.
    pub(crate) fn start(&mut self, earliest: Option<i128>, txn: T) {
        self.0 = self.0.max(earliest.map(|start| (start, txn)));
    }

    /// One that has started after another had finished at the latest.
    pub(crate) fn after(&self, finish: Option<i128>) -> Option<T> {
        let (start, txn) = self.0?;
        finish.is_some_and(|finish| finish < start).then_some(txn)
    }
}
