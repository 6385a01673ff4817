//! Which transactions may have committed, by what they saw.

use isolario_model::{
    Anomaly, Evidence, Findings, History, Inapplicable, ItemView, KeyId, Op, OpId, Outcome, TxnId,
};
use rustc_hash::FxHashMap;

use super::conditions;
use crate::rows::{LastWrite, RowVersions, written_rows};

/// What is known of transactions by themselves.
pub(super) struct Possible {
    /// The results of a transaction that contradict what it knows itself, by operation.
    contradictions: Vec<(TxnId, Anomaly)>,
    /// Per transaction, whether others may have observed its writes: it did not abort, it can have
    /// committed, and all its writes are known.
    pub(super) may_be_observed: Vec<bool>,
}

impl Possible {
    pub(super) fn new(history: &History, view: &ItemView) -> Result<Possible, Inapplicable> {
        let mut contradictions = Vec::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            let found = conditions::contradictions(history, txn)?;
            contradictions.extend(found.into_iter().map(|anomaly| (txn, anomaly)));
        }
        let may_count = |txn: TxnId| {
            let is_unobserved =
                |op: OpId| matches!(history.op(op), Op::PredicateWrite { rows: None, .. });
            history.outcome(txn) != Outcome::Aborted && !history.txn_ops(txn).any(is_unobserved)
        };
        let mut may_be_observed: Vec<bool> = history.txns().map(may_count).collect();
        contradictions.iter().for_each(|(txn, _)| may_be_observed[txn.index()] = false);
        drop_unexplained(view, &mut may_be_observed);
        Ok(Possible { contradictions, may_be_observed })
    }

    /// The transactions that contradict themselves, each time with an operation by predicate and the row.
    pub(super) fn contradictory(&self) -> impl Iterator<Item = (TxnId, (OpId, KeyId))> {
        self.contradictions.iter().filter_map(|(txn, anomaly)| match anomaly.evidence {
            Evidence::Row { key, read, .. } => Some((*txn, (read, key))),
            Evidence::Reads { key, second, .. } => Some((*txn, (second, key))),
            _ => None,
        })
    }

    /// The contradictions within some transactions; none if there are none.
    pub(super) fn contradictions(&self, of: impl Fn(TxnId) -> bool) -> Option<Findings> {
        let of_those = self.contradictions.iter().filter(|(txn, _)| of(*txn));
        let found: Vec<Anomaly> = of_those.map(|(_, anomaly)| anomaly.clone()).collect();
        (!found.is_empty()).then(|| Findings::new(found, false))
    }
}

/// Excludes transactions of unknown outcome of which a read returned what no transaction that committed can
/// have written; and then those that read from them, and so on.
fn drop_unexplained(view: &ItemView, may_be_observed: &mut [bool]) {
    let items = view.history();
    let is_unknown = |txn: &TxnId| items.outcome(*txn) == Outcome::Unknown;
    let mut unknown: Vec<TxnId> = items.txns().filter(is_unknown).collect();
    if unknown.is_empty() {
        return;
    }
    // The transactions whose last write of a row left this version.
    let mut writers: FxHashMap<(KeyId, u64), Vec<TxnId>> = FxHashMap::default();
    for LastWrite { row, writer, .. } in
        RowVersions::new(view, |txn| items.outcome(txn) != Outcome::Aborted).all()
    {
        writers.entry((row.key, row.encoded)).or_default().push(*writer);
    }
    loop {
        let has_committed = |txn: TxnId| !is_unknown(&txn) || may_be_observed[txn.index()];
        let is_explained = |txn: &TxnId| {
            is_explained(items, *txn, |version| {
                let mut writers = writers.get(&version).into_iter().flatten();
                writers.any(|writer| writer != txn && has_committed(*writer))
            })
        };
        let (explained, others): (Vec<_>, Vec<_>) = unknown.into_iter().partition(is_explained);
        others.iter().for_each(|txn| may_be_observed[txn.index()] = false);
        if others.is_empty() {
            return;
        }
        unknown = explained;
    }
}

/// Whether all reads of a transaction returned what it wrote itself, what was there at first, or what another
/// transaction wrote.
fn is_explained(items: &History, txn: TxnId, is_by_another: impl Fn((KeyId, u64)) -> bool) -> bool {
    let initial = items.encoded_initial_version();
    let mut own: FxHashMap<KeyId, u64> = FxHashMap::default();
    items.txn_ops(txn).all(|op| {
        own.extend(written_rows(items, op).map(|row| (row.key, row.encoded)));
        let Op::Read { key, value: Some(_) } = items.op(op) else { return true };
        let encoded = items.encoded_version(op);
        match own.get(&key) {
            Some(last) => *last == encoded,
            None => initial == Some(encoded) || is_by_another((key, encoded)),
        }
    })
}
