//! Which transactions of unknown outcome committed, and where they belong in an order.
//!
//! One from which a committed transaction read did commit, and so did those from which it read itself. The others
//! are left out: no level needs them. The last writes of such transactions are kept in a table, and every
//! committed read is looked up there; a bit per hash value keeps nearly all of them out of the table.

use std::cmp::Reverse;

use isolario_model::{History, KeyId, OpKind, Outcome, TxnId};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::places;

/// Number of transactions whose durations are looked up.
const SAMPLE: usize = 1 << 10;

/// Longer ways from one unknown outcome to the next are not followed.
const LONGEST: usize = 1 << 6;

/// The outcomes of all transactions, as a replay takes them.
#[derive(Default)]
pub(super) struct Outcomes {
    /// Those of unknown outcome that committed.
    unknown: FxHashSet<TxnId>,
    /// By whom they were read: pairs of writer and reader.
    reads: Vec<(TxnId, TxnId)>,
}

impl Outcomes {
    /// None where two transactions of unknown outcome wrote the same value of a key.
    pub(super) fn of(history: &History) -> Option<Outcomes> {
        let is_unknown = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
        if !history.txns().any(|txn| is_unknown(&txn)) {
            return Some(Outcomes::default());
        }
        let written = UnknownWrites::by(history, history.txns().filter(is_unknown))?;
        let of_committed = |txn: usize| {
            let txn = TxnId::at(txn);
            let is_committed = history.outcome(txn) == Outcome::Committed;
            is_committed.then(|| written.read_by(history, txn)).into_iter().flatten()
        };
        let mut reads: Vec<(TxnId, TxnId)> =
            (0..history.txn_count()).into_par_iter().flat_map_iter(of_committed).collect();
        let (mut unknown, mut at) = (FxHashSet::default(), 0);
        while let Some((writer, _)) = reads.get(at).copied() {
            at += 1;
            if unknown.insert(writer) {
                reads.extend(written.read_by(history, writer));
            }
        }
        Some(Outcomes { unknown, reads })
    }

    /// Whether it is certain what all transactions did.
    pub(super) fn are_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Whether a transaction takes part.
    pub(super) fn has_committed(&self, history: &History, txn: TxnId) -> bool {
        match history.outcome(txn) {
            Outcome::Unknown => self.unknown.contains(&txn),
            outcome => outcome == Outcome::Committed,
        }
    }

    /// An order in which each transaction of unknown outcome is where it would have finished had it taken as long
    /// as others do, but before the first one that read from it. When it finished is not known, so that a guess by
    /// times has it at the end. None if some of them read from each other in a cycle, or nearly.
    pub(super) fn put_in_place(&self, order: Vec<u32>, history: &History) -> Option<Vec<u32>> {
        if self.unknown.is_empty() {
            return Some(order);
        }
        let places = places(&order);
        let usual = usual_duration(history);
        let ends_before = |other: &u32, time: i64| {
            history.finish(TxnId(*other)).is_some_and(|finish| finish <= time)
        };
        let at_finish = |txn: &TxnId| {
            let finish =
                history.start(*txn).zip(usual).map(|(start, usual)| start.saturating_add(usual));
            finish.map(|time| order.partition_point(|other| ends_before(other, time)) as u32)
        };
        // Before which place, and how far from the transaction there.
        let mut ranks: FxHashMap<TxnId, (u32, Reverse<usize>)> = FxHashMap::default();
        ranks.extend(
            self.unknown.iter().map(|txn| (*txn, (at_finish(txn).unwrap_or(u32::MAX), Reverse(0)))),
        );
        for length in 0..=LONGEST {
            let mut is_settled = true;
            for (writer, reader) in &self.reads {
                let (place, Reverse(way)) = match history.outcome(*reader) {
                    Outcome::Committed => (places[reader.index()], Reverse(0)),
                    _ => ranks[reader],
                };
                let rank = (place, Reverse(way + 1));
                let Some(known) = ranks.get_mut(writer) else { continue };
                if rank < *known {
                    *known = rank;
                    is_settled = false;
                }
            }
            if is_settled {
                break;
            }
            if length == LONGEST {
                return None;
            }
        }
        let mut moved: Vec<((u32, Reverse<usize>), TxnId)> =
            ranks.into_iter().map(|(txn, rank)| (rank, txn)).collect();
        moved.sort_unstable();
        let mut moved = moved.into_iter().peekable();
        let mut placed = Vec::with_capacity(order.len());
        for (place, txn) in (0..).zip(order) {
            while let Some((_, before)) = moved.next_if(|((at, _), _)| *at == place) {
                placed.push(before.0);
            }
            if !self.unknown.contains(&TxnId(txn)) {
                placed.push(txn);
            }
        }
        Some(placed)
    }
}

/// How long a committed transaction takes, as a rule; none if the history has no times.
fn usual_duration(history: &History) -> Option<i64> {
    let step = history.txn_count().div_ceil(SAMPLE).max(1);
    let duration = |txn: TxnId| history.finish(txn)?.checked_sub(history.start(txn)?);
    let committed = history.txns().step_by(step);
    let mut durations: Vec<i64> = committed.filter_map(duration).collect();
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied()
}

/// The last writes of some transactions, by key and value.
struct UnknownWrites {
    writers: FxHashMap<(KeyId, u64), TxnId>,
    /// A bit per hash value of a write.
    filter: Vec<u64>,
}

impl UnknownWrites {
    fn by(history: &History, txns: impl Iterator<Item = TxnId>) -> Option<UnknownWrites> {
        let mut writers = FxHashMap::default();
        for txn in txns {
            // From the end on, the first write of a key is the last one.
            let mut keys = FxHashSet::default();
            for op in history.op_range(txn).rev().filter(|op| is(history, *op, OpKind::Write)) {
                let key = history.op_keys()[op];
                let version = (key, history.encoded_values()[op]);
                if keys.insert(key) && writers.insert(version, txn).is_some() {
                    return None;
                }
            }
        }
        let mut filter = vec![0u64; (writers.len() / 4).next_power_of_two()];
        #[allow(clippy::iter_over_hash_type, reason = "the same bits are set in any order")]
        for version in writers.keys() {
            let (word, bit) = slot(filter.len(), *version);
            filter[word] |= bit;
        }
        Some(UnknownWrites { writers, filter })
    }

    /// The writers from which a transaction read, each with it.
    fn read_by(&self, history: &History, txn: TxnId) -> impl Iterator<Item = (TxnId, TxnId)> {
        let reads = history.op_range(txn).filter(|op| is(history, *op, OpKind::Read));
        let writer = |op: usize| {
            let version = (history.op_keys()[op], history.encoded_values()[op]);
            let (word, bit) = slot(self.filter.len(), version);
            if self.filter[word] & bit == 0 { None } else { self.writers.get(&version).copied() }
        };
        reads.filter_map(writer).filter(move |writer| *writer != txn).map(move |w| (w, txn))
    }
}

fn is(history: &History, op: usize, kind: OpKind) -> bool {
    history.op_kinds()[op] == kind
}

/// The word of a filter and the bit in it that stand for a version.
fn slot(words: usize, (key, value): (KeyId, u64)) -> (usize, u64) {
    let mixed = (value ^ u64::from(key.0) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as usize & (words - 1), 1 << (mixed >> 58))
}
