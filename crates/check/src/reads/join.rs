//! Joins reads with writes, partition by partition.

use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{History, Initial, OpId, Outcome, TxnId};
use rayon::prelude::*;

use super::partition::{self, PARTITIONS, Record, Share};
use super::{ASIDE, OWN};

/// What the join found.
pub(super) struct Joined {
    /// Per operation, the word of its source.
    pub(super) sources: Vec<u32>,
    /// Reads that are wrong unless their transaction turns out not to count, by operation.
    pub(super) suspects: Vec<Suspect>,
    /// Reads with more than one candidate, by operation.
    pub(super) ambiguous: Vec<Ambiguous>,
    /// Reads from transactions of unknown outcome, wrong ones included: (read, writer).
    pub(super) unknown_reads: Vec<(OpId, TxnId)>,
}

/// A read to look at closely.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suspect {
    pub(super) read: OpId,
    pub(super) saw: Saw,
}

/// Whose write a suspect saw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Saw {
    /// Nobody wrote what it saw.
    Nothing,
    /// One transaction did, or `init`.
    One(TxnId),
    /// These did, and perhaps others.
    Several(TxnId, TxnId),
}

/// A read of a version that several wrote.
#[derive(Clone, Copy)]
pub(super) struct Ambiguous {
    pub(super) read: OpId,
    pub(super) first: TxnId,
    pub(super) second: TxnId,
}

/// Joins the reads and writes of a whole history.
pub(super) fn join(history: &History) -> Joined {
    // Each read is settled by one task; which one, the borrow checker cannot know. Relaxed stores
    // cost no more than plain ones.
    let sources: Vec<AtomicU32> = (0..history.op_count()).map(|_| AtomicU32::new(ASIDE)).collect();
    let dealt = partition::deal(history, &sources);
    let results: Vec<Partition> = (0..PARTITIONS)
        .into_par_iter()
        .map(|index| {
            let mut partition = Partition::new(history, &sources);
            partition.join(&dealt.iter().map(|d| &d.shares[index]).collect::<Vec<_>>());
            partition
        })
        .collect();
    let mut joined = Joined {
        suspects: results.iter().flat_map(|r| &r.suspects).copied().collect(),
        ambiguous: results.iter().flat_map(|r| &r.ambiguous).copied().collect(),
        unknown_reads: results.iter().flat_map(|r| &r.unknown_reads).copied().collect(),
        sources: Vec::new(),
    };
    drop(results);
    joined.sources = sources.into_iter().map(AtomicU32::into_inner).collect();
    joined.ambiguous.sort_unstable_by_key(|a| a.read);
    joined.unknown_reads.sort_unstable();
    let own_suspects = dealt.iter().flat_map(|d| &d.suspects);
    let own_suspects: Vec<_> = own_suspects.filter_map(|read| joined.suspect(*read)).collect();
    joined.suspects.extend(own_suspects);
    joined.suspects.sort_unstable();
    joined.suspects.dedup();
    joined
}

impl Joined {
    /// What a read saw, looked up again. None if it saw its own last write after all.
    fn suspect(&self, read: OpId) -> Option<Suspect> {
        let saw = match self.sources[read.index()] {
            OWN => return None,
            ASIDE => match self.ambiguous.binary_search_by_key(&read, |a| a.read) {
                Ok(at) => Saw::Several(self.ambiguous[at].first, self.ambiguous[at].second),
                Err(_) => Saw::Nothing,
            },
            writer => Saw::One(TxnId(writer)),
        };
        Some(Suspect { read, saw })
    }
}

/// One partition's join.
struct Partition<'a> {
    history: &'a History,
    sources: &'a [AtomicU32],
    /// The word that stands for the initial version, and whether it yields to a client's write.
    initial_word: Option<u64>,
    suspects: Vec<Suspect>,
    ambiguous: Vec<Ambiguous>,
    unknown_reads: Vec<(OpId, TxnId)>,
}

/// The distinct versions that a partition's transactions wrote.
#[derive(Default)]
struct Versions {
    /// One write of each version: the final one where its transaction wrote it several times.
    writes: Vec<Record>,
    /// Per version, another transaction that wrote it; `u32::MAX` for none.
    others: Vec<u32>,
    /// Open addressing: positions in `writes` plus one, zero for empty.
    slots: Vec<u32>,
    mask: usize,
}

impl Versions {
    fn with_capacity(writes: usize) -> Self {
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

    fn insert(&mut self, write: Record) {
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

    fn find(&self, read: Record) -> Option<(Record, Option<TxnId>)> {
        let at = (self.slots[self.slot(read)] as usize).checked_sub(1)?;
        let other = self.others.get(at).filter(|other| **other != u32::MAX);
        Some((self.writes[at], other.map(|txn| TxnId(*txn))))
    }
}

impl<'a> Partition<'a> {
    fn new(history: &'a History, sources: &'a [AtomicU32]) -> Self {
        Partition {
            history,
            sources,
            initial_word: history.initial_word(),
            suspects: Vec::new(),
            ambiguous: Vec::new(),
            unknown_reads: Vec::new(),
        }
    }

    fn join(&mut self, shares: &[&Share]) {
        let writes = shares.iter().map(|share| share.writes.len()).sum();
        let mut versions = Versions::with_capacity(writes);
        shares.iter().flat_map(|share| &share.writes).for_each(|write| versions.insert(*write));
        for read in shares.iter().flat_map(|share| &share.reads) {
            self.resolve(*read, versions.find(*read));
        }
    }

    fn resolve(&mut self, read: Record, found: Option<(Record, Option<TxnId>)>) {
        let op = OpId(read.id);
        let from_init = self.may_be_initial(read, found.is_some());
        match found {
            None if from_init => self.resolve_to(op, TxnId::INIT, true),
            None => self.suspects.push(Suspect { read: op, saw: Saw::Nothing }),
            Some((write, Some(other))) => {
                let first = TxnId(write.id);
                self.ambiguous.push(Ambiguous { read: op, first, second: other });
            }
            Some((write, None)) if from_init => {
                let second = TxnId(write.id);
                self.ambiguous.push(Ambiguous { read: op, first: TxnId::INIT, second });
            }
            Some((write, None)) => self.resolve_to(op, TxnId(write.id), write.is_final()),
        }
    }

    /// Whether `init` is a candidate for what was read.
    fn may_be_initial(&self, read: Record, written: bool) -> bool {
        match self.history.initial() {
            Initial::Unwritten => !written,
            Initial::UnlessWritten(_) => !written && self.initial_word == Some(read.word),
            _ => self.initial_word == Some(read.word),
        }
    }

    fn resolve_to(&mut self, read: OpId, writer: TxnId, is_final: bool) {
        let outcome = self.history.outcome(writer);
        if outcome == Outcome::Unknown {
            self.unknown_reads.push((read, writer));
        }
        // The source is set even for suspects: whether they are wrong is decided by `classify`.
        self.sources[read.index()].store(writer.0, Ordering::Relaxed);
        if !is_final || outcome == Outcome::Aborted {
            self.suspects.push(Suspect { read, saw: Saw::One(writer) });
        }
    }
}

const _: () = assert!(ASIDE < OWN && OWN < TxnId::INIT.0);
