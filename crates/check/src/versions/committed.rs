//! Adya's read committed in real time.
//!
//! Session order, reads, real time and what is known of the order of versions are acyclic. As without
//! real time, any total order that extends them will do for the rest of the versions.

use isolario_model::{Anomaly, Edge, Findings, Level, TxnId};

use crate::cycles::{Explain, cycles, real_time};
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, Inferred, Resolved, Saturated};

const LEVEL: Level = Level::StrongAdyaReadCommitted;

/// Decides it for a history with these wrong reads.
pub(crate) fn check(resolved: &Resolved<'_>, mut anomalies: Vec<Anomaly>) -> Conclusion {
    let dependencies = &resolved.dependencies;
    let shown = dependencies.reads.demands().collect();
    let inferred = Inferred::new(dependencies.history.txn_count(), &[shown]);
    let graph = Saturated { dependencies, inferred: &inferred };
    let order = resolved.order_of(&graph, &resolved.guess.commits, true);
    if order.is_none() {
        anomalies.extend(cycles(resolved, LEVEL, &graph, &ShownVersions(dependencies)));
    }
    match order {
        Some(order) if anomalies.is_empty() => Conclusion::serial(LEVEL, resolved.kept(&order)),
        _ => Conclusion::Refuted(Findings::new(anomalies, true)),
    }
}

/// What is shown or stated of versions, without what follows from reads before writes.
struct ShownVersions<'a>(&'a Dependencies<'a>);

impl Explain for ShownVersions<'_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.0.plain_edge(from, to)
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        real_time(self.0.history, from, to)
    }
}
