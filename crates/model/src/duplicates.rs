//! Versions of a key that more than one write made.

use rayon::prelude::*;

use crate::access::Effect;
use crate::distinct::DistinctnessCheck;
use crate::remark::Tally;
use crate::{History, KeyId, OpId, OpKind, ValueId, ValueRef};

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
    /// The values that were written more than once, with their first two writes. That a key is
    /// deleted time and again is no oddity.
    pub(crate) repeated: Tally<Duplicate>,
}

/// A write of a key. Ordered so that writes of one version of one key are neighbours, the first
/// in the history's order first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    version: u64,
    key: u32,
    op: u32,
}

/// How many operations one task looks at.
const OPS_PER_TASK: usize = 1 << 18;

/// Into how many parts the writes go; a power of two. Of ten million writes, a part is 2.5 MB.
const PARTS: usize = 64;

impl Duplicates {
    /// Whether there are none, where one look at the values of registers tells.
    pub(crate) fn are_ruled_out(history: &History) -> bool {
        let is_plain = |kind: &OpKind| matches!(kind, OpKind::Read | OpKind::Write);
        if history.names_versions() || !history.op_kinds().iter().all(is_plain) {
            return false;
        }
        let mut distinct = DistinctnessCheck::of_about(history.op_count());
        let ops = history.op_kinds().iter().zip(history.encoded_values());
        ops.for_each(|(kind, word)| distinct.take_if(*kind == OpKind::Write, *word));
        distinct.are_different()
    }

    /// Deals the writes out by version and key, and sorts each part: sorts that fit the cache
    /// touch less memory than one sort or one table of all writes would.
    pub(crate) fn of(history: &History) -> Duplicates {
        let tasks = history.op_count().div_ceil(OPS_PER_TASK);
        let dealt: Vec<_> = (0..tasks).into_par_iter().map(|task| deal(history, task)).collect();
        let nil = history.find_value(ValueRef::Nil).map(ValueId::to_bits);
        (0..PARTS)
            .into_par_iter()
            .map(|part| dealt.iter().flat_map(|parts| &parts[part]).copied().collect())
            .map(|writes| Duplicates::scan(writes, nil))
            .reduce(Duplicates::default, Duplicates::merge)
    }

    /// Counts a part: all writes of the versions in it.
    fn scan(mut writes: Vec<Write>, nil: Option<u64>) -> Duplicates {
        writes.sort_unstable();
        let mut found = Duplicates { writes: writes.len(), ..Duplicates::default() };
        for same in writes.chunk_by(|a, b| (a.version, a.key) == (b.version, b.key)) {
            match same {
                [first, _, ..] if Some(first.version) == nil => {}
                [first, second, ..] => found.repeated.add(Duplicate {
                    first: OpId(first.op),
                    second: OpId(second.op),
                    key: KeyId(first.key),
                }),
                _ => found.unique += 1,
            }
        }
        found
    }

    fn merge(self, other: Duplicates) -> Duplicates {
        Duplicates {
            writes: self.writes + other.writes,
            unique: self.unique + other.unique,
            repeated: self.repeated.merge(other.repeated),
        }
    }
}

/// Deals out the writes of one task's operations.
fn deal(history: &History, task: usize) -> Vec<Vec<Write>> {
    let mut parts = vec![Vec::new(); PARTS];
    let first = task * OPS_PER_TASK;
    for op in first..history.op_count().min(first + OPS_PER_TASK) {
        history.effects(OpId::at(op), |key, effect| {
            if let Effect::Wrote(version) = effect {
                parts[part_of(key, version)].push(Write { version, key: key.0, op: op as u32 });
            }
        });
    }
    parts
}

/// The part of a version of a key. The golden ratio spreads counters and multiples evenly over
/// the top bits.
fn part_of(key: KeyId, version: u64) -> usize {
    let mixed = (version ^ u64::from(key.0) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - PARTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{int, one_txn, update, write};
    use crate::{
        Batch, Op, OpInput, OpNotes, Outcome, RowInput, TxnEnd, TxnSink, TxnStart, VersionRef,
    };

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
        let rows = [RowInput::new(1, 5), RowInput::new(2, ValueRef::Nil)];
        let ops = [
            write(1, 5),
            Op::Delete { key: int(2) },
            update(Some(&rows)),
            Op::Append { key: int(3), element: int(5) },
            Op::InsertIfAbsent { key: int(3), value: int(5), applied: None, seen: None },
            Op::InsertIfAbsent { key: int(3), value: int(5), applied: Some(false), seen: None },
        ];
        let (writes, unique, repeated) = of(&ops);
        assert_eq!((writes, unique, repeated.count), (6, 0, 2));
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
