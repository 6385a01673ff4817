//! Re-checks why a level was said not to apply, where the history tells.

use isolario_model::{Clock, Inapplicable, Level, OpFamily, OpId, OpKind, Outcome};
use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::{Refusal, Verifier, lin, lists};

pub(crate) fn verify(
    verifier: &Verifier<'_>,
    level: Level,
    reason: &Inapplicable,
) -> Result<(), Refusal> {
    let holds = |holds: bool, otherwise| {
        if holds { Ok(()) } else { Err(Refusal::Applicable(otherwise)) }
    };
    let history = verifier.history;
    match *reason {
        Inapplicable::AmbiguousRead { read, first, second, total } => {
            let facts = verifier.facts()?;
            holds(total > 0, "no read is counted")?;
            holds(is_ambiguous(facts, read, first, second)?, "the read is not ambiguous")
        }
        Inapplicable::Operation { op } => {
            let kind = history.op_kinds().get(op.index()).ok_or(Refusal::NoSuchOp(op))?;
            if level == Level::Linearizable {
                let known = lin::is_known(history, op);
                return holds(!known, "the operation is on a register");
            }
            let known = level.needs().operations.contains(&OpFamily::of(*kind));
            holds(!known, "the level is decided for such operations")
        }
        Inapplicable::SeveralOperations { txn } => {
            let facts = txn.index() < history.txn_count() && history.txn_ops(txn).len() > 1;
            let matters = level == Level::Linearizable && facts;
            let kept = matters && history.outcome(txn) != Outcome::Aborted;
            holds(kept, "the level is about transactions, or that one is a single operation")
        }
        Inapplicable::NoVersionOrder => {
            let facts = verifier.facts()?;
            holds(level.needs().version_order, "the level needs no order of versions")?;
            holds(has_blind_write(facts), "every write follows a read of its key")
        }
        Inapplicable::NoTimes => holds(!history.has_times(), "there are times"),
        Inapplicable::NoChecker => holds(!level.is_decided(), "there is a checker for the level"),
        Inapplicable::SkewOfEventOrder => {
            let by_events = history.clock() == Clock::EventOrder;
            holds(by_events && verifier.options.clock_skew > 0, "the times can be widened")
        }
        Inapplicable::CyclicDependencies => holds(false, "the level needs no causal order"),
        _ => Ok(()),
    }
}

/// Whether a transaction that may have committed wrote a register that it had not read.
fn has_blind_write(facts: &Facts<'_>) -> bool {
    let history = facts.history;
    let mut kept = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
    kept.any(|txn| {
        let mut read = FxHashSet::default();
        history.txn_ops(txn).any(|op| match history.op_kinds()[op.index()] {
            OpKind::Write | OpKind::Delete => !read.contains(&facts.key(op)),
            OpKind::Read => {
                read.insert(facts.key(op));
                false
            }
            _ => false,
        })
    })
}

/// Whether a read may have seen the first write (or `init`) and the second.
fn is_ambiguous(
    facts: &Facts<'_>,
    read: OpId,
    first: Option<OpId>,
    second: OpId,
) -> Result<bool, Refusal> {
    if let (Some(first), true) =
        (first, facts.history.op_kinds().get(read.index()) == Some(&OpKind::ReadList))
    {
        let (first, second) = (facts.known_op(first)?, facts.known_op(second)?);
        return Ok(lists::is_ambiguous(facts, read, first, second));
    }
    let is_candidate = |write: OpId| facts.candidates(read).any(|other| other == write);
    Ok(facts.is_read(facts.known_op(read)?)
        && first.map_or_else(|| facts.may_be_initial(read), is_candidate)
        && is_candidate(second)
        && first != Some(second))
}
