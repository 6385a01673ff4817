//! Cycles: the edges close, the level forbids such a cycle, and it is of the kind it is said to be.

use isolario_model::{AnomalyKind, Edge, Level};

use crate::facts::Facts;
use crate::{Refusal, edges, justify, shapes, span};

/// Refuses a cycle that is none, that the level allows, or that is of another kind.
pub(crate) fn verify(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    cycle: &[Edge],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    if cycle.is_empty() {
        return wrong("there are no edges");
    }
    closes(cycle)?;
    justify::all(facts, level, cycle)?;
    if !span::is_contradiction(facts, level, cycle) {
        return wrong("the level allows such a cycle");
    }
    if !shapes::is_of_kind(kind, cycle) {
        return wrong("the cycle is of another kind");
    }
    if shapes::claims_too_much(kind, level, cycle) {
        return wrong("its name rules out weaker levels, and the cycle does not");
    }
    Ok(())
}

/// Refuses edges that do not lead back to where they began.
pub(crate) fn closes(cycle: &[Edge]) -> Result<(), Refusal> {
    match edges::ends(cycle)? {
        Some((begin, end)) if begin != end => Err(Refusal::Disconnected { from: end, to: begin }),
        _ => Ok(()),
    }
}
