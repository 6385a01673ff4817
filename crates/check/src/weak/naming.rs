//! Names the cycles of a commit relation by Plume's patterns, and rebuilds the reasons of their
//! edges.
//!
//! An inferred edge from `before` to `after` that lies on a cycle is a pattern by itself: `after`
//! comes before `before`, causally (`…CO`) or by the commit relation of the level (`…CM`). Which
//! one it is, is said by how `before` was visible to the reader: by an earlier read (TAP-h, TAP-i;
//! of the same key, the non-monotonic read that has no letter), by a later read or by the session
//! (TAP-k, TAP-l), or by a longer way (TAP-m, TAP-n). A cycle of several inferred edges goes by
//! the one that takes the strongest rule, so that no cycle is called after a pattern of a weaker
//! level that the history satisfies.

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, AnomalyKind, Edge, EdgeKind, Evidence, History, Level, OpId, Reason, TxnId,
};

use super::Dependencies;
use super::saturated::{Inference, Saturated, Visibility};
use crate::graph::{BUDGET, InEdges, Search, Subgraph, components, shortest_cycle};
use crate::reads::Source;

/// The anomalies of a commit relation.
pub(crate) struct Named {
    /// Those with the shortest argument first.
    pub(crate) anomalies: Vec<Anomaly>,
    /// Whether there are no others.
    pub(crate) exact: bool,
}

/// A shortest cycle of each component of session order, reads, and the order that lists show.
pub(crate) fn base_cycles(base: &Saturated<'_>) -> Vec<Anomaly> {
    let mut found: Vec<Vec<Edge>> = components(base)
        .iter()
        .map(|component| {
            let cycle = shortest_cycle(base, component);
            let successors = cycle.iter().cycle().skip(1);
            let edge = |(from, to): (&u32, &u32)| base.plain_edge(TxnId(*from), TxnId(*to));
            cycle.iter().zip(successors).filter_map(edge).collect()
        })
        .collect();
    found.sort_by_key(Vec::len);
    let anomaly = |edges: Vec<Edge>| {
        let overwrites = edges.iter().all(|edge| edge.reason.kind() == EdgeKind::WriteWrite);
        let kind = if overwrites { AnomalyKind::DirtyWrite } else { AnomalyKind::CyclicCo };
        Anomaly { kind, evidence: Evidence::Cycle { edges } }
    };
    found.into_iter().map(anomaly).collect()
}

/// Names what closes cycles. `inferences` are those within a component or before `init`.
pub(crate) fn name(
    level: Level,
    graph: &Saturated<'_>,
    components: &[Vec<u32>],
    component_of: &[u32],
    inferences: Vec<Inference>,
) -> Named {
    let mut by_component: BTreeMap<u32, Vec<Inference>> = BTreeMap::new();
    for inference in inferences {
        let component = if inference.after.is_init() {
            u32::MAX
        } else {
            component_of[inference.before.index()]
        };
        by_component.entry(component).or_default().push(inference);
    }
    let mut exact = true;
    let mut anomalies = Vec::new();
    for (component, inferences) in by_component {
        exact &= inferences.len() == 1;
        let nodes = components.get(component as usize).map_or(&[][..], Vec::as_slice);
        let namer = Namer::new(level, graph, nodes, inferences);
        anomalies.extend(namer.name_all());
    }
    anomalies.sort_by_key(|anomaly| (anomaly.evidence.edges().len(), anomaly.kind));
    Named { anomalies, exact }
}

/// Names the cycles of one component.
struct Namer<'g> {
    level: Level,
    history: &'g History,
    graph: &'g Saturated<'g>,
    /// Of the inferences with the same ends, the one that is easiest to see.
    inferences: BTreeMap<(TxnId, TxnId), Inference>,
    /// The component with session order and reads alone.
    causal: Subgraph,
    /// The component with all edges.
    all: Subgraph,
}

/// A cycle as an inference and the path from its `after` back to its `before`.
struct Closed {
    inference: Inference,
    path: Vec<u32>,
    /// Whether session order and reads make up the path.
    causal: bool,
}

impl<'g> Namer<'g> {
    fn new(
        level: Level,
        graph: &'g Saturated<'g>,
        nodes: &[u32],
        inferences: Vec<Inference>,
    ) -> Self {
        let mut simplest: BTreeMap<(TxnId, TxnId), Inference> = BTreeMap::new();
        for inference in inferences {
            let visible = how_visible(graph.dependencies, &inference);
            let inference = Inference { visible, ..inference };
            let slot = simplest.entry((inference.before, inference.after)).or_insert(inference);
            if visible < slot.visible {
                *slot = inference;
            }
        }
        Namer {
            level,
            history: graph.dependencies.history,
            graph,
            inferences: simplest,
            causal: Subgraph::new(graph.dependencies, nodes),
            all: Subgraph::new(graph, nodes),
        }
    }

    /// For each pattern in the component, the anomaly with the shortest cycle.
    fn name_all(&self) -> Vec<Anomaly> {
        let mut best: BTreeMap<AnomalyKind, Closed> = BTreeMap::new();
        let mut causal = Search::new(&self.causal);
        let mut all = Search::new(&self.all);
        for inference in self.inferences.values() {
            // A large component may have more of them than there is time for; the first are as
            // good as the others.
            if causal.edges_seen + all.edges_seen > BUDGET && !best.is_empty() {
                break;
            }
            let Some(closed) = self.close(inference, &mut causal, &mut all) else { continue };
            let Some(kind) = self.pattern(&closed) else { continue };
            if best.get(&kind).is_none_or(|best| closed.path.len() < best.path.len()) {
                best.insert(kind, closed);
            }
        }
        let anomaly = |(kind, closed): (&AnomalyKind, &Closed)| {
            let edges = self.edges(closed);
            Anomaly { kind: *kind, evidence: Evidence::Cycle { edges } }
        };
        best.iter().map(anomaly).collect()
    }

    /// The shortest cycle through an inference: by session order and reads if there is one.
    fn close(
        &self,
        inference: &Inference,
        causal: &mut Search<'_>,
        all: &mut Search<'_>,
    ) -> Option<Closed> {
        let by_causality = path_back(&self.causal, causal, inference);
        let causal = by_causality.is_some();
        let path = by_causality.or_else(|| path_back(&self.all, all, inference))?;
        Some(Closed { inference: *inference, path, causal })
    }

    /// The pattern of a cycle. None where the same two reads are reported as a non-repeatable
    /// read.
    fn pattern(&self, closed: &Closed) -> Option<AnomalyKind> {
        let closing = &closed.inference;
        let on_the_way = closed.path.windows(2).filter_map(|w| self.inferred(w[0], w[1]));
        let strongest = on_the_way.map(|i| i.visible).fold(closing.visible, Ord::max);
        let same_key = match closing.visible {
            Visibility::EarlierRead(seen) | Visibility::LaterRead(seen) => {
                self.history.op_keys()[seen.index()] == closing.key
            }
            Visibility::Session | Visibility::Causal => false,
        };
        Some(match (strongest, closed.causal) {
            (Visibility::EarlierRead(_), _) if same_key => AnomalyKind::NonMonotonicRead,
            (Visibility::LaterRead(_), true) if same_key => return None,
            (Visibility::EarlierRead(_), true) => AnomalyKind::NonMonoReadCo,
            (Visibility::EarlierRead(_), false) => AnomalyKind::NonMonoReadCm,
            (Visibility::LaterRead(_) | Visibility::Session, true) => AnomalyKind::FracturedReadCo,
            (Visibility::LaterRead(_) | Visibility::Session, false) => AnomalyKind::FracturedReadCm,
            (Visibility::Causal, true) => AnomalyKind::CoConflictCm,
            (Visibility::Causal, false) => AnomalyKind::ConflictCm,
        })
    }

    /// The inference behind an edge that nothing plainer makes.
    fn inferred(&self, from: u32, to: u32) -> Option<&Inference> {
        let (from, to) = (TxnId(from), TxnId(to));
        let inference = self.inferences.get(&(from, to))?;
        self.graph.plain_edge(from, to).is_none().then_some(inference)
    }

    /// The edges of a cycle: what was seen first, the inference that closes it last.
    fn edges(&self, closed: &Closed) -> Vec<Edge> {
        let last = self.visible_edge(&closed.inference);
        if closed.inference.after.is_init() {
            let (from, to) = (TxnId::INIT, closed.inference.before);
            return vec![Edge { from, to, reason: Reason::Initial }, last];
        }
        let mut edges: Vec<Edge> =
            closed.path.windows(2).filter_map(|w| self.edge(TxnId(w[0]), TxnId(w[1]))).collect();
        edges.push(last);
        edges
    }

    fn edge(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.graph.plain_edge(from, to).or_else(|| {
            self.inferences.get(&(from, to)).map(|inference| self.visible_edge(inference))
        })
    }

    fn visible_edge(&self, inference: &Inference) -> Edge {
        let Inference { before, after, reader, key, read, visible } = *inference;
        let path = match visible {
            Visibility::EarlierRead(seen) | Visibility::LaterRead(seen) => {
                vec![self.graph.dependencies.read_edge(before, reader, seen)]
            }
            Visibility::Session => vec![Edge { from: before, to: reader, reason: Reason::Session }],
            Visibility::Causal => self.causal_path(before, reader),
        };
        let reason = Reason::Visible { rule: self.level, key, reader, read, path };
        Edge { from: before, to: after, reason }
    }

    /// A shortest path of session order and reads, through the whole history.
    fn causal_path(&self, from: TxnId, to: TxnId) -> Vec<Edge> {
        let dependencies = self.graph.dependencies;
        let mut toward: BTreeMap<u32, u32> = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([to.0]);
        while let Some(node) = queue.pop_front() {
            if node == from.0 {
                break;
            }
            for before in dependencies.predecessors(node) {
                if before != to.0 && !toward.contains_key(&before) {
                    toward.insert(before, node);
                    queue.push_back(before);
                }
            }
        }
        let mut path = Vec::new();
        let mut node = from.0;
        while let Some(next) = toward.get(&node) {
            path.extend(dependencies.edge(TxnId(node), TxnId(*next)));
            node = *next;
        }
        path
    }
}

/// The simplest way in which `before` is visible, where the rule found only that it is.
fn how_visible(dependencies: &Dependencies<'_>, inference: &Inference) -> Visibility {
    if inference.visible != Visibility::Causal {
        return inference.visible;
    }
    let Inference { before, reader, read, .. } = *inference;
    let from_before = |op: &OpId| dependencies.reads.source(*op) == Source::Txn(before);
    match dependencies.history.txn_ops(reader).find(from_before) {
        Some(seen) if seen < read => Visibility::EarlierRead(seen),
        Some(seen) => Visibility::LaterRead(seen),
        None if dependencies.precedes_in_session(before, reader) => Visibility::Session,
        None => Visibility::Causal,
    }
}

/// The shortest path from `after` back to `before`.
fn path_back(part: &Subgraph, search: &mut Search<'_>, inference: &Inference) -> Option<Vec<u32>> {
    if inference.after.is_init() {
        return Some(Vec::new());
    }
    let after = part.number(inference.after.0)?;
    let before = part.number(inference.before.0)?;
    let path = search.path_to(before, usize::MAX, |node| node == after)?;
    Some(path.into_iter().map(|number| part.node(number)).collect())
}
