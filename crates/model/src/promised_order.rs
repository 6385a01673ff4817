//! The order in which a database promises that its transactions take effect.

use crate::access::Effect;
use crate::op::{Outcome, Stamp, StatedOrder};
use crate::{History, KeyId, TxnId};

/// An order of transactions that a database promises: by a list, or by its own timestamps.
///
/// Moments are numbered from 0 in that order. Transactions at one moment are in no order: equal
/// timestamps say nothing about their owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromisedOrder {
    /// Per transaction.
    points: Vec<Option<PromisedPoints>>,
    by_stamps: bool,
}

/// When a transaction takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromisedPoints {
    /// The moment of its snapshot; its commit where no other is known.
    pub start: u32,
    /// The moment from which on others see what it wrote.
    pub commit: u32,
}

impl PromisedOrder {
    /// One transaction after the other. Of one that is there twice, the first place counts.
    pub fn of_txns(history: &History, txns: &[TxnId]) -> PromisedOrder {
        let mut places = vec![None; history.txn_count()];
        for (moment, txn) in (0..).zip(txns) {
            if let Some(place @ None) = places.get_mut(txn.index()) {
                *place = Some(PromisedPoints { start: moment, commit: moment });
            }
        }
        PromisedOrder { points: places, by_stamps: false }
    }

    /// By the database's own timestamps, as the history has them.
    ///
    /// A transaction that has only one of the two has a place there: those that write nothing are
    /// often given no commit timestamp. Whoever commits before it starts has none.
    pub fn of_stamps(history: &History) -> PromisedOrder {
        let stamps = |txn: TxnId| {
            let (start, commit) = (history.db_start(txn), history.db_commit(txn));
            let (start, commit) = (start.or(commit)?, commit.or(start)?);
            (start <= commit).then_some((start, commit))
        };
        let of_all: Vec<_> = history.txns().map(stamps).collect();
        let mut moments: Vec<Stamp> =
            of_all.iter().flatten().flat_map(|(start, commit)| [*start, *commit]).collect();
        moments.sort_unstable();
        moments.dedup();
        let moment = |stamp: Stamp| moments.partition_point(|other| *other < stamp) as u32;
        let place =
            |(start, commit)| PromisedPoints { start: moment(start), commit: moment(commit) };
        let places = of_all.into_iter().map(|stamps| stamps.map(place)).collect();
        PromisedOrder { points: places, by_stamps: true }
    }

    /// Where a transaction is; none where nothing is promised of it.
    pub fn points(&self, txn: TxnId) -> Option<PromisedPoints> {
        self.points.get(txn.index()).copied().flatten()
    }

    /// The order of versions that follows: writers of a key in the order of their commits. Two that
    /// commit at one moment are given instead where there are any: nothing says which version is
    /// the later one.
    pub fn version_orders(&self, history: &History) -> Result<Vec<StatedOrder>, (TxnId, TxnId)> {
        let mut writes: Vec<(KeyId, u32, TxnId)> = Vec::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            let Some(place) = self.points(txn) else { continue };
            for op in history.txn_ops(txn) {
                history.effects(op, |key, effect| {
                    if let Effect::Wrote(_) = effect {
                        writes.push((key, place.commit, txn));
                    }
                });
            }
        }
        writes.sort_unstable();
        writes.dedup();
        let of_keys = writes.chunk_by(|a, b| a.0 == b.0);
        let order = |of_key: &[(KeyId, u32, TxnId)]| match of_key
            .windows(2)
            .find(|pair| pair[0].1 == pair[1].1)
        {
            Some(pair) => Err((pair[0].2, pair[1].2)),
            None => {
                let writers = of_key.iter().map(|write| write.2).collect();
                Ok(StatedOrder { key: of_key[0].0, writers, at: u64::from(of_key[0].1) })
            }
        };
        of_keys.map(order).collect()
    }

    /// Whether it comes from the history's own timestamps, which tell snapshots from commits.
    pub fn is_by_stamps(&self) -> bool {
        self.by_stamps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{history, txn, write};

    #[test]
    fn a_list_gives_each_transaction_one_moment() {
        let ops = [write(1, 1)];
        let three = history(&[txn(&ops), txn(&ops), txn(&ops)]);
        let order = PromisedOrder::of_txns(&three, &[TxnId(2), TxnId(0), TxnId(2), TxnId(9)]);
        let moment = |txn| order.points(TxnId(txn)).map(|place| (place.start, place.commit));
        assert_eq!([moment(0), moment(1), moment(2)], [Some((1, 1)), None, Some((0, 0))]);
        assert_eq!(moment(9), None);
    }
}
