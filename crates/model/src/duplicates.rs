//! Versions of a key that more than one write made.

use rayon::prelude::*;

use crate::access::Effect;
use crate::tally::Tally;
use crate::{History, KeyId, OpId};

/// Two writes, the first in the history's order, that made one version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Duplicate {
    pub(crate) first: OpId,
    pub(crate) second: OpId,
    pub(crate) key: KeyId,
}

/// How unique the writes of a history are, in transactions of any outcome.
#[derive(Debug, Default)]
pub(crate) struct Duplicates {
    /// How many writes of single keys there are.
    pub(crate) writes: usize,
    /// How many of them no other write is like.
    pub(crate) unique: usize,
    /// The versions that were written more than once, with their first two writes.
    pub(crate) repeated: Tally<Duplicate>,
}

/// A write of a key. Ordered by version, then by operation.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    version: u64,
    op: u32,
}

impl Duplicates {
    /// Groups the writes by key and sorts each group: one scatter and many small sorts touch
    /// less memory than one table of all writes would.
    pub(crate) fn of(history: &History) -> Duplicates {
        let mut ends = count_writes(history);
        let mut writes = vec![Write::default(); ends.last().copied().unwrap_or(0)];
        scatter_writes(history, &mut ends, &mut writes);
        split_by_key(&ends, &mut writes)
            .into_par_iter()
            .fold(Duplicates::default, Duplicates::scan)
            .reduce(Duplicates::default, Duplicates::merge)
    }

    fn scan(mut self, (key, writes): (KeyId, &mut [Write])) -> Duplicates {
        self.writes += writes.len();
        // Values that come from one counter per key are in order already.
        if writes.is_sorted_by(|a, b| a.version < b.version) {
            self.unique += writes.len();
            return self;
        }
        writes.par_sort_unstable();
        for same in writes.chunk_by(|a, b| a.version == b.version) {
            match same {
                [first, second, ..] => {
                    let (first, second) = (OpId(first.op), OpId(second.op));
                    self.repeated.add(Duplicate { first, second, key });
                }
                _ => self.unique += 1,
            }
        }
        self
    }

    fn merge(self, other: Duplicates) -> Duplicates {
        Duplicates {
            writes: self.writes + other.writes,
            unique: self.unique + other.unique,
            repeated: self.repeated.merge(other.repeated),
        }
    }
}

fn for_each_write(history: &History, mut take: impl FnMut(KeyId, Write)) {
    for op in 0..history.op_count() {
        let op = OpId::at(op);
        history.effects(op, |key, effect| {
            if let Effect::Wrote(version) = effect {
                take(key, Write { version, op: op.0 });
            }
        });
    }
}

/// Where each key's writes begin, and the number of all writes at the end.
fn count_writes(history: &History) -> Vec<usize> {
    let mut counts = vec![0; history.key_count() + 1];
    for_each_write(history, |key, _| counts[key.index()] += 1);
    let mut total = 0;
    for slot in &mut counts {
        total += std::mem::replace(slot, total);
    }
    counts
}

/// Puts each write into its key's place, and turns the beginnings into ends.
fn scatter_writes(history: &History, places: &mut [usize], writes: &mut [Write]) {
    for_each_write(history, |key, write| {
        let place = &mut places[key.index()];
        writes[*place] = write;
        *place += 1;
    });
}

fn split_by_key<'w>(ends: &[usize], writes: &'w mut [Write]) -> Vec<(KeyId, &'w mut [Write])> {
    let mut rest = writes;
    let mut start = 0;
    let mut groups = Vec::new();
    for (key, end) in ends.iter().enumerate() {
        let (group, tail) = rest.split_at_mut(end - start);
        (rest, start) = (tail, *end);
        if !group.is_empty() {
            groups.push((KeyId::at(key), group));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{int, one_txn, write};
    use crate::{Batch, Op, OpInput, OpNotes, Outcome, TxnEnd, TxnSink, TxnStart, VersionRef};

    fn of(ops: &[OpInput<'_>]) -> (usize, usize, Tally<Duplicate>) {
        let Duplicates { writes, unique, repeated } = Duplicates::of(&one_txn(ops));
        (writes, unique, repeated)
    }

    #[test]
    fn a_value_is_duplicated_within_its_key_only() {
        let ops = [write(1, 7), write(2, 7), write(1, 3), write(1, 7), write(1, 7)];
        let (writes, unique, repeated) = of(&ops);
        assert_eq!((writes, unique, repeated.count), (5, 2, 1));
        let expected = Duplicate { first: OpId(0), second: OpId(3), key: KeyId(0) };
        assert_eq!(repeated.first, [expected]);
    }

    #[test]
    fn deletes_appends_conditionals_and_rows_are_writes_too() {
        let rows = [(int(1), int(5)), (int(2), crate::ValueRef::Nil)];
        let ops = [
            write(1, 5),
            Op::Delete { key: int(2) },
            Op::PredicateWrite { predicate: "true", rows: Some(&rows) },
            Op::Append { key: int(3), element: int(5) },
            Op::InsertIfAbsent { key: int(3), value: int(5), applied: None, seen: None },
            Op::InsertIfAbsent { key: int(3), value: int(5), applied: Some(false), seen: None },
        ];
        let (writes, unique, repeated) = of(&ops);
        assert_eq!((writes, unique, repeated.count), (6, 0, 3));
    }

    #[test]
    fn named_versions_count_instead_of_values() {
        // Two versions of one value, one version of two values, and a write without a version
        // whose value happens to look like a version's number.
        let version = |write| Some(VersionRef::ByWriter { txn: 1, write });
        let mut batch = Batch::new();
        let start = TxnStart { session: int(0), id: None, line: None };
        batch.begin(&start).unwrap();
        for (value, version) in [(5, version(1)), (5, version(2)), (6, version(2)), (0, None)] {
            batch.op_with(&write(1, value), &OpNotes { version, sql: None }).unwrap();
        }
        batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        let found = Duplicates::of(&batch.build().unwrap());
        assert_eq!((found.writes, found.unique, found.repeated.count), (4, 2, 1));
        assert_eq!(found.repeated.first[0].first, OpId(1));
    }
}
