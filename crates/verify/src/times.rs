//! Real time: when transactions may have taken effect.

use isolario_model::{History, Outcome, TxnId};

use crate::Refusal;

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

    /// When a transaction had finished at the latest; none if that may be any time. One of unknown
    /// outcome may take effect at any time after, and a finish before the own start tells nothing.
    pub(crate) fn latest_finish(&self, txn: TxnId) -> Option<i128> {
        let committed = !txn.is_init() && self.history.outcome(txn) == Outcome::Committed;
        let finish = self.history.finish(txn).filter(|_| committed)?;
        if self.history.start(txn).is_some_and(|start| finish < start) {
            return None;
        }
        Some(i128::from(finish) + i128::from(self.clock_skew))
    }

    /// When a transaction had started at the earliest; none if that may be any time.
    pub(crate) fn earliest_start(&self, txn: TxnId) -> Option<i128> {
        let start = self.history.start(txn).filter(|_| !txn.is_init())?;
        Some(i128::from(start) - i128::from(self.clock_skew))
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
/// started. It is enough to compare each with the one that started last.
#[derive(Debug)]
pub(crate) struct InTurn<'h> {
    times: Times<'h>,
    /// Of those that have started, who did so last, and when.
    latest: Option<(i128, TxnId)>,
}

impl<'h> InTurn<'h> {
    pub(crate) fn new(times: Times<'h>) -> Self {
        InTurn { times, latest: None }
    }

    /// A transaction starts.
    pub(crate) fn start(&mut self, txn: TxnId) {
        self.latest = self.latest.max(self.times.earliest_start(txn).map(|start| (start, txn)));
    }

    /// Refuses a transaction's commit if it had finished before another one, which has started here,
    /// did so in real time.
    pub(crate) fn commit(&self, txn: TxnId) -> Result<(), Refusal> {
        match (self.times.latest_finish(txn), self.latest) {
            (Some(finish), Some((start, second))) if finish < start => {
                Err(Refusal::OutOfOrder { first: txn, second, why: "real time" })
            }
            _ => Ok(()),
        }
    }
}
