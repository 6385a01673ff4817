//! From edges between nodes to edges between transactions, with reasons.

use isolario_model::{Edge, OpId, Reason, TxnId, VersionOrder};

use super::Explainer;
use super::lemmas::{Cause, Step};
use crate::strong::problem::{Arc, Precedes};
use crate::strong::sources::{Candidate, OpenRead};

/// Finds reasons.
pub(super) struct Reasons<'a> {
    pub(super) explainer: &'a Explainer<'a>,
}

impl Reasons<'_> {
    /// The edges of a cycle between transactions. Steps within a transaction vanish, and a way
    /// along moments in real time is one edge. Lemmas are told as far as `told` has them, else what
    /// they settle is assumed.
    pub(super) fn edges(&self, cycle: &[Step], told: &[Option<Vec<Edge>>]) -> Vec<Edge> {
        let layout = self.explainer.problem.layout;
        let mut cycle = cycle.to_vec();
        // Begin at a transaction, not at a moment between two.
        let begin = cycle.iter().position(|step| layout.txn(step.arc.0).is_some());
        cycle.rotate_left(begin.unwrap_or(0));
        let mut edges: Vec<Edge> = Vec::new();
        let mut left: Option<TxnId> = None;
        for step in cycle {
            let (from, to) = step.arc;
            left = layout.txn(from).or(left);
            let (Some(from_txn), Some(to_txn)) = (left, layout.txn(to)) else { continue };
            if from_txn == to_txn {
                continue;
            }
            let reason = match layout.txn(from) {
                None => self.real_time(from_txn, to_txn),
                Some(_) => self.reason(step, from_txn, to_txn, told),
            };
            edges.push(Edge { from: from_txn, to: to_txn, reason });
        }
        edges
    }

    fn real_time(&self, from: TxnId, to: TxnId) -> Reason {
        let history = self.explainer.dependencies.history;
        let finish = history.finish(from).unwrap_or(i64::MAX);
        Reason::RealTime { finish, start: history.start(to).unwrap_or(i64::MIN) }
    }

    fn reason(
        &self,
        Step { arc, cause, source }: Step,
        from: TxnId,
        to: TxnId,
        told: &[Option<Vec<Edge>>],
    ) -> Reason {
        let (precedes, known) = match (cause, source) {
            (Cause::Seen, Some(source)) => return self.by_source(from, to, source),
            (Cause::Seen, None) => return self.seen(arc, from, to),
            (Cause::Read(precedes), _) => (precedes, self.read_order(precedes)),
            (Cause::Given(precedes, known), _) => (precedes, known.told()),
            (Cause::Assumed(precedes), _) => (precedes, VersionOrder::Assumed),
            (Cause::Lemma(precedes, lemma), _) => match told.get(lemma) {
                Some(Some(cycle)) => (precedes, self.refuted(precedes, cycle)),
                _ => (precedes, VersionOrder::Assumed),
            },
        };
        match source {
            Some(source) => self.by_both(precedes, known, source),
            None => self.by_order(arc, precedes, known),
        }
    }

    /// The reason of an edge that the source of a read adds.
    fn by_source(&self, from: TxnId, to: TxnId, source: Candidate) -> Reason {
        let Explainer { dependencies, problem, .. } = self.explainer;
        let OpenRead { key, read, .. } = problem.sources.read(problem.sources.read_of(source));
        match problem.sources.version(source) {
            Some(_) => dependencies.read_edge(from, to, read).reason,
            None => {
                let (writer, known) = (TxnId::INIT, VersionOrder::Initial);
                Reason::AntiDependency { key, read, writer, known }
            }
        }
    }

    /// The reason of an edge that the source of a read and an order of versions add together.
    fn by_both(&self, precedes: Precedes, known: VersionOrder, source: Candidate) -> Reason {
        let problem = self.explainer.problem;
        let OpenRead { key, read, .. } = problem.sources.read(problem.sources.read_of(source));
        let writer = problem.versions.writer(precedes.first);
        Reason::AntiDependency { key, read, writer, known }
    }

    /// Session order, a read, or a read of the initial version of a key.
    pub(super) fn seen(&self, (from, _): Arc, from_txn: TxnId, to_txn: TxnId) -> Reason {
        let Explainer { dependencies, problem, .. } = self.explainer;
        let leaves_commit = from == problem.layout.commit(from_txn);
        // Of a transaction that may not be there, only session order is certain, and it is not among the
        // dependencies.
        if leaves_commit
            && dependencies.reads.is_kept(to_txn)
            && let Some(edge) = dependencies.edge(from_txn, to_txn)
        {
            return edge.reason;
        }
        if leaves_commit && dependencies.precedes_in_session(from_txn, to_txn) {
            return Reason::Session;
        }
        let versions = &problem.versions;
        let history = dependencies.history;
        let initial = history.txn_ops(from_txn).find_map(|read| {
            let key = history.op_keys()[read.index()];
            let is_initial = versions.initial_readers(key).iter().any(|r| r.read == read);
            (is_initial && versions.version(key, to_txn).is_some()).then_some((key, read))
        });
        match initial {
            Some((key, read)) => {
                let (writer, known) = (TxnId::INIT, VersionOrder::Initial);
                Reason::AntiDependency { key, read, writer, known }
            }
            None => Reason::Session,
        }
    }

    /// The reason of an edge that an order of versions adds.
    fn by_order(&self, (from, to): Arc, precedes: Precedes, known: VersionOrder) -> Reason {
        let problem = self.explainer.problem;
        let (versions, layout) = (&problem.versions, problem.layout);
        let key = versions.key(precedes.first);
        let writer = versions.writer(precedes.first);
        let between_writers = (from, to) == (layout.commit(writer), problem.overwrite(precedes));
        let reader = versions.readers(precedes.first).iter().find(|r| layout.start(r.txn) == from);
        match reader {
            Some(reader) if !between_writers => {
                Reason::AntiDependency { key, read: reader.read, writer, known }
            }
            _ => Reason::Overwrite { key, known },
        }
    }

    /// The later writer had read the earlier version.
    fn read_order(&self, precedes: Precedes) -> VersionOrder {
        let versions = &self.explainer.problem.versions;
        let second = versions.writer(precedes.second);
        let read = versions.readers(precedes.first).iter().find(|r| r.txn == second);
        VersionOrder::ReadModifyWrite { read: read.map_or(OpId(0), |reader| reader.read) }
    }

    /// A settled order: by the path between the writers where the opposite closes a cycle with it
    /// directly, else by the cycle.
    fn refuted(&self, precedes: Precedes, cycle: &[Edge]) -> VersionOrder {
        let versions = &self.explainer.problem.versions;
        let (first, second) = (versions.writer(precedes.first), versions.writer(precedes.second));
        let opposite = cycle.iter().position(|edge| {
            let overwrites =
                matches!(&edge.reason, Reason::Overwrite { known: VersionOrder::Assumed, .. });
            overwrites && (edge.from, edge.to) == (second, first)
        });
        match opposite {
            Some(at) => {
                let mut edges = cycle.to_vec();
                edges.rotate_left(at);
                edges.remove(0);
                VersionOrder::Path { edges }
            }
            None => VersionOrder::Refuted { cycle: cycle.to_vec() },
        }
    }
}
