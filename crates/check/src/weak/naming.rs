//! Names the cycles of a commit relation by Plume's patterns, and rebuilds the reasons of their
//! edges.
//!
//! An inferred edge from `before` to `after` that lies on a cycle is a pattern by itself: `after`
//! comes before `before`, causally (`…CO`) or by the commit relation of the level (`…CM`). Which
//! one it is, is said by how `before` was visible to the reader: by an earlier read (TAP-h, TAP-i;
//! of the same key, the non-monotonic read that has no letter), by a later read or by the session
//! (TAP-k, TAP-l), or by a longer way (TAP-m, TAP-n).
//!
//! A cycle of several inferred edges goes by one that takes the strongest rule of all on it. The
//! others are then part of the commit relation of that rule's level, so the name is right: whoever
//! looks for the pattern of that name finds it. It may not be right for the others. They close in this
//! relation, but perhaps in that of a weaker level as well, which would make another pattern of them.

use std::collections::BTreeMap;

use isolario_model::{Anomaly, AnomalyKind, Edge, EdgeKind, Evidence, Level, Reason, TxnId};

use super::inference::{Inference, Visibility};
use super::visible::{Ways, patterns_of};
use crate::cycles::shortest_closed_by;
use crate::graph::{BUDGET, InEdges, Search, Subgraph, components, shortest_cycle};
use crate::resolved::Saturated;

/// The anomalies of a commit relation.
pub(crate) struct Named {
    /// Those with the shortest argument first.
    pub(crate) anomalies: Vec<Anomaly>,
    /// Whether there are no others.
    pub(crate) exact: bool,
}

/// The cyclic part of a commit relation.
#[derive(Default)]
pub(crate) struct Cyclic {
    /// The strongly connected components that have a cycle.
    pub(crate) components: Vec<Vec<u32>>,
    /// Per transaction, the number of its component; `u32::MAX` where it is on no cycle.
    pub(crate) component_of: Vec<u32>,
    /// What was inferred within a component, or before `init`.
    pub(crate) inferences: Vec<Inference>,
}

impl Cyclic {
    /// The component that an inference lies in; `u32::MAX` for one before `init`.
    pub(crate) fn component(&self, inference: &Inference) -> u32 {
        if inference.after.is_init() {
            u32::MAX
        } else {
            self.component_of[inference.before.index()]
        }
    }

    /// The inferences by component.
    pub(crate) fn by_component(&self) -> BTreeMap<u32, Vec<Inference>> {
        let mut by_component: BTreeMap<u32, Vec<Inference>> = BTreeMap::new();
        for inference in &self.inferences {
            by_component.entry(self.component(inference)).or_default().push(*inference);
        }
        by_component
    }

    /// The transactions of a component; none for the one before `init`.
    pub(crate) fn members(&self, component: u32) -> &[u32] {
        self.components.get(component as usize).map_or(&[], Vec::as_slice)
    }
}

/// A shortest cycle of each component of session order, reads, and the order that lists show.
pub(crate) fn base_cycles(base: &Saturated<'_>) -> Vec<Anomaly> {
    let cycle = |component: &Vec<u32>| plain_edges(base, &shortest_cycle(base, component));
    let mut found: Vec<Vec<Edge>> = components(base).iter().map(cycle).collect();
    found.sort_by_key(Vec::len);
    let anomaly = |edges: Vec<Edge>| {
        let overwrites = edges.iter().all(|edge| edge.reason.kind() == EdgeKind::WriteWrite);
        let kind = if overwrites { AnomalyKind::DirtyWrite } else { AnomalyKind::CyclicCo };
        Anomaly::new(kind, Evidence::Cycle { edges })
    };
    found.into_iter().map(anomaly).collect()
}

/// The edges of a cycle of transactions.
fn plain_edges(base: &Saturated<'_>, cycle: &[u32]) -> Vec<Edge> {
    let next = cycle.iter().cycle().skip(1);
    let edge = |(from, to): (&u32, &u32)| base.plain_edge(TxnId(*from), TxnId(*to));
    cycle.iter().zip(next).filter_map(edge).collect()
}

/// A cycle with session order or a read in each component that is known for a dirty write only.
pub(super) fn behind_dirty_writes(base: &Saturated<'_>, known: &[Anomaly]) -> Vec<Anomaly> {
    if known.iter().all(|anomaly| anomaly.kind != AnomalyKind::DirtyWrite) {
        return Vec::new();
    }
    let is_named = |component: &[u32]| {
        let is_in = |edge: &Edge| component.binary_search(&edge.from.0).is_ok();
        known.iter().any(|anomaly| {
            anomaly.kind == AnomalyKind::CyclicCo && anomaly.evidence.edges().iter().any(is_in)
        })
    };
    let components = components(base);
    // A dependency within a component is on a cycle.
    let dependency = |component: &Vec<u32>| {
        component.iter().find_map(|after| {
            let mut predecessors = base.dependencies.predecessors(*after);
            let before = predecessors.find(|before| component.binary_search(before).is_ok())?;
            Some((before, *after))
        })
    };
    let unnamed = components.iter().filter(|component| !is_named(component));
    let dependencies: Vec<(u32, u32)> = unnamed.filter_map(dependency).collect();
    shortest_closed_by(base, &components, &dependencies, |_| 0)
        .iter()
        .map(|cycle| Evidence::Cycle { edges: plain_edges(base, cycle) })
        .map(|cycle| Anomaly::new(AnomalyKind::CyclicCo, cycle))
        .collect()
}

/// Names what closes cycles.
pub(crate) fn name(level: Level, graph: &Saturated<'_>, cyclic: &Cyclic) -> Named {
    let mut exact = true;
    let mut anomalies = Vec::new();
    for (component, inferences) in cyclic.by_component() {
        exact &= inferences.len() == 1;
        let namer = Namer::new(level, graph, cyclic.members(component), inferences);
        anomalies.extend(namer.name_all());
    }
    anomalies.sort_by_key(|anomaly| (anomaly.evidence.edges().len(), anomaly.kind));
    Named { anomalies, exact }
}

/// Names the cycles of one component.
pub(super) struct Namer<'g> {
    level: Level,
    graph: &'g Saturated<'g>,
    /// Of the inferences with the same ends, the one that takes the weakest rule.
    inferences: BTreeMap<(TxnId, TxnId), Inference>,
    /// The component with session order and reads alone.
    causal: Subgraph,
    /// The component with all edges.
    all: Subgraph,
}

/// A cycle as an inference and the path from its `after` back to its `before`.
pub(super) struct Closed {
    inference: Inference,
    path: Vec<u32>,
    /// Whether session order and reads make up the path.
    causal: bool,
}

impl<'g> Namer<'g> {
    pub(super) fn new(
        level: Level,
        graph: &'g Saturated<'g>,
        nodes: &[u32],
        inferences: Vec<Inference>,
    ) -> Self {
        let mut simplest: BTreeMap<(TxnId, TxnId), Inference> = BTreeMap::new();
        for inference in inferences {
            let ways = Ways::of(graph.dependencies, &inference);
            let visible = ways.weakest().unwrap_or(Visibility::Causal);
            let inference = Inference { visible, ..inference };
            let slot = simplest.entry((inference.before, inference.after)).or_insert(inference);
            if visible < slot.visible {
                *slot = inference;
            }
        }
        Namer {
            level,
            graph,
            inferences: simplest,
            causal: Subgraph::new(graph.dependencies, nodes),
            all: Subgraph::new(graph, nodes),
        }
    }

    /// For each pattern in the component, the anomaly with the shortest cycle.
    fn name_all(&self) -> Vec<Anomaly> {
        let inferences = self.inferences.values();
        // A large component may have more of them than there is time for; the first are as good as the
        // others.
        let is_over = |spent, is_named| is_named && spent > BUDGET;
        let (named, _) = self.shortest(inferences, is_over, |closer, inference| {
            let causally = closer.close(inference, true);
            self.named(causally.or_else(|| closer.close(inference, false))?)
        });
        named
    }

    /// For each pattern, the anomaly with the shortest of the cycles that candidates close, until the search
    /// is over, by the number of edges that were looked at and whether anything was found. Returns that number,
    /// too.
    pub(super) fn shortest<T>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        is_over: impl Fn(usize, bool) -> bool,
        close: impl Fn(&mut Closer<'_>, T) -> Option<(AnomalyKind, Closed)>,
    ) -> (Vec<Anomaly>, usize) {
        let mut best: BTreeMap<AnomalyKind, Closed> = BTreeMap::new();
        let mut closer = Closer::new(self);
        for candidate in candidates {
            if is_over(closer.spent(), !best.is_empty()) {
                break;
            }
            if let Some((kind, closed)) = close(&mut closer, candidate)
                && best.get(&kind).is_none_or(|best| closed.path.len() < best.path.len())
            {
                best.insert(kind, closed);
            }
        }
        let anomaly = |(kind, closed): (&AnomalyKind, &Closed)| {
            Anomaly::new(*kind, Evidence::Cycle { edges: self.edges(closed) })
        };
        (best.iter().map(anomaly).collect(), closer.spent())
    }

    /// A cycle with the pattern that its closing inference makes of it, told by the way that makes
    /// it so. None where another inference on the cycle takes a stronger rule, and where the same two
    /// reads are reported as a non-repeatable read.
    fn named(&self, closed: Closed) -> Option<(AnomalyKind, Closed)> {
        let on_the_way = closed.path.windows(2).filter_map(|w| self.inferred(w[0], w[1]));
        let rules: Vec<Level> = on_the_way.map(|inference| inference.visible.rule()).collect();
        let is_strongest = |visible: &Visibility| {
            closed.causal || rules.iter().all(|rule| visible.rule().implies(*rule))
        };
        let ways = Ways::of(self.graph.dependencies, &closed.inference);
        let of_key = ways.same_key_before().filter(is_strongest);
        let lettered = match ways.lettered() {
            None if ways.weakest().is_none() => Some(Visibility::Causal),
            lettered => lettered,
        };
        let (visible, kind) = match (lettered.filter(is_strongest), of_key) {
            (Some(visible), of_key) if of_key.is_none_or(|way| visible.rule() == way.rule()) => {
                let (causally, by_commit) = patterns_of(visible.rule());
                // Plume has no letter for a session that misses its own write: to it this is a
                // fractured read. To its user it is something else, and is mended elsewhere.
                let kind = match visible {
                    Visibility::Session => AnomalyKind::SessionGuaranteeViolation,
                    _ if closed.causal => causally,
                    _ => by_commit,
                };
                (visible, kind)
            }
            (_, Some(visible)) => (visible, AnomalyKind::NonMonotonicRead),
            _ => return None,
        };
        let inference = Inference { visible, ..closed.inference };
        Some((kind, Closed { inference, ..closed }))
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

    /// A shortest path of two steps or more of session order and reads, through the whole history.
    fn causal_path(&self, from: TxnId, to: TxnId) -> Vec<Edge> {
        let dependencies = self.graph.dependencies;
        let mut toward: BTreeMap<u32, u32> = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([to.0]);
        while let Some(node) = queue.pop_front() {
            if node == from.0 {
                break;
            }
            for before in dependencies.predecessors(node) {
                let is_direct = node == to.0 && before == from.0;
                if before != to.0 && !is_direct && !toward.contains_key(&before) {
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

/// Closes the cycles of a component, one inference at a time.
pub(super) struct Closer<'n> {
    namer: &'n Namer<'n>,
    causal: Search<'n>,
    all: Search<'n>,
}

impl<'n> Closer<'n> {
    fn new(namer: &'n Namer<'n>) -> Self {
        Closer { namer, causal: Search::new(&namer.causal), all: Search::new(&namer.all) }
    }

    /// The shortest cycle through an inference and else any edges, or session order and reads alone.
    pub(super) fn close(&mut self, inference: &Inference, causal: bool) -> Option<Closed> {
        let (part, search) = match causal {
            true => (&self.namer.causal, &mut self.causal),
            false => (&self.namer.all, &mut self.all),
        };
        let Inference { before, after, .. } = *inference;
        let path = if after.is_init() {
            Vec::new()
        } else {
            let (before, after) = part.number(before.0).zip(part.number(after.0))?;
            let path = search.path_to(before, usize::MAX, |node| node == after)?;
            path.into_iter().map(|number| part.node(number)).collect()
        };
        Some(Closed { inference: *inference, path, causal })
    }

    /// How many edges were looked at.
    fn spent(&self) -> usize {
        self.causal.edges_seen + self.all.edges_seen
    }
}
