//! Cycles: the edges close, the level forbids such a cycle, and it is of the kind it is said to be.

use isolario_model::{AnomalyKind, Edge, EdgeKind, Level, Reason};

use crate::facts::Facts;
use crate::{Refusal, edges};

/// Refuses a cycle that is none, that the level allows, or that is of another kind.
pub(crate) fn verify(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    cycle: &[Edge],
) -> Result<(), Refusal> {
    match edges::ends(cycle)? {
        None => return Err(Refusal::WrongKind { kind, why: "there are no edges" }),
        Some((begin, end)) if begin != end => {
            return Err(Refusal::Disconnected { from: end, to: begin });
        }
        Some(_) => {}
    }
    edges::justify(facts, level, cycle)?;
    if !is_forbidden(level, cycle) {
        return Err(Refusal::WrongKind { kind, why: "the level allows such a cycle" });
    }
    if !is_of_kind(kind, cycle) {
        return Err(Refusal::WrongKind { kind, why: "the cycle is of another kind" });
    }
    Ok(())
}

/// Whether the level forbids a cycle of such edges, each of which it knows.
///
/// Anti-dependencies order commits only from serializable on. Snapshot isolation forbids those
/// cycles in which each comes right after an edge that makes visible (MTC, Definition 6).
fn is_forbidden(level: Level, cycle: &[Edge]) -> bool {
    let kind = |at: usize| cycle[at % cycle.len()].reason.kind();
    let anti = |at: usize| kind(at) == EdgeKind::ReadWrite;
    if level.implies(Level::Serializable) || !(0..cycle.len()).any(anti) {
        return true;
    }
    let shows = |at: usize| !matches!(kind(at), EdgeKind::ReadWrite | EdgeKind::CommitOrder);
    level.implies(Level::SnapshotIsolation) && (0..cycle.len()).all(|at| !anti(at + 1) || shows(at))
}

/// How many edges of a kind a cycle has.
fn count(cycle: &[Edge], kind: EdgeKind) -> usize {
    cycle.iter().filter(|edge| edge.reason.kind() == kind).count()
}

/// Whether a cycle is what its name says. The names of Plume follow from the edge that the rule of
/// a level gave: how the missed writer is visible, and whether the rest of the cycle is causal.
fn is_of_kind(kind: AnomalyKind, cycle: &[Edge]) -> bool {
    let causal = |edge: &Edge| {
        matches!(edge.reason.kind(), EdgeKind::Initial | EdgeKind::Session | EdgeKind::WriteRead)
    };
    let inferred = || cycle.iter().filter(|edge| matches!(edge.reason, Reason::Visible { .. }));
    let others_causal = || cycle.iter().filter(|edge| !causal(edge)).count() == 1;
    let anti = count(cycle, EdgeKind::ReadWrite);
    match kind {
        AnomalyKind::CyclicCo => {
            let listed = |edge: &Edge| edge.reason.kind() == EdgeKind::WriteWrite;
            cycle.iter().all(|edge| causal(edge) || listed(edge)) && cycle.iter().any(causal)
        }
        AnomalyKind::NonMonoReadCo => others_causal() && inferred().any(missed_across_keys),
        AnomalyKind::NonMonoReadCm => inferred().any(missed_across_keys),
        AnomalyKind::NonMonotonicRead => inferred().any(missed_within_key),
        AnomalyKind::FracturedReadCo => others_causal() && inferred().any(missed_directly),
        AnomalyKind::FracturedReadCm => inferred().any(missed_directly),
        AnomalyKind::CoConflictCm => others_causal() && inferred().next().is_some(),
        AnomalyKind::ConflictCm => inferred().next().is_some(),
        AnomalyKind::SessionGuaranteeViolation => inferred().any(missed_own_session),
        AnomalyKind::DirtyWrite => count(cycle, EdgeKind::WriteWrite) == cycle.len(),
        AnomalyKind::WriteSkew => cycle.len() == 2 && anti == 2,
        AnomalyKind::SingleAntiDependency => anti == 1,
        AnomalyKind::ItemAntiDependencyCycle => anti > 0,
        AnomalyKind::RealTimeCycle => count(cycle, EdgeKind::RealTime) > 0,
        _ => false,
    }
}

/// The one edge of a path by which a reader saw the writer it then missed, with the inferred edge's
/// key and read.
fn visible_by(edge: &Edge) -> Option<(&Edge, &Reason)> {
    match &edge.reason {
        Reason::Visible { path, .. } => match path.as_slice() {
            [by] => Some((by, &edge.reason)),
            _ => None,
        },
        _ => None,
    }
}

fn missed_directly(edge: &Edge) -> bool {
    visible_by(edge).is_some()
}

fn missed_own_session(edge: &Edge) -> bool {
    visible_by(edge).is_some_and(|(by, _)| by.reason == Reason::Session)
}

fn missed_across_keys(edge: &Edge) -> bool {
    visible_by(edge)
        .is_some_and(|(by, missed)| reads_before(by, missed) && by.reason.key() != missed.key())
}

fn missed_within_key(edge: &Edge) -> bool {
    visible_by(edge)
        .is_some_and(|(by, missed)| reads_before(by, missed) && by.reason.key() == missed.key())
}

/// Whether the reader saw the writer before the read that missed it.
fn reads_before(by: &Edge, missed: &Reason) -> bool {
    match (&by.reason, missed) {
        (Reason::Read { read: earlier, .. }, Reason::Visible { read, .. }) => earlier < read,
        _ => false,
    }
}
