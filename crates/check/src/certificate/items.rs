//! Reads and writes of single rows, by the versions of the certificate.

use isolario_model::{History, Inapplicable, ItemView, KeyId, Op, OpId, OpKind, TxnId, ValueRef};

use super::chains::{LastWrite, Version};
use super::levels::{Open, Question};
use super::results::written;
use super::{Certificate, Objects};
use crate::graph::places;
use crate::resolved::{Source, writes};

/// A read of a version that another transaction wrote, or of an initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemRead {
    pub(super) txn: TxnId,
    /// The operation: a read by key, or one of a predicate that returned the row or took a
    /// function over it.
    pub(super) op: OpId,
    pub(super) version: Version,
}

/// The last writes of each row by the transactions that count, by transaction.
pub(super) fn last_writes(
    original: &History,
    view: &ItemView,
    is_kept: impl Fn(TxnId) -> bool,
) -> Vec<LastWrite> {
    let history = view.history();
    let is_insert = |write: OpId, key: KeyId| {
        original.op_predicate(write).is_none()
            && written(original, write, key).is_some_and(|(value, _)| value != ValueRef::Nil)
    };
    let nil = history.find_value(ValueRef::Nil);
    let mut found: Vec<LastWrite> = Vec::new();
    let mut of_txn: Vec<(KeyId, OpId)> = Vec::new();
    for txn in history.txns().filter(|txn| is_kept(*txn)) {
        of_txn.clear();
        for item in history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()])) {
            of_txn.push((history.op_keys()[item.index()], item));
        }
        of_txn.sort_unstable();
        for of_key in of_txn.chunk_by(|a, b| a.0 == b.0) {
            let (Some((key, first)), Some((_, item))) = (of_key.first(), of_key.last()) else {
                continue;
            };
            let (key, first, item) = (*key, *first, *item);
            let value = match history.op(item) {
                Op::Write { value, .. } => Some(value),
                _ => nil,
            };
            let Some(value) = value else { continue };
            let (write, word) = (view.origin(item), history.encoded_version(item));
            let is_insert = is_insert(view.origin(first), key);
            found.push(LastWrite { key, txn, write, value, word, is_insert });
        }
    }
    found
}

impl Certificate<'_> {
    /// All reads of versions: those that are certain, and those that may have been of any of several
    /// equal versions.
    pub(super) fn item_reads(&self) -> (Vec<ItemRead>, Vec<ItemRead>) {
        let view = self.view.history();
        let places = places(&self.guess.commits);
        let is_open = self.reads.choices.refusal.is_some();
        let mut asked = self.asked.iter().zip(&self.compared).peekable();
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
            while let Some((asked, compared)) = asked.next_if(|(asked, _)| asked.txn == txn) {
                let read = |version: &Version| ItemRead { txn, op: asked.op, version: *version };
                certain.extend(compared.reads.iter().map(read));
            }
        }
        (certain, open)
    }

    /// The version that a read saw which its value alone does not tell, where what the operation met
    /// does, or where it is of another incarnation than what its transaction itself wrote.
    pub(super) fn settled_read(&self, item: OpId, op: OpId) -> Option<Version> {
        let word = self.view.history().encoded_version(item);
        let key = self.key_of(item);
        let at = self.asked.binary_search_by_key(&op, |asked| asked.op).ok();
        let met = at.map(|at| self.met(&self.asked[at], key));
        met.filter(|version| self.chains.shows(*version, word))
    }

    /// The versions that a read by key may have seen of the row that its transaction saw beside its own, once
    /// that was gone.
    pub(super) fn formers(&self, item: OpId, op: OpId) -> impl Iterator<Item = Version> {
        let (key, txn) = (self.key_of(item), self.history.op_txn(op));
        let word = self.view.history().encoded_version(item);
        let may_be_another = || {
            let mut own = self.written_before(txn, op).into_iter();
            let is_gone = |(_, write)| self.own_value(write, key) == ValueRef::Nil;
            own.find(|(written, _)| *written == key).is_some_and(is_gone)
                && self.history.may_see_former_row(op, key)
        };
        let is_by_key = self.history.op_predicate(op).is_none();
        let own = self.chains.version(key, txn).filter(|_| is_by_key && may_be_another());
        let formers = own.map(|own| {
            let is_cut = move |version: &Version| self.chains.is_cut(*version, own);
            self.chains.of(key).filter(move |v| self.chains.shows(*v, word)).filter(is_cut)
        });
        formers.into_iter().flatten()
    }

    /// Of the versions that a read may have seen, the last one before it: by the database's own
    /// timestamps of the snapshot and of commits where there are any, else in the guess at the order of
    /// commits.
    fn likely(&self, item: OpId, txn: TxnId, places: &[u32]) -> Option<Version> {
        let word = self.view.history().encoded_version(item);
        let shown = |version: &Version| self.chains.shows(*version, word);
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

    /// Why a level is not decided where some reads are open.
    pub(super) fn ambiguity(&self) -> Inapplicable {
        match &self.reads.choices.refusal {
            Some(Inapplicable::AmbiguousRead { read, first, second, total }) => {
                Inapplicable::AmbiguousRead {
                    read: self.view.origin(*read),
                    first: first.map(|first| self.view.origin(first)),
                    second: self.view.origin(*second),
                    total: *total,
                }
            }
            Some(other) => other.clone(),
            None => Inapplicable::NoVersionOrder,
        }
    }

    /// All reads that count: by transaction, first the certain ones.
    pub(super) fn reads<'c>(&'c self, open: Open<'c>) -> impl Iterator<Item = &'c ItemRead> {
        self.items.iter().chain(self.open(open))
    }

    /// What open reads are taken to have seen.
    pub(super) fn open<'c>(&'c self, open: Open<'c>) -> &'c [ItemRead] {
        match open {
            Open::None => &[],
            Open::Likely => &self.open,
            Open::Chosen(chosen) => chosen,
        }
    }

    /// The dependencies between transactions without predicates: session order, overwrites and, if
    /// asked for, reads.
    pub(super) fn item_dependencies(
        &self,
        question: Question<'_>,
        with_reads: bool,
    ) -> Vec<(TxnId, TxnId)> {
        let Question { objects, sessions, open, .. } = question;
        let dependencies = self.dependencies();
        let kept = self.history.txns().filter(|txn| sessions && self.is_kept(*txn));
        let session = kept.filter_map(|txn| Some((dependencies.session_predecessor(txn)?, txn)));
        let mut edges: Vec<(TxnId, TxnId)> = session.collect();
        for version in 1..self.chains.len() {
            let (before, after) = (self.chains.writer(version - 1), self.chains.writer(version));
            let one = objects == Objects::Rows || !self.chains.begins(version);
            if !before.is_init() && !after.is_init() && one {
                edges.push((before, after));
            }
        }
        if with_reads {
            let reads = self.reads(open);
            let reads = reads.map(|read| (self.chains.writer(read.version), read.txn));
            edges.extend(reads.filter(|(writer, reader)| !writer.is_init() && writer != reader));
        }
        edges
    }

    /// The item anti-dependencies: who read a version before who wrote the next one.
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
    /// One who read that a row is not there, by its key, anti-depends on whoever inserts it next, though
    /// that is a new incarnation: the read was of both.
    pub(super) fn next(&self, version: Version) -> Option<Version> {
        let next = version + 1;
        (next < self.chains.len() && !self.chains.writer(next).is_init()).then_some(next)
    }
}
