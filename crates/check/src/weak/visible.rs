//! How a reader saw a writer that one of its reads missed, and what that makes of it.
//!
//! The rules of the levels ask no more than whether a writer is visible. The names ask how. Several
//! ways may lead from one writer to one reader; each belongs to the weakest level whose rule it
//! takes. A read of the very key that was missed is a way for the rules, but none that a pattern of
//! Plume's table has a letter for: two reads of a key that differ are a non-repeatable read.

use isolario_model::{AnomalyKind, Level, OpId, TxnId};

use super::inference::{Inference, Visibility};
use crate::resolved::Dependencies;
use crate::resolved::Source;

/// The ways of one step from a writer to a reader, beside a read of the reader that missed it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ways {
    /// The first read from the writer of another key, if that was before the read that missed it.
    earlier: Option<OpId>,
    /// As `earlier`, of the same key.
    earlier_of_key: Option<OpId>,
    /// The first read from the writer of another key, if that was only later.
    later: Option<OpId>,
    /// As `later`, of the same key.
    later_of_key: Option<OpId>,
    session: bool,
}

impl Ways {
    /// The ways from the writer of an inference to its reader.
    pub(super) fn of(dependencies: &Dependencies<'_>, inference: &Inference) -> Self {
        let from_it = |op: &OpId| dependencies.reads.source(*op) == Source::Txn(inference.before);
        let ops = dependencies.history.txn_ops(inference.reader).filter(from_it);
        Ways::among(dependencies, inference, ops)
    }

    /// As [`Ways::of`], where the reads from the writer are known.
    pub(super) fn among(
        dependencies: &Dependencies<'_>,
        inference: &Inference,
        reads_from_it: impl Iterator<Item = OpId>,
    ) -> Self {
        let Inference { before, reader, key, read, .. } = *inference;
        let session = dependencies.precedes_in_session(before, reader);
        let mut ways = Ways { session, ..Ways::default() };
        for op in reads_from_it {
            let is_of_key = dependencies.history.op_keys()[op.index()] == key;
            let way = match (op < read, is_of_key) {
                (true, false) => &mut ways.earlier,
                (true, true) => &mut ways.earlier_of_key,
                (false, false) => &mut ways.later,
                (false, true) => &mut ways.later_of_key,
            };
            way.get_or_insert(op);
        }
        ways
    }

    /// The way that takes the weakest rule, of those that a pattern of the table has a letter for.
    pub(super) fn lettered(&self) -> Option<Visibility> {
        let earlier = self.earlier.map(Visibility::EarlierRead);
        let later = self.later.map(Visibility::LaterRead);
        earlier.or(later).or_else(|| self.session.then_some(Visibility::Session))
    }

    /// The read of the same key that came before.
    pub(super) fn same_key_before(&self) -> Option<Visibility> {
        self.earlier_of_key.map(Visibility::EarlierRead)
    }

    /// The way that takes the weakest rule of all; none where there is no step from the writer to
    /// the reader.
    pub(super) fn weakest(&self) -> Option<Visibility> {
        let earlier = self.earlier.or(self.earlier_of_key).map(Visibility::EarlierRead);
        let later = || self.later_of_key.map(Visibility::LaterRead);
        earlier.or_else(|| self.lettered()).or_else(later)
    }
}

impl Visibility {
    /// The weakest level whose rule knows this way.
    pub(super) fn rule(self) -> Level {
        match self {
            Visibility::EarlierRead(_) => Level::ReadCommitted,
            Visibility::LaterRead(_) | Visibility::Session => Level::ReadAtomic,
            Visibility::Causal => Level::Causal,
        }
    }
}

/// The two patterns of a missed writer that is visible by the rule of a level: where causal order puts
/// it after the writer that was seen, and where only the commit relation of the level does.
pub(super) fn patterns_of(rule: Level) -> (AnomalyKind, AnomalyKind) {
    match rule {
        Level::ReadCommitted => (AnomalyKind::NonMonoReadCo, AnomalyKind::NonMonoReadCm),
        Level::ReadAtomic => (AnomalyKind::FracturedReadCo, AnomalyKind::FracturedReadCm),
        _ => (AnomalyKind::CoConflictCm, AnomalyKind::ConflictCm),
    }
}

/// What a transaction depends on by two steps or more of session order and reads.
pub(super) struct Ancestors<'a> {
    dependencies: &'a Dependencies<'a>,
    /// Per transaction, its place in an order of the dependencies.
    places: Vec<u32>,
    /// Per transaction, the round in which it was last gone on from, and in which it was last found.
    visited: Vec<u32>,
    found: Vec<u32>,
    round: u32,
}

impl<'a> Ancestors<'a> {
    pub(super) fn new(dependencies: &'a Dependencies<'a>, places: Vec<u32>) -> Self {
        let txns = places.len();
        let (visited, found) = (vec![0; txns], vec![0; txns]);
        Ancestors { dependencies, places, visited, found, round: 0 }
    }

    /// The place of a transaction in the order of dependencies.
    pub(super) fn place(&self, txn: TxnId) -> u32 {
        self.places[txn.index()]
    }

    /// Finds those of a transaction, as far back as a place. Returns the number of edges considered.
    pub(super) fn find(&mut self, txn: TxnId, first_place: u32) -> usize {
        use crate::graph::InEdges;
        let mut edges = 0;
        self.round += 1;
        let mut open: Vec<u32> = Vec::new();
        for before in self.dependencies.predecessors(txn.0) {
            self.visit(before, first_place, &mut open);
        }
        while let Some(node) = open.pop() {
            for before in self.dependencies.predecessors(node) {
                edges += 1;
                self.found[before as usize] = self.round;
                self.visit(before, first_place, &mut open);
            }
        }
        edges
    }

    fn visit(&mut self, node: u32, first_place: u32, open: &mut Vec<u32>) {
        let visited = &mut self.visited[node as usize];
        if self.places[node as usize] >= first_place && *visited != self.round {
            *visited = self.round;
            open.push(node);
        }
    }

    /// Whether the last search found a transaction.
    pub(super) fn contain(&self, txn: TxnId) -> bool {
        self.found[txn.index()] == self.round
    }
}
