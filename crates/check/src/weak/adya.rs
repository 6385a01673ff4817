//! Adya's read committed (PL-2) for registers.
//!
//! PL-2 forbids G0 and G1 for a version order. Registers do not show theirs, so the question is
//! whether there is one. Reads must see final writes of committed transactions, and session order
//! ∪ write-read must be acyclic. That is also enough: take any total order of the transactions
//! that extends it, and let the versions of each key follow it; then overwrites, reads and session
//! order all agree with one order, and no cycle of them is possible.

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, Findings, TxnId, Verdict, Witness};

use super::Dependencies;
use crate::graph::{components, shortest_cycle, topological_order};

/// Decides the level.
pub(crate) fn check(dependencies: &Dependencies<'_>) -> Verdict {
    let reads = dependencies.reads;
    let order = topological_order(dependencies);
    if order.is_none() || !reads.anomalies.is_empty() {
        let cycles = if order.is_none() { cycles(dependencies) } else { Vec::new() };
        let anomalies: Vec<_> = reads.anomalies.iter().cloned().chain(cycles).collect();
        let total = anomalies.len() as u64;
        // An ambiguous read may hide a cycle.
        let exact = reads.ambiguous.is_none();
        return Verdict::Violated(Findings { anomalies, total, exact });
    }
    match &reads.ambiguous {
        Some(ambiguous) => Verdict::NotApplicable(ambiguous.clone()),
        None => {
            let kept = order.unwrap_or_default().into_iter().map(TxnId);
            let kept = kept.filter(|txn| reads.is_kept(*txn));
            Verdict::Satisfied(Witness::CommitOrder(kept.collect()))
        }
    }
}

/// A shortest cycle of each component that has one.
fn cycles(dependencies: &Dependencies<'_>) -> Vec<Anomaly> {
    let mut found: Vec<Vec<Edge>> = components(dependencies)
        .iter()
        .map(|component| edges(dependencies, &shortest_cycle(dependencies, component)))
        .collect();
    found.sort_by_key(Vec::len);
    let anomaly =
        |edges| Anomaly { kind: AnomalyKind::CyclicCo, evidence: Evidence::Cycle { edges } };
    found.into_iter().map(anomaly).collect()
}

fn edges(dependencies: &Dependencies<'_>, cycle: &[u32]) -> Vec<Edge> {
    let successors = cycle.iter().cycle().skip(1);
    let edge = |(from, to): (&u32, &u32)| dependencies.edge(TxnId(*from), TxnId(*to));
    cycle.iter().zip(successors).filter_map(edge).collect()
}
