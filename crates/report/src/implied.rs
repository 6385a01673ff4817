//! What verdicts say about other levels. A satisfied level satisfies what it implies; a violated one
//! violates what implies it, also where that level cannot be decided by itself.

use isolario_model::{Anomaly, Level, LevelResult, LevelSet, VerdictKind};

/// What is known of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVerdict {
    /// The answer.
    pub verdict: VerdictKind,
    /// The level it follows from, where it is not its own.
    pub follows_from: Option<Level>,
}

#[cfg(feature = "html")]
impl KnownVerdict {
    /// Why a level is known, where it is not by itself.
    pub(crate) fn because(&self, level: Level) -> Option<String> {
        let source = self.follows_from?;
        Some(match self.verdict {
            VerdictKind::Violated if !level.is_ruled_out_by(source) => {
                format!("ruled out by what violates {source}")
            }
            _ => format!("follows from {source}"),
        })
    }
}

/// What results say about a level, by itself or by what follows from another; nothing where it was
/// not asked for and nothing follows.
pub fn known(results: &[LevelResult], level: Level) -> Option<KnownVerdict> {
    let own = results.iter().find(|result| result.level == level);
    let own = own.map(|result| KnownVerdict { verdict: result.verdict.kind(), follows_from: None });
    let is_answer = |known: &KnownVerdict| {
        matches!(known.verdict, VerdictKind::Satisfied | VerdictKind::Violated)
    };
    own.filter(is_answer).or_else(|| follows(results, level)).or(own)
}

fn follows(results: &[LevelResult], level: Level) -> Option<KnownVerdict> {
    let from =
        |verdict, source: &LevelResult| KnownVerdict { verdict, follows_from: Some(source.level) };
    let rules_out = |result: &&LevelResult| {
        result.verdict.is_violated()
            && level.is_ruled_out_by(result.level)
            && !is_by_snapshots_alone(result, level)
    };
    if let Some(source) = results.iter().find(rules_out) {
        return Some(from(VerdictKind::Violated, source));
    }
    // Linearizability is decided only for single operations, and for those it is strict
    // serializability: operations on different keys never conflict.
    let satisfies = |result: &&LevelResult| {
        let strongest = match result.level {
            Level::Linearizable => Level::StrictSerializable,
            level => level,
        };
        result.verdict.is_satisfied() && strongest.implies(level)
    };
    results.iter().rev().find(satisfies).map(|source| from(VerdictKind::Satisfied, source))
}

/// Whether all that violates a level are snapshots that the database states, and these say nothing about
/// the other level.
fn is_by_snapshots_alone(result: &LevelResult, level: Level) -> bool {
    let anomalies = result.verdict.anomalies();
    let is_other = |anomaly: &Anomaly| {
        anomaly.evidence.rests_on_snapshots() && !anomaly.rules_out.contains(level)
    };
    !anomalies.is_empty() && anomalies.iter().all(|anomaly| is_other(anomaly))
}

/// The same, and what the anomalies say that were found: one violates every level that it rules out,
/// whichever level's search found it. Answers in words are about what was asked for; a picture of all
/// levels shows this as well.
#[cfg(feature = "html")]
pub(crate) fn known_by_anomalies(results: &[LevelResult], level: Level) -> Option<KnownVerdict> {
    let finds = |result: &&LevelResult| {
        let mut anomalies = result.verdict.anomalies().iter();
        anomalies.any(|anomaly| anomaly.rules_out.contains(level))
    };
    known(results, level).or_else(|| {
        // That is about single operations, which these need not be.
        let source = results.iter().find(finds).filter(|_| level != Level::Linearizable)?;
        Some(KnownVerdict { verdict: VerdictKind::Violated, follows_from: Some(source.level) })
    })
}

/// The levels of which results say this, by themselves or by what follows.
pub fn levels_known(results: &[LevelResult], verdict: VerdictKind) -> LevelSet {
    let says = |level: &Level| known(results, *level).is_some_and(|known| known.verdict == verdict);
    Level::all().filter(says).collect()
}

#[cfg(test)]
mod tests {
    use isolario_model::{
        AnomalyKind, Attempt, Edge, Evidence, Findings, Inapplicable, OpId, Reason, Stamp, TxnId,
        Verdict, Witness,
    };

    use super::*;

    fn result(level: Level, verdict: Verdict) -> LevelResult {
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    fn satisfied(level: Level) -> LevelResult {
        result(level, Verdict::Satisfied(Witness::Empty))
    }

    fn not_applicable(level: Level) -> LevelResult {
        result(level, Verdict::NotApplicable(Inapplicable::NoTimes))
    }

    fn follows_from(verdict: VerdictKind, source: Level) -> Option<KnownVerdict> {
        Some(KnownVerdict { verdict, follows_from: Some(source) })
    }

    #[test]
    fn a_satisfied_level_fills_everything_below_it() {
        let results = [satisfied(Level::StrictSerializable)];
        for level in Level::all().filter(|level| *level != Level::Linearizable) {
            let expected = match level {
                Level::StrictSerializable => None,
                _ => Some(Level::StrictSerializable),
            };
            let known = known(&results, level).unwrap();
            assert_eq!(
                known,
                KnownVerdict { verdict: VerdictKind::Satisfied, follows_from: expected }
            );
        }
        assert_eq!(known(&results, Level::Linearizable), None);
    }

    #[test]
    fn what_snapshots_alone_violate_says_nothing_about_serializability() {
        let reason = Reason::StartDependency { op: OpId(0), snapshot: Stamp::default() };
        let edges = vec![Edge { from: TxnId(0), to: TxnId(1), reason }];
        let kind = AnomalyKind::OrderContradiction;
        let anomaly = Anomaly::new(kind, Evidence::Cycle { edges }).at(Level::SnapshotIsolation);
        let violated = Verdict::Violated(Findings::new(vec![anomaly], false));
        let results = [result(Level::SnapshotIsolation, violated)];
        assert_eq!(known(&results, Level::Serializable), None);
        let strong = follows_from(VerdictKind::Violated, Level::SnapshotIsolation);
        assert_eq!(known(&results, Level::StrongSnapshotIsolation), strong);
    }

    #[test]
    fn what_is_violated_violates_what_implies_it_where_that_does_not_apply() {
        let violated = result(Level::ReadAtomic, Verdict::Violated(Findings::default()));
        let results = [violated, not_applicable(Level::SnapshotIsolation)];
        let expected = follows_from(VerdictKind::Violated, Level::ReadAtomic);
        assert_eq!(known(&results, Level::SnapshotIsolation), expected);
        assert_eq!(known(&results, Level::Serializable), expected);
        assert_eq!(known(&results, Level::ReadCommitted), None);
    }

    #[cfg(feature = "html")]
    #[test]
    fn an_anomaly_violates_what_it_rules_out_whoever_found_it() {
        let evidence = Evidence::Read { read: OpId(0), saw: None, instead: None };
        let anomaly = Anomaly::new(AnomalyKind::ThinAirRead, evidence);
        let findings = Findings::new(vec![anomaly], true);
        let results = [result(Level::Causal, Verdict::Violated(findings))];
        assert_eq!(known(&results, Level::AdyaReadCommitted), None);
        let weaker = known_by_anomalies(&results, Level::AdyaReadCommitted).unwrap();
        assert_eq!(weaker.verdict, VerdictKind::Violated);
        let why = weaker.because(Level::AdyaReadCommitted).unwrap();
        assert_eq!(why, "ruled out by what violates causal");
        let stronger = known_by_anomalies(&results, Level::Serializable).unwrap();
        assert_eq!(stronger.because(Level::Serializable).unwrap(), "follows from causal");
        assert_eq!(known_by_anomalies(&results, Level::CutIsolation), None);
    }

    #[test]
    fn what_does_not_apply_stays_so_where_nothing_follows() {
        let results = [satisfied(Level::Causal), not_applicable(Level::Prefix)];
        let own = KnownVerdict { verdict: VerdictKind::NotApplicable, follows_from: None };
        assert_eq!(known(&results, Level::Prefix), Some(own));
        assert_eq!(known(&results, Level::Serializable), None);
    }

    #[test]
    fn single_operations_that_are_linearizable_satisfy_everything() {
        let results = [not_applicable(Level::Causal), satisfied(Level::Linearizable)];
        let expected = follows_from(VerdictKind::Satisfied, Level::Linearizable);
        assert_eq!(known(&results, Level::Causal), expected);
        assert_eq!(known(&results, Level::StrictSerializable), expected);
    }
}
