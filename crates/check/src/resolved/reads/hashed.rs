//! The join that always works: by hashing, partition by partition.
//!
//! The writes, and the reads that need resolving, are first dealt into partitions by key, so that
//! the table of each partition stays in the cache.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use isolario_model::{History, KeyId, OpId, Outcome, TxnId};
use rayon::prelude::*;

use super::join::{Found, Resolver};
use super::own::{Own, OwnWrites};
use super::record::{Record, Versions};
use super::{ASIDE, OWN};
use crate::blocks;

/// Joins the reads and writes of a whole history.
pub(super) fn join(history: &History) -> (Vec<u32>, Found) {
    // Each read is settled by one task; which one, the borrow checker cannot know. Relaxed stores
    // cost no more than plain ones.
    let sources: Vec<AtomicU32> =
        (0..history.op_count()).into_par_iter().map(|_| AtomicU32::new(ASIDE)).collect();
    let dealt = deal(history, &sources);
    let join = |index: usize| {
        let shares: Vec<&Share> = dealt.iter().map(|dealt| &dealt.shares[index]).collect();
        join_partition(history, &shares, &sources)
    };
    let mut found: Vec<Found> = (0..PARTITIONS).into_par_iter().map(join).collect();
    found.extend(dealt.into_iter().map(|dealt| Found { own: dealt.suspects, ..Found::default() }));
    let sources = sources.into_iter().map(AtomicU32::into_inner).collect();
    (sources, Found::concat(&found))
}

fn join_partition(history: &History, shares: &[&Share], sources: &[AtomicU32]) -> Found {
    let writes = shares.iter().map(|share| share.writes.len()).sum();
    let mut versions = Versions::with_capacity(writes);
    shares.iter().flat_map(|share| &share.writes).for_each(|write| versions.insert(*write));
    let mut resolver = Resolver::new(history);
    for read in shares.iter().flat_map(|share| &share.reads) {
        let source = resolver.resolve(*read, versions.find(*read));
        sources[read.id as usize].store(source, Ordering::Relaxed);
    }
    resolver.found
}

/// The reads and writes of some keys. Apart, since telling them apart again would cost the join a
/// mispredicted branch each.
struct Share {
    reads: Vec<Record>,
    writes: Vec<Record>,
}

/// How many partitions: of 10^8 records, each still fits into a second-level cache or two.
const PARTITIONS: usize = 256;

/// Transactions that one task deals out.
const TXNS_PER_TASK: usize = 1 << 16;

/// The records of one stretch of the history, by partition, and what it could settle itself.
struct Dealt {
    shares: Vec<Share>,
    /// Reads whose own transaction's writes make them look wrong.
    suspects: Vec<OpId>,
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
        &mut self.shares[partition_of(key)]
    }
}

#[inline]
fn partition_of(key: KeyId) -> usize {
    key.index() % PARTITIONS
}

/// Deals out the whole history. The stretches, and the records of each partition within one, are
/// in the order of the history. The sources of reads that need no join are set on the way.
fn deal(history: &History, sources: &[AtomicU32]) -> Vec<Dealt> {
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

struct Dealer<'h> {
    history: &'h History,
    sources: &'h [AtomicU32],
    own: OwnWrites<'h>,
}

impl<'h> Dealer<'h> {
    fn new(history: &'h History, sources: &'h [AtomicU32]) -> Self {
        Dealer { history, sources, own: OwnWrites::new(history) }
    }

    fn deal(&mut self, txns: Range<usize>) -> Dealt {
        let ops = blocks::ops(self.history, &txns);
        let mut dealt = Dealt {
            shares: (0..PARTITIONS).map(|_| Share::with_room(ops.len() / PARTITIONS)).collect(),
            suspects: Vec::new(),
        };
        for txn in txns.map(TxnId::at) {
            // The reads of an aborted transaction prove nothing.
            if self.history.outcome(txn) != Outcome::Aborted {
                self.deal_reads(txn, &mut dealt);
            }
            self.deal_writes(txn, &mut dealt);
        }
        dealt
    }

    fn deal_reads(&mut self, txn: TxnId, dealt: &mut Dealt) {
        let sources = self.sources;
        self.own.for_each_read(self.history.op_range(txn), |op, key, word, own| {
            if own == Own::Seen {
                sources[op].store(OWN, Ordering::Relaxed);
                return;
            }
            if own == Own::Missed {
                dealt.suspects.push(OpId::at(op));
            }
            dealt.share(key).reads.push(Record::read(OpId::at(op), key, word));
        });
    }

    fn deal_writes(&mut self, txn: TxnId, dealt: &mut Dealt) {
        let Dealt { shares, suspects } = dealt;
        let range = self.history.op_range(txn);
        self.own.for_each_write(range, suspects, |key, word, overwritten| {
            shares[partition_of(key)].writes.push(Record::write(txn, key, word, overwritten));
        });
    }
}
