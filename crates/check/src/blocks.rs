//! Transactions in blocks that probably ran at the same time.
//!
//! Transactions are numbered session by session, but they read from those that ran shortly before
//! them, in any session. Gone through one session after the other, every transaction read from
//! would have left the caches before it is needed again. A block takes the same share of every
//! session: what it needs stays near, and each session's part of it is still in one piece.
//!
//! Nothing but speed depends on it: the blocks name every transaction once, whatever they are.

use std::ops::Range;

use isolario_model::{History, TxnId};
use rayon::prelude::*;

/// Transactions per block: few enough to stay in a second-level cache, enough for a task.
const TXNS: usize = 1 << 12;

/// With fewer transactions of a session in a block, there would be more pieces than they are worth.
const LEAST_PER_SESSION: usize = 4;

/// Transactions per block of the longest session of a group.
const TXNS_IN_GROUP: usize = 1 << 7;

/// The transactions of a block, in pieces of consecutive ones.
pub(crate) type Block = Vec<Range<usize>>;

/// All blocks of a history.
pub(crate) fn blocks(history: &History) -> Vec<Block> {
    let (txns, sessions) = (history.txn_count(), history.session_count());
    let count = txns.div_ceil(TXNS);
    if sessions * count * LEAST_PER_SESSION > txns {
        return consecutive(history, TXNS);
    }
    let sessions = session_ranges(history);
    (0..count).map(|block| side_by_side(&sessions, block, count).collect()).collect()
}

/// Blocks of this many consecutive transactions.
pub(crate) fn consecutive(history: &History, txns: usize) -> Vec<Block> {
    let all = history.txn_count();
    let block = |start: usize| {
        let piece = start..(start + txns).min(all);
        vec![piece]
    };
    (0..all).step_by(txns).map(block).collect()
}

/// Groups of so many sessions, each with all its transactions, blocks of them one after the other.
pub(crate) fn groups(history: &History, sessions: usize) -> Vec<Block> {
    let group = |sessions: &[Range<usize>]| {
        let longest = sessions.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        let count = longest.div_ceil(TXNS_IN_GROUP);
        (0..count).flat_map(|block| side_by_side(sessions, block, count)).collect()
    };
    session_ranges(history).chunks(sessions).map(group).collect()
}

fn session_ranges(history: &History) -> Vec<Range<usize>> {
    let mut first = 0;
    let range = |session| {
        let start = first;
        first += history.session_txns(session).len();
        start..first
    };
    history.sessions().map(range).collect()
}

/// The same share of every session.
fn side_by_side(
    sessions: &[Range<usize>],
    block: usize,
    count: usize,
) -> impl Iterator<Item = Range<usize>> {
    sessions.iter().map(move |session| {
        let start_of = |block: usize| session.start + session.len() * block / count;
        start_of(block)..start_of(block + 1)
    })
}

/// Visits the transactions of each block in turn, and returns what is found, by block. Each thread has a state of
/// its own.
pub(crate) fn gather<S, T: Send>(
    blocks: &[Block],
    state: impl Fn() -> S + Sync + Send,
    visit: impl Fn(&mut S, TxnId, &mut Vec<T>) + Sync + Send,
) -> Vec<Vec<T>> {
    let of_block = |state: &mut S, block: &Block| {
        let mut found = Vec::new();
        block
            .iter()
            .flat_map(Clone::clone)
            .for_each(|txn| visit(state, TxnId::at(txn), &mut found));
        found
    };
    blocks.par_iter().map_init(state, of_block).collect()
}

/// Cuts a column of all operations into the pieces of blocks.
pub(crate) fn cut<'c, T>(
    history: &History,
    blocks: &[Block],
    column: &'c mut [T],
) -> Vec<Vec<(Range<usize>, &'c mut [T])>> {
    let mut pieces: Vec<(Range<usize>, usize)> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        pieces.extend(block.iter().map(|piece| (piece.clone(), number)));
    }
    pieces.sort_unstable_by_key(|(piece, _)| (piece.start, piece.end));
    let mut cut: Vec<Vec<_>> = blocks.iter().map(|block| Vec::with_capacity(block.len())).collect();
    let mut rest = column;
    for (piece, number) in pieces {
        let (rows, tail) = rest.split_at_mut(ops(history, &piece).len());
        cut[number].push((piece, rows));
        rest = tail;
    }
    cut
}

/// The operations of consecutive transactions.
pub(crate) fn ops(history: &History, txns: &Range<usize>) -> Range<usize> {
    if txns.is_empty() {
        return 0..0;
    }
    let (first, last) = (TxnId::at(txns.start), TxnId::at(txns.end - 1));
    history.op_range(first).start..history.op_range(last).end
}

#[cfg(test)]
mod tests {
    use isolario_model::{Batch, Op, Outcome, TxnEnd, TxnSink, TxnStart};

    use super::*;

    /// Sessions of these lengths, whose transactions have 0, 1 or 2 operations.
    fn history(lengths: &[usize]) -> History {
        let mut batch = Batch::new();
        for (session, length) in lengths.iter().enumerate() {
            for txn in 0..*length {
                let session = (session as u64).into();
                batch.begin(&TxnStart { session, id: None, line: None }).unwrap();
                for _ in 0..txn % 3 {
                    batch.op(&Op::Read { key: 1i64.into(), value: None }).unwrap();
                }
                batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
            }
        }
        batch.build().unwrap()
    }

    #[test]
    fn every_transaction_and_every_operation_is_in_one_block() {
        let many_short = vec![1; 40_000];
        for lengths in [&[][..], &[0, 5, 1], &[40_000], &[30_000, 0, 7, 20_000], &many_short] {
            let history = history(lengths);
            let blocks = blocks(&history);
            let mut txns: Vec<usize> = blocks.iter().flatten().flat_map(Clone::clone).collect();
            txns.sort_unstable();
            assert!(txns.into_iter().eq(0..history.txn_count()));
            for sessions in [1, 2, 100] {
                let groups = groups(&history, sessions);
                assert_eq!(groups.len(), history.session_count().div_ceil(sessions));
                let mut txns: Vec<usize> = groups.iter().flatten().flat_map(Clone::clone).collect();
                txns.sort_unstable();
                assert!(txns.into_iter().eq(0..history.txn_count()));
            }

            let mut column: Vec<usize> = vec![0; history.op_count()];
            for (txns, rows) in cut(&history, &blocks, &mut column).into_iter().flatten() {
                let ops = ops(&history, &txns);
                assert_eq!(ops.len(), rows.len());
                rows.iter_mut().zip(ops).for_each(|(row, op)| *row = op);
            }
            assert!(column.into_iter().eq(0..history.op_count()));
        }
    }
}
