//! The dependencies of predicates that contradict an order of transactions (Clark et al., Section 3.1 and
//! Algorithm 3; Adya 1999).
//!
//! Of a row, a predicate operation observed one version, the *member* of its version set. A version
//! *changes the matches* if it satisfies the predicate and the one before it does not, or the other way
//! round. The writer of such a changer comes before the reader if the changer is the member or comes
//! before it (wr), and after the reader if it comes after the member (rw).
//!
//! Algorithm 3 adds an edge for every changer: as many as there are versions, for each operation. Of
//! these, per row, the last changer up to the member and the first one after it are enough. The
//! versions of a row (of an incarnation, where these are objects) are connected by overwrites, one after
//! the other. An earlier changer leads to the last one by overwrites and from there to the reader: to
//! the same transaction, with no anti-dependency either. From the reader, the first changer after the member is
//! one anti-dependency away, and overwrites lead from it to all later ones: to the same ones, with
//! one anti-dependency as well, and with overwrites behind it, so that no two anti-dependencies are
//! adjacent that were not before. So whatever a level forbids, it finds a cycle of the few edges where
//! there is one of the many. If the reader itself wrote the changer, overwrites lead to it, or from it,
//! instead of the edge.
//!
//! And of these few, only those are looked for that contradict a given order: one in which all other
//! edges lead forward ([`Certificate::contradicted`]). Along that order the versions of an object are in
//! their order as well, so only those versions can contradict that come after the reader and up to the
//! member, or before the reader and after the member. As a rule there are none, or few, however long the
//! row's history is. If none contradicts, the order is an answer; else these edges are added, and another
//! order is tried.

use std::ops::Range;

use isolario_model::{Inapplicable, OpId, PredicateId, TxnId};
use isolario_predicate::EvalError;
use rayon::prelude::*;

use super::chains::{Version, VersionChains};
use super::items::ItemRead;
use super::levels::{Counted, LevelQuestion};
use super::observed::StatedOp;
use super::{Certificate, Objects};
use crate::rows::OwnWrites;

/// A dependency of an operation by predicate, or of a read by key of a row that was inserted anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PredicateEdge {
    pub(super) from: TxnId,
    pub(super) to: TxnId,
    /// The operation.
    pub(super) op: OpId,
    /// The version that changes what it matches.
    pub(super) version: Version,
    /// For a read by key, the version that it returned.
    pub(super) returned: Option<Version>,
    /// Whether the version came after what the operation observed.
    pub(super) is_anti: bool,
}

/// The positions of transactions and versions in an order.
pub(super) struct OrderPositions {
    /// Per transaction, the position of its reads.
    pub(super) reads: Vec<u32>,
    /// Per version, the position at which it appears.
    appears: Vec<u32>,
    /// Per version, the last position at which a version of its row up to it appears, and the first one at
    /// which a version from it on does. Only if rows are inserted anew.
    last_up_to: Vec<u32>,
    first_from: Vec<u32>,
}

impl OrderPositions {
    /// `writes` are, per transaction, the positions at which its versions appear.
    pub(super) fn new(
        chains: &VersionChains<'_>,
        reads: Vec<u32>,
        writes: &[u32],
    ) -> OrderPositions {
        let appears = |version| match chains.writer(version) {
            TxnId::INIT => 0,
            writer => writes[writer.index()] + 1,
        };
        let reads = reads.into_iter().map(|position| position + 1).collect();
        let appears: Vec<u32> = (0..chains.len()).map(appears).collect();
        let (mut last_up_to, mut first_from) = (Vec::new(), Vec::new());
        if chains.any_incarnations() {
            (last_up_to, first_from) = (appears.clone(), appears.clone());
            for versions in chains.rows() {
                for version in versions.start as usize + 1..versions.end as usize {
                    last_up_to[version] = last_up_to[version].max(last_up_to[version - 1]);
                }
                for version in (versions.start as usize + 1..versions.end as usize).rev() {
                    first_from[version - 1] = first_from[version - 1].min(first_from[version]);
                }
            }
        }
        OrderPositions { reads, appears, last_up_to, first_from }
    }

    /// Whether a version had appeared when a transaction read.
    #[inline]
    pub(super) fn has_seen(&self, txn: TxnId, version: Version) -> bool {
        self.appears[version as usize] < self.reads[txn.index()]
    }

    /// Of the versions of a row, which appear one after the other, the last one that had appeared when a
    /// transaction read.
    pub(super) fn last_seen(&self, txn: TxnId, versions: Range<Version>) -> Version {
        let now = self.reads[txn.index()];
        let appear = &self.appears[versions.start as usize..versions.end as usize];
        let seen = appear.partition_point(|appears| *appears < now);
        versions.start + seen.max(1) as Version - 1
    }

    /// Whether these versions appear one after the other.
    pub(super) fn is_in_order(&self, versions: Range<Version>) -> bool {
        self.appears[versions.start as usize..versions.end as usize].is_sorted()
    }
}

impl Certificate<'_> {
    /// The dependencies that an order contradicts: those of the nearest changers.
    pub(super) fn contradicted(
        &self,
        positions: &OrderPositions,
        question: LevelQuestion<'_>,
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let now = |txn: TxnId| positions.reads[txn.index()];
        self.nearest(positions, question, |txn| Some((now(txn), now(txn))))
    }

    /// The dependencies of the nearest changers: of those transactions that `bounds` gives positions for,
    /// reads of what appears after the first one, and anti-dependencies on what appears before the
    /// second.
    pub(super) fn nearest(
        &self,
        positions: &OrderPositions,
        question: LevelQuestion<'_>,
        bounds: impl Fn(TxnId) -> Option<(u32, u32)> + Sync,
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let (counted, objects) = (question.counted, question.objects());
        if counted == Counted::Nothing {
            return Ok(Vec::new());
        }
        let of_stated = |stated: &StatedOp| {
            let mut found = Vec::new();
            if let Some((since, until)) = bounds(stated.txn) {
                let until = (counted >= Counted::AntiDependencies).then_some(until);
                self.nearest_of(stated, positions, objects, (since, until), &mut found)
                    .map_err(|_| Inapplicable::Predicate { op: stated.op })?;
            }
            Ok(found)
        };
        let found: Result<Vec<_>, Inapplicable> = self.stated.par_iter().map(of_stated).collect();
        let mut found = found?.concat();
        if objects == Objects::Incarnations && self.chains.any_incarnations() {
            for read in self.reads(question.open) {
                if let Some((since, until)) = bounds(read.txn) {
                    let until = (counted >= Counted::RowAntiDependencies).then_some(until);
                    self.nearest_of_key(read, positions, (since, until), &mut found);
                }
            }
        }
        Ok(found)
    }

    /// The dependencies of a read by key: a search for the row of that key, which is there or not. Overwrites
    /// lead from one change to the next one of the same incarnation, so one change of each is enough.
    fn nearest_of_key(
        &self,
        read: &ItemRead,
        positions: &OrderPositions,
        (since, until): (u32, Option<u32>),
        found: &mut Vec<PredicateEdge>,
    ) {
        let key = self.chains.written(read.version).key;
        let is_search = self.history.op_predicate(read.op).is_none();
        if !is_search || !self.chains.has_incarnations(key) {
            return;
        }
        let appears = |version: &Version| positions.appears[*version as usize];
        let versions = self.chains.of(key);
        let is_change = |version: &Version| self.chains.changes_presence(*version);
        let edge = |version: Version, is_anti: bool| {
            self.edge((read.txn, read.op), version, Some(read.version), is_anti)
        };
        let (up_to, after) = (versions.start + 1..read.version + 1, read.version + 1..versions.end);
        // As a rule, what appeared is what was read.
        if positions.last_up_to[read.version as usize] > since {
            let late = up_to.filter(|version| appears(version) > since).filter(is_change);
            found.extend(late.filter_map(|version| edge(version, false)));
        }
        let is_early =
            |until: &u32| !after.is_empty() && positions.first_from[after.start as usize] < *until;
        if let Some(until) = until.filter(is_early) {
            let early = after.filter(|version| appears(version) < until).filter(is_change);
            found.extend(early.filter_map(|version| edge(version, true)));
        }
    }

    fn nearest_of(
        &self,
        stated: &StatedOp,
        positions: &OrderPositions,
        objects: Objects,
        (since, until): (u32, Option<u32>),
        found: &mut Vec<PredicateEdge>,
    ) -> Result<(), EvalError> {
        let StatedOp { txn, op, predicate, .. } = *stated;
        let own = OwnWrites::before(self.history, txn, op);
        let appears = |version: &Version| positions.appears[*version as usize];
        for key in self.matches.rows(predicate) {
            if own.of(*key).is_some() {
                continue;
            }
            let member = self.observed(stated, *key);
            let versions = self.chains.of(*key);
            let is_cut = objects == Objects::Incarnations && self.chains.has_incarnations(*key);
            // The segments of versions that overwrites connect: mostly all of them.
            let mut begin = versions.start;
            while begin < versions.end {
                let mut end = versions.end;
                if is_cut {
                    let next = (begin + 1..end).find(|version| self.chains.begins(*version));
                    end = next.unwrap_or(end);
                }
                let up_to = (begin..end.min(member + 1)).rev();
                let last =
                    self.first_changer(predicate, up_to.take_while(|v| appears(v) > since))?;
                found.extend(last.and_then(|version| self.edge((txn, op), version, None, false)));
                if let Some(until) = until {
                    let after = begin.max(member + 1)..end;
                    let first =
                        self.first_changer(predicate, after.take_while(|v| appears(v) < until))?;
                    found.extend(
                        first.and_then(|version| self.edge((txn, op), version, None, true)),
                    );
                }
                begin = end;
            }
        }
        Ok(())
    }

    /// The first of these versions that changes what a predicate matches.
    #[inline]
    fn first_changer(
        &self,
        predicate: PredicateId,
        versions: impl Iterator<Item = Version>,
    ) -> Result<Option<Version>, EvalError> {
        for version in versions {
            if self.matches.is_changed_by(&self.chains, predicate, version)? {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// The dependency of an operation on a version that another transaction wrote.
    fn edge(
        &self,
        (txn, op): (TxnId, OpId),
        version: Version,
        returned: Option<Version>,
        is_anti: bool,
    ) -> Option<PredicateEdge> {
        let writer = self.chains.writer(version);
        let (from, to) = if is_anti { (txn, writer) } else { (writer, txn) };
        let is_dependency = writer != txn && !writer.is_init();
        is_dependency.then_some(PredicateEdge { from, to, op, version, returned, is_anti })
    }
}
