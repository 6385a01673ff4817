//! Which runs of operations make up which transaction, and in which order.

use rustc_hash::FxHashMap;

use super::Pieces;
use super::tables::Tables;
use crate::batch::Batch;
use crate::sink::SinkError;
use crate::value::ValueId;

/// A run of operations of one batch.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) batch: u32,
    /// Its row among the batch's transactions.
    pub(super) row: u32,
}

impl Piece {
    /// Its operations in its batch.
    #[inline]
    pub(super) fn op_range(self, batches: &[Batch]) -> std::ops::Range<usize> {
        let op_ends = &batches[self.batch as usize].txns.op_ends;
        let row = self.row as usize;
        let start = if row == 0 { 0 } else { op_ends[row - 1] };
        start as usize..op_ends[row] as usize
    }
}

/// The pieces of all transactions, in the history's order.
pub(super) struct Grouping {
    pub(super) pieces: Vec<Piece>,
    /// One past the last piece of each transaction.
    piece_ends: Vec<u32>,
    /// One past the last transaction of each session.
    pub(super) session_ends: Vec<u32>,
}

impl Grouping {
    pub(super) fn new(
        batches: &[Batch],
        tables: &Tables,
        pieces: Pieces,
    ) -> Result<Grouping, SinkError> {
        let arrivals = arrivals(batches, tables);
        let (txn_of, txn_sessions) = match pieces {
            Pieces::Whole => whole_txns(&arrivals),
            Pieces::ByName => name_pieces(batches, tables, &arrivals)?,
        };
        // Transactions in order of session, each session's in order of first arrival.
        let (order, session_ends) = counting_sort(&txn_sessions, tables.sessions.len());
        let mut rank = vec![0u32; order.len()];
        for (position, txn) in order.iter().enumerate() {
            rank[*txn as usize] = position as u32;
        }
        let ranks: Vec<u32> = txn_of.iter().map(|txn| rank[*txn as usize]).collect();
        let (piece_order, piece_ends) = counting_sort(&ranks, order.len());
        let pieces = piece_order.iter().map(|i| arrivals[*i as usize].piece).collect();
        Ok(Grouping { pieces, piece_ends, session_ends })
    }

    /// How many transactions there are.
    pub(super) fn len(&self) -> usize {
        self.piece_ends.len()
    }

    /// The pieces of a transaction, in order of arrival. There is at least one.
    #[inline]
    pub(super) fn pieces_of(&self, txn: usize) -> &[Piece] {
        let start = if txn == 0 { 0 } else { self.piece_ends[txn - 1] as usize };
        &self.pieces[start..self.piece_ends[txn] as usize]
    }

    /// The pieces of some transactions, one after the other.
    pub(super) fn pieces_of_all(&self, txns: std::ops::Range<usize>) -> &[Piece] {
        let start = if txns.start == 0 { 0 } else { self.piece_ends[txns.start - 1] as usize };
        let end = if txns.end == 0 { 0 } else { self.piece_ends[txns.end - 1] as usize };
        &self.pieces[start..end]
    }

    /// Whether the one batch's operations are already in the history's order.
    pub(super) fn in_place(&self, batches: &[Batch]) -> bool {
        batches.len() == 1 && self.pieces.iter().enumerate().all(|(i, p)| p.row as usize == i)
    }
}

/// A piece as it arrived, with its session in the joined table.
struct Arrival {
    piece: Piece,
    session: u32,
}

fn arrivals(batches: &[Batch], tables: &Tables) -> Vec<Arrival> {
    let mut arrivals = Vec::with_capacity(batches.iter().map(Batch::len).sum());
    for (b, batch) in batches.iter().enumerate() {
        arrivals.extend(batch.txns.sessions.iter().enumerate().map(|(row, session)| Arrival {
            piece: Piece { batch: b as u32, row: row as u32 },
            session: tables.session(b, *session),
        }));
    }
    arrivals
}

/// The transaction of each piece, numbered by first arrival, and the session of each transaction,
/// where each piece is a transaction.
fn whole_txns(arrivals: &[Arrival]) -> (Vec<u32>, Vec<u32>) {
    let txn_of = (0..arrivals.len() as u32).collect();
    (txn_of, arrivals.iter().map(|arrival| arrival.session).collect())
}

/// As [`whole_txns`], where the pieces of a transaction share its name.
fn name_pieces(
    batches: &[Batch],
    tables: &Tables,
    arrivals: &[Arrival],
) -> Result<(Vec<u32>, Vec<u32>), SinkError> {
    let mut by_name = TxnsByName::new(arrivals.len());
    // Per session, the nameless transaction that its last piece belongs to.
    let mut nameless: Vec<Option<u32>> = vec![None; tables.sessions.len()];
    let mut txn_of = Vec::with_capacity(arrivals.len());
    let mut txn_sessions: Vec<u32> = Vec::new();
    for Arrival { piece, session } in arrivals {
        let name = batches[piece.batch as usize].txns.names.get(piece.row as usize);
        let fresh = txn_sessions.len() as u32;
        let open = &mut nameless[*session as usize];
        let txn = match name.map(|name| tables.maps[piece.batch as usize].value(name)) {
            Some(name) => {
                *open = None;
                let txn = by_name.get_or_insert(name, fresh);
                if txn != fresh && txn_sessions[txn as usize] != *session {
                    return Err(SinkError::TwoSessions {
                        txn: tables.values.get(name).to_owned(),
                        first: tables.sessions.get(txn_sessions[txn as usize]).to_owned(),
                        second: tables.sessions.get(*session).to_owned(),
                    });
                }
                txn
            }
            None => *open.get_or_insert(fresh),
        };
        if txn == fresh {
            txn_sessions.push(*session);
        }
        txn_of.push(txn);
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

/// The rows in order of their group, stably, and one past the last row of each group.
fn counting_sort(groups: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut next = vec![0u32; count];
    for group in groups {
        next[*group as usize] += 1;
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    let mut order = vec![0u32; groups.len()];
    for (row, group) in groups.iter().enumerate() {
        let slot = &mut next[*group as usize];
        order[*slot as usize] = row as u32;
        *slot += 1;
    }
    (order, next)
}
