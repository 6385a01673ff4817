//! The versions that each predicate operation observed, as the certificate states them.

use std::ops::Range;

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyId, Op, OpId, Outcome, PredicateId,
    Stamp, StatedSet, TxnId, VersionSet,
};

use super::chains::{Version, VersionChains};
use crate::rows::written_rows;

/// A predicate operation with a result and a version set.
pub(super) struct StatedOp {
    pub(super) op: OpId,
    pub(super) txn: TxnId,
    pub(super) predicate: PredicateId,
    observed: ObservedVersions,
}

/// A predicate operation with a result and without a version set.
pub(super) struct UnstatedOp {
    pub(super) op: OpId,
    pub(super) txn: TxnId,
    pub(super) predicate: PredicateId,
}

enum ObservedVersions {
    /// Those of writers with at most this commit number.
    Snapshot(u32),
    /// These, by row; of all other rows the initial version.
    Named(Vec<(KeyId, Version)>),
}

/// The commits of the writers of versions, numbered from 1 by the database's own clock.
pub(super) struct CommitNumbers {
    /// All timestamps of commits, sorted.
    stamps: Vec<Stamp>,
    /// Per version, the number of its writer's commit; 0 for the initial one.
    of_version: Vec<u32>,
    /// Per row, whether the numbers of its versions ascend.
    ascending: Vec<bool>,
}

/// The number of a commit without a timestamp. No snapshot has its versions.
const UNKNOWN: u32 = u32::MAX;

impl CommitNumbers {
    pub(super) fn new(history: &History, chains: &VersionChains<'_>) -> CommitNumbers {
        let commits = history.txns().filter_map(|txn| history.db_commit(txn));
        let mut stamps: Vec<Stamp> = commits.collect();
        stamps.sort_unstable();
        stamps.dedup();
        let number = |version| match chains.writer(version) {
            TxnId::INIT => 0,
            writer => history.db_commit(writer).map_or(UNKNOWN, |stamp| count(&stamps, stamp)),
        };
        let of_version: Vec<u32> = (0..chains.len()).map(number).collect();
        let is_ascending =
            |row: Range<Version>| of_version[row.start as usize..row.end as usize].is_sorted();
        let ascending = chains.rows().map(is_ascending).collect();
        CommitNumbers { stamps, of_version, ascending }
    }

    /// The last of these versions of a row whose writer's commit number is at most `up_to`; the first one is
    /// the initial version.
    #[inline]
    fn last(&self, key: KeyId, versions: Range<Version>, up_to: u32) -> Version {
        let numbers = &self.of_version[versions.start as usize..versions.end as usize];
        let is_in = |number: &u32| *number <= up_to;
        let last = if self.ascending[key.index()] {
            numbers.partition_point(is_in).saturating_sub(1)
        } else {
            numbers.iter().rposition(is_in).unwrap_or(0)
        };
        versions.start + last as Version
    }
}

/// The number of timestamps up to this one.
fn count(stamps: &[Stamp], stamp: Stamp) -> u32 {
    stamps.partition_point(|other| *other <= stamp) as u32
}

impl StatedOp {
    /// The version of a row that the operation observed.
    #[inline]
    pub(super) fn observed(
        &self,
        chains: &VersionChains<'_>,
        commits: &CommitNumbers,
        key: KeyId,
    ) -> Version {
        let versions = chains.of(key);
        match &self.observed {
            ObservedVersions::Snapshot(up_to) => {
                let last = commits.last(key, versions.clone(), *up_to);
                // A database may read as of its own commit. A version that the transaction itself has yet
                // to write is not there for it.
                if chains.writer(last) == self.txn {
                    commits.last(key, versions.start..last, *up_to)
                } else {
                    last
                }
            }
            ObservedVersions::Named(named) => {
                match named.binary_search_by_key(&key, |(named, _)| *named) {
                    Ok(at) => named[at].1,
                    Err(_) => versions.start,
                }
            }
        }
    }
}

/// The predicate operations of transactions that count.
#[derive(Default)]
pub(super) struct PredicateOps {
    pub(super) stated: Vec<StatedOp>,
    pub(super) unstated: Vec<UnstatedOp>,
    /// Version sets that are wrong in themselves.
    pub(super) wrong: Vec<Anomaly>,
}

impl PredicateOps {
    /// Puts predicate operations together with their version sets. Fails where nothing says what an
    /// operation wrote.
    pub(super) fn new(
        history: &History,
        chains: &VersionChains<'_>,
        commits: &CommitNumbers,
        sets: &[StatedSet],
        is_kept: impl Fn(TxnId) -> bool,
    ) -> Result<PredicateOps, Inapplicable> {
        let mut by_op: Vec<&StatedSet> = sets.iter().collect();
        by_op.sort_by_key(|set| set.op);
        let mut ops = PredicateOps::default();
        for txn in history.txns().filter(|txn| is_kept(*txn)) {
            for op in history.txn_ops(txn) {
                match history.op(op) {
                    Op::PredicateRead { rows: Some(_), .. }
                    | Op::PredicateWrite { rows: Some(_), .. }
                    | Op::Aggregate { result: Some(_), .. } => {}
                    Op::PredicateWrite { rows: None, .. } => {
                        return Err(Inapplicable::Operation { op });
                    }
                    _ => continue,
                }
                let Some(predicate) = history.op_predicate(op) else { continue };
                let Ok(at) = by_op.binary_search_by_key(&op, |set| set.op) else {
                    ops.unstated.push(UnstatedOp { op, txn, predicate });
                    continue;
                };
                let observed = match &by_op[at].versions {
                    VersionSet::Snapshot(stamp) => {
                        ObservedVersions::Snapshot(count(&commits.stamps, *stamp))
                    }
                    VersionSet::Writers(writers) => {
                        let mut versions = Vec::with_capacity(writers.len());
                        for (key, writer) in writers {
                            ops.wrong.extend(wrong_version(
                                history,
                                chains,
                                (txn, op),
                                *key,
                                *writer,
                            ));
                            let version = chains.version(*key, *writer);
                            versions.extend(version.map(|version| (*key, version)));
                        }
                        versions.sort_unstable();
                        ObservedVersions::Named(versions)
                    }
                };
                ops.stated.push(StatedOp { op, txn, predicate, observed });
            }
        }
        Ok(ops)
    }
}

/// The anomaly in a version set that has this version: it was written later by the operation's own
/// transaction, or by a transaction that aborted. A version of an aborted transaction may have been observed
/// without being returned. Of a row that the transaction had written itself, it observed what it left there.
fn wrong_version(
    history: &History,
    chains: &VersionChains<'_>,
    (txn, op): (TxnId, OpId),
    key: KeyId,
    writer: TxnId,
) -> Option<Anomaly> {
    let kind = if writer == txn {
        AnomalyKind::FutureRead
    } else if chains.version(key, writer).is_none() && history.outcome(writer) == Outcome::Aborted {
        AnomalyKind::AbortedRead
    } else {
        return None;
    };
    let wrote = |write: &OpId| written_rows(history, *write).any(|row| row.key == key);
    if history.txn_ops(txn).take_while(|earlier| *earlier < op).any(|earlier| wrote(&earlier)) {
        return None;
    }
    let saw = history.txn_ops(writer).rev().find(wrote);
    Some(Anomaly::new(kind, Evidence::Row { key, read: op, saw, instead: None }))
}
