//! What cycles are called that rest on rows which predicates met.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, History, KeyId, Level, LevelSet, Op, OpId, Reason,
    Verdict, VersionOrder,
};

use std::sync::Arc;

/// The names of single rows say nothing about predicates, and rule out levels that allow what a
/// predicate misses. So a cycle with an edge of a row that was met is told as the one case that there
/// is, and rules out no more than the level that it was found for.
pub(super) fn rename(history: &History, level: Level, verdict: &mut Verdict) {
    let Verdict::Violated(findings) = verdict else { return };
    for anomaly in &mut findings.anomalies {
        let Evidence::Cycle { edges } = &anomaly.evidence else { continue };
        if edges.iter().any(|edge| rests_on_met(history, edge)) {
            let mut renamed = Anomaly::clone(anomaly);
            renamed.kind = AnomalyKind::NoOrderPossible;
            renamed.evidence = Evidence::Cases { cycles: vec![edges.clone()] };
            renamed.rules_out = LevelSet::from_iter([level]).and_stronger();
            *anomaly = Arc::new(renamed);
        }
    }
}

/// Whether an edge, or one that it rests on, is there because of a row that was met.
fn rests_on_met(history: &History, edge: &Edge) -> bool {
    let mut waiting = vec![edge];
    while let Some(edge) = waiting.pop() {
        waiting.extend(edge.reason.support());
        let (key, read, known) = match &edge.reason {
            Reason::Read { key, read, .. } => (*key, Some(*read), None),
            Reason::AntiDependency { key, read, known, .. } => (*key, Some(*read), Some(known)),
            Reason::Overwrite { key, known } => (*key, None, Some(known)),
            _ => continue,
        };
        let before = match known {
            Some(VersionOrder::ReadModifyWrite { read }) => Some(*read),
            _ => None,
        };
        if read.into_iter().chain(before).any(|read| is_met(history, read, key)) {
            return true;
        }
    }
    false
}

/// Whether an operation does not tell the version of a row that it met.
fn is_met(history: &History, op: OpId, key: KeyId) -> bool {
    match history.op(op) {
        Op::PredicateRead { rows, .. } => {
            !rows.unwrap_or_default().iter().any(|row| row.key == key)
        }
        Op::PredicateWrite { .. } => true,
        _ => false,
    }
}
