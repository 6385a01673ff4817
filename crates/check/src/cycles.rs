//! Cycles of dependencies: one of each component, and what it is called by its shape.
//!
//! Names are those of MTC's Table I where the cycle is one of these, and Adya's otherwise.

use std::collections::BTreeSet;

use isolario_model::{
    Anomaly, AnomalyKind, CycleShape, Edge, EdgeKind, Evidence, Findings, History, Level, Reason,
    ShapeKeys, ShapePredicates, Sight, TxnId, VersionOrder,
};

use crate::graph::{
    BUDGET, Closing, InEdges, InTime, Moments, RealTime, Rows, Search, Subgraph, components,
    shortest_closed,
};
use crate::resolved::Resolved;

/// The reasons of dependencies between transactions.
pub(crate) trait Explain {
    /// Session order, a read or an overwrite: the first transaction had committed when the second started.
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge>;

    /// A read of a version that the second transaction overwrote.
    fn anti_dependency(&self, _from: TxnId, _to: TxnId) -> Option<Edge> {
        None
    }

    /// Real time, or another clock.
    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge>;

    /// The edges between the transactions of a cycle of moments.
    fn edges<G: Moments>(&self, graph: &G, cycle: &[u32]) -> Vec<Edge> {
        // Helper nodes belong to no transaction.
        let is_moment = |node: &&u32| graph.begins(**node).or(graph.ends(**node)).is_some();
        let moments = cycle.iter().filter(is_moment);
        let next = moments.clone().cycle().skip(1);
        moments.zip(next).filter_map(|(from, to)| self.edge(graph, *from, *to)).collect()
    }

    /// The edge from one node to another: the simplest of those that may be there. None from the
    /// start of a transaction to its own commit.
    fn edge<G: Moments>(&self, graph: &G, from: u32, to: u32) -> Option<Edge> {
        // An edge from a commit to a start is a wait; one from a start to a commit is an anti-dependency.
        let waited = graph.ends(from).zip(graph.begins(to));
        let overtaken = graph.begins(from).zip(graph.ends(to)).filter(|(from, to)| from != to);
        waited
            .and_then(|(from, to)| self.dependency(from, to))
            .or_else(|| overtaken.and_then(|(from, to)| self.anti_dependency(from, to)))
            .or_else(|| waited.and_then(|(from, to)| self.by_clock(from, to)))
    }
}

/// The edge from a transaction to one that started after it had finished.
pub(crate) fn real_time(history: &History, from: TxnId, to: TxnId) -> Option<Edge> {
    let (finish, start) = history.finish(from).zip(history.start(to))?;
    Some(Edge { from, to, reason: Reason::RealTime { finish, start } })
}

/// A shortest cycle of each component of a graph, in real time if the level is, and the clearest by name
/// among several.
pub(crate) fn cycles<G: Moments>(
    resolved: &Resolved<'_>,
    level: Level,
    graph: &G,
    explain: &impl Explain,
) -> Vec<Anomaly> {
    let had_finished = |before, after| resolved.precedes(before, after);
    let time = level.shape().real_time.then(|| resolved.real_time());
    let timing = time.map(|time| Timing { time, had_finished: &had_finished });
    shortest_of_each(level, graph, timing.as_ref(), |nodes| explain.edges(graph, nodes))
}

/// Real time, where it counts.
pub(crate) struct Timing<'a> {
    pub(crate) time: &'a RealTime,
    /// Whether a transaction had finished before another started.
    pub(crate) had_finished: &'a dyn Fn(TxnId, TxnId) -> bool,
}

/// A shortest cycle of each component, the clearest by name among several. `edges` explains a cycle
/// of moments.
///
/// Real time takes at most one step of it: of two such steps A → B and C → D, either A had finished
/// before D started, or else C, which had finished before D started, had finished before B started;
/// either way there is a shorter cycle with fewer of them.
pub(crate) fn shortest_of_each<G: Moments>(
    level: Level,
    graph: &G,
    timing: Option<&Timing<'_>>,
    edges: impl Fn(&[u32]) -> Vec<Edge>,
) -> Vec<Anomaly> {
    let components = match timing {
        Some(timing) => components(&InTime { graph, time: timing.time }),
        None => components(graph),
    };
    let closes = |last: u32, first: u32| {
        let ends = graph.ends(last).zip(graph.begins(first));
        let timing = timing.zip(ends);
        timing.is_some_and(|(timing, (before, after))| (timing.had_finished)(before, after))
    };
    let rank = |nodes: &[u32]| clarity(name(&edges(nodes)));
    let closing = Closing { closes: &closes, rank: &rank };
    let mut anomalies: Vec<Anomaly> = components
        .iter()
        .map(|component| {
            let own = component.partition_point(|node| (*node as usize) < graph.node_count());
            anomaly(level, edges(&shortest_closed(graph, &component[..own], &closing)))
        })
        .collect();
    anomalies.sort_by_key(|a| (a.evidence.edges().len(), clarity(a.kind), a.kind));
    anomalies
}

/// Of each component, a shortest cycle that one of these pairs (from, to) closes, the one of the least rank
/// among several; in a large component, the shortest that a bounded search finds. A cycle begins where its
/// pair ends.
pub(crate) fn shortest_closed_by(
    graph: &impl InEdges,
    components: &[Vec<u32>],
    pairs: &[(u32, u32)],
    rank: impl Fn(&[u32]) -> u32,
) -> Vec<Vec<u32>> {
    let mut component_of = vec![0u32; graph.node_count()];
    for (number, component) in (0..).zip(components) {
        component.iter().for_each(|node| component_of[*node as usize] = number);
    }
    let numbered = pairs.iter().map(|pair| (component_of[pair.0 as usize], *pair));
    let of_component = Rows::group(components.len(), numbered);
    let shortest = |(number, component): (usize, &Vec<u32>)| {
        let inside = Subgraph::new(graph, component);
        let mut search = Search::new(&inside);
        let mut best: Option<(usize, u32, Vec<u32>)> = None;
        for (from, to) in of_component.get(number) {
            let limit = best.as_ref().map_or(usize::MAX, |(length, ..)| length - 1);
            let ends = inside.number(*from).zip(inside.number(*to));
            let path =
                ends.and_then(|(end, start)| search.path_to(end, limit, |node| node == start));
            if let Some(path) = path {
                let cycle: Vec<u32> = path.into_iter().map(|node| inside.node(node)).collect();
                let rank = rank(&cycle);
                if best.as_ref().is_none_or(|best| (cycle.len(), rank) < (best.0, best.1)) {
                    best = Some((cycle.len(), rank, cycle));
                }
            }
            if search.edges_seen > BUDGET {
                break;
            }
        }
        best.map(|(.., cycle)| cycle)
    };
    components.iter().enumerate().filter_map(shortest).collect()
}

/// Lost updates, one per version that several transactions overwrote, together with a cycle of each
/// component. `alone` says that nobody else overwrote one of these versions, or missed one of the
/// overwrites.
///
/// Every such version is known, and every component with a cycle. Their sum is exact unless they have
/// transactions in common: a lost update may be the very cycle of its component under another name, which
/// is one finding in the end; but where the two are different, nobody knows what else is there.
pub(crate) fn with_lost_updates(lost: Vec<Anomaly>, alone: bool, cycles: Vec<Anomaly>) -> Findings {
    let txns = |anomaly: &Anomaly| -> BTreeSet<TxnId> {
        anomaly.evidence.edges().iter().map(|edge| edge.from).collect()
    };
    let pairs: BTreeSet<_> = lost.iter().map(txns).collect();
    let overwriters: BTreeSet<TxnId> = pairs.iter().flatten().copied().collect();
    let is_apart = |cycle: &Anomaly| {
        let members = txns(cycle);
        pairs.contains(&members) || members.is_disjoint(&overwriters)
    };
    let exact = alone && overwriters.len() == 2 * lost.len() && cycles.iter().all(is_apart);
    Findings::new(lost.into_iter().chain(cycles).collect(), exact)
}

/// A cycle of what clients saw, under its name.
pub(crate) fn of_clients(edges: Vec<Edge>) -> Anomaly {
    Anomaly::new(name(&edges), Evidence::Cycle { edges })
}

/// A cycle under its name, or as a contradiction of what is stated if it rests on that: what clients
/// saw need not be wrong then. With predicates it always does, since what they met is stated; so there
/// only snapshots count.
pub(crate) fn anomaly(level: Level, edges: Vec<Edge>) -> Anomaly {
    let has_predicates = edges.iter().any(|edge| edge.reason.is_about_predicate());
    let by_snapshots =
        edges.iter().any(|edge| matches!(edge.reason, Reason::StartDependency { .. }));
    let kind = match by_snapshots || rests_on_statements(&edges) && !has_predicates {
        true => AnomalyKind::OrderContradiction,
        false => name_at(level, &edges),
    };
    Anomaly::new(kind, Evidence::Cycle { edges })
}

/// Whether an argument rests on an order that is stated.
pub(crate) fn rests_on_statements(edges: &[Edge]) -> bool {
    Edge::walk(edges).any(|edge| {
        matches!(
            edge.reason,
            Reason::Overwrite { known: VersionOrder::Stated { .. }, .. }
                | Reason::AntiDependency { known: VersionOrder::Stated { .. }, .. }
        )
    })
}

/// The name of a cycle that a level forbids. A name says which levels the cycle rules out. That holds
/// for a cycle of what clients saw; but one that rests on orders of versions that the level itself
/// demands says nothing about weaker levels, and so must not be called after what they forbid.
pub(crate) fn name_at(level: Level, cycle: &[Edge]) -> AnomalyKind {
    let kind = name(cycle);
    // The level of single rows is about a version order that is known.
    let claimed = kind.names().forbidden_by.iter().filter(|by| **by != Level::RepeatableRead);
    if cycle.iter().all(|edge| edge.reason.holds_at_every_level())
        || claimed.into_iter().all(|by| by.implies(level))
    {
        kind
    } else {
        AnomalyKind::NoOrderPossible
    }
}

/// The name of a cycle of edges that clients' observations determine: session order, real time,
/// reads, overwrites and anti-dependencies. It is the most special one whose shape fits.
pub(crate) fn name(cycle: &[Edge]) -> AnomalyKind {
    // A list is what it shows; if two transactions come before each other there, they overwrote each other.
    let is_of_registers = || {
        use VersionOrder::{Guaranteed, ReadModifyWrite};
        let known = |edge: &Edge| {
            matches!(edge.reason.known(), Some(ReadModifyWrite { .. } | Guaranteed { .. }))
        };
        cycle.iter().all(known)
    };
    let shapes =
        AnomalyKind::all().flat_map(|kind| kind.names().cycles.iter().map(move |s| (kind, s)));
    shapes
        .filter(|(kind, shape)| {
            fits(shape, cycle) && (*kind != AnomalyKind::CyclicVersions || is_of_registers())
        })
        .min_by_key(|(_, shape)| shape.rank)
        .map_or(AnomalyKind::NoOrderPossible, |(kind, _)| kind)
}

/// Whether a cycle has a shape, given that it has none of less rank.
fn fits(shape: &CycleShape, cycle: &[Edge]) -> bool {
    let is_anti = |edge: &Edge| edge.reason.kind() == EdgeKind::ReadWrite;
    let any = |test: fn(&Reason) -> bool| cycle.iter().any(|edge| test(&edge.reason));
    let next = cycle.iter().cycle().skip(1);
    let adjacent = || cycle.iter().zip(next).any(|(one, other)| is_anti(one) && is_anti(other));
    let mut others = cycle.iter().filter(|edge| !is_anti(edge)).map(|edge| edge.reason.kind());
    let anti_dependencies = cycle.iter().filter(|edge| is_anti(edge)).count();
    let [least, most] = shape.anti_dependencies;
    shape.length.is_none_or(|length| length == cycle.len())
        && (least..=most).contains(&anti_dependencies)
        && shape.adjacent.is_none_or(|expected| expected == adjacent())
        && (shape.with.is_empty() || others.clone().any(|kind| shape.with.contains(&kind)))
        && (shape.others.is_empty() || others.all(|kind| shape.others.contains(&kind)))
        && match shape.keys {
            ShapeKeys::One => is_of_one_key(cycle),
            ShapeKeys::Several => !is_of_one_key(cycle),
            ShapeKeys::Any => true,
        }
        && match shape.predicates {
            ShapePredicates::None => !any(Reason::is_about_predicate),
            ShapePredicates::Seen => !any(Reason::is_missed_by_predicate),
            ShapePredicates::Missed => any(Reason::is_missed_by_predicate),
            ShapePredicates::Any => true,
        }
        && match shape.sight {
            Sight::EarlierRead => reads_before_missing(cycle),
            Sight::Session => any(|reason| *reason == Reason::Session),
            Sight::Row => any(|reason| matches!(reason, Reason::Read { .. })),
            Sight::Predicate => any(|reason| matches!(reason, Reason::PredicateRead { .. })),
            Sight::Any | Sight::Step | Sight::Read => true,
        }
        && shape.causal.is_none_or(|expected| expected == any(misses_causally_later))
}

/// Whether a reader missed a version that is later than what it read by causal order.
fn misses_causally_later(reason: &Reason) -> bool {
    let is_causal =
        |edge: &Edge| matches!(edge.reason.kind(), EdgeKind::Session | EdgeKind::WriteRead);
    match reason {
        Reason::AntiDependency { known: VersionOrder::Path { edges }, .. } => {
            edges.iter().all(is_causal)
        }
        Reason::AntiDependency { known, .. } => {
            matches!(known, VersionOrder::Initial | VersionOrder::ReadModifyWrite { .. })
        }
        _ => false,
    }
}

/// Whether the reader of a cycle saw the writer by a read before the one that missed it.
fn reads_before_missing(cycle: &[Edge]) -> bool {
    let seen = cycle.iter().find_map(|edge| match edge.reason {
        Reason::Read { read, .. } => Some(read),
        _ => None,
    });
    let missed = cycle.iter().find_map(|edge| match edge.reason {
        Reason::AntiDependency { read, .. } => Some(read),
        _ => None,
    });
    seen.is_some() && seen < missed
}

/// How clear a name is to a reader, the clearest first.
pub(crate) fn clarity(kind: AnomalyKind) -> u32 {
    use AnomalyKind::{
        CoConflictCm, CyclicCo, FracturedReadCo, LongFork, LostUpdate, NonMonoReadCo, ReadSkew,
        SessionGuaranteeViolation, StaleRead, WriteSkew,
    };
    let clearest = [
        LostUpdate,
        SessionGuaranteeViolation,
        StaleRead,
        ReadSkew,
        FracturedReadCo,
        NonMonoReadCo,
        WriteSkew,
        CyclicCo,
        LongFork,
        CoConflictCm,
    ];
    clearest.iter().position(|clear| *clear == kind).unwrap_or(clearest.len()) as u32
}

/// Whether all edges are about the same key.
fn is_of_one_key(cycle: &[Edge]) -> bool {
    cycle.windows(2).all(|pair| pair[0].reason.key() == pair[1].reason.key())
}

#[cfg(test)]
mod tests {
    use isolario_model::{KeyId, OpId};

    use super::*;

    /// A cycle through as many transactions as there are reasons.
    fn cycle(reasons: &[Reason]) -> Vec<Edge> {
        let txns = reasons.len();
        let edge = |(at, reason): (usize, &Reason)| {
            let (from, to) = (TxnId::at(at), TxnId::at((at + 1) % txns));
            Edge { from, to, reason: reason.clone() }
        };
        reasons.iter().enumerate().map(edge).collect()
    }

    fn read(read: u32) -> Reason {
        Reason::Read { key: KeyId(0), read: OpId(read), write: None }
    }

    fn missed(key: u32, read: u32) -> Reason {
        let (key, read, known) = (KeyId(key), OpId(read), VersionOrder::Initial);
        Reason::AntiDependency { key, read, writer: TxnId::INIT, known }
    }

    fn hidden(key: u32, read: u32) -> Reason {
        let (key, read) = (KeyId(key), OpId(read));
        let known = VersionOrder::AppendedLater { read };
        Reason::AntiDependency { key, read, writer: TxnId(0), known }
    }

    fn update(read: u32) -> Reason {
        let known = VersionOrder::ReadModifyWrite { read: OpId(read) };
        Reason::Overwrite { key: KeyId(0), known }
    }

    fn overwrite() -> Reason {
        Reason::Overwrite { key: KeyId(0), known: VersionOrder::Initial }
    }

    #[test]
    fn cycles_are_named_by_their_shape() {
        let (session, time) = (Reason::Session, Reason::RealTime { finish: 1, start: 2 });
        let expected: [(&[Reason], AnomalyKind); 20] = [
            (&[overwrite(), overwrite()], AnomalyKind::DirtyWrite),
            (&[overwrite(), session.clone()], AnomalyKind::DirtyWrite),
            (&[update(1), update(2)], AnomalyKind::CyclicVersions),
            (&[overwrite(), read(1)], AnomalyKind::CyclicCo),
            (&[read(1), session.clone()], AnomalyKind::CyclicCo),
            (&[missed(0, 1), session.clone()], AnomalyKind::SessionGuaranteeViolation),
            (&[missed(0, 2), read(1)], AnomalyKind::NonMonoReadCo),
            (&[read(2), missed(0, 1)], AnomalyKind::FracturedReadCo),
            (&[read(2), read(3), missed(0, 1)], AnomalyKind::CoConflictCm),
            (&[missed(1, 1), overwrite()], AnomalyKind::ReadWriteSkew),
            (&[missed(0, 1), overwrite()], AnomalyKind::SingleAntiDependency),
            (&[read(2), hidden(0, 1)], AnomalyKind::ReadSkew),
            (&[read(2), read(3), hidden(0, 1)], AnomalyKind::ConflictCm),
            (&[missed(0, 1), overwrite(), read(1)], AnomalyKind::SingleAntiDependency),
            (&[missed(0, 1), missed(0, 2)], AnomalyKind::LostUpdate),
            (&[missed(0, 1), missed(1, 2)], AnomalyKind::WriteSkew),
            (&[read(1), missed(0, 2), read(3), missed(1, 4)], AnomalyKind::LongFork),
            (
                &[session.clone(), missed(0, 2), read(3), missed(1, 4)],
                AnomalyKind::NonadjacentAntiDependencies,
            ),
            (&[session, missed(0, 2), missed(1, 4)], AnomalyKind::ItemAntiDependencyCycle),
            (&[time, missed(0, 1)], AnomalyKind::StaleRead),
        ];
        for (reasons, kind) in expected {
            assert_eq!(name(&cycle(reasons)), kind, "{reasons:?}");
        }
    }

    /// All short cycles of some reasons: each has a shape of its name, and each shape that an edge by the rule of
    /// a weak level does not take is that of some cycle.
    #[test]
    fn each_name_is_that_of_a_cycle_and_each_cycle_has_a_shape_of_its_name() {
        use AnomalyKind::{FracturedReadCm, NonMonoReadCm, NonMonotonicRead};
        let (key, read_at, write) = (KeyId(0), OpId(1), OpId(9));
        let other_key = |reason: Reason| match reason {
            Reason::Overwrite { known, .. } => Reason::Overwrite { key: KeyId(1), known },
            other => other,
        };
        let reasons = [
            Reason::Session,
            Reason::RealTime { finish: 1, start: 2 },
            read(1),
            read(3),
            missed(0, 2),
            missed(1, 2),
            hidden(1, 2),
            update(1),
            overwrite(),
            other_key(overwrite()),
            Reason::PredicateRead { read: read_at, key, write },
            Reason::PredicateAntiDependency { read: read_at, key, write, evaluated: None },
            Reason::PredicateAntiDependency {
                read: read_at,
                key: KeyId(1),
                write,
                evaluated: None,
            },
        ];
        let mut cycles: Vec<Vec<Reason>> =
            reasons.iter().map(|reason| vec![reason.clone()]).collect();
        let mut found = BTreeSet::new();
        for _ in 2..=4 {
            let longer = cycles.iter().flat_map(|shorter| {
                reasons
                    .iter()
                    .map(|reason| [shorter.as_slice(), std::slice::from_ref(reason)].concat())
            });
            cycles = longer.collect();
            for reasons in &cycles {
                let cycle = cycle(reasons);
                let kind = name(&cycle);
                assert!(
                    kind.names().cycles.iter().any(|shape| fits(shape, &cycle)),
                    "{kind}: {reasons:?}"
                );
                found.insert(kind);
            }
        }
        let has_shape = |kind: &AnomalyKind| !kind.names().cycles.is_empty();
        found.extend([FracturedReadCm, NonMonoReadCm, NonMonotonicRead]);
        assert!(AnomalyKind::all().filter(has_shape).eq(found));
    }

    #[test]
    fn what_only_real_time_closes_says_so() {
        let time = Reason::RealTime { finish: 1, start: 2 };
        assert_eq!(name(&cycle(&[time.clone(), read(1)])), AnomalyKind::RealTimeCycle);
        assert_eq!(name(&cycle(&[time, missed(0, 1), missed(1, 2)])), AnomalyKind::RealTimeCycle);
    }
}
