//! Levels of histories in which reads may have seen the writes of several transactions.
//!
//! Whose write each of these reads saw is a [supposition](crate::suppose). As long as nothing excludes it, a read is
//! supposed to have seen what is most likely (`likely.rs`). `isolario verify` needs no more than the cycles that
//! exclude all suppositions to see that no case is left.
//!
//! This is for levels that take little time once every read is known. The search for an order makes the sources of
//! reads part of that search (see `strong::sources`). Where many suppositions turn out wrong, such a search may be
//! faster, since it goes on from where it was: so after some rounds it is asked whether it finds an order of
//! everything.

mod likely;

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolario_model::{
    Anomaly, Edge, Evidence, History, Level, OpId, ReadSource, Reason, TxnId, Witness,
};

use crate::CheckOptions;
use crate::graph::Rows;
use crate::plan::Conclusion;
use crate::resolved::{OpenReads, Resolved, Source};
use crate::suppose::{self, Excluded, Question, Round, Supposed};
use likely::Likely;

/// A conflict of more reads than this is checked once more.
const FEW: usize = 2;

/// The round before which a stronger level is tried.
const PATIENCE: u32 = 32;

/// How long that may take where time has no limit.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// A level, and how it is decided.
pub(crate) struct OpenLevel<'q, 'h> {
    pub(crate) level: Level,
    pub(crate) options: &'q CheckOptions,
    /// Decides it where nothing is open.
    pub(crate) check: &'q dyn Fn(&Arc<Resolved<'h>>) -> Conclusion,
    /// Finds within some time that a stronger level is satisfied.
    pub(crate) stronger: &'q dyn Fn(Duration) -> Option<Witness>,
}

impl<'h> OpenLevel<'_, 'h> {
    /// Decides the level.
    pub(crate) fn decide(&self, resolved: &Resolved<'h>, open: &OpenReads) -> Conclusion {
        let began = Instant::now();
        // Nowhere else may a transaction that reads a key again see another version of it.
        let separate = self.level == Level::ReadCommitted;
        let mut reads: Vec<Open> = Vec::with_capacity(open.reads.len());
        for (row, read) in (0..).zip(&open.reads) {
            let repeats = open.repeats.get(row).iter().filter(|_| separate);
            reads.extend([read].into_iter().chain(repeats).map(|read| Open { read: *read, row }));
        }
        reads.sort_unstable_by_key(|open| open.read);
        let is_over = || suppose::reached(self.options, began).is_some();
        let likely = Likely::new(resolved, open, &is_over);
        let first = |of: &Open| open.writers.get(of.row)[likely.first(of.row)];
        let writers = reads.iter().map(first).collect();
        let uncertain = |(number, of): (u32, &Open)| {
            let candidates = open.writers.get(of.row).iter();
            let numbers = candidates.filter_map(|writer| open.maybe.binary_search(writer).ok());
            numbers.map(move |txn| (txn as u32, number)).collect::<Vec<_>>()
        };
        let candidates_of = Rows::group(open.maybe.len(), (0..).zip(&reads).flat_map(uncertain));
        let (question, history) = (self, resolved.dependencies.history);
        suppose::decide(
            OpenReadsQuestion {
                question,
                history,
                resolved,
                open,
                began,
                reads,
                separate,
                writers,
                candidates_of,
                likely,
                round: 0,
            },
            self.options,
            began,
        )
    }
}

/// A read that may have seen several writes.
#[derive(Clone, Copy)]
struct Open {
    read: OpId,
    /// Which of the open reads of the history it is, or repeats.
    row: usize,
}

/// A level of a history with open reads. Points are reads, by number.
struct OpenReadsQuestion<'q, 'h> {
    question: &'q OpenLevel<'q, 'h>,
    history: &'h History,
    resolved: &'q Resolved<'h>,
    open: &'q OpenReads,
    began: Instant,
    /// By operation.
    reads: Vec<Open>,
    /// Whether repeated reads are among them: they may see another write of the value the second time.
    separate: bool,
    /// By read, the transaction whose write it is supposed to have seen.
    writers: Vec<TxnId>,
    /// By transaction of unknown outcome, the reads that may have seen a write of it.
    candidates_of: Rows<u32>,
    likely: Likely,
    round: u32,
}

impl Question for OpenReadsQuestion<'_, '_> {
    type Point = u32;

    fn decide(&mut self, supposed: &Supposed<u32>) -> Round<u32> {
        let OpenLevel { options, check, stronger, .. } = self.question;
        self.round += 1;
        if self.round == PATIENCE {
            let third = |time: Duration| time.saturating_sub(self.began.elapsed()) / 3;
            if let Some(witness) = stronger(options.timeout.map_or(LONGEST_TRY, third)) {
                return ControlFlow::Break(Conclusion::Holds(witness));
            }
        }
        for (read, candidate) in supposed {
            self.writers[*read as usize] = self.candidates(*read)[*candidate as usize];
        }
        let (saw, committed) = self.all();
        let chosen = Arc::new(self.resolved.choosing(&saw, &committed));
        let conclusion = check(&chosen);
        if let Conclusion::Holds(Witness::CommitOrder(order)) = conclusion {
            let sources = self.sources(&saw);
            return ControlFlow::Break(Conclusion::Holds(Witness::Chosen { order, sources }));
        }
        let excluded = suppose::excluded_by(conclusion, |found| self.exclude(&chosen, found))?;
        let fewer = |excluded| self.with_fewer_reads(excluded, &committed);
        ControlFlow::Continue(excluded.into_iter().map(fewer).collect())
    }

    fn by_preference(&self, read: u32) -> Vec<u32> {
        let (candidates, reader) = (self.candidates(read), self.reader(read));
        let first = self.open.writers.span(self.reads[read as usize].row).start;
        let mut by_preference: Vec<u32> = (0..candidates.len() as u32).collect();
        by_preference.sort_by_key(|at| {
            self.likely.distance(first + *at as usize, reader, candidates[*at as usize])
        });
        by_preference
    }

    fn condition(&self, read: u32) -> Option<TxnId> {
        Some(self.reader(read)).filter(|reader| self.is_uncertain(*reader))
    }

    fn writer(&self, read: u32, candidate: u32) -> Option<TxnId> {
        let writer = self.candidates(read)[candidate as usize];
        self.is_uncertain(writer).then_some(writer)
    }

    fn points_of(&self, writer: TxnId) -> Vec<u32> {
        let number = self.open.maybe.binary_search(&writer);
        number.map_or_else(|_| Vec::new(), |number| self.candidates_of.get(number).to_vec())
    }
}

impl<'q, 'h> OpenReadsQuestion<'q, 'h> {
    fn candidates(&self, read: u32) -> &'q [TxnId] {
        self.open.writers.get(self.reads[read as usize].row)
    }

    fn reader(&self, read: u32) -> TxnId {
        self.history.op_txn(self.reads[read as usize].read)
    }

    fn is_uncertain(&self, txn: TxnId) -> bool {
        self.open.maybe.binary_search(&txn).is_ok()
    }

    /// The numbers of the reads of a transaction.
    fn reads_of(&self, txn: TxnId) -> Range<u32> {
        let ops = self.history.op_range(txn);
        let from = |op: usize| self.reads.partition_point(|open| open.read.index() < op) as u32;
        from(ops.start)..from(ops.end)
    }

    /// What a read is supposed to have seen.
    fn saw(&self, read: u32) -> (OpId, TxnId) {
        (self.reads[read as usize].read, self.writers[read as usize])
    }

    /// What the reads that count saw, and which transactions of unknown outcome committed.
    fn all(&self) -> (Vec<(OpId, TxnId)>, Vec<TxnId>) {
        let all = 0..self.reads.len() as u32;
        let mut counting: Vec<u32> = all.filter(|read| self.condition(*read).is_none()).collect();
        let (mut saw, mut committed) = (Vec::new(), BTreeSet::new());
        while let Some(read) = counting.pop() {
            saw.push(self.saw(read));
            let writer = self.writers[read as usize];
            if self.is_uncertain(writer) && committed.insert(writer) {
                counting.extend(self.reads_of(writer));
            }
        }
        saw.sort_unstable();
        (saw, committed.into_iter().collect())
    }

    /// What the reads that count saw, with the reads that repeat them.
    fn sources(&self, saw: &[(OpId, TxnId)]) -> Vec<ReadSource> {
        let mut sources: Vec<ReadSource> = Vec::with_capacity(saw.len());
        for (read, writer) in saw {
            let row = self.open.reads.binary_search(read).ok().filter(|_| !self.separate);
            let repeats = row.into_iter().flat_map(|row| self.open.repeats.get(row));
            let alike = [read].into_iter().chain(repeats);
            sources.extend(alike.map(|read| ReadSource { read: *read, writer: *writer }));
        }
        sources.sort_unstable();
        sources
    }

    /// What is supposed of a read, unless there is nothing to choose: a single transaction explains it. Where
    /// outcomes are unknown, it may take an argument that no other does.
    fn supposition(&self, read: OpId) -> Option<(u32, u32)> {
        let number = self.reads.binary_search_by_key(&read, |open| open.read).ok()?;
        let candidates = self.candidates(number as u32);
        let writer = self.writers[number];
        let at = candidates.iter().position(|candidate| *candidate == writer)?;
        let is_sure = self.open.maybe.is_empty() && candidates.len() == 1;
        (!is_sure).then_some((number as u32, at as u32))
    }

    /// What an anomaly excludes.
    fn exclude(&self, chosen: &Resolved<'h>, found: &Anomaly) -> Option<Excluded<u32>> {
        let cycle = match &found.evidence {
            Evidence::Cycle { edges } => edges.clone(),
            Evidence::Reads { first, second, .. } => {
                two_reads(chosen, self.question.level, *first, *second)?
            }
            _ => return None,
        };
        let reads = suppose::reads_of(&cycle).into_iter();
        let rests_on = reads.filter_map(|(read, _)| self.supposition(read)).collect();
        Some(Excluded { rests_on, cycle })
    }

    /// With nothing supposed but what led to a cycle, a shorter way to one may be seen.
    fn with_fewer_reads(&self, mut excluded: Excluded<u32>, committed: &[TxnId]) -> Excluded<u32> {
        let is_over = || suppose::reached(self.question.options, self.began).is_some();
        while excluded.rests_on.len() > FEW && !is_over() {
            let saw: Vec<_> = excluded.rests_on.iter().map(|(read, _)| self.saw(*read)).collect();
            let alone = Arc::new(self.resolved.choosing(&saw, committed));
            let Conclusion::Refuted(findings) = (self.question.check)(&alone) else { break };
            let all = findings.anomalies.iter().filter_map(|found| self.exclude(&alone, found));
            let fewest = all.min_by_key(|excluded| excluded.rests_on.len());
            match fewest.filter(|fewer| fewer.rests_on.len() < excluded.rests_on.len()) {
                Some(fewer) => excluded = fewer,
                None => break,
            }
        }
        excluded
    }
}

/// Two reads of a key by one transaction, from two others: each of these was visible when the other one
/// was read from.
fn two_reads(
    resolved: &Resolved<'_>,
    level: Level,
    first: OpId,
    second: OpId,
) -> Option<Vec<Edge>> {
    let dependencies = &resolved.dependencies;
    let history = dependencies.history;
    let reader = history.op_txn(first);
    let writer = |read: OpId| match dependencies.reads.source(read) {
        Source::Txn(writer) => Some(writer),
        _ => None,
    };
    let missed = |seen: OpId, read: OpId| {
        let (from, to) = (writer(seen)?, writer(read)?);
        if from.is_init() {
            return Some(Edge { from, to, reason: Reason::Initial });
        }
        let key = history.op_keys()[read.index()];
        let path = vec![dependencies.read_edge(from, reader, seen)];
        let reason = Reason::Visible { rule: level, key, reader, read, path };
        Some(Edge { from, to, reason })
    };
    Some(vec![missed(first, second)?, missed(second, first)?])
}
