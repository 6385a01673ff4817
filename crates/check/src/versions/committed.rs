//! Adya's read committed in real time.
//!
//! Session order, reads, real time and what is known of the order of versions are acyclic. As without
//! real time, any total order that extends them will do for the rest of the versions.

use isolario_model::{Anomaly, Edge, Findings, Level, Reason, TxnId, Witness};

use crate::cycles;
use crate::graph::{InTime, Moments, precedes, topological_order};
use crate::plan::Conclusion;
use crate::resolved::{Inferred, Resolved, Saturated};

const LEVEL: Level = Level::StrongAdyaReadCommitted;

/// Decides it for a history with these wrong reads.
pub(crate) fn check(
    resolved: &Resolved<'_>,
    clock_skew: u64,
    mut anomalies: Vec<Anomaly>,
) -> Conclusion {
    let dependencies = &resolved.dependencies;
    let (history, reads) = (dependencies.history, &dependencies.reads);
    let shown = reads.version_order.iter().map(|edge| (edge.before, edge.after)).collect();
    let inferred = Inferred::new(history.txn_count(), &[shown]);
    let graph = Saturated { dependencies, inferred: &inferred };
    let timed = InTime { graph: &graph, time: resolved.real_time() };
    let order = topological_order(&timed, &timed.and_helpers(resolved.guess.commits.clone()));
    if order.is_none() {
        let had_finished = |before, after| precedes(history, clock_skew, before, after);
        let timing = cycles::Timing { time: resolved.real_time(), had_finished: &had_finished };
        let edges = |nodes: &[u32]| explained(&graph, nodes);
        anomalies.extend(cycles::shortest_of_each(LEVEL, &graph, Some(&timing), edges));
    }
    match order {
        Some(order) if anomalies.is_empty() => {
            let txns = order.into_iter().filter(|node| (*node as usize) < history.txn_count());
            let kept = txns.map(TxnId).filter(|txn| reads.is_kept(*txn));
            Conclusion::Holds(Witness::CommitOrder(kept.collect()))
        }
        _ => Conclusion::Refuted(Findings::new(anomalies, true)),
    }
}

/// The edges of a cycle.
fn explained(graph: &Saturated<'_>, cycle: &[u32]) -> Vec<Edge> {
    let history = graph.dependencies.history;
    let next = cycle.iter().cycle().skip(1);
    let edge = |(from, to): (&u32, &u32)| {
        let (from, to) = (graph.ends(*from)?, graph.begins(*to)?);
        graph.plain_edge(from, to).or_else(|| {
            let (finish, start) = history.finish(from).zip(history.start(to))?;
            Some(Edge { from, to, reason: Reason::RealTime { finish, start } })
        })
    };
    cycle.iter().zip(next).filter_map(edge).collect()
}
