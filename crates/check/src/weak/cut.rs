//! Cut isolation: reading a key again, from others, returns the same version.
//!
//! Plume, Definition 3. Nothing else is asked: a read that is wrong for another reason counts
//! here like any other, as long as a committed transaction or `init` wrote what it saw.

use isolario_model::{Anomaly, AnomalyKind, Evidence, History, Initial, OpId, OpKind, TxnId};
use rayon::prelude::*;

use crate::resolved::Reads;
use crate::resolved::filter_bit;

/// Transactions per task.
const TXNS_PER_TASK: usize = 1 << 14;

/// Every read of a key whose transaction had read it from somebody else before.
pub(crate) fn non_repeatable_reads(history: &History, reads: &Reads) -> Vec<Anomaly> {
    let starts: Vec<usize> = (0..history.txn_count()).step_by(TXNS_PER_TASK).collect();
    let found: Vec<Vec<Anomaly>> = starts
        .into_par_iter()
        .map_init(
            || vec![None; history.key_count()],
            |seen, start| {
                let end = (start + TXNS_PER_TASK).min(history.txn_count());
                let kept = (start..end).map(TxnId::at).filter(|txn| reads.is_kept(*txn));
                let mut found = Vec::new();
                kept.for_each(|txn| check(history, reads, txn, seen, &mut found));
                found
            },
        )
        .collect();
    found.into_iter().flatten().collect()
}

/// The first read of a key from others, by the transaction that is named in it.
type FirstRead = (TxnId, OpId, TxnId);

fn check(
    history: &History,
    reads: &Reads,
    txn: TxnId,
    seen: &mut [Option<FirstRead>],
    found: &mut Vec<Anomaly>,
) {
    if !may_repeat(history, txn) {
        return;
    }
    for op in history.txn_ops(txn) {
        let Some(writer) = reads.foreign_writer(op).filter(|writer| *writer != txn) else {
            continue;
        };
        let key = history.op_keys()[op.index()];
        match seen[key.index()] {
            Some((reader, first, from)) if reader == txn => {
                if from != writer || (writer.is_init() && differs(history, first, op)) {
                    let evidence = Evidence::Reads { key, first, second: op, edges: Vec::new() };
                    found.push(Anomaly::new(AnomalyKind::NonRepeatableRead, evidence));
                }
            }
            _ => seen[key.index()] = Some((txn, op, writer)),
        }
    }
}

/// Whether two reads of values that nobody wrote returned different ones, where any such value may be
/// the initial one.
fn differs(history: &History, first: OpId, second: OpId) -> bool {
    let is_register = history.op_kinds()[second.index()] == OpKind::Read;
    is_register
        && *history.initial() == Initial::Unwritten
        && history.version_word(first) != history.version_word(second)
}

/// Whether a transaction may read a key twice; never a false no. Few do, and of the others most are
/// known by a set of 64 bits to be none of them.
fn may_repeat(history: &History, txn: TxnId) -> bool {
    let range = history.op_range(txn);
    let mut filter = 0;
    history.op_keys()[range.clone()].iter().zip(&history.op_kinds()[range]).any(|(key, kind)| {
        let bit =
            if matches!(kind, OpKind::Read | OpKind::ReadList) { filter_bit(*key) } else { 0 };
        let repeats = filter & bit != 0;
        filter |= bit;
        repeats
    })
}
