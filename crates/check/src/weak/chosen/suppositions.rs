//! What is supposed of reads that may have seen the writes of several transactions.
//!
//! As long as nothing speaks against it, a read is supposed to have seen what is most likely: of what is
//! not overwritten, the last of its candidates that comes before it (see `likely`). Only a read that takes part in a conflict
//! becomes a choice among clauses, so that a history in which few of them do is decided at little cost.
//!
//! A transaction of unknown outcome is supposed to have committed if somebody is supposed to have seen
//! its write. If nobody did, it may as well have aborted: it asks nothing of the others.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use isolario_model::{Edge, History, OpId, ReadSource, Reason, TxnId};
use rustc_hash::FxHashMap;

use super::clauses::{Clauses, Literal, Variable};
use super::likely::Likely;
use crate::resolved::{OpenReads, Resolved};

/// A read that may have seen several writes.
#[derive(Clone, Copy)]
struct Open {
    read: OpId,
    /// Which of the open reads of the history it is, or repeats.
    row: u32,
}

pub(super) struct Suppositions<'a> {
    history: &'a History,
    open: &'a OpenReads,
    /// By operation.
    reads: Vec<Open>,
    /// By read, the writer.
    supposed: Vec<TxnId>,
    likely: Likely,
    clauses: Clauses,
    /// The reads that are choices, each with the first of its variables: one per candidate.
    choices: BTreeMap<u32, Variable>,
    /// That a transaction of unknown outcome committed, where its own reads are choices.
    there: FxHashMap<TxnId, Variable>,
    /// Per transaction of unknown outcome, the reads that may have seen its writes.
    seen_by: OnceCell<FxHashMap<TxnId, Vec<u32>>>,
    /// Per clause that excludes suppositions, the cycle that they close.
    cycles: FxHashMap<u32, Vec<Edge>>,
}

impl<'a> Suppositions<'a> {
    /// If reads are `separate`, one and the same read may see another write of the value the second time.
    pub(super) fn new(
        resolved: &'a Resolved<'_>,
        open: &'a OpenReads,
        separate: bool,
        is_over: &dyn Fn() -> bool,
    ) -> Self {
        let mut reads: Vec<Open> = Vec::with_capacity(open.reads.len());
        for (row, read) in (0..).zip(&open.reads) {
            reads.push(Open { read: *read, row });
            if separate {
                let repeats = open.repeats.get(row as usize).iter();
                reads.extend(repeats.map(|read| Open { read: *read, row }));
            }
        }
        reads.sort_unstable_by_key(|open| open.read);
        let mut suppositions = Suppositions {
            history: resolved.dependencies.history,
            open,
            supposed: Vec::new(),
            likely: Likely::new(resolved, open, is_over),
            reads,
            clauses: Clauses::default(),
            choices: BTreeMap::new(),
            there: FxHashMap::default(),
            seen_by: OnceCell::new(),
            cycles: FxHashMap::default(),
        };
        let first = |read: u32| {
            let row = suppositions.reads[read as usize].row as usize;
            suppositions.candidates(read)[suppositions.likely.first(row)]
        };
        suppositions.supposed = (0..suppositions.reads.len() as u32).map(first).collect();
        suppositions
    }

    fn candidates(&self, read: u32) -> &'a [TxnId] {
        self.open.writers.get(self.reads[read as usize].row as usize)
    }

    fn reader(&self, read: u32) -> TxnId {
        self.history.op_txn(self.reads[read as usize].read)
    }

    fn is_uncertain(&self, txn: TxnId) -> bool {
        self.open.maybe.binary_search(&txn).is_ok()
    }

    /// How far the candidates of a read are from what is preferred.
    fn distance(&self, read: u32, at: usize) -> (bool, bool, i64) {
        let row = self.reads[read as usize].row as usize;
        let candidate = self.open.writers.span(row).start + at;
        self.likely.distance(candidate, self.reader(read), self.candidates(read)[at])
    }

    /// The numbers of the reads of a transaction.
    fn reads_of(&self, txn: TxnId) -> std::ops::Range<u32> {
        let ops = self.history.op_range(txn);
        let from = |op: usize| self.reads.partition_point(|open| open.read.index() < op) as u32;
        from(ops.start)..from(ops.end)
    }

    /// What the reads that count saw, and which transactions of unknown outcome committed.
    pub(super) fn all(&self) -> (Vec<(OpId, TxnId)>, Vec<TxnId>) {
        let mut there: Vec<TxnId> = Vec::new();
        let mut counts: Vec<bool> = (0..self.reads.len() as u32)
            .map(|read| !self.is_uncertain(self.reader(read)))
            .collect();
        let certain = (0..self.reads.len() as u32).filter(|read| counts[*read as usize]);
        let mut seen: Vec<TxnId> = certain.map(|read| self.supposed[read as usize]).collect();
        let mut is_there = vec![false; self.open.maybe.len()];
        while let Some(writer) = seen.pop() {
            let Ok(number) = self.open.maybe.binary_search(&writer) else { continue };
            if !std::mem::replace(&mut is_there[number], true) {
                there.push(writer);
                for read in self.reads_of(writer) {
                    counts[read as usize] = true;
                    seen.push(self.supposed[read as usize]);
                }
            }
        }
        let counting =
            self.reads.iter().zip(&self.supposed).zip(&counts).filter(|(_, counts)| **counts);
        (counting.map(|((open, writer), _)| (open.read, *writer)).collect(), there)
    }

    /// What is supposed of some reads.
    pub(super) fn some(&self, reads: &[u32]) -> Vec<(OpId, TxnId)> {
        let saw = |read: &u32| (self.reads[*read as usize].read, self.supposed[*read as usize]);
        reads.iter().map(saw).collect()
    }

    /// What the reads that count saw, all of them told.
    pub(super) fn sources(&self) -> Vec<ReadSource> {
        let mut sources: Vec<ReadSource> = Vec::new();
        for (read, writer) in self.all().0 {
            sources.push(ReadSource { read, writer });
            let row = self.reads[self.reads.partition_point(|open| open.read < read)].row;
            if self.open.reads[row as usize] == read {
                let repeats = self.open.repeats.get(row as usize).iter();
                let is_choice = |repeat: &&OpId| self.number(**repeat).is_some();
                let alike = repeats.filter(|repeat| !is_choice(repeat));
                sources.extend(alike.map(|repeat| ReadSource { read: *repeat, writer }));
            }
        }
        sources.sort_unstable();
        sources
    }

    fn number(&self, read: OpId) -> Option<u32> {
        self.reads.binary_search_by_key(&read, |open| open.read).ok().map(|at| at as u32)
    }

    /// The reads that a cycle rests on and that may have seen something else.
    pub(super) fn behind(&self, cycle: &[Edge]) -> Vec<u32> {
        let mut reads: Vec<u32> = Vec::new();
        let mut waiting = vec![cycle];
        while let Some(edges) = waiting.pop() {
            for edge in edges {
                match &edge.reason {
                    Reason::Read { read, .. } => reads.extend(self.number(*read)),
                    Reason::Visible { read, path, .. } => {
                        reads.extend(self.number(*read));
                        waiting.push(path);
                    }
                    _ => {}
                }
            }
        }
        reads.sort_unstable();
        reads.dedup();
        reads.retain(|read| !self.is_sure(*read));
        reads
    }

    /// Whether there is nothing to choose, since a single transaction explains a read. Where outcomes are
    /// unknown, it may take an argument that no other does.
    fn is_sure(&self, read: u32) -> bool {
        self.open.maybe.is_empty() && self.candidates(read).len() == 1
    }

    /// Takes note that what is supposed of some reads closes a cycle.
    pub(super) fn exclude(&mut self, reads: &[u32], cycle: Vec<Edge>) {
        reads.iter().for_each(|read| self.make_choice(*read));
        let excluded = reads.iter().filter_map(|read| {
            let candidates = self.candidates(*read);
            let at =
                candidates.iter().position(|writer| *writer == self.supposed[*read as usize])?;
            Some(Literal::holds(self.choices.get(read)? + at as Variable).not())
        });
        let excluded = excluded.collect();
        let clause = self.clauses.add(excluded);
        self.cycles.insert(clause, cycle);
    }

    /// Makes a read a choice, and with it all others that decide whether its reader committed.
    fn make_choice(&mut self, read: u32) {
        let mut waiting = vec![read];
        while let Some(read) = waiting.pop() {
            if self.choices.contains_key(&read) {
                continue;
            }
            let candidates = self.candidates(read);
            let first = self.clauses.variables(candidates.len());
            self.choices.insert(read, first);
            let reader = self.reader(read);
            let condition = self.is_uncertain(reader).then(|| self.there(reader, &mut waiting));
            let mut by_preference: Vec<usize> = (0..candidates.len()).collect();
            by_preference.sort_by_key(|at| self.distance(read, *at));
            let alternatives = by_preference.into_iter().map(|at| first + at as Variable).collect();
            self.clauses.choose(condition, alternatives);
            for (variable, writer) in (first..).zip(candidates) {
                if let Some(there) = self.there.get(writer).copied() {
                    self.clauses.add(vec![Literal::holds(variable).not(), Literal::holds(there)]);
                }
            }
        }
    }

    /// That a transaction committed. Whoever saw its write implies it, so all that may have become choices.
    fn there(&mut self, txn: TxnId, waiting: &mut Vec<u32>) -> Variable {
        if let Some(there) = self.there.get(&txn) {
            return *there;
        }
        let there = self.clauses.variables(1);
        self.there.insert(txn, there);
        for read in self.seen_by(txn).to_vec() {
            let at = self.candidates(read).iter().position(|writer| *writer == txn);
            match self.choices.get(&read).zip(at) {
                Some((first, at)) => {
                    let not_seen = Literal::holds(first + at as Variable).not();
                    self.clauses.add(vec![not_seen, Literal::holds(there)]);
                }
                None => waiting.push(read),
            }
        }
        there
    }

    /// The reads that may have seen the writes of a transaction of unknown outcome.
    fn seen_by(&self, txn: TxnId) -> &[u32] {
        let all = self.seen_by.get_or_init(|| {
            let mut all: FxHashMap<TxnId, Vec<u32>> = FxHashMap::default();
            for read in 0..self.reads.len() as u32 {
                let uncertain = self.candidates(read).iter().filter(|txn| self.is_uncertain(**txn));
                uncertain.for_each(|txn| all.entry(*txn).or_default().push(read));
            }
            all
        });
        all.get(&txn).map_or(&[], Vec::as_slice)
    }

    /// Supposes something that is not excluded. If there is nothing left, returns the cycles that exclude
    /// everything, those with fewer edges first.
    pub(super) fn reconsider(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), Vec<Vec<Edge>>> {
        if let Err(clauses) = self.clauses.solve(is_over) {
            let clauses = self.clauses.trimmed(clauses);
            let mut cycles: Vec<Vec<Edge>> =
                clauses.iter().filter_map(|clause| self.cycles.remove(clause)).collect();
            cycles.sort_by_key(Vec::len);
            return Err(cycles);
        }
        for (read, first) in &self.choices {
            let candidates = self.candidates(*read);
            let mut variables = (*first..).zip(candidates);
            if let Some((_, writer)) = variables.find(|(variable, _)| self.clauses.holds(*variable))
            {
                self.supposed[*read as usize] = *writer;
            }
        }
        Ok(())
    }
}
