//! The six anomalies of a single read (AWDIT, Definition 2.3; Plume, TAP-a to TAP-f).

use isolario_model::{AnomalyKind, Level, OpId, OpKind, Outcome, TxnId};

use crate::facts::{Facts, Source};
use crate::{Refusal, lists};

/// A read, the write it is said to have seen, and the write that is said to make it wrong.
#[derive(Clone, Copy)]
pub(crate) struct BadRead {
    pub(crate) read: OpId,
    pub(crate) saw: Option<OpId>,
    pub(crate) instead: Option<OpId>,
}

/// Refuses a read that some write explains, and a read that is wrong in another way than said.
pub(crate) fn verify(
    facts: &Facts<'_>,
    level: Level,
    kind: AnomalyKind,
    bad: BadRead,
) -> Result<(), Refusal> {
    for op in [Some(bad.read), bad.saw, bad.instead].into_iter().flatten() {
        facts.known_op(op)?;
    }
    facts.committed_at(level, facts.txn(bad.read))?;
    if kind == AnomalyKind::DuplicateElements
        && let Some(saw) = bad.saw
    {
        facts.committed_at(level, facts.txn(saw))?;
    }
    let wrong = |why| Err(Refusal::WrongKind { kind, why });
    if facts.is_met(bad.read) {
        return match is_unexplained(facts, kind, bad) {
            true => Ok(()),
            false => wrong(
                "a write that it may have observed explains it, or the anomaly has another name",
            ),
        };
    }
    if !facts.is_read(bad.read) {
        return wrong("it is not a read with an answer");
    }
    if let Some(shown) = lists::shows(facts, kind, bad) {
        return if shown { Ok(()) } else { wrong("the list is wrong in another way, if at all") };
    }
    if is_explained(facts, bad.read) {
        return wrong("a write that it may have seen explains the read");
    }
    let saw_a_candidate = bad.saw.is_none_or(|saw| facts.candidates(bad.read).any(|w| w == saw));
    if !saw_a_candidate {
        return wrong("the write it is said to have seen is of another key or value");
    }
    if shows(facts, kind, bad) {
        Ok(())
    } else {
        wrong("the read is wrong in another way, if at all")
    }
}

/// Whether nothing explains what was met: nobody wrote such a thing, or the own write before was another.
fn is_unexplained(facts: &Facts<'_>, kind: AnomalyKind, bad: BadRead) -> bool {
    let own = facts.own_before(bad.read);
    let is_met = facts.met.get(&bad.read).is_some_and(|writers| !writers.is_empty());
    let kind_of_it = match bad.instead {
        Some(_) => AnomalyKind::NotMyOwnWrite,
        None => AnomalyKind::ThinAirRead,
    };
    !is_met
        && bad.saw.is_none()
        && kind == kind_of_it
        && bad.instead.is_none_or(|op| own == Some(op))
}

/// Whether some write that the read may have seen makes it a right one. Where several did write
/// what it returned, each of them has to be wrong.
fn is_explained(facts: &Facts<'_>, read: OpId) -> bool {
    match facts.own_before(read) {
        Some(_) => facts.source(read) == Some(Source::Own),
        None => explanations(facts, read).is_none_or(|writes| !writes.is_empty()),
    }
}

/// The writes of others that make a read of a register a right one, whatever the order; none if it may
/// have seen the initial version, or has to see its own write.
pub(crate) fn explanations(facts: &Facts<'_>, read: OpId) -> Option<Vec<OpId>> {
    let may_be_others = facts.own_before(read).is_none()
        && facts.history.op_kinds()[read.index()] == OpKind::Read
        && !facts.may_be_initial(read);
    let explains = |write: &OpId| explains(facts, read, *write);
    may_be_others.then(|| facts.candidates(read).filter(explains).collect())
}

/// Whose writes make a read of a register a right one, whatever the order: `init`'s among them, and
/// nobody's where it should have seen its own.
pub(crate) fn explaining(facts: &Facts<'_>, read: OpId) -> Vec<TxnId> {
    if facts.own_before(read).is_some() {
        return Vec::new();
    }
    if let Some(writers) = facts.met.get(&read) {
        return writers.clone();
    }
    let init = facts.may_be_initial(read).then_some(TxnId::INIT);
    let others = facts.candidates(read).filter(|write| explains(facts, read, *write));
    init.into_iter().chain(others.map(|write| facts.txn(write))).collect()
}

/// Whether a read may have seen a write of another transaction and be right.
fn explains(facts: &Facts<'_>, read: OpId, write: OpId) -> bool {
    let writer = facts.txn(write);
    writer != facts.txn(read)
        && facts.history.outcome(writer) != Outcome::Aborted
        && facts.next_own(write).is_none()
}

fn shows(facts: &Facts<'_>, kind: AnomalyKind, bad: BadRead) -> bool {
    let BadRead { read, saw, instead } = bad;
    let reader = facts.txn(read);
    let own = facts.own_before(read);
    let is_own = |write: OpId| facts.txn(write) == reader;
    let is_aborted =
        |write: OpId| !is_own(write) && facts.history.outcome(facts.txn(write)) == Outcome::Aborted;
    match (kind, saw) {
        (AnomalyKind::ThinAirRead, None) => {
            instead.is_none()
                && !facts.may_be_initial(read)
                && facts.candidates(read).next().is_none()
        }
        (AnomalyKind::AbortedRead, Some(saw)) => instead.is_none() && is_aborted(saw),
        (AnomalyKind::DirtyUpdate, Some(saw)) => {
            let overwrites = |write: OpId| {
                facts.is_write(write)
                    && is_own(write)
                    && write > read
                    && facts.key(write) == facts.key(read)
            };
            is_aborted(saw) && instead.is_some_and(overwrites)
        }
        (AnomalyKind::FutureRead, Some(saw)) => instead.is_none() && is_own(saw) && read < saw,
        (AnomalyKind::NotMyOwnWrite, Some(saw)) => own.is_some() && instead == own && !is_own(saw),
        (AnomalyKind::NotMyOwnWrite, None) => {
            own.is_some() && instead == own && facts.may_be_initial(read)
        }
        (AnomalyKind::NotMyLastWrite, Some(saw)) => {
            own.is_some() && instead == own && is_own(saw) && saw < read
        }
        (AnomalyKind::IntermediateRead, Some(saw)) => {
            !is_own(saw) && instead.is_some_and(|later| replaces(facts, saw, later))
        }
        _ => false,
    }
}

/// Whether a transaction replaced its own write by another one.
fn replaces(facts: &Facts<'_>, write: OpId, later: OpId) -> bool {
    facts.is_write(later)
        && write < later
        && facts.txn(write) == facts.txn(later)
        && facts.key(write) == facts.key(later)
}
