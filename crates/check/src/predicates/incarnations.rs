//! Rows of one key that come one after the other: deleted, and inserted anew.

use std::collections::BTreeMap;

use std::sync::Arc;

use isolario_model::{
    Edge, Evidence, History, Inapplicable, KeyId, Level, LevelResult, LevelSet, OpId, Outcome,
    Point, Reason, TxnId, Verdict, VisibilityRule, Witness,
};

use crate::plan::Conclusion;
/// Whether a row and one of the same key that was deleted before are different to a level: it is about the order of
/// versions, or about writers that exclude or see each other. For what the others say about reads, a key is
/// one row.
pub(crate) fn is_by_row(level: Level) -> bool {
    let shape = level.shape();
    level.needs().version_order
        || shape.exclusive_writers
        || shape.visible == VisibilityRule::Dependencies
}

/// The transactions that leave a row deleted, by row, of those that may have committed.
pub(crate) struct Deleters(BTreeMap<KeyId, Vec<TxnId>>);

impl Deleters {
    pub(crate) fn new(history: &History) -> Self {
        let mut deleters: BTreeMap<KeyId, Vec<TxnId>> = BTreeMap::new();
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            for (key, _) in history.rows_left(txn).into_iter().filter(|(_, is_there)| !is_there) {
                deleters.entry(key).or_default().push(txn);
            }
        }
        Deleters(deleters)
    }

    /// The transactions that leave a row deleted.
    pub(super) fn of(&self, key: KeyId) -> &[TxnId] {
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Takes back what anomalies say about levels that tell rows of one key apart, where a delete may lie
    /// between versions: the name of a cycle is about one row.
    pub(crate) fn claim_no_more(&self, result: &mut LevelResult) {
        let Verdict::Violated(findings) = &mut result.verdict else { return };
        for anomaly in &mut findings.anomalies {
            if self.may_part(&anomaly.evidence) {
                let by_key = anomaly.rules_out.iter().filter(|level| !is_by_row(*level));
                let certain: LevelSet = by_key.chain([result.level]).collect();
                let certain = certain.and_stronger();
                let is_certain = |level: &Level| certain.contains(*level);
                let rules_out = anomaly.rules_out.iter().filter(is_certain).collect();
                Arc::make_mut(anomaly).rules_out = rules_out;
            }
        }
    }

    /// A result without the cycles that violate its level only if rows of one key are one row. Without any
    /// left, no order of versions is known.
    pub(crate) fn without_parted(&self, mut result: LevelResult) -> LevelResult {
        if let Verdict::Violated(findings) = &mut result.verdict
            && is_by_row(result.level)
        {
            let all = findings.anomalies.len();
            findings.anomalies.retain(|anomaly| !self.may_part(&anomaly.evidence));
            if findings.anomalies.len() < all {
                findings.total = findings.anomalies.len() as u64;
                findings.exact = false;
            }
            if findings.anomalies.is_empty() {
                let reason = Conclusion::Inapplicable(Inapplicable::NoVersionOrder);
                result = reason.result(result.level, result.decided_by);
            }
        }
        result
    }

    /// Whether evidence orders two versions of a key between which a delete may lie: then these are of
    /// different rows.
    fn may_part(&self, evidence: &Evidence) -> bool {
        evidence.walk().any(|edge| self.may_part_versions(edge))
    }

    fn may_part_versions(&self, Edge { from, to, reason }: &Edge) -> bool {
        let (key, first) = match reason {
            Reason::Overwrite { key, .. } => (key, *from),
            Reason::AntiDependency { key, writer, .. } => (key, *writer),
            Reason::PredicateAntiDependency { key, evaluated: Some(version), .. } => {
                (key, version.writer)
            }
            _ => return false,
        };
        self.of(*key).iter().any(|deleter| deleter != to || *deleter == first)
    }
}

/// The reason that a level is not decided where a result has two rows of one key and nothing says which is which.
/// Were both of them taken for versions of one row, one would seem to be read after it was overwritten, which the
/// levels below serializability allow.
pub(super) fn both_in_a_result(history: &History, level: Level) -> Option<Inapplicable> {
    if matches!(level, Level::Serializable | Level::StrictSerializable) {
        return None;
    }
    let counts = |op: OpId| history.outcome(history.op_txn(op)) != Outcome::Aborted;
    let op = history.repeated_rows().map(|(op, _)| op).find(|op| counts(*op))?;
    Some(Inapplicable::RowTwice { op })
}

/// Whether a transaction overwrites a row that another one wrote while it ran, where writers exclude each other.
/// To insert a row that another one deleted is no overwrite: it is a new row of the same name. And a transaction
/// that saw both must have inserted its own in place of a row that another one deleted while it ran.
pub(crate) fn clash(
    history: &History,
    witness: &Witness,
    both: &[(TxnId, KeyId)],
    excludes: bool,
) -> bool {
    let Witness::Points(points) = witness else { return false };
    let mut starts = vec![0; history.txn_count()];
    // Per key, when it was written last, and whether it is there since then.
    let mut last: Vec<Option<(usize, bool)>> = vec![None; history.key_count()];
    points.iter().enumerate().any(|(at, point)| match *point {
        Point::Start(txn) => {
            starts[txn.index()] = at;
            false
        }
        Point::Commit(txn) => {
            let mut clashes = false;
            for (key, is_there) in history.rows_left(txn) {
                let before = last[key.index()].replace((at, is_there));
                let meanwhile = before.filter(|(written, _)| *written > starts[txn.index()]);
                let was_there = meanwhile.map(|(_, is_there)| is_there);
                clashes |= excludes && was_there == Some(true);
                clashes |= was_there != Some(false) && both.contains(&(txn, key));
            }
            clashes
        }
    })
}

/// Number of ways to choose one of each that are tried at most.
const MAX_CHOICES: usize = 64;

/// The ways to choose one of each, as far as they are tried.
pub(super) fn choices<T: Clone>(lists: &[Vec<T>]) -> impl Iterator<Item = Vec<T>> {
    let ways = lists.iter().try_fold(1usize, |ways, list| ways.checked_mul(list.len()));
    (0..ways.unwrap_or(MAX_CHOICES).min(MAX_CHOICES)).map(move |way| {
        let mut rest = way;
        let mut chosen = Vec::with_capacity(lists.len());
        for list in lists {
            chosen.push(list[rest % list.len()].clone());
            rest /= list.len();
        }
        chosen
    })
}
