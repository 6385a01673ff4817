//! Resolves every read to the write it saw, and reports the reads that are wrong whatever the
//! order of transactions.
//!
//! Reads and writes are joined on key and version. Where values number the writes, as they do in
//! most histories, the value of a read leads straight to its write (`direct`). Else the join is
//! partitioned by key, so that the table of a partition stays in the cache however long the
//! history is (`hashed`).

mod classify;
mod direct;
mod hashed;
mod join;
pub(crate) mod lists;
mod own;
mod record;

use std::ops::Range;
use std::sync::OnceLock;

use isolario_model::{Anomaly, History, OpId, Outcome, TxnId};
use rayon::slice::ParallelSliceMut;

use super::{Choices, MetRows, VersionEdge};
use join::Joined;

pub(crate) use classify::write_seen;
pub(crate) use lists::same_append;

/// Where a read got its value from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// From another transaction, or from `init`.
    Txn(TxnId),
    /// From the reading transaction's own last write.
    Own,
    /// From nowhere that counts: not a read, unobserved, wrong, or ambiguous.
    Aside,
}

/// The column word of [`Source::Own`]; transactions are numbered below it.
const OWN: u32 = u32::MAX - 1;
/// The column word of [`Source::Aside`].
const ASIDE: u32 = u32::MAX - 2;

/// The reads of a history, resolved.
pub(crate) struct Reads {
    /// Per operation, the word of its [`Source`].
    sources: Vec<u32>,
    /// Per transaction, whether it takes part in the order: committed, or of unknown outcome and
    /// observed.
    kept: Vec<bool>,
    /// The wrong reads of kept transactions, by operation.
    pub(crate) anomalies: Vec<Anomaly>,
    /// Ambiguous reads that their own session explains alone, and only later: wrong where session
    /// order counts.
    pub(crate) from_later: Vec<Anomaly>,
    /// Of the wrong reads, those that saw a write of a kept transaction or of `init`: (read,
    /// writer), by operation.
    wrong_but_seen: Vec<(OpId, TxnId)>,
    /// What is known of the order of versions beyond reads, at every level that orders anything. It
    /// orders writers, but makes none of them visible. In no particular order.
    pub(crate) version_order: Vec<VersionEdge>,
    /// The same edges by writers, for explanations.
    by_writers: OnceLock<Vec<u32>>,
    /// What the reads leave open.
    pub(crate) choices: Choices,
}

impl Reads {
    /// Resolves all reads of registers and lists.
    #[cfg(test)]
    pub(crate) fn resolve(history: &History) -> Reads {
        Reads::resolve_and_keep(history, &[], &[])
    }

    /// Resolves all reads of registers and lists, and those of rows that were matched in an unknown version.
    /// Some transactions of unknown outcome may be known to have committed from elsewhere.
    pub(crate) fn resolve_and_keep(history: &History, committed: &[TxnId], met: &MetRows) -> Reads {
        let Joined { sources, suspects, mut ambiguous, mut unknown_reads } = join::join(history);
        let (lists, mut sources) = lists::resolve(history, sources);
        unknown_reads.extend(lists.unknown_reads());
        unknown_reads.extend(met_alone(history, met));
        unknown_reads.sort_unstable();
        let kept = kept(history, &unknown_reads, committed);
        let (mut anomalies, mut wrong_but_seen) =
            classify::classify(history, &kept, &suspects, &mut sources);
        ambiguous.extend(lists.ambiguous());
        ambiguous.sort_unstable_by_key(|a| a.read);
        ambiguous.retain(|a| kept[history.op_txn(a.read).index()]);
        let wrong_anyhow = classify::wrong_anyhow(history, &mut ambiguous);
        anomalies.extend(wrong_anyhow.anomalies);
        anomalies.extend(classify::two_initial_values(history, &kept, &sources));
        let choices = Choices::new(history, &kept, &ambiguous, &wrong_anyhow.repeated, met);
        let maybe = choices.open.as_ref().map_or(&[][..], |open| &open.maybe);
        let settled = lists.settle(history, &kept, maybe);
        anomalies.extend(settled.anomalies);
        wrong_but_seen.extend(settled.wrong_but_seen);
        wrong_but_seen.sort_unstable();
        let version_order = settled.edges;
        let from_later = wrong_anyhow.from_later;
        Reads {
            sources,
            kept,
            anomalies,
            from_later,
            wrong_but_seen,
            version_order,
            by_writers: OnceLock::new(),
            choices,
        }
    }

    /// The same reads with nothing left open: these saw the writes of these transactions, and of those
    /// whose outcome nobody knows, these committed, too.
    pub(crate) fn choosing(&self, saw: &[(OpId, TxnId)], there: &[TxnId]) -> Reads {
        let (mut sources, mut kept) = (self.sources.clone(), self.kept.clone());
        saw.iter().for_each(|(read, writer)| sources[read.index()] = writer.0);
        there.iter().for_each(|txn| kept[txn.index()] = true);
        Reads {
            sources,
            kept,
            anomalies: self.anomalies.clone(),
            from_later: Vec::new(),
            wrong_but_seen: self.wrong_but_seen.clone(),
            version_order: self.version_order.clone(),
            by_writers: OnceLock::new(),
            choices: Choices::none(),
        }
    }

    /// Where an operation of a kept transaction read from.
    #[inline]
    pub(crate) fn source(&self, op: OpId) -> Source {
        match self.sources[op.index()] {
            OWN => Source::Own,
            ASIDE => Source::Aside,
            txn => Source::Txn(TxnId(txn)),
        }
    }

    /// Calls `each` with those of some operations of a kept transaction that read from others, and
    /// with whom they read from.
    ///
    /// Reads and writes come in no order that a processor could guess: what is to be told is first marked
    /// by bits, without a branch, and then only the end of these has to be guessed.
    #[inline]
    pub(crate) fn for_each_writer(&self, ops: Range<usize>, mut each: impl FnMut(usize, TxnId)) {
        const BITS: usize = u64::BITS as usize;
        for (first, sources) in ops.clone().step_by(BITS).zip(self.sources[ops].chunks(BITS)) {
            let is_told = |source: u32| (source != ASIDE) & (source != OWN);
            let bits = sources.iter().enumerate();
            let mut told =
                bits.fold(0u64, |told, (at, source)| told | u64::from(is_told(*source)) << at);
            while told != 0 {
                let at = told.trailing_zeros() as usize;
                each(first + at, TxnId(sources[at]));
                told &= told - 1;
            }
        }
    }

    /// Whose write an operation saw, wrong reads included; none for own writes and for what no
    /// kept transaction wrote.
    pub(crate) fn foreign_writer(&self, op: OpId) -> Option<TxnId> {
        match self.source(op) {
            Source::Txn(writer) => Some(writer),
            Source::Own => None,
            Source::Aside => {
                let at = self.wrong_but_seen.binary_search_by_key(&op, |(read, _)| *read).ok()?;
                Some(self.wrong_but_seen[at].1)
            }
        }
    }

    /// What is known beyond reads of the order of versions that two transactions wrote, by key.
    pub(crate) fn order_of(
        &self,
        before: TxnId,
        after: TxnId,
    ) -> impl Iterator<Item = &VersionEdge> {
        let edge = |at: &u32| &self.version_order[*at as usize];
        let writers = move |at: &u32| (edge(at).before, edge(at).after);
        let sorted = self.by_writers.get_or_init(|| {
            let mut edges: Vec<u32> = (0..self.version_order.len() as u32).collect();
            edges.par_sort_by_key(|at| (writers(at), edge(at).key));
            edges
        });
        let first = sorted.partition_point(|at| writers(at) < (before, after));
        let of_both = sorted[first..].iter().take_while(move |at| writers(at) == (before, after));
        of_both.map(edge)
    }

    /// Whether a transaction takes part in the order.
    #[inline]
    pub(crate) fn is_kept(&self, txn: TxnId) -> bool {
        self.kept[txn.index()]
    }
}

/// The rows that only one transaction, of unknown outcome, can have written as they were met.
fn met_alone(history: &History, met: &MetRows) -> impl Iterator<Item = (OpId, TxnId)> {
    met.iter().filter_map(|(read, writers)| match writers[..] {
        [only] if !only.is_init() && history.outcome(only) == Outcome::Unknown => {
            Some((*read, only))
        }
        _ => None,
    })
}

/// Which transactions take part in the order: committed ones, and those of unknown outcome that a
/// kept one read from, or that are known to have `committed` otherwise. Somebody saw their writes, so
/// they did commit. The others of unknown outcome
/// are dropped; no level needs them.
fn kept(history: &History, unknown_reads: &[(OpId, TxnId)], committed: &[TxnId]) -> Vec<bool> {
    let mut kept: Vec<bool> =
        history.txns().map(|txn| history.outcome(txn) == Outcome::Committed).collect();
    let by_reader: Vec<(TxnId, TxnId)> =
        unknown_reads.iter().map(|(read, writer)| (history.op_txn(*read), *writer)).collect();
    // The reads are in order of operation, so the readers are in order, too.
    let mut observed: Vec<TxnId> = by_reader
        .iter()
        .filter(|(reader, _)| history.outcome(*reader) == Outcome::Committed)
        .map(|(_, writer)| *writer)
        .chain(committed.iter().copied())
        .collect();
    while let Some(txn) = observed.pop() {
        if std::mem::replace(&mut kept[txn.index()], true) {
            continue;
        }
        let first = by_reader.partition_point(|(reader, _)| *reader < txn);
        let its_reads = by_reader[first..].iter().take_while(|(reader, _)| *reader == txn);
        observed.extend(its_reads.map(|(_, writer)| *writer));
    }
    kept
}
