//! Which kinds of anomaly the answers leave open.
//!
//! A level that is violated is not searched to its end, and one that nobody asked for is not searched
//! at all. So that no list of findings is taken for complete which is not, reports say which kinds may
//! be there as well, and which level's search would find them.

use std::collections::BTreeSet;

use isolario_model::{AnomalyKind, Attempt, Level, LevelResult, LevelSet, Verdict, VerdictKind};

use crate::finding::{Finding, ReportFindings};
use crate::implied::known;
use crate::report::Report;

/// Kinds that may be in the history for all that the answers say, by the weakest level whose search
/// would find them. Nothing where single anomalies were asked for.
pub fn not_ruled_out(
    report: &Report<'_>,
    found: &ReportFindings<'_>,
) -> Vec<(Level, Vec<AnomalyKind>)> {
    if report.results.is_empty() {
        return Vec::new();
    }
    let members = found.findings.iter().flat_map(Finding::anomalies);
    let seen: BTreeSet<AnomalyKind> = members.map(|anomaly| anomaly.kind).collect();
    let has_predicates = report.history.predicates().len() > 0;
    let mut open: Vec<(Level, Vec<AnomalyKind>)> = Vec::new();
    for kind in AnomalyKind::all().filter(|kind| !seen.contains(kind)) {
        if !is_looked_for(kind, has_predicates) || is_ruled_out(report.results, kind) {
            continue;
        }
        let Some(level) = finder(report.results, kind) else { continue };
        match open.iter_mut().find(|(known, _)| *known == level) {
            Some((_, kinds)) => kinds.push(kind),
            None => open.push((level, vec![kind])),
        }
    }
    open.sort_by_key(|(level, _)| *level);
    open
}

/// Whether a search gives this name to what it finds. Some names are left for what has no better one,
/// and some need lists or conditional writes, which the weakest levels decide in full.
fn is_looked_for(kind: AnomalyKind, has_predicates: bool) -> bool {
    use AnomalyKind as A;
    match kind {
        A::Phantom
        | A::PredicateManyPreceders
        | A::PredicateSingleAntiDependency
        | A::PredicateWriteSkew
        | A::PredicateAntiDependencyCycle => has_predicates,
        A::NoOrderPossible
        | A::OrderContradiction
        | A::CyclicVersions
        | A::DirtyUpdate
        | A::IncompatibleOrder
        | A::DuplicateElements
        | A::NotLinearizable
        | A::ResultMismatch
        | A::UnexplainedResult => false,
        _ => true,
    }
}

/// Whether a level that forbids it holds, or lists all that it forbids. Strong levels list one cycle of a
/// component: others may be behind it, but no wrong reads.
fn is_ruled_out(results: &[LevelResult], kind: AnomalyKind) -> bool {
    let forbidding = || Level::all().filter(|level| kind.forbidden_at(*level));
    let holds = |level: Level| {
        known(results, level).is_some_and(|known| known.verdict == VerdictKind::Satisfied)
    };
    let lists_all = |level: Level| {
        results.iter().any(|result| match &result.verdict {
            Verdict::Violated(findings) if result.level == level => {
                let mut evidence = findings.anomalies.iter().map(|anomaly| &anomaly.evidence);
                let is_weak = matches!(result.decided_by, Attempt::Reads | Attempt::Rule);
                let in_full = is_weak || evidence.all(|one| one.edges().is_empty());
                findings.exact && (in_full || is_wrong_read(kind))
            }
            _ => false,
        })
    };
    forbidding().any(|level| holds(level) || lists_all(level))
}

/// Whether one read shows it, whatever else happened.
fn is_wrong_read(kind: AnomalyKind) -> bool {
    use AnomalyKind as A;
    matches!(
        kind,
        A::ThinAirRead
            | A::AbortedRead
            | A::IntermediateRead
            | A::FutureRead
            | A::NotMyOwnWrite
            | A::NotMyLastWrite
    )
}

/// The weakest level that forbids it and can be decided for this history.
fn finder(results: &[LevelResult], kind: AnomalyKind) -> Option<Level> {
    let applies = |level: &Level| {
        !results.iter().any(|result| {
            result.level == *level && matches!(result.verdict, Verdict::NotApplicable(_))
        })
    };
    // Linearizability is about single operations, of which strict serializability finds the same.
    let forbidding =
        Level::decided().filter(|level| kind.forbidden_at(*level) && *level != Level::Linearizable);
    let able: LevelSet = forbidding.filter(applies).collect();
    able.weakest().iter().next()
}

#[cfg(test)]
mod tests {
    use isolario_model::{Anomaly, Edge, Evidence, Findings, OpId, Reason, TxnId, Witness};

    use super::*;
    use crate::testing::{History as Builder, r};

    fn result(level: Level, verdict: Verdict) -> LevelResult {
        LevelResult { level, decided_by: Attempt::Rule, verdict }
    }

    fn thin_air(exact: bool) -> Verdict {
        let evidence = Evidence::Read { read: OpId(0), saw: None, instead: None };
        let anomaly = Anomaly::new(AnomalyKind::ThinAirRead, evidence);
        Verdict::Violated(Findings::new(vec![anomaly], exact))
    }

    fn open(results: &[LevelResult]) -> Vec<(Level, Vec<AnomalyKind>)> {
        let history = Builder::new().txn(&[r("x", 7)]).build();
        let report = Report::new("h", &history, results);
        not_ruled_out(&report, &report.found())
    }

    #[test]
    fn a_level_that_holds_or_lists_everything_leaves_nothing_open() {
        let strict = result(Level::StrictSerializable, Verdict::Satisfied(Witness::Empty));
        assert_eq!(open(&[strict]), []);
        assert_eq!(open(&[result(Level::StrictSerializable, thin_air(true))]), []);
        assert_eq!(open(&[]), []);
    }

    #[test]
    fn behind_a_cycle_there_may_be_others_but_no_wrong_reads() {
        let step = Edge { from: TxnId(0), to: TxnId(0), reason: Reason::Session };
        let evidence = Evidence::Cycle { edges: vec![step] };
        let cycle = Anomaly::new(AnomalyKind::WriteSkew, evidence);
        let verdict = Verdict::Violated(Findings::new(vec![cycle], true));
        let strict = LevelResult {
            level: Level::StrictSerializable,
            decided_by: Attempt::Versions,
            verdict,
        };
        let open = open(&[strict]);
        let kinds: Vec<AnomalyKind> = open.into_iter().flat_map(|(_, kinds)| kinds).collect();
        assert!(kinds.contains(&AnomalyKind::LostUpdate), "{kinds:?}");
        assert!(!kinds.contains(&AnomalyKind::AbortedRead), "{kinds:?}");
    }

    #[test]
    fn what_a_search_may_have_missed_is_named_with_its_level() {
        let results = [
            result(Level::SnapshotIsolation, Verdict::Satisfied(Witness::Empty)),
            result(Level::Serializable, thin_air(false)),
        ];
        let open = open(&results);
        let skew = vec![AnomalyKind::WriteSkew, AnomalyKind::ItemAntiDependencyCycle];
        assert!(open.contains(&(Level::RepeatableRead, skew)), "{open:?}");
        assert!(open.iter().all(|(_, kinds)| !kinds.contains(&AnomalyKind::LostUpdate)));
    }
}
