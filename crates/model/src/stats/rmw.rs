//! Writes that follow a read of their key.

use super::Share;
use crate::access::Effect;
use crate::{History, Outcome, TxnId};

/// How much of the writing follows an observed read of the same key in the same transaction.
/// Only committed transactions count.
///
/// Where all of it does, versions form chains, and the strong levels can be decided fast. A
/// conditional write that took effect reads what it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadModifyWrite {
    /// The transactions that read every key before they write it, of those that write.
    pub transactions: Share,
    /// The writes of keys that were read before, of all writes of keys.
    pub writes: Share,
}

impl ReadModifyWrite {
    pub(super) fn of(history: &History) -> ReadModifyWrite {
        let mut found = ReadModifyWrite::default();
        // Per key, the last transaction that read it: one array for all transactions, so that
        // long ones cost no more per operation than short ones. No transaction read as `init`.
        let mut last_reader = vec![TxnId::INIT; history.key_count()];
        for txn in history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed) {
            let mut writes = Share::default();
            for op in history.txn_ops(txn) {
                history.effects(op, |key, effect| {
                    let reader = &mut last_reader[key.index()];
                    match effect {
                        Effect::Observed => *reader = txn,
                        Effect::Wrote(_) => {
                            writes.whole += 1;
                            writes.part += usize::from(*reader == txn);
                        }
                    }
                });
            }
            found.writes.whole += writes.whole;
            found.writes.part += writes.part;
            found.transactions.whole += usize::from(writes.whole > 0);
            found.transactions.part += usize::from(writes.whole > 0 && writes.part == writes.whole);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, history, int, read, txn, write};
    use crate::{Op, OpInput};

    fn share(part: usize, whole: usize) -> Share {
        Share { part, whole }
    }

    fn of(txns: &[Txn<'_>]) -> (Share, Share) {
        let found = ReadModifyWrite::of(&history(txns));
        (found.transactions, found.writes)
    }

    #[test]
    fn every_write_must_follow_a_read_of_its_key_in_its_transaction() {
        let good = [read(1, 0), write(1, 1), write(1, 2)];
        let half = [read(1, 0), write(1, 3), write(2, 1)];
        let late = [write(1, 4), read(1, 4)];
        let only_read = [read(2, 1)];
        let blind = [write(2, 5)];
        let txns = [&good[..], &half, &late, &only_read, &blind].map(|ops| txn(ops));
        assert_eq!(of(&txns), (share(1, 4), share(3, 6)));
    }

    #[test]
    fn only_committed_transactions_count() {
        let good = [read(1, 0), write(1, 1)];
        let aborted = Txn { outcome: Outcome::Aborted, ..txn(&good) };
        let unknown = Txn { outcome: Outcome::Unknown, ..txn(&good) };
        assert_eq!(of(&[aborted, unknown]), (share(0, 0), share(0, 0)));
    }

    #[test]
    fn what_was_not_observed_is_no_read() {
        let one = |ops: &[OpInput<'_>]| of(&[txn(ops)]).1;
        let (key, value) = (int(1), int(1));
        assert_eq!(one(&[Op::Read { key, value: None }, write(1, 1)]), share(0, 1));
        let list = |elements| [Op::ReadList { key, elements }, Op::Append { key, element: value }];
        assert_eq!(one(&list(Some(&[]))), share(1, 1));
        assert_eq!(one(&list(None)), share(0, 1));
        let insert = |applied| [Op::InsertIfAbsent { key, value, applied, seen: None }];
        assert_eq!(one(&insert(Some(true))), share(1, 1));
        assert_eq!(one(&insert(Some(false))), share(0, 0));
        assert_eq!(one(&insert(None)), share(0, 1));
    }
}
