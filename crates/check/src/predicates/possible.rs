//! Which transactions may have committed, by what they saw.

use isolario_model::{
    Anomaly, Evidence, Findings, History, Inapplicable, ItemView, KeyId, Op, OpId, Outcome, TxnId,
};
use rustc_hash::FxHashMap;

use super::conditions;
use crate::rows::{LastWrite, last_writes};

/// What is known of transactions by themselves.
pub(super) struct Possible {
    /// The results of a transaction that contradict what it knows itself, by operation.
    contradictions: Vec<(TxnId, Anomaly)>,
    /// Per transaction, whether others may have met what it wrote: it did not abort, it can have
    /// committed, and all that it wrote is known.
    pub(super) may_be_met: Vec<bool>,
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
        let mut may_be_met: Vec<bool> = history.txns().map(may_count).collect();
        contradictions.iter().for_each(|(txn, _)| may_be_met[txn.index()] = false);
        drop_unexplained(view, &mut may_be_met);
        Ok(Possible { contradictions, may_be_met })
    }

    /// Those who contradict themselves, each time with an operation by predicate and a row that it is about.
    pub(super) fn contradictory(&self) -> impl Iterator<Item = (TxnId, (OpId, KeyId))> {
        self.contradictions.iter().filter_map(|(txn, anomaly)| match anomaly.evidence {
            Evidence::Row { key, read, .. } => Some((*txn, (read, key))),
            Evidence::Reads { key, second, .. } => Some((*txn, (second, key))),
            _ => None,
        })
    }

    /// What contradicts itself in those transactions; none if nothing does.
    pub(super) fn contradictions(&self, of: impl Fn(TxnId) -> bool) -> Option<Findings> {
        let found: Vec<Anomaly> = self
            .contradictions
            .iter()
            .filter(|(txn, _)| of(*txn))
            .map(|(_, anomaly)| anomaly.clone())
            .collect();
        (!found.is_empty()).then(|| Findings::new(found, false))
    }
}

/// Takes transactions of unknown outcome out of which one read saw what nobody can have written who
/// committed; and then those that read from them, and so on.
fn drop_unexplained(view: &ItemView, may_be_met: &mut [bool]) {
    let items = view.history();
    let unknown: Vec<TxnId> =
        items.txns().filter(|txn| items.outcome(*txn) == Outcome::Unknown).collect();
    let mut is_new = !unknown.is_empty();
    while is_new {
        let writers = last_writers(view, may_be_met);
        is_new = false;
        for txn in unknown.iter().filter(|txn| !is_explained(items, **txn, &writers)) {
            is_new |= std::mem::replace(&mut may_be_met[txn.index()], false);
        }
    }
}

/// The transactions whose last write of a row left this version, of those that may have committed.
type Writers = FxHashMap<(KeyId, u64), Vec<TxnId>>;

fn last_writers(view: &ItemView, may_be_met: &[bool]) -> Writers {
    let mut writers = Writers::default();
    let may_count = |txn: TxnId| match view.history().outcome(txn) {
        Outcome::Committed => true,
        Outcome::Aborted => false,
        Outcome::Unknown => may_be_met[txn.index()],
    };
    for LastWrite { row, writer, .. } in last_writes(view, may_count) {
        writers.entry((row.key, row.encoded)).or_default().push(writer);
    }
    writers
}

/// Whether all reads of a transaction saw what it wrote itself, what was there at first, or what
/// somebody else wrote.
fn is_explained(items: &History, txn: TxnId, writers: &Writers) -> bool {
    let by_others = |version: (KeyId, u64)| {
        writers.get(&version).is_some_and(|writers| writers.iter().any(|writer| *writer != txn))
    };
    let initial = items.encoded_initial_version();
    let mut own: FxHashMap<KeyId, u64> = FxHashMap::default();
    items.txn_ops(txn).all(|op| match items.op(op) {
        Op::Write { key, .. } | Op::Delete { key } => {
            own.insert(key, items.encoded_version(op));
            true
        }
        Op::Read { key, value: Some(_) } => {
            let word = items.encoded_version(op);
            match own.get(&key) {
                Some(last) => *last == word,
                None => initial == Some(word) || by_others((key, word)),
            }
        }
        _ => true,
    })
}
