//! The versions of each row, in the order that is stated.
//!
//! Each transaction has one version of a row: the last one it wrote. Versions before it were never
//! committed, so no other transaction may observe them, and a change that a transaction took back
//! itself changed nothing for others.
//!
//! A row of a table that is inserted after a delete is a new *incarnation*: the same key, but at every level
//! below serializability an object of its own. A database may let a transaction insert a key that a
//! concurrent one has deleted, and nothing is lost by that, even if the transaction deletes its own row
//! afterwards.

use std::ops::Range;

use isolario_model::{History, KeyId, OpId, RowRef, StatedOrder, TxnId, ValueId, ValueRef};

use crate::graph::Rows;
use crate::resolved::{InitialContent, InitialContents};
use crate::rows::{LastWrite, RowVersions, written_rows};

/// A version: a position among all versions, those of a row together and in their order.
pub(super) type Version = u32;

/// The versions of each row: the initial one, and then those that were written.
pub(super) struct VersionChains<'h> {
    history: &'h History,
    initial: InitialContents<'h>,
    /// Per row, the position of its first version; then the number of versions.
    starts: Vec<Version>,
    versions: Vec<ChainVersion>,
    /// Per version, whether it begins a new incarnation.
    begins: Vec<bool>,
    /// Per row, whether one of its versions does.
    is_reborn: Vec<bool>,
    /// Per transaction, the versions that it wrote, by row.
    of_txn: Rows<Version>,
}

/// A version that a transaction wrote, or the initial one.
#[derive(Clone, Copy)]
pub(super) struct ChainVersion {
    pub(super) key: KeyId,
    pub(super) writer: TxnId,
    /// The last write of the row by that transaction; none for the initial version.
    pub(super) write: Option<OpId>,
    value: Option<ValueId>,
    /// The encoded value that reads of the version return.
    encoded: u64,
    /// Whether the first write of the row by its writer inserted it by its key.
    is_insert: bool,
    /// The statement that puts the version after the one before it.
    pub(super) stated_at: u64,
}

impl<'h> VersionChains<'h> {
    /// Puts the last writes of transactions that count into the order that is stated. Fails with a row whose
    /// order is not stated in full.
    pub(super) fn new(
        history: &'h History,
        writes: &RowVersions,
        orders: &[StatedOrder],
    ) -> Result<Self, KeyId> {
        let keys = history.key_count();
        let statements = Rows::group(keys, (0..).zip(orders).map(|(at, order)| (order.key.0, at)));
        let mut starts = Vec::with_capacity(keys + 1);
        let mut versions = Vec::with_capacity(keys + writes.all().len());
        for key in (0..keys).map(KeyId::at) {
            starts.push(versions.len() as Version);
            versions.push(ChainVersion {
                key,
                writer: TxnId::INIT,
                write: None,
                value: None,
                encoded: 0,
                is_insert: false,
                stated_at: 0,
            });
            let stated = statements.get(key.index()).iter().map(|at: &u32| &orders[*at as usize]);
            for (last, stated_at) in sort(writes.of(key), stated).ok_or(key)? {
                let LastWrite { row, writer, first } = last;
                let mut inserted = written_rows(history, first).filter(|row| row.key == key);
                let is_insert = history.op_predicate(first).is_none()
                    && inserted.any(|row| history.value(row.value) != ValueRef::Nil);
                versions.push(ChainVersion {
                    key,
                    writer,
                    write: Some(row.write),
                    value: Some(row.value),
                    encoded: row.encoded,
                    is_insert,
                    stated_at,
                });
            }
        }
        starts.push(versions.len() as Version);
        let by_txn = (0..).zip(&versions).filter(|(_, written)| !written.writer.is_init());
        let of_txn =
            Rows::group(history.txn_count(), by_txn.map(|(at, written)| (written.writer.0, at)));
        let initial = InitialContents::new(history);
        let (begins, is_reborn) = (Vec::new(), Vec::new());
        let mut chains =
            VersionChains { history, initial, starts, versions, begins, is_reborn, of_txn };
        chains.begins = (0..chains.len()).map(|version| chains.is_rebirth(version)).collect();
        let is_reborn = |mut row: Range<Version>| row.any(|version| chains.begins(version));
        chains.is_reborn = chains.rows().map(is_reborn).collect();
        Ok(chains)
    }

    /// Whether a row that had been deleted is there again, or was until its writer deleted it.
    fn is_rebirth(&self, version: Version) -> bool {
        let ChainVersion { key, is_insert, writer, .. } = self.written(version);
        if writer.is_init() || !self.history.is_row(key) || !is_insert && !self.is_there(version) {
            return false;
        }
        !self.writer(version - 1).is_init() && !self.is_there(version - 1)
    }

    /// Whether the row is there in a version, as far as that is known.
    fn is_there(&self, version: Version) -> bool {
        self.value(version) != Some(ValueRef::Nil)
    }

    /// Number of versions, initial ones included.
    pub(super) fn len(&self) -> Version {
        self.versions.len() as Version
    }

    /// The versions of a row, the initial one first.
    pub(super) fn of(&self, key: KeyId) -> Range<Version> {
        self.starts[key.index()]..self.starts[key.index() + 1]
    }

    pub(super) fn written(&self, version: Version) -> ChainVersion {
        self.versions[version as usize]
    }

    #[inline]
    pub(super) fn writer(&self, version: Version) -> TxnId {
        self.versions[version as usize].writer
    }

    /// The version of a row that a transaction wrote; for `init`, the initial one.
    pub(super) fn version(&self, key: KeyId, writer: TxnId) -> Option<Version> {
        if writer.is_init() {
            return Some(self.starts[key.index()]);
        }
        let versions = self.of_txn(writer);
        let at = versions.binary_search_by_key(&key, |version| self.written(*version).key).ok()?;
        Some(versions[at])
    }

    /// The versions that a transaction wrote, by row.
    pub(super) fn of_txn(&self, txn: TxnId) -> &[Version] {
        self.of_txn.get(txn.index())
    }

    /// Whether a version is the first of a new incarnation.
    #[inline]
    pub(super) fn begins(&self, version: Version) -> bool {
        self.begins[version as usize]
    }

    /// Whether a row has more than one incarnation.
    #[inline]
    pub(super) fn has_incarnations(&self, key: KeyId) -> bool {
        self.is_reborn[key.index()]
    }

    /// Whether any row has.
    pub(super) fn any_incarnations(&self) -> bool {
        self.is_reborn.contains(&true)
    }

    /// The versions of each row.
    pub(super) fn rows(&self) -> impl Iterator<Item = Range<Version>> + '_ {
        self.starts.windows(2).map(|bounds| bounds[0]..bounds[1])
    }

    /// Whether a version inserts a row, or deletes it.
    pub(super) fn changes_presence(&self, version: Version) -> bool {
        !self.writer(version).is_init() && self.is_there(version) != self.is_there(version - 1)
    }

    /// Whether a row has more than one incarnation after a version and up to another.
    pub(super) fn is_cut(&self, after: Version, up_to: Version) -> bool {
        (after + 1..=up_to).any(|version| self.begins(version))
    }

    /// The value of a version; none for an initial one that was never read, which is unknown.
    pub(super) fn value(&self, version: Version) -> Option<ValueRef<'h>> {
        let ChainVersion { key, value, .. } = self.written(version);
        match value {
            Some(value) => Some(self.history.value(value)),
            None => match self.initial.of(key) {
                InitialContent::Value(value) => Some(value),
                InitialContent::Nothing => Some(ValueRef::Nil),
                InitialContent::Unknown => None,
            },
        }
    }

    /// The row that a version is.
    pub(super) fn row(&self, version: Version) -> Option<RowRef<'h>> {
        let key = self.history.key_name(self.written(version).key);
        Some(RowRef { key, value: self.value(version)? })
    }

    /// Whether reads of two versions of a row show the same.
    pub(super) fn are_equal(&self, one: Version, other: Version) -> bool {
        match (self.written(one).value, self.written(other).value) {
            (Some(_), _) => self.shows(other, self.written(one).encoded),
            (None, _) => self.shows(one, self.written(other).encoded),
        }
    }

    /// Whether a read that returned this encoded value may be a read of the version.
    pub(super) fn shows(&self, version: Version, encoded: u64) -> bool {
        let written = self.written(version);
        match written.value {
            Some(_) => written.encoded == encoded,
            None => self.initial.is(written.key, encoded),
        }
    }
}

/// The writes of one row in their order, each with the statement that puts it after the one before; none
/// if the statements leave the order open, or contradict each other.
fn sort<'o>(
    writes: &[LastWrite],
    statements: impl Iterator<Item = &'o StatedOrder>,
) -> Option<Vec<(LastWrite, u64)>> {
    if writes.len() <= 1 {
        return Some(writes.iter().map(|write| (*write, 0)).collect());
    }
    let number = |txn: &TxnId| writes.binary_search_by_key(txn, |write| write.writer).ok();
    // Each statement orders pairs of neighbours. A file that a database writes continues every statement
    // about a row in the next one, so that this is a single chain.
    let mut pairs: Vec<(usize, usize, u64)> = Vec::with_capacity(writes.len());
    for stated in statements {
        let mut numbers = stated.writers.iter().filter_map(number);
        let Some(mut before) = numbers.next() else { continue };
        for after in numbers {
            if before != after {
                pairs.push((before, after, stated.at));
            }
            before = after;
        }
    }
    let after = Rows::group(writes.len(), (0..).zip(&pairs).map(|(at, pair)| (pair.0 as u32, at)));
    let mut waits = vec![0u32; writes.len()];
    pairs.iter().for_each(|(_, after, _)| waits[*after] += 1);
    let mut next: Vec<(usize, u64)> =
        (0..writes.len()).filter(|number| waits[*number] == 0).map(|number| (number, 0)).collect();
    let mut sorted = Vec::with_capacity(writes.len());
    while let [(only, at)] = next[..] {
        sorted.push((writes[only], at));
        next.clear();
        for pair in after.get(only) {
            let (_, after, at) = pairs[*pair as usize];
            waits[after] -= 1;
            if waits[after] == 0 {
                next.push((after, at));
            }
        }
    }
    (sorted.len() == writes.len()).then_some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::WrittenRow;

    fn sorted(writers: &[u32], lines: &[&[u32]]) -> Option<Vec<(u32, u64)>> {
        let value = ValueId::inline(0)?;
        let write = |txn: &u32| LastWrite {
            row: WrittenRow { key: KeyId(0), write: OpId(0), value, encoded: 0 },
            writer: TxnId(*txn),
            first: OpId(0),
        };
        let writes: Vec<LastWrite> = writers.iter().map(write).collect();
        let line = |(at, writers): (u64, &&[u32])| {
            let writers = writers.iter().map(|txn| TxnId(*txn)).collect();
            StatedOrder { key: KeyId(0), writers, at }
        };
        let lines: Vec<StatedOrder> = (1..).zip(lines).map(line).collect();
        let sorted = sort(&writes, lines.iter())?;
        Some(sorted.into_iter().map(|(write, at)| (write.writer.0, at)).collect())
    }

    #[test]
    fn lines_of_a_row_state_one_order() {
        let order = sorted(&[1, 2, 3, 4], &[&[3, 1], &[1, 4, 2]]);
        assert_eq!(order, Some(vec![(3, 0), (1, 1), (4, 2), (2, 2)]));
        // In any sequence, with some things said twice, and with others who do not count.
        let order = sorted(&[1, 2, 3], &[&[1, 9, 2], &[3, 2], &[3, 1]]);
        assert_eq!(order.map(|order| order.len()), Some(3));
        assert_eq!(sorted(&[5], &[]), Some(vec![(5, 0)]));
        assert_eq!(sorted(&[], &[]), Some(vec![]));
    }

    #[test]
    fn what_is_left_open_or_contradicts_itself_is_no_order() {
        assert_eq!(sorted(&[1, 2], &[]), None);
        assert_eq!(sorted(&[1, 2, 3], &[&[1, 2]]), None);
        assert_eq!(sorted(&[1, 2, 3], &[&[1, 2], &[1, 3]]), None);
        assert_eq!(sorted(&[1, 2], &[&[1, 2], &[2, 1]]), None);
    }
}
