//! Cycles: the edges close, the level forbids such a cycle, and it is of the kind it is said to be.
//!
//! Where one is not enough, several that rest on assumptions leave no way to avoid them all. A cycle
//! that is justified under assumptions shows that they do not hold together. An assumption is that of
//! two transactions the one commits before the other; its opposite is the other way round, and one of
//! the two holds. Or it is that a read saw one of several writes, of which it saw one. So each cycle is
//! a clause, and the clauses must contradict each other.

use isolario_model::{AnomalyKind, Edge, Level, OpId, Reason};

use crate::facts::Facts;
use crate::justify::{self, Assumption};
use crate::{Refusal, alternatives, edges, shapes, single_reads, span};

/// Refuses a cycle that is none, that the level allows, or that is of another kind.
pub(crate) fn verify(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    cycle: &[Edge],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
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

/// Refuses edges that do not lead back to where they began, and none at all.
pub(crate) fn closes(cycle: &[Edge]) -> Result<(), Refusal> {
    match edges::ends(cycle)? {
        None => Err(Refusal::NoEdges),
        Some((begin, end)) if begin != end => Err(Refusal::Disconnected { from: end, to: begin }),
        Some(_) => Ok(()),
    }
}

/// Refuses cycles of which one is none, or that leave a case.
pub(crate) fn verify_cases(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    cycles: &[Vec<Edge>],
) -> Result<(), Refusal> {
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    match kind {
        AnomalyKind::NoOrderPossible => {}
        AnomalyKind::CyclicCo => return verify_read_from_later(facts, level, cycles),
        _ => return wrong("it is not shown by cases"),
    }
    let mut ruled_out: Vec<Vec<Assumption>> = Vec::with_capacity(cycles.len());
    for cycle in cycles {
        closes(cycle)?;
        if !span::is_contradiction(facts, level, cycle) {
            return wrong("the level allows one of the cycles");
        }
        ruled_out.push(justify::under_assumptions(facts, level, cycle)?);
    }
    if alternatives::leave_a_case(facts, &ruled_out) {
        wrong("the cycles do not close every case")
    } else {
        Ok(())
    }
}

/// Refuses cycles unless they are one read of a register that may have seen several writes, each with
/// one of the writes: the reader's own session made it only later. All other writes must be wrong to
/// have seen.
fn verify_read_from_later(
    facts: &Facts<'_>,
    level: Level,
    cycles: &[Vec<Edge>],
) -> Result<(), Refusal> {
    let kind = AnomalyKind::CyclicCo;
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    if !level.shape().session_order || !kind.forbidden_at(level) {
        return Err(Refusal::Allowed { kind, level });
    }
    let mut seen: Vec<OpId> = Vec::new();
    let mut reads: Vec<OpId> = Vec::new();
    for cycle in cycles {
        closes(cycle)?;
        let (reason, reader, writer) = match cycle.as_slice() {
            [session, saw] | [saw, session] if session.reason == Reason::Session => {
                (&saw.reason, session.from, session.to)
            }
            _ => return wrong("a case is not a read from later in the session"),
        };
        let Reason::Read { key, read, write: Some(write) } = *reason else {
            return wrong("a case is not a read from later in the session");
        };
        let is_of = |op: OpId, txn| facts.known_op(op).map(|op| facts.txn(op) == txn);
        if !is_of(read, reader)? || !is_of(write, writer)? || facts.key(read) != key {
            return wrong("a case names another read or write");
        }
        if !facts.in_session_order(reader, writer) {
            return wrong("session order does not order them");
        }
        seen.push(write);
        reads.push(read);
    }
    let Some(read) = reads.first().filter(|read| reads.iter().all(|other| other == *read)) else {
        return wrong("there is no read, or not one alone");
    };
    if single_reads::explanations(facts, *read)
        .is_none_or(|all| all.iter().any(|w| !seen.contains(w)))
    {
        return wrong("another write explains the read");
    }
    Ok(())
}
