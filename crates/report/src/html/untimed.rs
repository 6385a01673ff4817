//! An order to draw transactions in where nobody recorded when they ran.
//!
//! Bars at the same place would say that transactions ran at the same time, of which nothing is
//! known. So each gets a place of its own: after those before it in its session, and after those it
//! read from, as far as that is possible; where a commit order is known, by that.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use isolario_model::{History, KeyId, OpId, TxnId};

use crate::show::{Mark, marks};

/// The place of each transaction. `commits` is a commit order, or empty.
pub(super) fn places(history: &History, commits: &[TxnId]) -> Vec<u32> {
    let mut wanted = vec![u32::MAX; history.txn_count()];
    (0..).zip(commits).for_each(|(at, txn)| wanted[txn.index()] = at);
    let mut missing = vec![0u32; history.txn_count()];
    let mut positions = vec![0u32; history.txn_count()];
    let mut heads = BTreeSet::new();
    for session in history.sessions() {
        for (at, txn) in (0..).zip(history.session_txns(session)) {
            positions[txn.index()] = at;
            missing[txn.index()] = u32::from(at > 0);
        }
        heads.extend(history.session_txns(session).next().map(|txn| (0, txn)));
    }
    let reads = reads_from(history);
    reads.iter().for_each(|(_, reader)| missing[reader.index()] += 1);
    let mut ready = BinaryHeap::new();
    let offer = |ready: &mut BinaryHeap<_>, txn: TxnId| {
        ready.push(Reverse((wanted[txn.index()], positions[txn.index()], txn)));
    };
    history.txns().filter(|txn| missing[txn.index()] == 0).for_each(|txn| offer(&mut ready, txn));
    let mut places = vec![u32::MAX; history.txn_count()];
    for place in 0..history.txn_count() as u32 {
        // Where everybody waits for somebody, reads go round in a cycle: somebody begins.
        let free = std::iter::from_fn(|| ready.pop().map(|Reverse((.., txn))| txn));
        let free = free.into_iter().find(|txn| places[txn.index()] == u32::MAX);
        let Some(txn) = free.or_else(|| heads.first().map(|(_, txn)| *txn)) else { break };
        places[txn.index()] = place;
        heads.remove(&(positions[txn.index()], txn));
        let next = Some(TxnId(txn.0 + 1)).filter(|next| follows(history, txn, *next));
        heads.extend(next.map(|next| (positions[next.index()], next)));
        let from = reads.partition_point(|(writer, _)| *writer < txn);
        let readers = reads[from..].iter().take_while(|(writer, _)| *writer == txn);
        for waiting in readers.map(|(_, reader)| *reader).chain(next) {
            missing[waiting.index()] -= 1;
            if missing[waiting.index()] == 0 {
                offer(&mut ready, waiting);
            }
        }
    }
    places
}

/// Whether a transaction is the next one of the same session. Sessions are contiguous.
fn follows(history: &History, txn: TxnId, next: TxnId) -> bool {
    next.index() < history.txn_count() && history.session_of(txn) == history.session_of(next)
}

/// Who read from whom: writer and reader, in order.
fn reads_from(history: &History) -> Vec<(TxnId, TxnId)> {
    let mut writes: Vec<(KeyId, Mark, TxnId)> = Vec::new();
    let mut reads = Vec::new();
    for op in (0..history.op_count()).map(OpId::at) {
        let Some(key) = history.op(op).key() else { continue };
        let (read, wrote) = marks(history, op);
        writes.extend(wrote.map(|mark| (key, mark, history.op_txn(op))));
        reads.extend(read.map(|mark| (key, mark, history.op_txn(op))));
    }
    writes.sort_unstable();
    let source = |(key, mark, reader): (KeyId, Mark, TxnId)| {
        let at = writes.partition_point(|(k, m, _)| (*k, *m) < (key, mark));
        let (k, m, writer) = *writes.get(at)?;
        ((k, m) == (key, mark) && writer != reader).then_some((writer, reader))
    };
    let mut found: Vec<(TxnId, TxnId)> = reads.into_iter().filter_map(source).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{History as Builder, r, w};

    #[test]
    fn readers_stand_after_writers_and_sessions_keep_their_order() {
        let history = Builder::new()
            .txn(&[r("x", 1)])
            .txn(&[w("y", 1)])
            .session()
            .txn(&[w("z", 1)])
            .txn(&[w("x", 1)])
            .build();
        assert_eq!(places(&history, &[]), [2, 3, 0, 1]);
    }

    #[test]
    fn reads_in_a_cycle_are_placed_as_well_and_a_commit_order_is_followed() {
        let cycle = Builder::new()
            .txn(&[r("x", 1), w("y", 1)])
            .session()
            .txn(&[r("y", 1), w("x", 1)])
            .build();
        assert_eq!(places(&cycle, &[]), [0, 1]);
        let free = Builder::new().txn(&[w("x", 1)]).session().txn(&[w("y", 1)]).build();
        assert_eq!(places(&free, &[TxnId(1), TxnId(0)]), [1, 0]);
    }
}
