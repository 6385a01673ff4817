//! What an argument rests on: the operations that it names, and the transactions that take part.

use isolario_model::{
    Anomaly, Evidence, History, KeyId, Op, OpId, Outcome, Reason, TxnId, VersionOrder,
};
use rustc_hash::FxHashSet;

use crate::resolved::writes;

/// Whether an argument takes more than what clients saw: the opposite is refuted, or cases are
/// supposed.
pub(super) fn is_intricate(anomaly: &Anomaly) -> bool {
    let is_supposed = |reason: &Reason| {
        let known = reason.known().filter(|_| !reason.is_about_predicate());
        matches!(reason, Reason::Refuted { .. })
            || matches!(known, Some(VersionOrder::Refuted { .. } | VersionOrder::Assumed))
    };
    match &anomaly.evidence {
        Evidence::Cases { .. } => true,
        Evidence::Cycle { .. } => anomaly.evidence.walk().any(|edge| is_supposed(&edge.reason)),
        _ => false,
    }
}

/// Transactions and operations of an argument, and the writers of the versions that its reads saw.
#[derive(Default)]
pub(super) struct RestsOn {
    txns: FxHashSet<TxnId>,
    reads: FxHashSet<OpId>,
    /// The keys that transactions wrote.
    written: FxHashSet<(TxnId, KeyId)>,
}

impl RestsOn {
    pub(super) fn new(history: &History, anomaly: &Anomaly) -> Self {
        let mut found = RestsOn::default();
        for edge in anomaly.evidence.walk() {
            found.txns.extend([edge.from, edge.to]);
            if let Reason::AntiDependency { writer, .. } = edge.reason {
                found.txns.insert(writer);
            }
            found.reads.extend(edge.reason.reads());
            found.written.extend(edge.writes());
        }
        found.add_what_shows_outcomes(history);
        found.txns.extend(found.reads.iter().map(|read| history.op_txn(*read)));
        let seen: FxHashSet<KeyVersion> =
            found.reads.iter().filter_map(|read| last_seen(history, *read)).collect();
        for txn in history.txns() {
            for (key, _) in written(history, txn).filter(|version| seen.contains(version)) {
                found.txns.insert(txn);
                found.written.insert((txn, key));
            }
        }
        found
    }

    /// A transaction of unknown outcome counts because a read saw what it wrote: these reads are part
    /// of the argument, and the outcome of their transactions may be unknown, too.
    fn add_what_shows_outcomes(&mut self, history: &History) {
        let is_unknown = |txn: &TxnId| !txn.is_init() && history.outcome(*txn) == Outcome::Unknown;
        let mut waiting: Vec<TxnId> = self.txns.iter().copied().filter(is_unknown).collect();
        while let Some(unknown) = waiting.pop() {
            let written: FxHashSet<KeyVersion> = written(history, unknown).collect();
            for txn in history.txns().filter(|txn| *txn != unknown) {
                let saw_it = |op: &OpId| seen_by(history, *op).any(|seen| written.contains(&seen));
                let reads: Vec<OpId> = history.txn_ops(txn).filter(saw_it).collect();
                if !reads.is_empty() && self.txns.insert(txn) && is_unknown(&txn) {
                    waiting.push(txn);
                }
                self.reads.extend(reads);
            }
        }
    }

    /// The transactions, in the order of the history.
    pub(super) fn txns(&self, history: &History) -> Vec<TxnId> {
        history.txns().filter(|txn| self.txns.contains(txn)).collect()
    }

    /// Whether an operation is one of the argument: a read, or any that a transaction wrote of a key.
    pub(super) fn names(&self, history: &History, op: OpId) -> bool {
        let (txn, key) = (history.op_txn(op), history.op_keys()[op.index()]);
        match writes(history.op_kinds()[op.index()]) {
            true => self.written.contains(&(txn, key)),
            false => self.reads.contains(&op),
        }
    }
}

/// A version of a key, as an operation shows it.
type KeyVersion = (KeyId, u64);

/// The versions that a transaction wrote.
fn written(history: &History, txn: TxnId) -> impl Iterator<Item = KeyVersion> {
    let own = history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()]));
    own.map(|op| (history.op_keys()[op.index()], history.encoded_version(op)))
}

/// The versions that an operation saw: of a list, all its elements.
fn seen_by(history: &History, op: OpId) -> impl DoubleEndedIterator<Item = KeyVersion> {
    let (value, elements) = match history.op(op) {
        Op::Read { value: Some(_), .. } => (Some(history.encoded_version(op)), [].as_slice()),
        Op::ReadList { elements: Some(elements), .. } => (None, elements),
        _ => (None, [].as_slice()),
    };
    let key = history.op_keys()[op.index()];
    let encoded = value.into_iter().chain(elements.iter().map(|element| element.to_bits()));
    encoded.map(move |encoded| (key, encoded))
}

/// The version that a read saw. A list holds all appends before its last one by another
/// transaction, so that one represents it.
fn last_seen(history: &History, read: OpId) -> Option<KeyVersion> {
    if !matches!(history.op(read), Op::ReadList { elements: Some(_), .. }) {
        return Some((history.op_keys()[read.index()], history.encoded_version(read)));
    }
    let is_own =
        |version: &KeyVersion| written(history, history.op_txn(read)).any(|own| own == *version);
    seen_by(history, read).rfind(|version| !is_own(version))
}
