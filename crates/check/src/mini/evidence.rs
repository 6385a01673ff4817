//! What is wrong, as cycles with reasons.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, Level, OpId, Reason, TxnId, VersionOrder,
};

use super::Mini;
use crate::cycles;
use crate::graph::{Moments, precedes};
use crate::resolved::{Replaced, Replacement};

impl Mini<'_> {
    /// One lost update per version that several transactions overwrote: the first two of them.
    pub(crate) fn lost_updates(&self) -> Vec<Anomaly> {
        let replacements =
            if self.overwrites.diverge() { self.overwrites.divergences() } else { Vec::new() };
        let of_one_version = replacements.chunk_by(|one, next| one.version == next.version);
        let pairs = of_one_version.filter_map(|several| Some((several.first()?, several.get(1)?)));
        pairs.map(|(one, other)| self.lost_update(one, other)).collect()
    }

    fn lost_update(&self, one: &Replacement, other: &Replacement) -> Anomaly {
        let edges = vec![self.replaced(one, other), self.replaced(other, one)];
        Anomaly::new(AnomalyKind::LostUpdate, Evidence::Cycle { edges })
    }

    /// The anti-dependency from a reader of a version to a transaction that replaced it.
    fn replaced(&self, reader: &Replacement, writer: &Replacement) -> Edge {
        self.anti_dependency(reader.txn, reader.read, writer.txn, writer.version, Some(writer.read))
    }

    fn anti_dependency(
        &self,
        from: TxnId,
        read: OpId,
        to: TxnId,
        version: Replaced,
        replacing: Option<OpId>,
    ) -> Edge {
        let history = self.dependencies().history;
        let key = history.op_keys()[read.index()];
        let (writer, known) = match (version, replacing) {
            (Replaced::Written(write), Some(read)) => {
                (history.op_txn(write), VersionOrder::ReadModifyWrite { read })
            }
            _ => (TxnId::INIT, VersionOrder::Initial),
        };
        Edge { from, to, reason: Reason::AntiDependency { key, read, writer, known } }
    }

    /// A shortest cycle of each component, the clearest by name among several.
    pub(super) fn cycles<G: Moments>(&self, level: Level, graph: &G) -> Vec<Anomaly> {
        let had_finished = |before, after| self.had_finished(before, after);
        let time = level.shape().real_time.then(|| self.resolved.real_time());
        let timing = time.map(|time| cycles::Timing { time, had_finished: &had_finished });
        cycles::shortest_of_each(level, graph, timing.as_ref(), |nodes| self.edges(graph, nodes))
    }

    fn had_finished(&self, before: TxnId, after: TxnId) -> bool {
        precedes(self.dependencies().history, self.clock_skew, before, after)
    }

    /// The edges between the transactions of a cycle of moments.
    fn edges<G: Moments>(&self, graph: &G, cycle: &[u32]) -> Vec<Edge> {
        let next = cycle.iter().cycle().skip(1);
        cycle.iter().zip(next).filter_map(|(from, to)| self.edge(graph, *from, *to)).collect()
    }

    /// The edge from one node to another: the simplest of those that may be there. None from the
    /// start of a transaction to its own commit.
    fn edge<G: Moments>(&self, graph: &G, from: u32, to: u32) -> Option<Edge> {
        // What leaves a commit waited for it; what leaves a start overtook it.
        if let Some((before, after)) = graph.ends(from).zip(graph.begins(to))
            && let Some(edge) = self.dependencies().edge(before, after)
        {
            return Some(edge);
        }
        if let Some((reader, writer)) = graph.begins(from).zip(graph.ends(to))
            && let Some(read) = self.overwrites.missed_read(reader, writer)
            && reader != writer
        {
            let (version, _) = self.overwrites.version_read(read)?;
            let replacing = self.overwrites.read_of(writer, version);
            return Some(self.anti_dependency(reader, read, writer, version, replacing));
        }
        let (from, to) = graph.ends(from).zip(graph.begins(to))?;
        let history = self.dependencies().history;
        let (finish, start) = history.finish(from).zip(history.start(to))?;
        Some(Edge { from, to, reason: Reason::RealTime { finish, start } })
    }
}
