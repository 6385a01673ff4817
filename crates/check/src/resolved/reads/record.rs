//! Reads and writes on their way to the join, and the table that joins them.

use isolario_model::{KeyId, OpId, TxnId};

/// A read or a write on its way to the join. Sixteen bytes: the cost of the join is the memory it
/// moves.
#[derive(Clone, Copy)]
pub(super) struct Record {
    /// What identifies the version.
    pub(super) word: u64,
    /// The key, and for a write in the highest bit whether its transaction overwrites it.
    tagged_key: u32,
    /// The transaction of a write; the operation of a read.
    pub(super) id: u32,
}

const OVERWRITTEN: u32 = 1 << 31;

impl Record {
    #[inline]
    pub(super) fn read(op: OpId, key: KeyId, word: u64) -> Record {
        Record { word, tagged_key: key.0, id: op.0 }
    }

    #[inline]
    pub(super) fn write(txn: TxnId, key: KeyId, word: u64, overwritten: bool) -> Record {
        let tagged_key = if overwritten { key.0 | OVERWRITTEN } else { key.0 };
        Record { word, tagged_key, id: txn.0 }
    }

    pub(super) fn key(self) -> u32 {
        self.tagged_key & !OVERWRITTEN
    }

    /// Whether a write is the last of its transaction to its key.
    pub(super) fn is_final(self) -> bool {
        self.tagged_key & OVERWRITTEN == 0
    }

    pub(super) fn same_version(self, other: Record) -> bool {
        self.word == other.word && self.key() == other.key()
    }
}

/// The distinct versions that a partition's transactions wrote.
#[derive(Default)]
pub(super) struct Versions {
    /// One write of each version: the final one where its transaction wrote it several times.
    writes: Vec<Record>,
    /// Per version, another transaction that wrote it; `u32::MAX` for none.
    others: Vec<u32>,
    /// Open addressing: positions in `writes` plus one, zero for empty.
    slots: Vec<u32>,
    mask: usize,
}

impl Versions {
    pub(super) fn with_capacity(writes: usize) -> Self {
        let slots = (writes * 2).next_power_of_two().max(2);
        Versions {
            writes: Vec::with_capacity(writes),
            others: Vec::new(),
            slots: vec![0; slots],
            mask: slots - 1,
        }
    }

    fn slot(&self, record: Record) -> usize {
        // Multiplicative hashing: the upper half of the product depends on all bits below.
        let mixed = (record.word ^ u64::from(record.key()).rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (mixed >> 32) as usize & self.mask;
        while let Some(at) = (self.slots[slot] as usize).checked_sub(1)
            && !self.writes[at].same_version(record)
        {
            slot = (slot + 1) & self.mask;
        }
        slot
    }

    pub(super) fn insert(&mut self, write: Record) {
        let slot = self.slot(write);
        let Some(at) = (self.slots[slot] as usize).checked_sub(1) else {
            self.writes.push(write);
            self.slots[slot] = self.writes.len() as u32;
            return;
        };
        if self.writes[at].id == write.id {
            // One transaction wrote the same version twice. Others may have seen its final write,
            // which forbids nothing: prefer that.
            if write.is_final() {
                self.writes[at] = write;
            }
            return;
        }
        if self.others.len() <= at {
            self.others.resize(at + 1, u32::MAX);
        }
        if self.others[at] == u32::MAX {
            self.others[at] = write.id;
        }
    }

    pub(super) fn find(&self, read: Record) -> Option<(Record, Option<TxnId>)> {
        let at = (self.slots[self.slot(read)] as usize).checked_sub(1)?;
        let other = self.others.get(at).filter(|other| **other != u32::MAX);
        Some((self.writes[at], other.map(|txn| TxnId(*txn))))
    }
}
