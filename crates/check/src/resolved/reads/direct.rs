//! The join of histories whose values number the writes.
//!
//! Clients that must write unique values mostly count. Then a table with one place per number, in
//! which each write leaves its key and its transaction, needs no hashing and moves nothing; and
//! since who counts does so in the order of time, writes that are near in time are near in the
//! table. Writes that share a number (of other keys, perhaps) and writes of other values go
//! into a table by hash; if those are many, this is not the right join.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use isolario_model::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use rayon::prelude::*;

use super::join::{Found, Resolver};
use super::own::{Own, OwnWrites};
use super::record::{Record, Versions};
use super::{ASIDE, OWN};
use crate::blocks::{self, Block};

/// How many places the table may have per operation, and how many it may have in any case.
const PLACES_PER_OP: u64 = 2;
const PLACES: u64 = 1024;

/// One write in so many may be without a place of its own.
const FEW: usize = 16;

/// Operations per task of the first look at the values.
const OPS_PER_TASK: usize = 1 << 16;

/// The number of a value; none if it is not one from 0 on.
#[inline]
fn number(word: u64) -> Option<u64> {
    // Negative numbers are beyond any table.
    (word & 1 == 0).then_some(word >> 1)
}

/// Joins the reads and writes of a whole history, if its values allow it.
pub(super) fn join(history: &History) -> Option<(Vec<u32>, Found)> {
    let table = Table::for_writes_of(history)?;
    let blocks = blocks::blocks(history);
    let (mut found, crowd) = table.fill(history, &blocks)?;
    let mut sources = vec![0u32; history.op_count()];
    let cut = blocks::cut(history, &blocks, &mut sources);
    let resolved: Vec<Found> = cut
        .into_par_iter()
        .map_init(
            || OwnWrites::new(history),
            |own, block| {
                let mut resolver = Resolver::new(history);
                for (txns, sources) in block {
                    resolve(history, &table, &crowd, own, txns, sources, &mut resolver);
                }
                resolver.found
            },
        )
        .collect();
    found.extend(resolved);
    Some((sources, Found::concat(&found)))
}

/// Settles the reads of consecutive transactions. `sources` are those of their operations.
fn resolve(
    history: &History,
    table: &Table,
    crowd: &Versions,
    own: &mut OwnWrites<'_>,
    txns: std::ops::Range<usize>,
    sources: &mut [u32],
    resolver: &mut Resolver<'_>,
) {
    sources.fill(ASIDE);
    let first = blocks::ops(history, &txns).start;
    for txn in txns.map(TxnId::at) {
        // The reads of an aborted transaction prove nothing.
        if history.outcome(txn) == Outcome::Aborted {
            continue;
        }
        own.for_each_read(history.op_range(txn), |op, key, word, own| {
            if own == Own::Missed {
                resolver.found.own.push(OpId::at(op));
            }
            sources[op - first] = if own == Own::Seen {
                OWN
            } else {
                let read = Record::read(OpId::at(op), key, word);
                resolver.resolve(read, table.find(read, crowd))
            };
        });
    }
}

/// Per number, its write.
struct Table {
    places: Vec<AtomicU64>,
    /// How many writes may be without a place of their own.
    most_crowded: usize,
}

/// A place with no write.
const EMPTY: u64 = u64::MAX;
/// A place that several writes would need: they are in the crowd. No key has this number.
const CROWDED: u64 = u64::MAX - 1;

/// A write as its place holds it. The number is the place's own.
fn entry(txn: TxnId, key: KeyId, overwritten: bool) -> u64 {
    u64::from(key.0) << 33 | u64::from(overwritten) << 32 | u64::from(txn.0)
}

fn record(entry: u64, number: u64) -> Record {
    let (key, overwritten) = (KeyId((entry >> 33) as u32), entry >> 32 & 1 == 1);
    Record::write(TxnId(entry as u32), key, number << 1, overwritten)
}

/// A first look at the values written.
#[derive(Clone, Copy, Default)]
struct Seen {
    writes: usize,
    /// Writes of what is no number, or too large a one.
    outside: usize,
    /// The largest of the other numbers.
    largest: u64,
}

impl Seen {
    #[inline]
    fn and(self, word: u64, limit: u64) -> Seen {
        let number = number(word).filter(|number| *number < limit);
        Seen {
            writes: self.writes + 1,
            outside: self.outside + usize::from(number.is_none()),
            largest: self.largest.max(number.unwrap_or(0)),
        }
    }

    fn with(self, other: Seen) -> Seen {
        Seen {
            writes: self.writes + other.writes,
            outside: self.outside + other.outside,
            largest: self.largest.max(other.largest),
        }
    }
}

impl Table {
    /// An empty table with a place for every number written; none if too many writes would have no
    /// place, or if versions are not told apart by their values.
    fn for_writes_of(history: &History) -> Option<Table> {
        if history.names_versions() || history.key_count() >= i32::MAX as usize {
            return None;
        }
        let limit = PLACES + PLACES_PER_OP * history.op_count() as u64;
        let kinds = history.op_kinds().par_chunks(OPS_PER_TASK);
        let words = history.op_words().par_chunks(OPS_PER_TASK);
        let look = |(kinds, words): (&[OpKind], &[u64])| {
            let writes = kinds.iter().zip(words).filter(|(kind, _)| **kind == OpKind::Write);
            writes.fold(Seen::default(), |seen, (_, word)| seen.and(*word, limit))
        };
        let seen = kinds.zip(words).map(look).reduce(Seen::default, Seen::with);
        let most_crowded = (PLACES as usize).max(seen.writes / FEW);
        if seen.outside > most_crowded {
            return None;
        }
        let places = (0..=seen.largest as usize).into_par_iter().map(|_| AtomicU64::new(EMPTY));
        Some(Table { places: places.collect(), most_crowded })
    }

    /// Puts all writes into the table, or into the crowd; none if that becomes too large. Also tells
    /// which reads look wrong beside their own transaction's writes.
    fn fill(&self, history: &History, blocks: &[Block]) -> Option<(Vec<Found>, Versions)> {
        let crowded = AtomicUsize::new(0);
        let filled: Vec<(Found, Vec<Record>, usize)> = blocks
            .par_iter()
            .map_init(
                || OwnWrites::new(history),
                |own, block| {
                    let (mut found, mut crowd, mut writes) = (Found::default(), Vec::new(), 0);
                    for txn in block.iter().flat_map(Clone::clone).map(TxnId::at) {
                        let (range, before) = (history.op_range(txn), crowd.len());
                        own.for_each_write(range, &mut found.own, |key, word, overwritten| {
                            self.put(txn, key, word, overwritten, &mut crowd);
                            writes += 1;
                        });
                        let more = crowd.len() - before;
                        if more > 0
                            && crowded.fetch_add(more, Ordering::Relaxed) > self.most_crowded
                        {
                            break;
                        }
                    }
                    (found, crowd, writes)
                },
            )
            .collect();
        let writes = filled.iter().map(|(.., writes)| writes).sum();
        let mut crowd: Vec<Record> =
            filled.iter().flat_map(|(_, crowd, _)| crowd).copied().collect();
        if crowd.len() > self.most_crowded || !self.is_complete(writes, &crowd) {
            return None;
        }
        let found = filled.into_iter().map(|(found, ..)| found).collect();
        // Threads decide who met whom at a place, but not who is in the crowd.
        crowd.sort_unstable_by_key(|write| (write.id, write.word, write.key(), write.is_final()));
        let mut versions = Versions::with_capacity(crowd.len());
        crowd.into_iter().for_each(|write| versions.insert(write));
        Some((found, versions))
    }

    #[inline]
    fn put(&self, txn: TxnId, key: KeyId, word: u64, overwritten: bool, crowd: &mut Vec<Record>) {
        let Some((place, number)) = self.place(word) else {
            crowd.push(Record::write(txn, key, word, overwritten));
            return;
        };
        let new = entry(txn, key, overwritten);
        match place.load(Ordering::Relaxed) {
            EMPTY => place.store(new, Ordering::Relaxed),
            there => {
                self.crowd_out(place, there, number, crowd);
                crowd.push(record(new, number));
            }
        }
    }

    /// Whether so many writes are all where they belong. Two threads that find the same place empty
    /// at the same moment may overwrite each other, or a mark that it is crowded. To exclude that on
    /// the way would make every write wait for its place to come from memory; it is seen here.
    ///
    /// A write is in its place, once in the crowd, or lost. If the numbers add up, none is lost; and
    /// if each one of the crowd has a crowded place, then who is alone in a place is the only one of
    /// its number.
    fn is_complete(&self, writes: usize, crowd: &[Record]) -> bool {
        let at = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let alone = self.places.par_iter().filter(|place| !matches!(at(place), EMPTY | CROWDED));
        let is_crowded = |(place, _): (&AtomicU64, u64)| at(place) == CROWDED;
        alone.count() + crowd.len() == writes
            && crowd.iter().all(|write| self.place(write.word).is_none_or(is_crowded))
    }

    /// Moves what is at a place into the crowd, unless another has done so.
    #[cold]
    fn crowd_out(&self, place: &AtomicU64, there: u64, number: u64, crowd: &mut Vec<Record>) {
        // A full place changes but once, to crowded.
        let swap =
            |from| place.compare_exchange(from, CROWDED, Ordering::Relaxed, Ordering::Relaxed);
        if there != CROWDED && swap(there).is_ok() {
            crowd.push(record(there, number));
        }
    }

    #[inline]
    fn place(&self, word: u64) -> Option<(&AtomicU64, u64)> {
        let number = number(word)?;
        Some((self.places.get(usize::try_from(number).ok()?)?, number))
    }

    /// The write that a read saw, and another transaction that wrote the same.
    #[inline]
    fn find(&self, read: Record, crowd: &Versions) -> Option<(Record, Option<TxnId>)> {
        let Some((place, number)) = self.place(read.word) else { return crowd.find(read) };
        match place.load(Ordering::Relaxed) {
            EMPTY => None,
            CROWDED => crowd.find(read),
            full => {
                let write = record(full, number);
                (write.key() == read.key()).then_some((write, None))
            }
        }
    }
}
