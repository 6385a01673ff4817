//! Levels against the verdicts that the manifest states.

use isolario::check::{CheckOptions, check, supported};
use isolario::model::{History, Inapplicable, Level, LevelResult, OpKind, Verdict};
use isolario_verify::verify;

use crate::manifest::Row;
use crate::spilled;

/// The columns of the manifest and the levels they speak of.
const STATED: [(&str, Level); 5] = [
    ("RC", Level::ReadCommitted),
    ("RA", Level::ReadAtomic),
    ("CC", Level::Causal),
    ("SI", Level::SnapshotIsolation),
    ("SER", Level::Serializable),
];

/// How many verdicts came out in which way.
#[derive(Default)]
pub struct Verdicts {
    /// As the manifest says: read committed, read atomic, causal, snapshot isolation, serializable.
    pub agreed: [u64; 5],
    /// Stated by the manifest and out of our checkers' reach.
    pub not_applicable: u64,
    /// Results of any level whose evidence was verified.
    pub verified: u64,
}

impl Verdicts {
    pub fn add(&mut self, other: &Verdicts) {
        for (sum, more) in self.agreed.iter_mut().zip(other.agreed) {
            *sum += more;
        }
        self.not_applicable += other.not_applicable;
        self.verified += other.verified;
    }
}

/// Checks all levels there are and has every result verified; what is refused goes to the faults, and
/// so does what comes out otherwise where the history is read piece by piece.
pub fn verified(history: &History, faults: &mut Vec<String>) -> (Vec<LevelResult>, Verdicts) {
    let results = check(history, supported(), &CheckOptions::default());
    let mut verdicts = Verdicts::default();
    for result in &results {
        match verify(history, result, &isolario_verify::VerifyOptions::default()) {
            Ok(()) => verdicts.verified += 1,
            Err(refusal) => faults.push(format!("{}: proof refused: {refusal}", result.level)),
        }
    }
    faults.extend(spilled::differences(history, &results));
    (results, verdicts)
}

/// As [`verified`]; the results that the manifest contradicts go to the faults, too.
pub fn compare(row: Row<'_>, history: &History, faults: &mut Vec<String>) -> Verdicts {
    let (results, mut verdicts) = verified(history, faults);
    for (agreed, (column, level)) in verdicts.agreed.iter_mut().zip(STATED) {
        let result = results.iter().find(|result| result.level == level);
        let result = result.unwrap_or_else(|| panic!("{level} is not decided"));
        if is_assumed(row.text("basis"), column) {
            continue;
        }
        match (row.text(&format!("exp_{column}")), &result.verdict) {
            ("valid", Verdict::Satisfied(_)) | ("invalid", Verdict::Violated(_)) => *agreed += 1,
            ("valid" | "invalid", Verdict::NotApplicable(reason)) => {
                verdicts.not_applicable += 1;
                let why = unacceptable(history, level, reason);
                faults.extend(why.map(|why| format!("{level}: {why}")));
            }
            ("unknown", _) => {}
            (stated, found) => faults.push(format!(
                "{level}: the manifest says {stated} ({}), the checker {}",
                row.text("basis"),
                describe(found)
            )),
        }
    }
    verdicts
}

/// What is wrong with the verdict on linearizability, where the manifest states one.
pub fn linearizable(row: Row<'_>, results: &[LevelResult]) -> Option<String> {
    if row.text("isolation_level_and_opts") != Level::Linearizable.name() {
        return None;
    }
    let result = results.iter().find(|result| result.level == Level::Linearizable)?;
    match (row.text("expected"), &result.verdict) {
        ("valid", Verdict::Satisfied(_)) | ("invalid", Verdict::Violated(_)) => None,
        (stated, found) => Some(format!("the manifest says {stated}, the checker {found:?}")),
    }
}

/// Whether a verdict is only what the database claims, so that it proves nothing.
fn is_assumed(basis: &str, column: &str) -> bool {
    basis.split(';').any(|part| part.strip_prefix(column) == Some(":assumed"))
}

/// Why a level should have been decided after all.
fn unacceptable(history: &History, level: Level, reason: &Inapplicable) -> Option<String> {
    match reason {
        Inapplicable::AmbiguousRead { .. } => None,
        Inapplicable::Operation { op } => {
            let is_decided = match history.op_kinds()[op.index()] {
                OpKind::Read | OpKind::ReadUnobserved | OpKind::Write => true,
                OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved => {
                    !level.implies(Level::Prefix)
                }
                _ => false,
            };
            is_decided.then(|| format!("said not to apply because of {op:?}"))
        }
        other => Some(format!("said not to apply: {other:?}")),
    }
}

fn describe(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Violated(findings) => match findings.anomalies.first() {
            Some(anomaly) => format!("violated: {anomaly:?}"),
            None => "violated".to_owned(),
        },
        other => other.name().to_owned(),
    }
}
