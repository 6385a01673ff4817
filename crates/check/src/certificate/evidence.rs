//! The cycles of dependencies that contradict a certificate, with the reason of each edge.

use isolario_model::{Anomaly, AnomalyKind, Edge, KeyId, OpId, Reason, TxnId, VersionOrder};

use super::chains::Version;
use super::dependencies::PredicateEdge;
use super::items::ItemRead;
use super::levels::{CertificateGraph, Counted, LevelQuestion};
use super::{Certificate, only_at};
use crate::cycles::{self, Explain};
use crate::graph::{InTime, components, precedes};
use crate::plan::Conclusion;
use crate::resolved::Dependencies;

impl Certificate<'_> {
    /// The level is violated by a cycle of each component of a graph.
    pub(super) fn refuted_by(
        &self,
        question: LevelQuestion<'_>,
        graph: &CertificateGraph,
        found: &[PredicateEdge],
    ) -> Conclusion {
        // A cycle without the snapshots says more.
        let without = LevelQuestion { by_snapshots: false, ..question };
        let cycles = self.cycles(without, graph, found);
        Conclusion::refuted(match cycles.is_empty() {
            true => self.cycles(question, graph, found),
            false => cycles,
        })
    }

    /// A shortest cycle of each component of a graph. Snapshots need take but one step of a cycle, for the
    /// same reason as real time, so both close cycles; the explanation prefers real time.
    fn cycles(
        &self,
        question: LevelQuestion<'_>,
        graph: &CertificateGraph,
        found: &[PredicateEdge],
    ) -> Vec<Anomaly> {
        let explain = Explanation::new(self, question, found);
        let had_finished = |before, after| explain.by_clock(before, after).is_some();
        let time = self.time_chain(question);
        let timing = cycles::Timing { time, had_finished: &had_finished };
        let graph = InTime { graph, time: self.snapshot_chain(question) };
        let edges = |nodes: &[u32]| explain.edges(&graph, nodes);
        let cycles = cycles::shortest_of_each(question.level, &graph, Some(&timing), edges);
        cycles.into_iter().map(|anomaly| self.at(question, anomaly)).collect()
    }

    /// The level is violated by a cycle with one anti-dependency of each component in which one of these pairs
    /// (reader, writer) leads back. `edges` are those of the graph, and the anti-dependencies of predicates.
    pub(super) fn refuted_by_pairs(
        &self,
        question: LevelQuestion<'_>,
        (graph, mut edges): (&CertificateGraph, Vec<(TxnId, TxnId)>),
        found: &[PredicateEdge],
        back: &[(u32, u32)],
    ) -> Conclusion {
        let explain = Explanation::new(self, question, found);
        edges.extend(back.iter().map(|(reader, writer)| (TxnId(*reader), TxnId(*writer))));
        let components = components(&CertificateGraph::new(self.history.txn_count(), &edges, None));
        let closed = cycles::shortest_closed_by(graph, &components, back, |_| 0);
        let anomaly = |path: Vec<u32>| {
            let steps = path.windows(2).map(|step| (TxnId(step[0]), TxnId(step[1])));
            let forth = steps.filter_map(|(from, to)| explain.dependency(from, to));
            let ends = path.last().zip(path.first());
            let back = ends.and_then(|(reader, writer)| {
                explain.anti_dependency(TxnId(*reader), TxnId(*writer))
            });
            self.at(question, cycles::anomaly(question.level, forth.chain(back).collect()))
        };
        Conclusion::refuted(closed.into_iter().map(anomaly).collect())
    }

    /// An anomaly that was found at a level. One that overwrites from one incarnation to the next
    /// says nothing about the levels at which these are different objects.
    fn at(&self, question: LevelQuestion<'_>, mut anomaly: Anomaly) -> Anomaly {
        // A lost update is one of two transactions that read the same version and each overwrote what the
        // other read. A version is followed by one other, so these read different ones.
        if anomaly.kind == AnomalyKind::LostUpdate {
            anomaly = Anomaly::new(AnomalyKind::ItemAntiDependencyCycle, anomaly.evidence);
        }
        let is_between = |edge: &Edge| match &edge.reason {
            Reason::Overwrite { key, .. } => {
                let to = self.chains.version(*key, edge.to);
                to.is_some_and(|version| self.chains.begins(version))
            }
            _ => false,
        };
        if anomaly.evidence.edges().iter().any(is_between) {
            anomaly = only_at(anomaly, question.level);
        }
        anomaly
    }
}

/// The reasons of dependencies that a question counts.
struct Explanation<'e, 'h> {
    certificate: &'e Certificate<'h>,
    question: LevelQuestion<'e>,
    dependencies: Dependencies<'e>,
    /// The dependencies of predicates, sorted.
    found: Vec<PredicateEdge>,
}

impl Explain for Explanation<'_, '_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        let chains = &self.certificate.chains;
        if self.question.sessions && self.dependencies.session_predecessor(to) == Some(from) {
            return Some(Edge { from, to, reason: Reason::Session });
        }
        let read = || {
            let read = self.reads(to).find(|read| chains.writer(read.version) == from)?;
            let written = chains.written(read.version);
            Some(Reason::Read { key: written.key, read: read.op, write: written.write })
        };
        let overwrite = || {
            let objects = self.question.objects();
            let version = chains.of_txn(to).iter().copied().find(|version| {
                chains.writer(*version - 1) == from
                    && self.certificate.is_one_object(version - 1, *version, objects)
            })?;
            let known = self.known(version);
            Some(Reason::Overwrite { key: chains.written(version).key, known })
        };
        let of_predicate = || {
            let (edge, key, write) = self.found_edge(from, to, false)?;
            Some(match edge.returned {
                Some(_) => Reason::Read { key, read: edge.op, write: Some(write) },
                None => Reason::PredicateRead { read: edge.op, key, write },
            })
        };
        let reason = read().or_else(overwrite).or_else(of_predicate)?;
        Some(Edge { from, to, reason })
    }

    fn anti_dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        if from == to || self.question.counted < Counted::RowAntiDependencies {
            return None;
        }
        let chains = &self.certificate.chains;
        let missed = self.reads(from).find_map(|read| {
            let next = self.certificate.next(read.version)?;
            let written = chains.written(read.version);
            let (key, writer) = (written.key, written.writer);
            (chains.writer(next) == to).then(|| Reason::AntiDependency {
                key,
                read: read.op,
                writer,
                known: self.known(next),
            })
        });
        let of_predicate = || {
            let (edge, key, write) = self.found_edge(from, to, true)?;
            let read = edge.op;
            Some(match edge.returned.map(|returned| chains.writer(returned)) {
                Some(writer) => {
                    let known = self.stated(writer, edge.version);
                    Reason::AntiDependency { key, read, writer, known }
                }
                None => Reason::PredicateAntiDependency { read, key, write, evaluated: None },
            })
        };
        let reason = missed.or_else(of_predicate)?;
        Some(Edge { from, to, reason })
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        let Certificate { history, snapshots, options, .. } = self.certificate;
        if self.question.in_time && precedes(history, options.clock_skew, from, to) {
            return cycles::real_time(history, from, to);
        }
        let shown = self.question.by_snapshots.then(|| snapshots.shows(history, from, to));
        let (snapshot, op) = shown.flatten()?;
        Some(Edge { from, to, reason: Reason::StartDependency { op, snapshot } })
    }
}

impl<'e, 'h> Explanation<'e, 'h> {
    fn new(
        certificate: &'e Certificate<'h>,
        question: LevelQuestion<'e>,
        found: &[PredicateEdge],
    ) -> Explanation<'e, 'h> {
        let mut found = found.to_vec();
        found.sort_unstable();
        Explanation { certificate, question, dependencies: certificate.dependencies(), found }
    }

    /// A dependency of a predicate, with the row that changed and the write that changed it.
    fn found_edge(
        &self,
        from: TxnId,
        to: TxnId,
        is_anti: bool,
    ) -> Option<(&PredicateEdge, KeyId, OpId)> {
        let begin = self.found.partition_point(|edge| (edge.from, edge.to) < (from, to));
        let between = self.found[begin..].iter();
        let mut between = between.take_while(|edge| (edge.from, edge.to) == (from, to));
        let edge = between.find(|edge| edge.is_anti == is_anti)?;
        let written = self.certificate.chains.written(edge.version);
        Some((edge, written.key, written.write?))
    }

    /// The reads of a transaction that count.
    fn reads(&self, txn: TxnId) -> impl Iterator<Item = &ItemRead> {
        let Certificate { items, .. } = self.certificate;
        self.of_txn(items, txn).chain(self.of_txn(self.certificate.open(self.question.open), txn))
    }

    /// Those of a transaction among reads that are sorted by transaction, if reads count.
    fn of_txn<'r>(&self, reads: &'r [ItemRead], txn: TxnId) -> impl Iterator<Item = &'r ItemRead> {
        let counts = self.question.counted > Counted::Nothing;
        let begin = reads.partition_point(|read| read.txn < txn);
        reads[begin..].iter().take_while(move |read| counts && read.txn == txn)
    }

    /// How it is known that a version comes after the one before it.
    fn known(&self, version: Version) -> VersionOrder {
        let chains = &self.certificate.chains;
        let later = chains.written(version);
        let is_first = |op: OpId| later.write.is_some_and(|write| op < write);
        let read = self
            .of_txn(&self.certificate.items, later.writer)
            .find(|read| read.version == version - 1 && is_first(read.op));
        match (chains.writer(version - 1), read) {
            (before, Some(read)) if !before.is_init() => {
                VersionOrder::ReadModifyWrite { read: read.op }
            }
            (before, _) => self.stated(before, version),
        }
    }

    /// The order of a version after one by `before`, as it is stated.
    fn stated(&self, before: TxnId, version: Version) -> VersionOrder {
        if before.is_init() {
            VersionOrder::Initial
        } else {
            VersionOrder::Stated { at: self.certificate.chains.written(version).stated_at }
        }
    }
}
