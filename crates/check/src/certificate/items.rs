//! Reads and writes of single rows, by the versions of the certificate.

use isolario_model::{OpId, OpKind, TxnId, ValueRef};

use super::chains::Version;
use super::levels::{Counted, LevelQuestion, Open};
use super::{Certificate, Objects};
use crate::graph::places;
use crate::resolved::Source;
use crate::rows::OwnWrites;

/// A read of a version that another transaction wrote, or of an initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemRead {
    pub(super) txn: TxnId,
    /// The operation: a read by key, or one of a predicate that returned the row or took a
    /// function over it.
    pub(super) op: OpId,
    pub(super) version: Version,
}

impl Certificate<'_> {
    /// All reads of versions: those that are certain, and those that may have been of any of several
    /// equal versions.
    pub(super) fn item_reads(&self) -> (Vec<ItemRead>, Vec<ItemRead>) {
        let view = self.view.history();
        let places = places(&self.guess.commits);
        let is_open = self.reads.choices.refusal.is_some();
        let mut stated = self.stated.iter().zip(&self.compared).peekable();
        let (mut certain, mut open) = (Vec::new(), Vec::new());
        for txn in view.txns().filter(|txn| self.is_kept(*txn)) {
            for item in view.txn_ops(txn) {
                let op = self.view.origin(item);
                let read = |version| ItemRead { txn, op, version };
                match self.reads.source(item) {
                    Source::Txn(writer) => {
                        let key = view.op_keys()[item.index()];
                        certain.extend(self.chains.version(key, writer).map(read));
                    }
                    Source::Aside if view.op_kinds()[item.index()] == OpKind::Read => {
                        let formers: Vec<Version> = self.formers(item, op).collect();
                        let settled = match formers[..] {
                            [only] => Some(only),
                            _ => self.settled_read(item, op),
                        };
                        certain.extend(settled.map(read));
                        if let (None, [.., last]) = (settled, &formers[..]) {
                            open.push(read(*last));
                        } else if settled.is_none() && is_open {
                            open.extend(self.likely(item, txn, &places).map(read));
                        }
                    }
                    _ => {}
                }
            }
            while let Some((stated, compared)) = stated.next_if(|(stated, _)| stated.txn == txn) {
                let read = |version: &Version| ItemRead { txn, op: stated.op, version: *version };
                certain.extend(compared.reads.iter().map(read));
            }
        }
        (certain, open)
    }

    /// The version that a read returned if its value alone does not say, but the version set of its operation
    /// does.
    pub(super) fn settled_read(&self, item: OpId, op: OpId) -> Option<Version> {
        let encoded = self.view.history().encoded_version(item);
        let at = self.stated.binary_search_by_key(&op, |stated| stated.op).ok()?;
        let version = self.observed(&self.stated[at], self.key_of(item));
        Some(version).filter(|version| self.chains.shows(*version, encoded))
    }

    /// The versions that a read by key may have returned of the former row that its transaction saw alongside
    /// its own, once its own was deleted.
    pub(super) fn formers(&self, item: OpId, op: OpId) -> impl Iterator<Item = Version> {
        let (key, txn) = (self.key_of(item), self.history.op_txn(op));
        let encoded = self.view.history().encoded_version(item);
        let may_be_former = || {
            let own = OwnWrites::before(self.history, txn, op);
            own.of(key).is_some_and(|row| self.history.value(row.value) == ValueRef::Nil)
                && self.history.may_see_former_row(op, key)
        };
        let is_by_key = self.history.op_predicate(op).is_none();
        let own = self.chains.version(key, txn).filter(|_| is_by_key && may_be_former());
        let formers = own.map(|own| {
            let is_cut = move |version: &Version| self.chains.is_cut(*version, own);
            self.chains.of(key).filter(move |v| self.chains.shows(*v, encoded)).filter(is_cut)
        });
        formers.into_iter().flatten()
    }

    /// Of the versions that a read may have seen, the last one before it: by the database's own
    /// timestamps of the snapshot and of commits where there are any, else in the guess at the order of
    /// commits.
    fn likely(&self, item: OpId, txn: TxnId, places: &[u32]) -> Option<Version> {
        let encoded = self.view.history().encoded_version(item);
        let shown = |version: &Version| self.chains.shows(*version, encoded);
        let candidates = self.chains.of(self.key_of(item)).filter(shown);
        let seen = self.history.db_start(txn).or(self.history.db_commit(txn));
        let is_before = |version: &Version| match self.chains.writer(*version) {
            TxnId::INIT => true,
            writer => match (self.history.db_commit(writer), seen) {
                (Some(commit), Some(seen)) => commit <= seen,
                _ => places[writer.index()] < places[txn.index()],
            },
        };
        let mut candidates = candidates.filter(|version| self.chains.writer(*version) != txn);
        let first = candidates.clone().next();
        candidates.rfind(is_before).or(first)
    }

    /// All reads that count: by transaction, first the certain ones.
    pub(super) fn reads<'c>(&'c self, open: Open<'c>) -> impl Iterator<Item = &'c ItemRead> {
        self.items.iter().chain(self.open(open))
    }

    /// The reads that open reads are supposed to be.
    pub(super) fn open<'c>(&'c self, open: Open<'c>) -> &'c [ItemRead] {
        match open {
            Open::None => &[],
            Open::Likely => &self.open,
            Open::Chosen(chosen) => chosen,
        }
    }

    /// The dependencies between transactions without predicates: session order, overwrites and, if
    /// they count, reads.
    pub(super) fn item_dependencies(&self, question: LevelQuestion<'_>) -> Vec<(TxnId, TxnId)> {
        let objects = question.objects();
        let dependencies = self.dependencies();
        let kept = self.history.txns().filter(|txn| question.sessions && self.is_kept(*txn));
        let session = kept.filter_map(|txn| Some((dependencies.session_predecessor(txn)?, txn)));
        let mut edges: Vec<(TxnId, TxnId)> = session.collect();
        for version in 1..self.chains.len() {
            let (before, after) = (self.chains.writer(version - 1), self.chains.writer(version));
            let is_one = objects == Objects::Rows || !self.chains.begins(version);
            if !before.is_init() && !after.is_init() && is_one {
                edges.push((before, after));
            }
        }
        if question.counted >= Counted::Reads {
            let reads = self.reads(question.open);
            let reads = reads.map(|read| (self.chains.writer(read.version), read.txn));
            edges.extend(reads.filter(|(writer, reader)| !writer.is_init() && writer != reader));
        }
        edges
    }

    /// The item anti-dependencies: from each reader of a version to the writer of the next one.
    pub(super) fn item_anti_dependencies<'c>(
        &'c self,
        open: Open<'c>,
    ) -> impl Iterator<Item = (TxnId, TxnId)> + 'c {
        let missed = self.reads(open).filter_map(|read| {
            let next = self.next(read.version)?;
            Some((read.txn, self.chains.writer(next)))
        });
        missed.filter(|(reader, writer)| reader != writer)
    }

    /// The next version of the row.
    ///
    /// A read by key that found the row absent anti-depends on the insert that comes next, though that is a new
    /// incarnation: the read was of both.
    pub(super) fn next(&self, version: Version) -> Option<Version> {
        let next = version + 1;
        (next < self.chains.len() && !self.chains.writer(next).is_init()).then_some(next)
    }
}
