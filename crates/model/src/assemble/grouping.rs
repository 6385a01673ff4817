//! Which runs of operations make up which transaction, and in which order.

use rustc_hash::FxHashMap;

use super::BatchEntries;
use super::tables::Tables;
use crate::batch::Batch;
use crate::sink::SinkError;
use crate::table::ValueId;

/// Where everything goes.
///
/// It says for each row of the batches where it belongs, not for each transaction where its parts
/// are: columns are then joined by reading them from front to back and writing to as many places
/// as there are sessions. The other way round, every read would miss the caches.
pub(super) struct Grouping {
    /// The transaction of each row of each batch, in order of arrival.
    ranks: Vec<u32>,
    /// One past the last transaction of each session.
    pub(super) session_ends: Vec<u32>,
}

/// A row of a batch: a transaction or a piece of one.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub(super) batch: usize,
    pub(super) row: usize,
    /// The transaction, in the history's order.
    pub(super) txn: usize,
}

impl Arrival {
    /// Its operations in its batch.
    #[inline]
    pub(super) fn op_range(self, batches: &[Batch]) -> std::ops::Range<usize> {
        let op_ends = &batches[self.batch].txns.op_ends;
        let start = if self.row == 0 { 0 } else { op_ends[self.row - 1] };
        start as usize..op_ends[self.row] as usize
    }
}

impl Grouping {
    pub(super) fn new(
        batches: &[Batch],
        tables: &Tables,
        pieces: BatchEntries,
    ) -> Result<Grouping, SinkError> {
        let (txn_of, txn_sessions) = match pieces {
            BatchEntries::Whole => whole_txns(batches, tables),
            BatchEntries::ByName => name_pieces(batches, tables)?,
        };
        let (rank_of, session_ends) = rank_by_session(&txn_sessions, tables.sessions.len());
        let mut ranks = txn_of;
        for rank in &mut ranks {
            *rank = rank_of[*rank as usize];
        }
        Ok(Grouping { ranks, session_ends })
    }

    /// How many transactions there are.
    pub(super) fn txn_count(&self) -> usize {
        self.session_ends.last().map_or(0, |end| *end as usize)
    }

    /// All rows, in order of arrival.
    #[inline]
    pub(super) fn arrivals(&self, batches: &[Batch]) -> impl DoubleEndedIterator<Item = Arrival> {
        let mut rest = &self.ranks[..];
        let per_batch: Vec<&[u32]> = batches
            .iter()
            .map(|batch| {
                let (ranks, tail) = rest.split_at(batch.len());
                rest = tail;
                ranks
            })
            .collect();
        per_batch.into_iter().enumerate().flat_map(|(batch, ranks)| {
            ranks.iter().enumerate().map(move |(row, rank)| Arrival {
                batch,
                row,
                txn: *rank as usize,
            })
        })
    }

    /// Whether the one batch's operations are already in the history's order.
    pub(super) fn in_place(&self, batches: &[Batch]) -> bool {
        batches.len() == 1 && self.ranks.is_sorted()
    }
}

/// The transaction of each piece, numbered by first arrival, and the session of each transaction,
/// where each piece is a transaction.
fn whole_txns(batches: &[Batch], tables: &Tables) -> (Vec<u32>, Vec<u32>) {
    let mut sessions = Vec::with_capacity(batches.iter().map(Batch::len).sum());
    for (b, batch) in batches.iter().enumerate() {
        sessions.extend(batch.txns.sessions.iter().map(|session| tables.session(b, *session)));
    }
    ((0..sessions.len() as u32).collect(), sessions)
}

/// As [`whole_txns`], where the pieces of a transaction share its name.
fn name_pieces(batches: &[Batch], tables: &Tables) -> Result<(Vec<u32>, Vec<u32>), SinkError> {
    let pieces = batches.iter().map(Batch::len).sum();
    let mut by_name = TxnsByName::new(pieces);
    // Per session, the nameless transaction that its last piece belongs to.
    let mut nameless: Vec<Option<u32>> = vec![None; tables.sessions.len()];
    let mut txn_of = Vec::with_capacity(pieces);
    let mut txn_sessions: Vec<u32> = Vec::new();
    for (b, batch) in batches.iter().enumerate() {
        for (row, session) in batch.txns.sessions.iter().enumerate() {
            let session = tables.session(b, *session);
            let fresh = txn_sessions.len() as u32;
            let open = &mut nameless[session as usize];
            let txn = match batch.txns.names.get(row).map(|name| tables.maps[b].value(name)) {
                Some(name) => {
                    *open = None;
                    let txn = by_name.get_or_insert(name, fresh);
                    if txn != fresh && txn_sessions[txn as usize] != session {
                        return Err(SinkError::TwoSessions {
                            txn: tables.values.get(name).to_owned(),
                            first: tables.sessions.get(txn_sessions[txn as usize]).to_owned(),
                            second: tables.sessions.get(session).to_owned(),
                        });
                    }
                    txn
                }
                None => *open.get_or_insert(fresh),
            };
            if txn == fresh {
                txn_sessions.push(session);
            }
            txn_of.push(txn);
        }
    }
    Ok((txn_of, txn_sessions))
}

/// Transactions by name. Most files number their transactions from 0 or 1 on, and then an array
/// does: at a million transactions every look-up in a hash table misses the caches.
struct TxnsByName {
    /// The transactions named 0, 1, 2 and so on below `limit`; [`TxnsByName::NONE`] where there is
    /// none.
    whole: Vec<u32>,
    limit: usize,
    others: FxHashMap<ValueId, u32>,
}

impl TxnsByName {
    /// Never a transaction: there are fewer.
    const NONE: u32 = u32::MAX;

    /// The array grows in proportion to the pieces, whatever their names.
    fn new(pieces: usize) -> Self {
        TxnsByName { whole: Vec::new(), limit: 1024 + 2 * pieces, others: FxHashMap::default() }
    }

    #[inline]
    fn get_or_insert(&mut self, name: ValueId, fresh: u32) -> u32 {
        let index = name.as_inline().map_or(usize::MAX, |i| i as usize);
        if index >= self.limit {
            return *self.others.entry(name).or_insert(fresh);
        }
        if index >= self.whole.len() {
            self.whole.resize(index + 1, Self::NONE);
        }
        let txn = &mut self.whole[index];
        if *txn == Self::NONE {
            *txn = fresh;
        }
        *txn
    }
}

/// The place of each transaction in order of session, each session's in order of first arrival,
/// and one past the last place of each session.
fn rank_by_session(txn_sessions: &[u32], sessions: usize) -> (Vec<u32>, Vec<u32>) {
    let mut next = vec![0u32; sessions];
    for session in txn_sessions {
        next[*session as usize] += 1;
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    let mut rank = |session: &u32| {
        let slot = &mut next[*session as usize];
        *slot += 1;
        *slot - 1
    };
    let ranks = txn_sessions.iter().map(&mut rank).collect();
    (ranks, next)
}
