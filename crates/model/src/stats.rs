//! The figures of a history: how large it is, how skewed, how concurrent, how fit for checking.

mod concurrency;
mod distribution;
mod rmw;
mod skew;

use crate::duplicates::Duplicates;
use crate::op::{Op, OpKind, Outcome};
use crate::{History, OpId};

pub use concurrency::Concurrency;
pub use distribution::{Bucket, Distribution};
pub use rmw::ReadModifyWrite;
pub use skew::{KeyUse, Skew};

/// The figures of a history. Transactions of any outcome count, unless a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// How many sessions there are.
    pub sessions: usize,
    /// How many transactions there are, by outcome.
    pub transactions: Outcomes,
    /// How many operations there are.
    pub operations: usize,
    /// How many of them are in committed transactions.
    pub committed_operations: usize,
    /// How many keys there are.
    pub keys: usize,
    /// How many operations read: unobserved reads and conditional writes do, too.
    pub reads: usize,
    /// How many operations write: also conditional ones, unless they are known to have failed.
    pub writes: usize,
    /// Operations per transaction.
    pub transaction_sizes: Distribution,
    /// How unevenly the operations fall on the keys.
    pub skew: Skew,
    /// How many transactions ran at a time; none where no transaction has both times.
    pub concurrency: Option<Concurrency>,
    /// How much of the writing follows a read of the same key.
    pub read_modify_write: ReadModifyWrite,
    /// How far values tell writes apart.
    pub uniqueness: Uniqueness,
}

impl Stats {
    /// Takes the figures of a history.
    pub fn of(history: &History) -> Stats {
        let ((uniqueness, skew), (read_modify_write, concurrency)) = rayon::join(
            || (Uniqueness::of(history), Skew::of(history)),
            || (ReadModifyWrite::of(history), Concurrency::of(history)),
        );
        let (reads, writes) = count_reads_and_writes(history);
        let sizes = history.txns().map(|txn| history.op_range(txn).len());
        Stats {
            sessions: history.session_count(),
            transactions: Outcomes::of(history),
            operations: history.op_count(),
            committed_operations: count_committed_operations(history),
            keys: history.key_count(),
            reads,
            writes,
            transaction_sizes: Distribution::of(sizes.collect()),
            skew,
            concurrency,
            read_modify_write,
            uniqueness,
        }
    }

    /// Reads per write; none where nothing writes.
    pub fn reads_per_write(&self) -> Option<f64> {
        Share { part: self.reads, whole: self.writes }.ratio()
    }
}

/// A part of a whole, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many are meant.
    pub part: usize,
    /// Of how many.
    pub whole: usize,
}

impl Share {
    /// The part divided by the whole; none where the whole is nothing.
    pub fn ratio(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }
}

/// How many transactions ended which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcomes {
    /// How many committed.
    pub committed: usize,
    /// How many aborted.
    pub aborted: usize,
    /// Of how many the client cannot tell.
    pub unknown: usize,
}

impl Outcomes {
    fn of(history: &History) -> Outcomes {
        let mut counts = Outcomes::default();
        for txn in history.txns() {
            match history.outcome(txn) {
                Outcome::Committed => counts.committed += 1,
                Outcome::Aborted => counts.aborted += 1,
                Outcome::Unknown => counts.unknown += 1,
            }
        }
        counts
    }

    /// How many there are in all.
    pub fn total(&self) -> usize {
        self.committed + self.aborted + self.unknown
    }
}

/// How far values tell writes apart. Each row of a predicate write is a write of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uniqueness {
    /// The writes whose version nobody else wrote to that key, of all writes of keys.
    pub unique_writes: Share,
    /// How many versions of a key were written more than once.
    pub duplicated: usize,
}

impl Uniqueness {
    fn of(history: &History) -> Uniqueness {
        let Duplicates { writes, unique, repeated } = Duplicates::of(history);
        let unique_writes = Share { part: unique, whole: writes };
        Uniqueness { unique_writes, duplicated: repeated.count }
    }
}

fn count_committed_operations(history: &History) -> usize {
    let committed = history.txns().filter(|txn| history.outcome(*txn) == Outcome::Committed);
    committed.map(|txn| history.op_range(txn).len()).sum()
}

fn count_reads_and_writes(history: &History) -> (usize, usize) {
    let (mut reads, mut writes) = (0, 0);
    for (op, kind) in history.op_kinds().iter().enumerate() {
        match kind {
            OpKind::Read
            | OpKind::ReadUnobserved
            | OpKind::ReadList
            | OpKind::ReadListUnobserved
            | OpKind::PredicateRead
            | OpKind::Aggregate => reads += 1,
            OpKind::Write | OpKind::Delete | OpKind::Append | OpKind::PredicateWrite => writes += 1,
            OpKind::InsertIfAbsent | OpKind::CompareAndSet => {
                reads += 1;
                writes += usize::from(!failed(history, OpId::at(op)));
            }
        }
    }
    (reads, writes)
}

fn failed(history: &History, op: OpId) -> bool {
    matches!(
        history.op(op),
        Op::InsertIfAbsent { applied: Some(false), .. }
            | Op::CompareAndSet { applied: Some(false), .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, count, history, int, one_txn, read, select, txn, update, write};

    #[test]
    fn an_empty_history_has_figures_too() {
        let stats = Stats::of(&history(&[]));
        assert_eq!((stats.sessions, stats.transactions.total(), stats.operations), (0, 0, 0));
        assert_eq!((stats.reads_per_write(), stats.concurrency), (None, None));
        assert_eq!(stats.uniqueness.unique_writes.ratio(), None);
    }

    #[test]
    fn sizes_are_counted_by_outcome() {
        let (one, two, three) = ([read(1, 0)], [read(1, 0), write(2, 1)], [write(3, 1); 3]);
        let stats = Stats::of(&history(&[
            txn(&one),
            Txn { session: "b", outcome: Outcome::Aborted, ..txn(&three) },
            Txn { outcome: Outcome::Unknown, ..txn(&two) },
            Txn { session: "c", ..txn(&two) },
        ]));
        assert_eq!((stats.sessions, stats.keys), (3, 3));
        assert_eq!(stats.transactions, Outcomes { committed: 2, aborted: 1, unknown: 1 });
        assert_eq!(stats.transactions.total(), 4);
        assert_eq!((stats.operations, stats.committed_operations), (8, 3));
        assert_eq!((stats.reads, stats.writes), (3, 5));
        assert_eq!(stats.reads_per_write(), Some(0.6));
        assert_eq!(stats.transaction_sizes.max, 3);
    }

    #[test]
    fn every_kind_of_operation_reads_or_writes() {
        let (key, value) = (int(1), int(1));
        let insert = |applied| Op::InsertIfAbsent { key, value, applied, seen: None };
        let cas =
            |applied| Op::CompareAndSet { key, expected: value, new: value, applied, seen: None };
        let counts = |op| {
            let stats = Stats::of(&one_txn(&[op]));
            (stats.reads, stats.writes)
        };
        for op in [
            Op::Read { key, value: None },
            Op::ReadList { key, elements: None },
            Op::ReadList { key, elements: Some(&[]) },
            select(None),
            count(None),
            insert(Some(false)),
            cas(Some(false)),
        ] {
            assert_eq!(counts(op), (1, 0), "{op:?}");
        }
        for op in [Op::Delete { key }, Op::Append { key, element: value }, update(None)] {
            assert_eq!(counts(op), (0, 1), "{op:?}");
        }
        for op in [insert(Some(true)), insert(None), cas(Some(true)), cas(None)] {
            assert_eq!(counts(op), (1, 1), "{op:?}");
        }
    }

    #[test]
    fn uniqueness_counts_writes_and_versions() {
        // Of key 1: 5 three times, 6 once. Of key 2: 5 once, 7 twice.
        let writes = [(1, 5), (1, 5), (1, 6), (2, 5), (2, 7), (1, 5), (2, 7)];
        let ops: Vec<_> = writes.iter().map(|(key, value)| write(*key, *value)).collect();
        let uniqueness = Stats::of(&one_txn(&ops)).uniqueness;
        assert_eq!(uniqueness.unique_writes, Share { part: 2, whole: 7 });
        assert_eq!(uniqueness.duplicated, 2);
    }
}
