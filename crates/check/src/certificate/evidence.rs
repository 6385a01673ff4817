//! What is wrong, as cycles with reasons.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, OpId, Reason, TxnId, VersionOrder, VisibilityRule,
};

use super::chains::Version;
use super::dependencies::PredicateEdge;
use super::items::ItemRead;
use super::levels::{Graph, Question};
use super::{Certificate, only_at};
use crate::cycles;
use crate::graph::{BUDGET, Moments, RealTime, Rows, Search, Subgraph, components, precedes};
use crate::resolved::Dependencies;

impl Certificate<'_> {
    /// A shortest cycle of each component of a graph.
    pub(super) fn cycles<G: Moments>(
        &self,
        question: Question<'_>,
        graph: &G,
        found: &[PredicateEdge],
    ) -> Vec<Anomaly> {
        let had_finished = |before, after| self.had_finished(before, after);
        let time = question.in_time.then(|| self.real_time());
        let timing = time.map(|time| cycles::Timing { time, had_finished: &had_finished });
        self.explained_cycles(question, graph, found, timing.as_ref())
    }

    /// The same of a graph that has the snapshots in it, as helpers. They need take but one step of a
    /// cycle, for the same reason as real time, so that step is told as such wherever there is no step of
    /// real time.
    pub(super) fn cycles_by_snapshots<G: Moments>(
        &self,
        question: Question<'_>,
        graph: &G,
        found: &[PredicateEdge],
    ) -> Vec<Anomaly> {
        let nothing = RealTime::of_ends(Vec::new(), vec![0; self.history.txn_count()]);
        let time = if question.in_time { self.real_time() } else { &nothing };
        let had_finished = |before, after| {
            self.snapshots.shows(self.history, before, after).is_some()
                || question.in_time && self.had_finished(before, after)
        };
        let timing = cycles::Timing { time, had_finished: &had_finished };
        self.explained_cycles(question, graph, found, Some(&timing))
    }

    fn explained_cycles<G: Moments>(
        &self,
        question: Question<'_>,
        graph: &G,
        found: &[PredicateEdge],
        timing: Option<&cycles::Timing<'_>>,
    ) -> Vec<Anomaly> {
        let explain = Explain::new(self, question, found);
        let edges = |nodes: &[u32]| explain.cycle(graph, nodes);
        let cycles = cycles::shortest_of_each(question.level, graph, timing, edges);
        cycles.into_iter().map(|anomaly| self.at(question, anomaly)).collect()
    }

    fn had_finished(&self, before: TxnId, after: TxnId) -> bool {
        precedes(self.history, self.options.clock_skew, before, after)
    }

    /// A cycle with one anti-dependency in each component in which one leads back.
    pub(super) fn single_cycles(
        &self,
        question: Question<'_>,
        graph: &Graph,
        found: &[PredicateEdge],
        back: &[(u32, u32)],
    ) -> Vec<Anomaly> {
        let explain = Explain::new(self, question, found);
        let txns = self.history.txn_count();
        let dependencies = self.item_dependencies(question, true);
        let of_predicates = found.iter().map(|edge| (edge.from, edge.to));
        let back_edges = back.iter().map(|(reader, writer)| (TxnId(*reader), TxnId(*writer)));
        let all: Vec<_> = dependencies.into_iter().chain(of_predicates).chain(back_edges).collect();
        let components = components(&Graph::new(txns, &all));
        let mut component_of = vec![0u32; txns];
        for (number, component) in (0..).zip(&components) {
            component.iter().for_each(|node| component_of[*node as usize] = number);
        }
        let pairs = back.iter().map(|pair| (component_of[pair.0 as usize], *pair));
        let pairs = Rows::group(components.len(), pairs);
        let mut anomalies = Vec::new();
        for (number, component) in components.iter().enumerate() {
            let inside = Subgraph::new(graph, component);
            let mut search = Search::new(&inside);
            let mut best: Vec<u32> = Vec::new();
            for (reader, writer) in pairs.get(number) {
                let ends = inside.number(*reader).zip(inside.number(*writer));
                let limit = if best.is_empty() { usize::MAX } else { best.len() - 2 };
                let path =
                    ends.and_then(|(end, start)| search.path_to(end, limit, |node| node == start));
                if let Some(path) = path {
                    best = path.into_iter().map(|number| inside.node(number)).collect();
                }
                if search.edges_seen > BUDGET {
                    break;
                }
            }
            let steps = best.windows(2).map(|step| (TxnId(step[0]), TxnId(step[1])));
            let mut edges: Vec<Edge> =
                steps.filter_map(|(from, to)| explain.dependency(from, to)).collect();
            if let (Some(writer), Some(reader)) = (best.first(), best.last()) {
                edges.extend(explain.anti_dependency(TxnId(*reader), TxnId(*writer)));
                anomalies.push(self.at(question, cycles::anomaly(question.level, edges)));
            }
        }
        anomalies
    }

    /// An anomaly that was found at a level. One that overwrites from one incarnation to the next
    /// close says nothing about the levels at which these are different objects.
    fn at(&self, question: Question<'_>, anomaly: Anomaly) -> Anomaly {
        let is_between = |edge: &Edge| match &edge.reason {
            Reason::Overwrite { key, .. } => {
                let to = self.chains.version(*key, edge.to);
                to.is_some_and(|version| self.chains.begins(version))
            }
            _ => false,
        };
        // A lost update is one of two who read the same version. These each overwrote what the other read,
        // and a version is followed by one other: so they read different ones.
        let anomaly = match anomaly.kind {
            AnomalyKind::LostUpdate => {
                Anomaly::new(AnomalyKind::ItemAntiDependencyCycle, anomaly.evidence)
            }
            _ => anomaly,
        };
        match anomaly.evidence.edges().iter().any(is_between) {
            true => only_at(anomaly, question.level),
            false => anomaly.at(question.level),
        }
    }
}

/// Finds the reasons of edges.
struct Explain<'e, 'h> {
    certificate: &'e Certificate<'h>,
    question: Question<'e>,
    dependencies: Dependencies<'e>,
    /// The dependencies of predicates, sorted.
    found: Vec<PredicateEdge>,
}

impl<'e, 'h> Explain<'e, 'h> {
    fn new(
        certificate: &'e Certificate<'h>,
        question: Question<'e>,
        found: &[PredicateEdge],
    ) -> Explain<'e, 'h> {
        let mut found = found.to_vec();
        found.sort_unstable();
        Explain { certificate, question, dependencies: certificate.dependencies(), found }
    }

    /// The edges between the transactions of a cycle of moments.
    fn cycle<G: Moments>(&self, graph: &G, nodes: &[u32]) -> Vec<Edge> {
        let is_moment = |node: &&u32| graph.begins(**node).or(graph.ends(**node)).is_some();
        let nodes: Vec<u32> = nodes.iter().filter(is_moment).copied().collect();
        let next = nodes.iter().cycle().skip(1);
        nodes.iter().zip(next).filter_map(|(from, to)| self.edge(graph, *from, *to)).collect()
    }

    /// The edge from one node to another: the simplest of those that may be there. None from the
    /// start of a transaction to its own commit.
    fn edge<G: Moments>(&self, graph: &G, from: u32, to: u32) -> Option<Edge> {
        let waited = graph.ends(from).zip(graph.begins(to));
        if let Some(edge) = waited.and_then(|(before, after)| self.dependency(before, after)) {
            return Some(edge);
        }
        let level = self.question.level;
        let counts =
            matches!(level.shape().visible, VisibilityRule::Prefix | VisibilityRule::Everything);
        if counts
            && let Some((reader, writer)) = graph.begins(from).zip(graph.ends(to))
            && let Some(edge) = self.anti_dependency(reader, writer)
        {
            return Some(edge);
        }
        let (from, to) = waited?;
        let Certificate { history, snapshots, .. } = self.certificate;
        let is_timed = self.question.in_time && self.certificate.had_finished(from, to);
        if let (false, Some((snapshot, op))) = (is_timed, snapshots.shows(history, from, to)) {
            return Some(Edge { from, to, reason: Reason::StartDependency { op, snapshot } });
        }
        let (finish, start) = history.finish(from).zip(history.start(to))?;
        Some(Edge { from, to, reason: Reason::RealTime { finish, start } })
    }

    /// Session order, a read, an overwrite, or a read by predicate.
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        let Certificate { chains, .. } = self.certificate;
        if self.question.sessions && self.dependencies.session_predecessor(to) == Some(from) {
            return Some(Edge { from, to, reason: Reason::Session });
        }
        let mut reads = self.reads(to).filter(|_| self.counts_reads());
        let read = reads.find(|read| chains.writer(read.version) == from).map(|read| {
            let written = chains.written(read.version);
            Reason::Read { key: written.key, read: read.op, write: written.write }
        });
        let overwrite = || {
            let version = self.written(to).find(|version| {
                chains.writer(*version - 1) == from
                    && self.certificate.is_one_object(version - 1, *version, self.question.objects)
            })?;
            let known = self.known(version);
            Some(Reason::Overwrite { key: chains.written(version).key, known })
        };
        let of_predicate = || {
            let edge = self.found_edge(from, to, false)?;
            let written = chains.written(edge.version);
            let (read, key, write) = (edge.op, written.key, written.write?);
            Some(match edge.returned {
                Some(_) => Reason::Read { key, read, write: Some(write) },
                None => Reason::PredicateRead { read, key, write },
            })
        };
        let reason = read.or_else(overwrite).or_else(of_predicate)?;
        Some(Edge { from, to, reason })
    }

    /// That a transaction read a version which another one overwrote, or that the other changed what
    /// its predicate matched.
    fn anti_dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        if from == to {
            return None;
        }
        let Certificate { chains, .. } = self.certificate;
        let missed = self.reads(from).find_map(|read| {
            let next = self.certificate.next(read.version)?;
            (chains.writer(next) == to).then(|| {
                let written = chains.written(read.version);
                let (key, writer, known) = (written.key, written.writer, self.known(next));
                Reason::AntiDependency { key, read: read.op, writer, known }
            })
        });
        let of_predicate = || {
            let edge = self.found_edge(from, to, true)?;
            let written = chains.written(edge.version);
            let (read, key, write) = (edge.op, written.key, written.write?);
            Some(match edge.returned.map(|returned| chains.writer(returned)) {
                Some(writer) => {
                    let known = match writer.is_init() {
                        true => VersionOrder::Initial,
                        false => VersionOrder::Stated { at: written.stated_at },
                    };
                    Reason::AntiDependency { key, read, writer, known }
                }
                None => Reason::PredicateAntiDependency { read, key, write, evaluated: None },
            })
        };
        let reason = missed.or_else(of_predicate)?;
        Some(Edge { from, to, reason })
    }

    /// At the levels that allow dirty reads, only overwrites count.
    fn counts_reads(&self) -> bool {
        AnomalyKind::AbortedRead.forbidden_at(self.question.level)
    }

    fn found_edge(&self, from: TxnId, to: TxnId, is_anti: bool) -> Option<&PredicateEdge> {
        let begin = self.found.partition_point(|edge| (edge.from, edge.to) < (from, to));
        let between = self.found[begin..].iter();
        let mut between = between.take_while(|edge| (edge.from, edge.to) == (from, to));
        between.find(|edge| edge.is_anti == is_anti)
    }

    /// What a transaction read of others.
    fn reads(&self, txn: TxnId) -> impl Iterator<Item = &ItemRead> {
        self.certain_reads(txn).chain(of_txn(self.certificate.open(self.question.open), txn))
    }

    fn certain_reads(&self, txn: TxnId) -> impl Iterator<Item = &'e ItemRead> {
        of_txn(&self.certificate.items, txn)
    }

    /// The versions that a transaction wrote.
    fn written(&self, txn: TxnId) -> impl Iterator<Item = Version> + '_ {
        self.certificate.chains.of_txn(txn).iter().copied()
    }

    /// How it is known that a version comes after the one before it.
    fn known(&self, version: Version) -> VersionOrder {
        let chains = &self.certificate.chains;
        if chains.writer(version - 1).is_init() {
            return VersionOrder::Initial;
        }
        let later = chains.written(version);
        let is_first = |op: OpId| later.write.is_some_and(|write| op < write);
        // Where results need not fit what was met, reads tell nothing.
        let mut reads = self.certain_reads(later.writer).filter(|_| self.counts_reads());
        let read = reads.find(|read| read.version == version - 1 && is_first(read.op));
        match read {
            Some(read) => VersionOrder::ReadModifyWrite { read: read.op },
            None => VersionOrder::Stated { at: later.stated_at },
        }
    }
}

/// The reads of a transaction, of some that are sorted by transaction.
fn of_txn(reads: &[ItemRead], txn: TxnId) -> impl Iterator<Item = &ItemRead> {
    let begin = reads.partition_point(|read| read.txn < txn);
    reads[begin..].iter().take_while(move |read| read.txn == txn)
}
