//! Case analysis: cycles that rest on assumptions, and no way to avoid them all.
//!
//! A cycle that is justified under assumptions shows that they do not hold together. An assumption
//! is that of two transactions the one commits before the other; its opposite is the other way
//! round, and one of the two holds. So each cycle is a clause, and the clauses must contradict each
//! other.

use isolario_model::{AnomalyKind, Edge, Level};

use crate::clauses::{self, Literal};
use crate::facts::Facts;
use crate::justify::{self, Before};
use crate::{Refusal, cycles, span};

/// Refuses cycles of which one is none, or that leave a case.
pub(crate) fn verify(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    cycles: &[Vec<Edge>],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    if kind != AnomalyKind::NoOrderPossible {
        return wrong("it is not shown by cases");
    }
    let mut ruled_out: Vec<Vec<Before>> = Vec::with_capacity(cycles.len());
    for cycle in cycles {
        cycles::closes(cycle)?;
        if !span::is_contradiction(facts, level, cycle) {
            return wrong("the level allows one of the cycles");
        }
        ruled_out.push(justify::under_assumptions(facts, level, cycle)?);
    }
    if leaves_a_case(&ruled_out) { wrong("the cycles do not close every case") } else { Ok(()) }
}

/// Whether some order of all pairs has none of the assumptions that are ruled out together.
fn leaves_a_case(ruled_out: &[Vec<Before>]) -> bool {
    let sorted = |before: &Before| (*before).min(before.opposite());
    let mut pairs: Vec<Before> = ruled_out.iter().flatten().map(sorted).collect();
    pairs.sort_unstable();
    pairs.dedup();
    // The pair is in the table, which was made of all of them.
    let variable = |before: &Before| pairs.partition_point(|pair| *pair < sorted(before));
    let does_not_hold = |before: &Before| Literal::new(variable(before), *before != sorted(before));
    let clauses: Vec<Vec<Literal>> =
        ruled_out.iter().map(|together| together.iter().map(does_not_hold).collect()).collect();
    clauses::is_satisfiable(pairs.len(), &clauses)
}
