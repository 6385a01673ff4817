//! Levels by a version certificate: the order of each row's versions and the versions that each
//! predicate operation observed, as the database states them (Emme: Clark et al., Sections 3 to 5).
//!
//! With both, all dependencies between transactions are known, those of predicates included, and a
//! level is a matter of which cycles they have:
//!
//! | level | forbids cycles of | objects |
//! |---|---|---|
//! | read uncommitted | overwrites | incarnations |
//! | Adya's read committed | and reads, of items and of predicates | incarnations |
//! | consistent view, parallel snapshot isolation | and at most one anti-dependency | incarnations |
//! | snapshot isolation | and start-dependencies, and anti-dependencies of which no two are adjacent | incarnations |
//! | repeatable read | overwrites, reads, item anti-dependencies | incarnations |
//! | serializable | all | rows |
//!
//! Session order counts as ever, and real time at the strong levels. What a predicate *did not*
//! match makes an anti-dependency of the predicate: only that distinguishes repeatable read from
//! serializability.
//!
//! Item operations are those of the item view. The certificate is part of the question: a history
//! that contradicts it violates the level, even if another order would explain what the clients saw.
//!
//! | path | idea |
//! |---|---|
//! | `chains.rs` | the versions of each row, in their order |
//! | `observed.rs` | the versions that each predicate operation observed |
//! | `results.rs` | results that these versions do not give |
//! | `matches.rs` | which versions satisfy which predicates |
//! | `items.rs` | reads of single rows; *open* reads, of which the certificate does not say which of several equal versions they returned |
//! | `levels.rs` | how a level is decided: the loop over an order of transactions |
//! | `dependencies.rs` | where the certificate contradicts an order: dependencies of predicates that lead back in it |
//! | `snapshots.rs` | the order of snapshots and commits, which also may contradict one |
//! | `unstated.rs` | whether an order explains operations without a version set |
//! | `evidence.rs` | cycles, with the reason of each edge |
//! | `choices.rs` | suppositions: the versions that open reads returned |

mod chains;
mod choices;
mod dependencies;
mod evidence;
mod items;
mod levels;
mod matches;
mod observed;
mod results;
mod snapshots;
#[cfg(test)]
mod tests;
mod unstated;

use std::sync::{Arc, OnceLock};

use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, ItemView, KeyId, Level, LevelSet,
    OpFamily, OpId, Outcome, TxnId, VersionSet,
};
use rayon::prelude::*;

use crate::CheckOptions;
use crate::graph::RealTime;
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, Guess, Reads, first_outside, guess_order};
use crate::rows::RowVersions;
use chains::{Version, VersionChains};
use items::ItemRead;
use levels::{Counted, Open};
use matches::PredicateMatches;
use observed::{CommitNumbers, PredicateOps, StatedOp, UnstatedOp};
use results::Comparison;
use snapshots::Snapshots;

/// A history and its certificate.
pub(crate) struct Certificate<'h> {
    history: &'h History,
    options: CheckOptions,
    view: ItemView,
    reads: Arc<Reads>,
    guess: Guess,
    chains: VersionChains<'h>,
    commits: CommitNumbers,
    matches: PredicateMatches<'h>,
    snapshots: Snapshots,
    stated: Vec<StatedOp>,
    unstated: Vec<UnstatedOp>,
    /// Version sets that are wrong in themselves.
    wrong_sets: Vec<Anomaly>,
    /// Per operation of `stated`, its result compared with what it observed.
    compared: Vec<Comparison>,
    /// Reads of versions by transactions that count, by transaction.
    items: Vec<ItemRead>,
    /// Open reads, each with the likely one of its versions, by transaction.
    open: Vec<ItemRead>,
    real_time: OnceLock<RealTime>,
    /// In place of real time and of snapshots, where these do not count.
    no_chain: RealTime,
    /// An order in which transactions may have run one after the other, without open reads and with
    /// the likely ones.
    serial: [OnceLock<Result<Option<Vec<u32>>, Inapplicable>>; 2],
}

/// The object that has versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// A row, whether it is deleted and inserted again or not.
    Rows,
    /// A row from its insert to its delete.
    Incarnations,
}

impl Objects {
    fn at(level: Level) -> Objects {
        if level.implies(Level::Serializable) { Objects::Rows } else { Objects::Incarnations }
    }
}

/// Whether a certificate decides a level.
pub(crate) fn decides(level: Level) -> bool {
    Counted::at(level).is_some()
}

const ROWS: &[OpFamily] = &[OpFamily::Registers, OpFamily::Predicates];

impl<'h> Certificate<'h> {
    /// Puts history and certificate together. Fails where the certificate does not say enough, and
    /// where the history has other operations than those on rows.
    pub(crate) fn new(history: &'h History, options: &CheckOptions) -> Result<Self, Inapplicable> {
        if let Some(op) = first_outside(history, ROWS) {
            return Err(Inapplicable::Operation { op });
        }
        let Ok(view) = ItemView::new(history) else {
            return Err(Inapplicable::Operation { op: OpId(0) });
        };
        let reads =
            Arc::new(Reads::resolve_and_keep(view.history(), &settled(history, options), &[]));
        let dependencies =
            Dependencies::new(view.history(), Arc::clone(&reads), options.session_order);
        let guess = guess_order(&dependencies);
        drop(dependencies);
        let is_kept = |txn| reads.is_kept(txn);
        let chains =
            VersionChains::new(history, &RowVersions::new(&view, is_kept), &options.version_order)
                .map_err(|key| Inapplicable::OpenVersionOrder { key })?;
        let commits = CommitNumbers::new(history, &chains);
        let sets = &options.version_sets;
        let PredicateOps { stated, unstated, wrong: wrong_sets } =
            PredicateOps::new(history, &chains, &commits, sets, is_kept)?;
        let matches = PredicateMatches::new(history, &chains);
        let snapshots = Snapshots::new(history, sets, is_kept);
        let mut certificate = Certificate {
            history,
            options: options.clone(),
            view,
            reads,
            guess,
            chains,
            commits,
            matches,
            snapshots,
            stated,
            unstated,
            wrong_sets,
            compared: Vec::new(),
            items: Vec::new(),
            open: Vec::new(),
            real_time: OnceLock::new(),
            no_chain: RealTime::of_ends(Vec::new(), vec![0; history.txn_count()]),
            serial: [OnceLock::new(), OnceLock::new()],
        };
        let compare = |stated: &StatedOp| certificate.compare(stated);
        let compared: Result<Vec<_>, _> = certificate.stated.par_iter().map(compare).collect();
        certificate.compared = compared?;
        (certificate.items, certificate.open) = certificate.item_reads();
        Ok(certificate)
    }

    /// Decides a level.
    pub(crate) fn check(&self, level: Level) -> Conclusion {
        let wrong = self.wrong(level);
        if !wrong.is_empty() {
            return Conclusion::refuted(wrong);
        }
        // Open reads are supposed to have returned the likely version. If that does not explain everything,
        // the level may be violated without such reads; else other versions are tried.
        match self.decide(level, Open::Likely) {
            likely @ Conclusion::Refuted(_) if !self.open.is_empty() => {
                match self.decide(level, Open::None) {
                    Conclusion::Holds(_) => self.choose(level, likely),
                    verdict => verdict,
                }
            }
            verdict => verdict,
        }
    }

    /// The anomalies that are there whatever the order of transactions.
    fn wrong(&self, level: Level) -> Vec<Anomaly> {
        if !AnomalyKind::AbortedRead.forbidden_at(level) {
            return Vec::new();
        }
        let objects = Objects::at(level);
        let mut wrong: Vec<Anomaly> = Vec::new();
        for found in &self.reads.anomalies {
            let anomaly = self.view.anomaly_of(self.history, found);
            if !self.is_of_another_incarnation(found) {
                wrong.push(anomaly);
            } else if objects == Objects::Rows {
                wrong.push(only_at(anomaly, level));
            }
        }
        wrong.extend_from_slice(&self.wrong_sets);
        for compared in &self.compared {
            let Some(evidence) = compared.differs(objects) else { continue };
            let anomaly = Anomaly::new(AnomalyKind::ResultMismatch, evidence.clone());
            let everywhere = compared.differs(Objects::Incarnations).is_some();
            wrong.push(if everywhere { anomaly } else { only_at(anomaly, level) });
        }
        wrong
    }

    fn is_kept(&self, txn: TxnId) -> bool {
        self.reads.is_kept(txn)
    }

    fn dependencies(&self) -> Dependencies<'_> {
        let reads = Arc::clone(&self.reads);
        Dependencies::new(self.view.history(), reads, self.options.session_order)
    }

    fn real_time(&self) -> &RealTime {
        let (history, skew) = (self.history, self.options.clock_skew);
        self.real_time.get_or_init(|| RealTime::new(history, skew, |txn| self.is_kept(txn)))
    }
}

/// An anomaly that is known to violate this level and stronger ones alone.
fn only_at(mut anomaly: Anomaly, level: Level) -> Anomaly {
    anomaly.rules_out = LevelSet::default();
    anomaly.at(level)
}

/// The transactions of unknown outcome that committed by what is stated: the database knows a version
/// or a timestamp of theirs.
fn settled(history: &History, options: &CheckOptions) -> Vec<TxnId> {
    let in_sets = options.version_sets.iter().flat_map(|set| match &set.versions {
        VersionSet::Writers(writers) => writers.as_slice(),
        VersionSet::Snapshot(_) => &[],
    });
    let named = options.version_order.iter().flat_map(|order| order.writers.iter().copied());
    let named = named.chain(in_sets.map(|(_, writer)| *writer));
    let stamped = history.txns().filter(|txn| history.db_commit(*txn).is_some());
    let unknown = |txn: &TxnId| !txn.is_init() && history.outcome(*txn) == Outcome::Unknown;
    named.chain(stamped).filter(unknown).collect()
}

impl Certificate<'_> {
    /// Whether a read returned another transaction's version of a row after its own transaction had written
    /// one: as it has to be if the two are of different incarnations, where those are separate objects.
    fn is_of_another_incarnation(&self, wrong: &Anomaly) -> bool {
        let Evidence::Read { read, .. } = wrong.evidence else { return false };
        let op = self.view.origin(read);
        let key = self.key_of(read);
        let Some(own) = self.chains.version(key, self.history.op_txn(op)) else { return false };
        if self.history.op_predicate(op).is_none() {
            return self.formers(read, op).next().is_some();
        }
        if !self.history.may_see_former_row(op, key) {
            return false;
        }
        if let Some(seen) = self.settled_read(read, op) {
            return self.chains.is_cut(seen, own);
        }
        // An operation without a version set may have observed any version that shows the value.
        let encoded = self.view.history().encoded_version(read);
        let mut seen = self.chains.of(key).filter(|version| self.chains.shows(*version, encoded));
        self.is_unstated(op) && seen.any(|seen| self.chains.is_cut(seen, own))
    }

    fn key_of(&self, item: OpId) -> KeyId {
        self.view.history().op_keys()[item.index()]
    }

    /// The version of a row that an operation observed, own writes aside.
    #[inline]
    fn observed(&self, stated: &StatedOp, key: KeyId) -> Version {
        stated.observed(&self.chains, &self.commits, key)
    }

    /// Whether two versions of one row are of one object.
    fn is_one_object(&self, first: Version, second: Version, objects: Objects) -> bool {
        objects == Objects::Rows || !self.chains.is_cut(first, second)
    }
}
