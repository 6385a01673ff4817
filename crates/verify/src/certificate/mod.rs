//! Verdicts by a version certificate: the order of each row's versions, and the versions that each
//! predicate operation met.
//!
//! An order is compared with every dependency, each version of each row with each predicate. Of a cycle,
//! every edge is looked up. Nothing here relies on which changes of a row are nearest to what was met.

mod cases;
pub(crate) mod edges;
mod results;
mod rows;
mod unstated;
mod witness;

use isolario_model::{AnomalyKind, Evidence, Findings, Inapplicable, Level, LevelResult, Verdict};

use crate::Refusal;
use crate::anomalies::are_counted;

pub(crate) use rows::{Certificate, Lacks};

/// Whether a certificate decides a level.
pub(crate) fn decides(level: Level) -> bool {
    use Level as L;
    let others =
        [L::ReadCommitted, L::CutIsolation, L::ReadAtomic, L::Causal, L::Prefix, L::Linearizable];
    !others.contains(&level)
}

/// Whether a row is one object at a level, whatever becomes of it.
fn by_rows(level: Level) -> bool {
    level.implies(Level::Serializable)
}

fn refuse<T>(kind: AnomalyKind, why: &'static str) -> Result<T, Refusal> {
    Err(Refusal::WrongKind { kind, why })
}

/// Re-checks a result that was found by a certificate.
pub(crate) fn verify(
    certificate: Result<&Certificate<'_>, &Lacks>,
    result: &LevelResult,
) -> Result<(), Refusal> {
    match (&result.verdict, certificate) {
        (Verdict::Undecided(_), _) => Ok(()),
        (Verdict::NotApplicable(reason), certificate) => does_not_apply(certificate, reason),
        (_, Err(Lacks::Initial)) => {
            Err(Refusal::Unsupported("rows whose initial versions are unknown"))
        }
        (_, Err(_)) => Err(Refusal::Unsupported("a certificate that does not say everything")),
        (Verdict::Satisfied(witness), Ok(certificate)) => {
            certificate.is_explained(result.level, witness)
        }
        (Verdict::Violated(findings), Ok(certificate)) => {
            certificate.are_found(result.level, findings)
        }
        _ => Err(Refusal::Unsupported("this verdict")),
    }
}

fn does_not_apply(
    certificate: Result<&Certificate<'_>, &Lacks>,
    reason: &Inapplicable,
) -> Result<(), Refusal> {
    let holds = match (reason, certificate) {
        // Where several things are lacking, others may be told first.
        (_, Err(_)) => true,
        (Inapplicable::OpenVersionOrder { .. }, Ok(_)) => false,
        (Inapplicable::NoVersionSet { op, total }, Ok(certificate)) => {
            let mut unstated = certificate.unstated();
            unstated.next() == Some(*op) && unstated.count() as u64 + 1 == *total
        }
        (Inapplicable::RowTwice { .. }, Ok(_)) => false,
        _ => true,
    };
    match holds {
        true => Ok(()),
        false => Err(Refusal::Applicable("the certificate says everything")),
    }
}

impl Certificate<'_> {
    fn are_found(&self, level: Level, findings: &Findings) -> Result<(), Refusal> {
        are_counted(findings)?;
        for anomaly in &findings.anomalies {
            let kind = anomaly.kind;
            if let (AnomalyKind::NoOrderPossible, Evidence::Cases { cycles }) =
                (kind, &anomaly.evidence)
            {
                self.are_all_cases(level, cycles)?;
                continue;
            }
            let is_cycle = matches!(anomaly.evidence, Evidence::Cycle { .. });
            if !is_cycle && !kind.forbidden_at(level) {
                return Err(Refusal::Allowed { kind, level });
            }
            match &anomaly.evidence {
                Evidence::Cycle { edges } => self.is_cycle(level, kind, edges)?,
                Evidence::Unexpected { op, expected, result }
                    if kind == AnomalyKind::ResultMismatch =>
                {
                    self.is_mismatch(level, *op, expected, result.as_ref())?;
                }
                _ => self.is_bad_read(level, anomaly)?,
            }
        }
        Ok(())
    }
}
