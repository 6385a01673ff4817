//! The join of histories whose values number the writes.
//!
//! Clients that must write unique values mostly count. Then a table with one place per number, in
//! which each write leaves its key and its transaction, needs no hashing and moves nothing; and
//! since who counts does so in the order of time, writes that are near in time are near in the
//! table. Writes that share a number (of other keys, perhaps) and writes of other values go
//! into a table by hash; if those are many, this is not the right join.

use std::ops::Range;
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
    let Filled { mut found, crowd, entangled } = table.fill(history, &blocks)?;
    let mut sources = vec![0u32; history.op_count()];
    let cut = blocks::cut(history, &blocks, &mut sources);
    let resolved: Vec<Found> = cut
        .into_par_iter()
        .zip(&entangled)
        .map_init(
            || (OwnWrites::new(history), Picked::default()),
            |(own, picked), (block, entangled)| {
                let resolver = Resolver::new(history);
                let mut readers = Readers { history, table: &table, crowd: &crowd, own, resolver };
                for (txns, sources) in block {
                    readers.resolve(&txns, entangled, picked, sources);
                }
                readers.resolver.found
            },
        )
        .collect();
    found.extend(resolved);
    Some((sources, Found::concat(&found)))
}

/// Operations picked out of many, with their transactions.
///
/// Reads and writes come in no order that a processor could guess, so a loop that branches on the kind
/// of an operation spends most of its time on wrong guesses. Here everything is put down, and what is
/// not wanted is overwritten by the next one.
#[derive(Default)]
struct Picked {
    ops: Vec<(u32, TxnId)>,
    len: usize,
}

impl Picked {
    /// Forgets what was picked, and makes room for so many.
    fn begin(&mut self, most: usize) {
        self.len = 0;
        if self.ops.len() <= most {
            self.ops.resize(most + 1, (0, TxnId(0)));
        }
    }

    #[inline]
    fn pick_if(&mut self, is_wanted: bool, op: usize, txn: TxnId) {
        self.ops[self.len] = (op as u32, txn);
        self.len += usize::from(is_wanted);
    }

    fn iter(&self) -> impl Iterator<Item = (usize, TxnId)> {
        self.ops[..self.len].iter().map(|(op, txn)| (*op as usize, *txn))
    }
}

/// Settles the reads of transactions.
struct Readers<'a, 'h> {
    history: &'h History,
    table: &'a Table,
    crowd: &'a Versions,
    own: &'a mut OwnWrites<'h>,
    resolver: Resolver<'h>,
}

impl Readers<'_, '_> {
    /// Settles the reads of consecutive transactions. `sources` are those of their operations. Of an
    /// entangled transaction it takes a closer look what its own writes mean to its reads.
    fn resolve(
        &mut self,
        txns: &Range<usize>,
        entangled: &[TxnId],
        picked: &mut Picked,
        sources: &mut [u32],
    ) {
        let history = self.history;
        sources.fill(ASIDE);
        let ops = blocks::ops(history, txns);
        let first = ops.start;
        picked.begin(ops.len());
        for txn in txns.clone().map(TxnId::at) {
            // The reads of an aborted transaction prove nothing.
            if history.outcome(txn) == Outcome::Aborted {
                continue;
            }
            if !entangled.is_empty() && entangled.binary_search(&txn).is_ok() {
                self.resolve_entangled(txn, first, sources);
                continue;
            }
            let range = history.op_range(txn);
            for (op, kind) in range.clone().zip(&history.op_kinds()[range]) {
                picked.pick_if(*kind == OpKind::Read, op, txn);
            }
        }
        let (keys, words) = (history.op_keys(), history.encoded_values());
        let initial = self.resolver.encoded_initial_version();
        let mut last_doubtful = None;
        for (op, txn) in picked.iter() {
            let (key, word) = (keys[op], words[op]);
            let plain = self.table.plain_writer(key, word).filter(|writer| *writer != txn);
            sources[op - first] = match plain {
                Some(writer) if initial != Some(word) => writer.0,
                _ => self.resolve_read(op, txn, &mut last_doubtful),
            };
        }
    }

    /// A read that is not just that of a final write of another transaction. Its own transaction has not
    /// written the key before it, but may do so later: if that is what it saw, it is a suspect.
    #[cold]
    fn resolve_read(&mut self, op: usize, txn: TxnId, last_doubtful: &mut Option<TxnId>) -> u32 {
        let (key, word) = (self.history.op_keys()[op], self.history.encoded_values()[op]);
        let read = Record::read(OpId::at(op), key, word);
        let written = self.table.find(read, self.crowd);
        let is_doubtful =
            |(write, other): (Record, Option<TxnId>)| write.id == txn.0 || other.is_some();
        // Once per transaction, for it is gone through as a whole.
        if written.is_some_and(is_doubtful) && last_doubtful.replace(txn) != Some(txn) {
            let own = &mut self.resolver.found.own;
            self.own.for_each_write(self.history.op_range(txn), own, |_, _, _| {});
        }
        self.resolver.resolve(read, written)
    }

    /// The reads of a transaction that accesses keys again which it wrote.
    fn resolve_entangled(&mut self, txn: TxnId, first: usize, sources: &mut [u32]) {
        let Readers { history, table, crowd, own, resolver } = self;
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

/// What is known once all writes are in the table.
struct Filled {
    /// Reads that look wrong beside their own transaction's writes.
    found: Vec<Found>,
    /// The writes without a place of their own.
    crowd: Versions,
    /// Per block, the transactions that access a key again which they wrote, by number.
    entangled: Vec<Vec<TxnId>>,
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

/// The key of a write as its place holds it begins here. There are fewer than 2^30 keys.
const KEY: u32 = 34;
/// Set in an entry where a read of the write needs a closer look: it is overwritten, or its transaction
/// did not surely commit.
const UNUSUAL: u64 = 1 << 33;
/// Set where the transaction overwrites it.
const OVERWRITTEN: u64 = 1 << 32;

/// A write as its place holds it. The number is the place's own.
fn entry(txn: TxnId, key: KeyId, overwritten: bool, committed: bool) -> u64 {
    let unusual = if overwritten || !committed { UNUSUAL } else { 0 };
    let overwritten = if overwritten { OVERWRITTEN } else { 0 };
    u64::from(key.0) << KEY | unusual | overwritten | u64::from(txn.0)
}

fn record(entry: u64, number: u64) -> Record {
    let (key, overwritten) = (KeyId((entry >> KEY) as u32), entry & OVERWRITTEN != 0);
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
    /// Takes in an operation, without a branch: see [`Picked`].
    #[inline]
    fn and(self, is_write: bool, word: u64, limit: u64) -> Seen {
        let number = number(word).filter(|number| *number < limit);
        let inside = number.unwrap_or(0);
        Seen {
            writes: self.writes + usize::from(is_write),
            outside: self.outside + usize::from(is_write & number.is_none()),
            largest: self.largest.max(if is_write { inside } else { 0 }),
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
        if history.names_versions() || history.key_count() >= 1 << (u64::BITS - KEY) {
            return None;
        }
        let limit = PLACES + PLACES_PER_OP * history.op_count() as u64;
        let kinds = history.op_kinds().par_chunks(OPS_PER_TASK);
        let words = history.encoded_values().par_chunks(OPS_PER_TASK);
        let look = |(kinds, words): (&[OpKind], &[u64])| {
            let ops = kinds.iter().zip(words);
            ops.fold(Seen::default(), |seen, (kind, word)| {
                seen.and(*kind == OpKind::Write, *word, limit)
            })
        };
        let seen = kinds.zip(words).map(look).reduce(Seen::default, Seen::with);
        let most_crowded = (PLACES as usize).max(seen.writes / FEW);
        if seen.outside > most_crowded {
            return None;
        }
        let places = (0..=seen.largest as usize).into_par_iter().map(|_| AtomicU64::new(EMPTY));
        Some(Table { places: places.collect(), most_crowded })
    }

    /// Puts all writes into the table, or into the crowd; none if that becomes too large.
    fn fill(&self, history: &History, blocks: &[Block]) -> Option<Filled> {
        let crowded = AtomicUsize::new(0);
        let fillings: Vec<Filling> = blocks
            .par_iter()
            .map_init(
                || (Filler::new(self, history), Picked::default()),
                |(filler, picked), block| {
                    for txns in block {
                        let before = filler.filling.crowd.len();
                        filler.put_all(txns, picked);
                        let more = filler.filling.crowd.len() - before;
                        if more > 0
                            && crowded.fetch_add(more, Ordering::Relaxed) > self.most_crowded
                        {
                            break;
                        }
                    }
                    filler.filling.entangled.sort_unstable();
                    std::mem::take(&mut filler.filling)
                },
            )
            .collect();
        let writes = fillings.iter().map(|filling| filling.writes).sum();
        let mut crowd: Vec<Record> =
            fillings.iter().flat_map(|filling| &filling.crowd).copied().collect();
        if crowd.len() > self.most_crowded || !self.is_complete(writes, &crowd) {
            return None;
        }
        // Threads decide who met whom at a place, but not who is in the crowd.
        crowd.sort_unstable_by_key(|write| (write.id, write.word, write.key(), write.is_final()));
        let mut versions = Versions::with_capacity(crowd.len());
        crowd.into_iter().for_each(|write| versions.insert(write));
        let (found, entangled) =
            fillings.into_iter().map(|filling| (filling.found, filling.entangled)).unzip();
        Some(Filled { found, crowd: versions, entangled })
    }

    #[inline]
    fn put(&self, write: Record, committed: bool, crowd: &mut Vec<Record>) {
        let Some((place, number)) = self.place(write.word) else {
            crowd.push(write);
            return;
        };
        let new = entry(TxnId(write.id), KeyId(write.key()), !write.is_final(), committed);
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

    /// Who wrote a version, if that is one transaction, which committed and wrote the key no more.
    #[inline]
    fn plain_writer(&self, key: KeyId, word: u64) -> Option<TxnId> {
        let (place, _) = self.place(word)?;
        let entry = place.load(Ordering::Relaxed);
        // An empty place and a crowded one are as if the key were larger than any.
        let key_and_mark = entry >> (KEY - 1);
        (key_and_mark == u64::from(key.0) << 1).then_some(TxnId(entry as u32))
    }

    /// The write that a read saw, and another transaction that wrote the same.
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

/// What came of putting the writes of a block into the table.
#[derive(Default)]
struct Filling {
    found: Found,
    crowd: Vec<Record>,
    entangled: Vec<TxnId>,
    writes: usize,
}

/// No operation.
const NOBODY: u32 = u32::MAX;

/// Puts the writes of transactions into a table.
struct Filler<'a, 'h> {
    table: &'a Table,
    history: &'h History,
    own: OwnWrites<'h>,
    /// Per key, its last write so far.
    last: Vec<u32>,
    filling: Filling,
}

impl<'a, 'h> Filler<'a, 'h> {
    fn new(table: &'a Table, history: &'h History) -> Self {
        let last = vec![NOBODY; history.key_count()];
        let (own, filling) = (OwnWrites::new(history), Filling::default());
        Filler { table, history, own, last, filling }
    }

    /// Puts in the writes of consecutive transactions.
    fn put_all(&mut self, txns: &Range<usize>, picked: &mut Picked) {
        let history = self.history;
        picked.begin(blocks::ops(history, txns).len());
        for txn in txns.clone().map(TxnId::at) {
            let before = picked.len;
            // Of aborted ones there are few, and nobody asks for their reads.
            let is_aborted = history.outcome(txn) == Outcome::Aborted;
            if is_aborted || self.pick_writes(txn, picked) {
                picked.len = before;
                self.put_entangled(txn);
            }
        }
        let (keys, words) = (history.op_keys(), history.encoded_values());
        for (op, txn) in picked.iter() {
            let committed = history.outcome(txn) == Outcome::Committed;
            let write = Record::write(txn, keys[op], words[op], false);
            self.table.put(write, committed, &mut self.filling.crowd);
        }
        self.filling.writes += picked.len;
    }

    /// Picks the writes of a transaction. Returns whether it accesses a key again which it wrote.
    #[inline]
    fn pick_writes(&mut self, txn: TxnId, picked: &mut Picked) -> bool {
        let ops = self.history.op_range(txn);
        let (start, len) = (ops.start as u32, ops.len() as u32);
        let kinds = &self.history.op_kinds()[ops.clone()];
        let keys = &self.history.op_keys()[ops.clone()];
        let mut entangled = false;
        for ((op, kind), key) in ops.zip(kinds).zip(keys) {
            let is_write = matches!(kind, OpKind::Write | OpKind::Delete);
            let is_access = is_write | (*kind == OpKind::Read);
            // What has no key is no access.
            let Some(last) = self.last.get_mut(key.index()) else { continue };
            entangled |= is_access & (last.wrapping_sub(start) < len);
            *last = if is_write { op as u32 } else { *last };
            picked.pick_if(is_write, op, txn);
        }
        entangled
    }

    /// Puts in the writes of a transaction of which some may be overwritten or read again.
    fn put_entangled(&mut self, txn: TxnId) {
        let Filler {
            table,
            history,
            own,
            filling: Filling { found, crowd, entangled, writes },
            ..
        } = self;
        let committed = history.outcome(txn) == Outcome::Committed;
        own.for_each_write(history.op_range(txn), &mut found.own, |key, word, overwritten| {
            table.put(Record::write(txn, key, word, overwritten), committed, crowd);
            *writes += 1;
        });
        entangled.push(txn);
    }
}
