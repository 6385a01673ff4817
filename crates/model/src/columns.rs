//! The columns of batches and histories: one array per field.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::bad_times::ContradictoryTimes;
use crate::lists::Lists;
use crate::op::{OpKind, Outcome, Stamp, VersionRef};
use crate::predicate_ops::PredicateOps;
use crate::table::ValueId;
use crate::{KeyId, VersionId};

/// The most rows of one kind a history can number.
pub(crate) const MAX_ROWS: usize = u32::MAX as usize - 1;

/// A conditional write, whose columns word is its position among them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConditionalOp {
    /// The expected value; none for an insert.
    pub(crate) expected: Option<ValueId>,
    pub(crate) new: ValueId,
    pub(crate) applied: Option<bool>,
    pub(crate) seen: Option<ValueId>,
}

/// The operations of a batch or of a history, one array per field.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpColumns {
    pub(crate) kinds: Vec<OpKind>,
    pub(crate) keys: Vec<KeyId>,
    /// The value's word, the word of a list, or the position of a conditional write or of a
    /// predicate operation among their like.
    pub(crate) encoded: Vec<u64>,
    pub(crate) versions: Column<VersionId>,
    pub(crate) conditionals: Vec<ConditionalOp>,
    pub(crate) predicates: PredicateOps,
    pub(crate) lists: Lists,
    pub(crate) version_names: IndexSet<VersionRef, FxBuildHasher>,
    /// Statements, by operation, in order.
    pub(crate) sql: Vec<(u32, Box<str>)>,
}

/// Texts about a transaction that few have.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxnTexts {
    pub(crate) snapshot: Option<Box<str>>,
    pub(crate) error: Option<Box<str>>,
}

/// The transactions of a batch or of a history, one array per field.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxnColumns {
    pub(crate) sessions: Vec<u32>,
    /// One past the last operation of each.
    pub(crate) op_ends: Vec<u32>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) names: Column<ValueId>,
    pub(crate) lines: Column<u64>,
    pub(crate) starts: Column<i64>,
    pub(crate) finishes: Column<i64>,
    pub(crate) db_starts: Column<Stamp>,
    pub(crate) db_commits: Column<Stamp>,
    /// Texts, by transaction, in order.
    pub(crate) texts: Vec<(u32, TxnTexts)>,
    /// Of a history, the times that were left out, by transaction.
    pub(crate) contradictory_times: Vec<ContradictoryTimes>,
}

/// Per-row facts that most histories do not have. Rows never set read as missing.
///
/// Whether a row is set is one bit apart from the values: an `Option` of a word takes two words,
/// and no value can be spared to stand for "missing".
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    rows: Vec<T>,
    /// The bits of the rows that are set, in words of [`BITS`].
    present: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column { rows: Vec::new(), present: Vec::new() }
    }
}

impl<T: Copy> Column<T> {
    /// A column whose rows are all set.
    pub(crate) fn full(rows: Vec<T>) -> Self {
        let mut present = vec![u64::MAX; rows.len().div_ceil(BITS)];
        if let Some(last) = present.last_mut() {
            // Rows that may be added later are not set.
            *last >>= rows.len().next_multiple_of(BITS) - rows.len();
        }
        Column { rows, present }
    }

    /// Sets a row. Setting a row to missing allocates nothing.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: Option<T>) {
        let (word, bit) = (row / BITS, 1 << (row % BITS));
        match value {
            Some(value) if row < self.rows.len() => {
                self.rows[row] = value;
                self.present[word] |= bit;
            }
            Some(value) => {
                // Rows in between get a value that nobody sees, since their bits stay clear.
                self.rows.resize(row + 1, value);
                self.present.resize(word + 1, 0);
                self.present[word] |= bit;
            }
            None if row < self.rows.len() => self.present[word] &= !bit,
            None => {}
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        let value = self.rows.get(row)?;
        (self.present[row / BITS] >> (row % BITS) & 1 == 1).then_some(*value)
    }

    /// Whether no row was ever set.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets all rows if none is set any more.
    pub(crate) fn forget_if_unset(&mut self) {
        if self.present.iter().all(|word| *word == 0) {
            *self = Column::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_what_was_last_set_and_the_others_nothing() {
        let mut column = Column::default();
        column.set(3, None);
        assert!(column.is_empty());
        for row in [1, 63, 64, 130] {
            column.set(row, Some(row as u64));
        }
        column.set(63, None);
        column.set(63, None);
        column.set(1, Some(7));
        column.set(200, None);
        let set: Vec<_> = (0..300).filter_map(|row| Some((row, column.get(row)?))).collect();
        assert_eq!(set, [(1, 7), (64, 64), (130, 130)]);
    }
    #[test]
    fn all_rows_of_a_full_column_are_set_and_no_others() {
        for len in [0, 1, 63, 64, 65] {
            let mut column = Column::full((0..len as u64).collect());
            assert_eq!(column.is_empty(), len == 0);
            column.set(200, Some(7));
            let set: Vec<_> = (0..300).filter_map(|row| Some((row, column.get(row)?))).collect();
            let all: Vec<_> = (0..len).map(|row| (row, row as u64)).chain([(200, 7)]).collect();
            assert_eq!(set, all);
        }
    }
}
