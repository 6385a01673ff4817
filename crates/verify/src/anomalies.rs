//! Violations: every anomaly is re-checked, and that the level forbids it.

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, Findings, KeyId, Level, OpId, TxnId};

use crate::facts::{Facts, Source};
use crate::single_reads::{self, BadRead};
use crate::{Refusal, cycles, edges, justify, lists, weak};

/// Refuses findings of which one is wrong, or that show nothing.
pub(crate) fn verify(facts: &Facts<'_>, level: Level, findings: &Findings) -> Result<(), Refusal> {
    are_counted(findings)?;
    findings.anomalies.iter().try_for_each(|anomaly| verify_anomaly(facts, level, anomaly))
}

/// Refuses findings that show nothing, and more than they count.
pub(crate) fn are_counted(findings: &Findings) -> Result<(), Refusal> {
    let shown = findings.anomalies.len() as u64;
    if shown == 0 {
        return Err(Refusal::NoAnomaly);
    }
    if findings.total < shown {
        return Err(Refusal::Miscounted { shown, total: findings.total });
    }
    Ok(())
}

fn verify_anomaly(facts: &Facts<'_>, level: Level, anomaly: &Anomaly) -> Result<(), Refusal> {
    let kind = anomaly.kind;
    // Of cycles, it is shown that the level forbids them, whatever others of the name it allows.
    let is_cycle = matches!(anomaly.evidence, Evidence::Cycle { .. } | Evidence::Cases { .. });
    if !is_cycle && !kind.forbidden_at(level) {
        return Err(Refusal::Allowed { kind, level });
    }
    match &anomaly.evidence {
        Evidence::Read { read, saw, instead } => {
            let bad = BadRead { read: *read, saw: *saw, instead: *instead };
            single_reads::verify(facts, level, kind, bad)
        }
        Evidence::Reads { key, first, second, .. } if kind == AnomalyKind::IncompatibleOrder => {
            let why = "one list is a prefix of the other";
            let disagree = lists::disagree(facts, level, *key, *first, *second)?;
            if disagree { Ok(()) } else { Err(Refusal::WrongKind { kind, why }) }
        }
        Evidence::Reads { key, first, second, edges } if kind == AnomalyKind::ThinAirRead => {
            are_two_initial_values(facts, *key, *first, *second, edges)
        }
        Evidence::Reads { key, first, second, edges }
            if kind == AnomalyKind::NonRepeatableRead
                && edges.is_empty()
                && is_open(facts, *first, *second)? =>
        {
            saw_two_of_several(facts, *key, *first, *second)
        }
        Evidence::Reads { key, first, second, edges } => {
            let pair = Pair::new(facts, kind, *key, *first, *second)?;
            pair.verify(facts, level, kind, edges)
        }
        Evidence::Cycle { edges } => cycles::verify(facts, level, kind, edges),
        Evidence::Cases { cycles } => cycles::verify_cases(facts, level, kind, cycles),
        _ => Err(Refusal::Unsupported("evidence of this kind")),
    }
}

/// Refuses two reads unless they returned two values that nobody wrote, of which a key has only one:
/// the other came out of thin air.
fn are_two_initial_values(
    facts: &Facts<'_>,
    key: KeyId,
    first: OpId,
    second: OpId,
    edges: &[Edge],
) -> Result<(), Refusal> {
    for read in [first, second] {
        facts.committed(facts.txn(facts.known_op(read)?))?;
    }
    let two = facts.see_two_initial_values(first, second) && first < second;
    let (kind, why) =
        (AnomalyKind::ThinAirRead, "they are not two values that no transaction wrote");
    if two && facts.key(first) == key && edges.is_empty() {
        Ok(())
    } else {
        Err(Refusal::WrongKind { kind, why })
    }
}

/// Whether one of two reads may have seen the writes of several transactions.
fn is_open(facts: &Facts<'_>, first: OpId, second: OpId) -> Result<bool, Refusal> {
    let is_open = |read| Ok(facts.source(facts.known_op(read)?) == Some(Source::Ambiguous));
    let (first, second) = (is_open(first)?, is_open(second)?);
    Ok(first || second)
}

/// Refuses two reads unless they are of one key by one transaction, and nobody can have written what
/// both saw.
fn saw_two_of_several(
    facts: &Facts<'_>,
    key: KeyId,
    first: OpId,
    second: OpId,
) -> Result<(), Refusal> {
    facts.committed(facts.txn(first))?;
    let are_two = facts.txn(first) == facts.txn(second) && first < second;
    let are_of_key = [first, second].iter().all(|read| facts.key(*read) == key);
    match are_two && are_of_key && weak::cannot_agree(facts, first, second) {
        true => Ok(()),
        false => {
            let kind = AnomalyKind::NonRepeatableRead;
            Err(Refusal::WrongKind { kind, why: "the reads may have seen one transaction" })
        }
    }
}

/// Two reads of one key by one transaction, from two others.
struct Pair {
    /// Who the earlier read saw.
    first: TxnId,
    /// Who the later read saw.
    second: TxnId,
}

impl Pair {
    fn new(
        facts: &Facts<'_>,
        kind: AnomalyKind,
        key: KeyId,
        first: OpId,
        second: OpId,
    ) -> Result<Self, Refusal> {
        let wrong = |why| Err(Refusal::WrongKind { kind, why });
        let (first, second) = (facts.known_op(first)?, facts.known_op(second)?);
        facts.committed(facts.txn(first))?;
        if facts.txn(first) != facts.txn(second) || first >= second {
            return wrong("the reads are not two of one transaction, in program order");
        }
        if facts.key(first) != key || facts.key(second) != key {
            return wrong("the reads are of another key");
        }
        match (facts.external(first)?, facts.external(second)?) {
            (Some((one, _)), Some((other, _)))
                if one != other || facts.see_two_initial_values(first, second) =>
            {
                facts.committed(one)?;
                facts.committed(other)?;
                Ok(Pair { first: one, second: other })
            }
            _ => wrong("the reads did not see two other transactions"),
        }
    }

    fn verify(
        &self,
        facts: &Facts<'_>,
        level: Level,
        kind: AnomalyKind,
        path: &[Edge],
    ) -> Result<(), Refusal> {
        match kind {
            AnomalyKind::NonRepeatableRead => justify::all(facts, level, path),
            AnomalyKind::NonMonotonicRead => self.goes_back(facts, level, kind, path),
            _ => Err(Refusal::WrongKind { kind, why: "it is not about two reads" }),
        }
    }

    /// Whether a path shows that the later read saw the older version. Nothing needs to be shown
    /// where that is the initial one.
    fn goes_back(
        &self,
        facts: &Facts<'_>,
        level: Level,
        kind: AnomalyKind,
        path: &[Edge],
    ) -> Result<(), Refusal> {
        justify::all(facts, level, path)?;
        let ends = edges::ends(path)?;
        let from_init = path.is_empty() && self.second.is_init() && !self.first.is_init();
        if from_init || ends == Some((self.second, self.first)) {
            return Ok(());
        }
        let why = "the edges do not lead from the later read's writer to the earlier read's";
        Err(Refusal::WrongKind { kind, why })
    }
}
