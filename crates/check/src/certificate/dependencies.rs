//! Predicate dependencies (Clark et al., Section 3.1 and Algorithm 3; Adya 1999).
//!
//! Of a row, a predicate operation met one version, the *member* of its version set. A version
//! *changes the matches* if it satisfies the predicate and the one before it does not, or the other way
//! round. Whoever wrote such a changer comes before the reader if the changer is the member or comes
//! before it (wr), and after the reader if it comes after the member (rw).
//!
//! Algorithm 3 adds an edge for every changer: as many as there are versions, for each operation. Of
//! these, per row, the last changer up to the member and the first one after it are enough. The
//! versions of a row (of an incarnation, where these are objects) are connected by overwrites, one after
//! the other. An earlier changer leads to the last one by overwrites and from there to the reader: to
//! the same place, with no anti-dependency either. From the reader, the first changer after the member is
//! one anti-dependency away, and overwrites lead from it to all later ones: to the same places, with
//! one anti-dependency as well, and with overwrites behind it, so that no two anti-dependencies are
//! adjacent that were not before. So whatever a level forbids, it finds a cycle of the few edges where
//! there is one of the many. If the reader itself wrote the changer, overwrites lead to it, or from it,
//! in place of the edge.
//!
//! And of these few, only those are looked for that contradict an order at hand: one in which all other
//! edges lead forward. Along that order the versions of an object are in their order as well, so
//! only those versions can contradict that come after the reader and up to the member, or before
//! the reader and after the member. As a rule there are none, or few, however long the row's history
//! is. Where none contradicts, the order is an answer; else these edges are added, and another order is
//! tried.

use std::ops::Range;

use isolario_model::{Inapplicable, OpId, TxnId};
use isolario_predicate::EvalError;
use rayon::prelude::*;

use super::asked::Asked;
use super::chains::Version;
use super::items::ItemRead;
use super::levels::Open;
use super::results::is_among;
use super::{Certificate, Objects};

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
    /// Whether the version came after what the operation met.
    pub(super) is_anti: bool,
}

/// The dependencies that are looked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'q> {
    pub(super) objects: Objects,
    pub(super) open: Open<'q>,
    /// Whether anti-dependencies of predicates are among them.
    pub(super) predicate_anti: bool,
    /// Whether anti-dependencies of reads by key are.
    pub(super) item_anti: bool,
}

/// Where transactions are in an order that is tried.
pub(super) struct Placed {
    /// Per transaction, when it reads.
    pub(super) reads: Vec<u32>,
    /// Per version, when it appears.
    appears: Vec<u32>,
    /// Per version, when the last one of its row up to it appears, and when the first one from it on does.
    /// Only where rows are inserted anew.
    last_up_to: Vec<u32>,
    first_from: Vec<u32>,
}

impl Placed {
    /// `writes` is, per transaction, when what it wrote appears.
    pub(super) fn new(certificate: &Certificate<'_>, reads: Vec<u32>, writes: &[u32]) -> Placed {
        let chains = &certificate.chains;
        let appears = |version| match chains.writer(version) {
            TxnId::INIT => 0,
            writer => writes[writer.index()] + 1,
        };
        let reads = reads.into_iter().map(|place| place + 1).collect();
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
        Placed { reads, appears, last_up_to, first_from }
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
        placed: &Placed,
        wanted: Wanted<'_>,
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let now = |txn: TxnId| placed.reads[txn.index()];
        self.nearest(placed, wanted, |txn| Some((now(txn), now(txn))))
    }

    /// The read dependencies of some transactions on what appears after a moment: `since` tells it, and none
    /// for the others.
    pub(super) fn reads_since(
        &self,
        placed: &Placed,
        (objects, open): (Objects, Open<'_>),
        since: impl Fn(TxnId) -> Option<u32> + Sync,
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let wanted = Wanted { objects, open, predicate_anti: false, item_anti: false };
        self.nearest(placed, wanted, |txn| Some((since(txn)?, 0)))
    }

    /// The dependencies of the nearest changers: of those transactions that `window` gives moments for,
    /// reads of what appears after the first one, and anti-dependencies on what appears before the
    /// second.
    pub(super) fn nearest(
        &self,
        placed: &Placed,
        wanted: Wanted<'_>,
        window: impl Fn(TxnId) -> Option<(u32, u32)> + Sync,
    ) -> Result<Vec<PredicateEdge>, Inapplicable> {
        let of_asked = |asked: &Asked| {
            let mut found = Vec::new();
            if let Some((since, until)) = window(asked.txn) {
                let until = wanted.predicate_anti.then_some(until);
                self.nearest_of(asked, placed, wanted.objects, (since, until), &mut found)
                    .map_err(|_| Inapplicable::Predicate { op: asked.op })?;
            }
            Ok(found)
        };
        let found: Result<Vec<_>, Inapplicable> = self.asked.par_iter().map(of_asked).collect();
        let mut found = found?.concat();
        if wanted.objects == Objects::Incarnations && self.chains.any_incarnations() {
            for read in self.reads(wanted.open) {
                if let Some((since, until)) = window(read.txn) {
                    let until = wanted.item_anti.then_some(until);
                    self.nearest_of_key(read, placed, (since, until), &mut found);
                }
            }
        }
        Ok(found)
    }

    /// The same of a read by key: a search for the row of that key, which is there or not. Overwrites lead from
    /// one change to the next one of the same incarnation, so one change of each is enough.
    fn nearest_of_key(
        &self,
        read: &ItemRead,
        placed: &Placed,
        (since, until): (u32, Option<u32>),
        found: &mut Vec<PredicateEdge>,
    ) {
        let key = self.chains.written(read.version).key;
        let is_search = self.history.op_predicate(read.op).is_none();
        if !is_search || !self.chains.has_incarnations(key) {
            return;
        }
        let appears = |version: &Version| placed.appears[*version as usize];
        let versions = self.chains.of(key);
        let is_change = |version: &Version| self.chains.changes_presence(*version);
        let mut note = |version: Version, is_anti: bool| {
            let writer = self.chains.writer(version);
            if writer != read.txn {
                let (from, to) = if is_anti { (read.txn, writer) } else { (writer, read.txn) };
                let returned = Some(read.version);
                found.push(PredicateEdge { from, to, op: read.op, version, returned, is_anti });
            }
        };
        let (up_to, after) = (versions.start + 1..read.version + 1, read.version + 1..versions.end);
        // As a rule, what appeared is what was read.
        if placed.last_up_to[read.version as usize] > since {
            let late = up_to.filter(|version| appears(version) > since).filter(is_change);
            late.for_each(|version| note(version, false));
        }
        let is_early =
            |until: &u32| !after.is_empty() && placed.first_from[after.start as usize] < *until;
        if let Some(until) = until.filter(is_early) {
            let early = after.filter(|version| appears(version) < until).filter(is_change);
            early.for_each(|version| note(version, true));
        }
    }

    fn nearest_of(
        &self,
        asked: &Asked,
        placed: &Placed,
        objects: Objects,
        (since, until): (u32, Option<u32>),
        found: &mut Vec<PredicateEdge>,
    ) -> Result<(), EvalError> {
        let own = self.written_before(asked.txn, asked.op);
        for key in self.matches.rows(asked.predicate) {
            if is_among(&own, *key) {
                continue;
            }
            let met = self.met(asked, *key);
            let versions = self.chains.of(*key);
            let apart = objects == Objects::Incarnations && self.chains.has_incarnations(*key);
            // The stretches of versions that overwrites connect: mostly all of them.
            let mut begin = versions.start;
            while begin < versions.end {
                let mut end = versions.end;
                if apart {
                    let next = (begin + 1..end).find(|version| self.chains.begins(*version));
                    end = next.unwrap_or(end);
                }
                let last = self.last_changer(asked, begin..end.min(met + 1), since, placed)?;
                self.note(asked, last, false, found);
                if let Some(until) = until {
                    let first =
                        self.first_changer(asked, begin.max(met + 1)..end, until, placed)?;
                    self.note(asked, first, true, found);
                }
                begin = end;
            }
        }
        Ok(())
    }

    /// The last changer among versions, if it appears after a moment.
    #[inline]
    fn last_changer(
        &self,
        asked: &Asked,
        versions: Range<Version>,
        since: u32,
        placed: &Placed,
    ) -> Result<Option<Version>, EvalError> {
        let late = versions.rev().take_while(|v| placed.appears[*v as usize] > since);
        for version in late {
            if self.is_changer(asked.predicate, version)? {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// The first changer among versions, if it appears before a moment.
    #[inline]
    fn first_changer(
        &self,
        asked: &Asked,
        versions: Range<Version>,
        until: u32,
        placed: &Placed,
    ) -> Result<Option<Version>, EvalError> {
        let mut early = versions.take_while(|v| placed.appears[*v as usize] < until);
        loop {
            match early.next() {
                None => return Ok(None),
                Some(version) if self.is_changer(asked.predicate, version)? => {
                    return Ok(Some(version));
                }
                Some(_) => {}
            }
        }
    }

    fn note(
        &self,
        asked: &Asked,
        changer: Option<Version>,
        is_anti: bool,
        found: &mut Vec<PredicateEdge>,
    ) {
        let Some(version) = changer else { return };
        let writer = self.chains.writer(version);
        if writer == asked.txn || writer.is_init() {
            return;
        }
        let (from, to) = if is_anti { (asked.txn, writer) } else { (writer, asked.txn) };
        let returned = None;
        found.push(PredicateEdge { from, to, op: asked.op, version, returned, is_anti });
    }
}
