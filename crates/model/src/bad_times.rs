//! Transactions that finish before they start.
//!
//! Either of the two times may be the wrong one, so that neither says anything. A history leaves out both,
//! and lists them: no checker ever sees an interval that ends before it begins.

use rayon::prelude::*;

use crate::columns::TxnColumns;
use crate::{Batch, History, TxnId};

/// The times of a transaction that finished before it started, as they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContradictoryTimes {
    /// The transaction.
    pub txn: TxnId,
    /// When it is said to have started.
    pub start: i64,
    /// When it is said to have finished.
    pub finish: i64,
}

impl History {
    /// The transactions that finished before they started, by the times that were recorded of them, in order.
    /// [`History::start`] and [`History::finish`] give neither.
    pub fn contradictory_times(&self) -> &[ContradictoryTimes] {
        &self.txns.contradictory_times
    }

    /// The times of a transaction that were left out.
    pub(crate) fn contradictory_times_of(&self, txn: TxnId) -> Option<ContradictoryTimes> {
        let at =
            self.txns.contradictory_times.binary_search_by_key(&txn.0, |bad| bad.txn.0).ok()?;
        Some(self.txns.contradictory_times[at])
    }
}

impl Batch {
    /// Whether a transaction that was added as a whole finished before it started. A history that is built of
    /// the batch leaves out both times.
    pub fn has_contradictory_times(&self) -> bool {
        (0..self.len()).any(|row| self.txns.contradictory_times_in(row).is_some())
    }
}

/// How many transactions one task goes through.
const TXNS_PER_TASK: usize = 1 << 16;

impl TxnColumns {
    /// Start and finish of a row, if it finishes before it starts.
    pub(crate) fn contradictory_times_in(&self, row: usize) -> Option<ContradictoryTimes> {
        let (start, finish) = (self.starts.get(row)?, self.finishes.get(row)?);
        (finish < start).then_some(ContradictoryTimes { txn: TxnId(row as u32), start, finish })
    }

    /// Leaves out both times of the transactions that finish before they start.
    #[must_use]
    pub(crate) fn without_contradictory_times(mut self) -> TxnColumns {
        let rows = (0..self.outcomes.len()).into_par_iter().with_min_len(TXNS_PER_TASK);
        self.contradictory_times =
            rows.filter_map(|row| self.contradictory_times_in(row)).collect();
        for bad in &self.contradictory_times {
            self.starts.set(bad.txn.index(), None);
            self.finishes.set(bad.txn.index(), None);
        }
        if !self.contradictory_times.is_empty() {
            self.starts.forget_if_unset();
            self.finishes.forget_if_unset();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, batch, history, timed};
    use crate::{BatchEntries, TxnEnd, TxnSink, TxnStart};
    use crate::{Outcome, ValueRef};

    #[test]
    fn both_times_are_left_out_whatever_the_outcome_and_are_listed() {
        let unknown = Txn { outcome: Outcome::Unknown, ..timed("b", 3, 2) };
        let txns = [timed("a", 9, 5), timed("a", 1, 1), unknown];
        assert!(batch(&txns).has_contradictory_times());
        let history = history(&txns);
        let times = |txn| (history.start(TxnId(txn)), history.finish(TxnId(txn)));
        assert_eq!(
            [times(0), times(1), times(2)],
            [(None, None), (Some(1), Some(1)), (None, None)]
        );
        let bad: Vec<_> =
            history.contradictory_times().iter().map(|b| (b.txn.0, b.start, b.finish)).collect();
        assert_eq!(bad, [(0, 9, 5), (2, 3, 2)]);
        assert!(history.has_times());
    }

    #[test]
    fn a_history_of_bad_times_alone_has_no_times() {
        let history = history(&[timed("a", i64::MAX, i64::MIN)]);
        assert!(!history.has_times() && history.contradictory_times().len() == 1);
        assert!(!batch(&[timed("a", 1, 2)]).has_contradictory_times());
    }

    /// The first piece of a transaction tells its start and the last one its finish.
    #[test]
    fn times_of_a_transaction_in_pieces_are_compared_when_it_is_whole() {
        let mut batch = Batch::new();
        for (start, finish) in [(Some(5), None), (None, Some(3))] {
            batch
                .begin(&TxnStart { session: "a".into(), id: Some(ValueRef::Int(1)), line: None })
                .unwrap();
            batch.end(&TxnEnd { start, finish, ..TxnEnd::new(Outcome::Committed) }).unwrap();
        }
        assert!(!batch.has_contradictory_times());
        let history = History::from_batches(vec![batch], BatchEntries::ByName).unwrap();
        assert_eq!((history.txn_count(), history.contradictory_times().len()), (1, 1));
    }
}
