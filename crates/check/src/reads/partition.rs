//! Deals the writes, and the reads that need resolving, into partitions by key.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use rayon::prelude::*;

use super::OWN;

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

/// The reads and writes of some keys. Apart, since telling them apart again would cost the join a
/// mispredicted branch each.
pub(super) struct Share {
    pub(super) reads: Vec<Record>,
    pub(super) writes: Vec<Record>,
}

/// How many partitions: of 10^8 records, each still fits into a second-level cache or two.
pub(super) const PARTITIONS: usize = 256;

/// Transactions that one task deals out.
const TXNS_PER_TASK: usize = 1 << 16;

/// The records of one stretch of the history, by partition, and what it could settle itself.
pub(super) struct Dealt {
    pub(super) shares: Vec<Share>,
    /// Reads whose own transaction's writes make them look wrong.
    pub(super) suspects: Vec<OpId>,
}

impl Share {
    /// Room for what an even deal of so many operations brings, half of them reads.
    fn with_room(ops: usize) -> Self {
        let room = ops * 5 / 8;
        Share { reads: Vec::with_capacity(room), writes: Vec::with_capacity(room) }
    }
}

impl Dealt {
    #[inline]
    fn share(&mut self, key: KeyId) -> &mut Share {
        &mut self.shares[key.index() % PARTITIONS]
    }
}

/// Deals out the whole history. The stretches, and the records of each partition within one, are
/// in the order of the history.
/// The sources of reads that need no join are set on the way.
pub(super) fn deal(history: &History, sources: &[AtomicU32]) -> Vec<Dealt> {
    let txns = history.txn_count();
    let starts: Vec<usize> = (0..txns).step_by(TXNS_PER_TASK).collect();
    starts
        .into_par_iter()
        .map_init(
            || Dealer::new(history, sources),
            |dealer, start| dealer.deal(start..(start + TXNS_PER_TASK).min(txns)),
        )
        .collect()
}

/// A write of a key by the transaction at hand. Never cleared: the stamp says whose it is.
#[derive(Clone, Copy)]
struct Stamped {
    txn: u32,
    /// Whether the transaction at hand writes the key more than once on this side.
    many: bool,
    word: u64,
}

struct Dealer<'h> {
    history: &'h History,
    sources: &'h [AtomicU32],
    named_versions: bool,
    /// Per key, the nearest write before the operation at hand, on the way forward.
    before: Vec<Stamped>,
    /// Per key, the nearest write after it, on the way back.
    after: Vec<Stamped>,
}

impl<'h> Dealer<'h> {
    fn new(history: &'h History, sources: &'h [AtomicU32]) -> Self {
        let nobody = Stamped { txn: u32::MAX, many: false, word: 0 };
        Dealer {
            history,
            sources,
            named_versions: history.names_versions(),
            before: vec![nobody; history.key_count()],
            after: vec![nobody; history.key_count()],
        }
    }

    fn deal(&mut self, txns: Range<usize>) -> Dealt {
        let (first, last) = (TxnId::at(txns.start), TxnId::at(txns.end - 1));
        let ops = self.history.op_range(first).start..self.history.op_range(last).end;
        let mut dealt = Dealt {
            shares: (0..PARTITIONS).map(|_| Share::with_room(ops.len() / PARTITIONS)).collect(),
            suspects: Vec::new(),
        };
        for txn in txns.map(TxnId::at) {
            let range = self.history.op_range(txn);
            // The reads of an aborted transaction prove nothing.
            if self.history.outcome(txn) != Outcome::Aborted {
                self.deal_reads(txn, range.clone(), &mut dealt);
            }
            self.deal_writes(txn, range, &mut dealt);
        }
        dealt
    }

    fn word(&self, op: usize) -> u64 {
        if self.named_versions {
            self.history.version_word(OpId::at(op))
        } else {
            self.history.op_words()[op]
        }
    }

    /// Forward: a read after an own write must return it, and then needs no join.
    fn deal_reads(&mut self, txn: TxnId, range: Range<usize>, dealt: &mut Dealt) {
        for op in range {
            let key = self.history.op_keys()[op];
            match self.history.op_kinds()[op] {
                OpKind::Write | OpKind::Delete => {
                    let word = self.word(op);
                    self.before[key.index()] = Stamped { txn: txn.0, many: false, word };
                }
                OpKind::Read => {
                    let word = self.word(op);
                    let own = self.before[key.index()];
                    if own.txn == txn.0 && own.word == word {
                        self.sources[op].store(OWN, Ordering::Relaxed);
                        continue;
                    }
                    if own.txn == txn.0 {
                        dealt.suspects.push(OpId::at(op));
                    }
                    let record = Record { word, tagged_key: key.0, id: op as u32 };
                    dealt.share(key).reads.push(record);
                }
                _ => {}
            }
        }
    }

    /// Backward: the first write of a key met is the one that others may see, and a read met
    /// after its own write may have looked into the future.
    fn deal_writes(&mut self, txn: TxnId, range: Range<usize>, dealt: &mut Dealt) {
        for op in range.rev() {
            let key = self.history.op_keys()[op];
            match self.history.op_kinds()[op] {
                OpKind::Write | OpKind::Delete => {
                    let word = self.word(op);
                    let after = &mut self.after[key.index()];
                    let overwritten = after.txn == txn.0;
                    *after = Stamped { txn: txn.0, many: overwritten, word };
                    let tagged_key = if overwritten { key.0 | OVERWRITTEN } else { key.0 };
                    dealt.share(key).writes.push(Record { word, tagged_key, id: txn.0 });
                }
                OpKind::Read => {
                    let own = self.after[key.index()];
                    if own.txn == txn.0 && (own.many || own.word == self.word(op)) {
                        dealt.suspects.push(OpId::at(op));
                    }
                }
                _ => {}
            }
        }
    }
}
