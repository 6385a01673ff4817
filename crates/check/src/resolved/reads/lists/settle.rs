//! Puts the list reads of those transactions together that count.

use isolario_model::{Anomaly, AnomalyKind, Evidence, History, KeyId, OpId, TxnId, ValueId};
use rayon::prelude::*;

use super::appends::{Access, Appends};
use super::{ListReads, Part, Seen, elements};
use crate::resolved::{KnownBy, VersionEdge};

/// What the list reads of kept transactions add up to.
#[derive(Default)]
pub(in crate::resolved::reads) struct Settled {
    /// What the wrong ones saw last, where a kept transaction or `init` wrote it.
    pub(in crate::resolved::reads) wrong_but_seen: Vec<(OpId, TxnId)>,
    /// By operation; after the wrong reads those that are incompatible with others.
    pub(in crate::resolved::reads) anomalies: Vec<Anomaly>,
    /// By key.
    pub(in crate::resolved::reads) edges: Vec<VersionEdge>,
}

impl ListReads {
    /// Leaves out the reads of transactions that do not count, and puts the others together. What those
    /// appended that only `maybe` committed comes after all that was read, if they did.
    pub(in crate::resolved::reads) fn settle(
        &self,
        history: &History,
        kept: &[bool],
        maybe: &[TxnId],
    ) -> Settled {
        let settle = |part: &Part| {
            let mut settling = Settling { history, kept, maybe, part: SettledPart::default() };
            settling.settle(self, part);
            settling.part
        };
        let parts: Vec<SettledPart> = self.parts.par_iter().map(settle).collect();
        let mut settled = Settled::default();
        let (mut wrong, mut incompatible) = (Vec::new(), Vec::new());
        settled.edges.reserve(parts.iter().map(|part| part.edges.len()).sum());
        for part in parts {
            settled.edges.extend(part.edges);
            settled.wrong_but_seen.extend(part.wrong_but_seen);
            wrong.extend(part.wrong);
            incompatible.extend(part.incompatible);
        }
        wrong.sort_by_key(|(read, _)| *read);
        incompatible.sort_by_key(|(read, _)| *read);
        settled.anomalies.extend(wrong.into_iter().chain(incompatible).map(|(_, anomaly)| anomaly));
        settled
    }
}

#[derive(Default)]
struct SettledPart {
    wrong_but_seen: Vec<(OpId, TxnId)>,
    wrong: Vec<(OpId, Anomaly)>,
    incompatible: Vec<(OpId, Anomaly)>,
    edges: Vec<VersionEdge>,
}

/// A right read, without the reader's own appends at its end.
#[derive(Clone, Copy)]
struct Right<'h> {
    access: Access,
    foreign: &'h [ValueId],
    is_prefix: bool,
    last_writer: TxnId,
}

struct Settling<'a> {
    history: &'a History,
    kept: &'a [bool],
    /// Sorted.
    maybe: &'a [TxnId],
    part: SettledPart,
}

impl<'a> Settling<'a> {
    fn is_kept(&self, txn: TxnId) -> bool {
        txn.is_init() || self.kept[txn.index()]
    }

    fn settle(&mut self, lists: &'a ListReads, found: &Part) {
        let (mut seen, mut wrong, mut writers) =
            (&found.seen[..], found.wrong.iter(), &found.writers[..]);
        let mut appends = Appends::new(self.history);
        for key in found.keys.clone() {
            let reads = lists.accesses.reads.get(key);
            let (of_key, rest) = seen.split_at(reads.len());
            seen = rest;
            let (pooled, rest) = writers.split_at(self.history.list_pool(KeyId::at(key)).len());
            writers = rest;
            for (read, seen) in reads.iter().zip(of_key).filter(|(_, seen)| !seen.is_right) {
                if let Some(Some(anomaly)) = wrong.next() {
                    self.wrong(*read, *seen, anomaly);
                }
            }
            let Some(longest) = self.longest(reads, of_key) else { continue };
            self.compare(reads, of_key, &longest);
            let all = lists.accesses.appends.get(key);
            let shown: Vec<TxnId> = if longest.is_prefix {
                pooled[..longest.foreign.len()].iter().copied().flatten().collect()
            } else {
                appends.turn_to(all);
                longest.foreign.iter().filter_map(|e| appends.writer(e.to_bits())).collect()
            };
            self.order(KeyId::at(key), &longest, shown, all);
        }
        let counts = |(read, _): &&(Access, Anomaly)| self.is_kept(read.txn);
        let dirty_updates = found.dirty_updates.iter().filter(counts);
        let dirty_updates: Vec<_> = dirty_updates.map(|(read, a)| (read.op, a.clone())).collect();
        self.part.wrong.extend(dirty_updates);
    }

    fn wrong(&mut self, read: Access, seen: Seen, anomaly: &Anomaly) {
        if self.is_kept(read.txn) {
            self.part.wrong.push((read.op, anomaly.clone()));
            let writer = seen.last_writer.filter(|writer| self.is_kept(*writer));
            self.part.wrong_but_seen.extend(writer.map(|writer| (read.op, writer)));
        }
    }

    fn right(&self, read: Access, seen: Seen) -> Option<Right<'a>> {
        let counts = seen.is_right && self.is_kept(read.txn);
        let last_writer = seen.last_writer.filter(|writer| counts && self.is_kept(*writer))?;
        let (elements, is_prefix) = elements(self.history, read);
        let foreign = &elements[..seen.foreign as usize];
        Some(Right { access: read, foreign, is_prefix, last_writer })
    }

    /// The read that shows most, the first of several.
    fn longest(&self, reads: &[Access], seen: &[Seen]) -> Option<Right<'a>> {
        let mut longest: Option<(Access, Seen)> = None;
        for (read, seen) in reads.iter().zip(seen) {
            if longest.is_none_or(|(_, most)| seen.foreign > most.foreign)
                && self.right(*read, *seen).is_some()
            {
                longest = Some((*read, *seen));
            }
        }
        longest.and_then(|(read, seen)| self.right(read, seen))
    }

    /// Whether all reads show the beginning of what the longest one does.
    fn compare(&mut self, reads: &[Access], seen: &[Seen], longest: &Right<'_>) {
        for (read, seen) in reads.iter().zip(seen) {
            let Some(right) = self.right(*read, *seen) else { continue };
            let share_a_list = right.is_prefix && longest.is_prefix;
            if !share_a_list && !longest.foreign.starts_with(right.foreign) {
                let key = self.history.op_keys()[read.op.index()];
                let (one, other) = (read.op, longest.access.op);
                let (first, second) = (one.min(other), one.max(other));
                let evidence = Evidence::Reads { key, first, second, edges: Vec::new() };
                let anomaly = Anomaly::new(AnomalyKind::IncompatibleOrder, evidence);
                self.part.incompatible.push((read.op, anomaly));
            }
        }
    }

    /// The order of writers that the longest read shows, and that whoever appended to the list and
    /// is not shown came after the last one that is. What shorter reads do not show follows from
    /// that and from the order of elements.
    fn order(
        &mut self,
        key: KeyId,
        longest: &Right<'_>,
        mut shown: Vec<TxnId>,
        appends: &[Access],
    ) {
        let (read, before) = (longest.access.op, longest.last_writer);
        let pairs = shown.windows(2).filter(|pair| pair[0] != pair[1]);
        let known = KnownBy::List { read };
        let edge = |pair: &[TxnId]| VersionEdge { before: pair[0], after: pair[1], key, known };
        self.part.edges.extend(pairs.map(edge));
        if before.is_init() {
            return;
        }
        // The reader's own appends come after what it read.
        shown.push(longest.access.txn);
        shown.sort_unstable();
        let known = KnownBy::NotShown { read };
        let mut last = None;
        for after in appends.iter().map(|append| append.txn) {
            if last.replace(after) != Some(after)
                && (self.kept[after.index()] || self.maybe.binary_search(&after).is_ok())
                && shown.binary_search(&after).is_err()
            {
                self.part.edges.push(VersionEdge { before, after, key, known });
            }
        }
    }
}
