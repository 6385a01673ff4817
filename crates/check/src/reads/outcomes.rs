//! Which transactions take part in the order.

use isolario_model::{History, OpId, Outcome, TxnId};

/// Committed transactions, and those of unknown outcome that a kept one read from: somebody saw
/// their writes, so they did commit. The others of unknown outcome are dropped; no level needs
/// them.
pub(super) fn kept(history: &History, unknown_reads: &[(OpId, TxnId)]) -> Vec<bool> {
    let mut kept: Vec<bool> =
        history.txns().map(|txn| history.outcome(txn) == Outcome::Committed).collect();
    let by_reader: Vec<(TxnId, TxnId)> =
        unknown_reads.iter().map(|(read, writer)| (history.op_txn(*read), *writer)).collect();
    // The reads are in order of operation, so the readers are in order, too.
    let mut observed: Vec<TxnId> = by_reader
        .iter()
        .filter(|(reader, _)| history.outcome(*reader) == Outcome::Committed)
        .map(|(_, writer)| *writer)
        .collect();
    while let Some(txn) = observed.pop() {
        if std::mem::replace(&mut kept[txn.index()], true) {
            continue;
        }
        let first = by_reader.partition_point(|(reader, _)| *reader < txn);
        let its_reads = by_reader[first..].iter().take_while(|(reader, _)| *reader == txn);
        observed.extend(its_reads.map(|(_, writer)| *writer));
    }
    kept
}
