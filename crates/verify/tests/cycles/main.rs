//! Every cycle of every edge that a small history seems to show: where the verifier accepts one, the
//! oracle must find the level violated.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod edges;

use std::collections::BTreeMap;

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, EdgeKind, Evidence, Findings, History, Level, LevelNodes,
    LevelResult, Reason, Verdict, VersionOrder, VisibilityRule,
};
use isolario_oracle::random::Case;
use isolario_oracle::{Answer, Draft, is_ambiguous, levels, satisfies, volume};
use isolario_verify::{Refusal, Verifier, VerifyOptions};

use edges::{Edges, MOST};

/// The levels that order anything.
fn ordered_levels() -> impl Iterator<Item = Level> {
    levels().filter(|level| level.shape().nodes != LevelNodes::None)
}

/// A name that fits the cycle, if not the clearest.
fn name(cycle: &[Edge]) -> AnomalyKind {
    let count = |kind| cycle.iter().filter(|edge| edge.reason.kind() == kind).count();
    if count(EdgeKind::RealTime) > 0 {
        AnomalyKind::RealTimeCycle
    } else if count(EdgeKind::ReadWrite) > 0 {
        AnomalyKind::ItemAntiDependencyCycle
    } else if count(EdgeKind::WriteWrite) == cycle.len() {
        AnomalyKind::DirtyWrite
    } else {
        AnomalyKind::CyclicCo
    }
}

fn claim(level: Level, cycle: &[Edge]) -> LevelResult {
    let edges = cycle.to_vec();
    claim_anomaly(level, Anomaly::new(name(cycle), Evidence::Cycle { edges }))
}

fn claim_cases(level: Level, cycles: Vec<Vec<Edge>>) -> LevelResult {
    let kind = AnomalyKind::NoOrderPossible;
    claim_anomaly(level, Anomaly::new(kind, Evidence::Cases { cycles }))
}

fn claim_anomaly(level: Level, anomaly: Anomaly) -> LevelResult {
    let verdict = Verdict::Violated(Findings::new(vec![anomaly], false));
    LevelResult { level, decided_by: Attempt::Search, verdict }
}

/// Per level, how many cycles were accepted.
type Accepted = BTreeMap<Level, u32>;

fn judge_all(case: Case, draft: &Draft, cycles: &[Vec<Edge>], accepted: &mut Accepted) {
    let history = &draft.history().expect("small");
    let session_order = !case.seed.is_multiple_of(4);
    let options = VerifyOptions::default().with_session_order(session_order);
    let verifier = Verifier::new(history, &options);
    let options = isolario_oracle::Options::default().with_session_order(session_order);
    for level in ordered_levels() {
        let proofs = cycles.iter().filter(|cycle| verifier.verify(&claim(level, cycle)).is_ok());
        let proofs: Vec<_> = proofs.collect();
        if let Some(proof) = proofs.first() {
            let answer = satisfies(history, level, options);
            assert_eq!(answer, Answer::Violated, "{level}: {proof:#?}\n{draft}");
        }
        *accepted.entry(level).or_default() += proofs.len() as u32;
    }
}

/// Of these levels, each must be seen violated by some cycle.
fn are_accepted_only_where_violated(
    cases: u64,
    draft: fn(Case) -> Draft,
    longest: usize,
    seen: impl Fn(Level) -> bool,
) {
    let mut accepted = Accepted::new();
    for case in Case::first(cases) {
        let draft = draft(case);
        let history = draft.history().expect("small");
        if !is_ambiguous(&history, Level::Serializable) {
            judge_all(case, &draft, &Edges::new(&history).cycles(longest), &mut accepted);
        }
    }
    assert!(ordered_levels().filter(|l| seen(*l)).all(|l| accepted[&l] > 0), "{accepted:?}");
}

#[test]
fn a_cycle_is_accepted_only_where_the_level_is_violated() {
    let shown = |level: Level| !level.needs().version_order;
    are_accepted_only_where_violated(volume() / 10, Case::draft, 4, shown);
}

#[test]
fn a_cycle_of_lists_is_accepted_only_where_the_level_is_violated() {
    are_accepted_only_where_violated(volume() / 40, Case::list_draft, 3, |_| true);
}

/// Adds the orders of writers that one refuted cycle each would show, if it is one.
fn derive(edges: &mut Edges<'_>) {
    let txns = edges.txns.clone();
    let mut derived = BTreeMap::new();
    for first in &txns {
        for second in txns.iter().filter(|second| *second != first) {
            edges.derived.insert((*second, *first), vec![VersionOrder::Assumed]);
            let assumes = |cycle: &Vec<Edge>| cycle.iter().any(|edge| is_assumed(&edge.reason));
            let cycles = edges.cycles(3).into_iter().filter(assumes).take(4);
            let refuted: Vec<_> = cycles.map(|cycle| VersionOrder::Refuted { cycle }).collect();
            derived.insert((*first, *second), refuted);
            edges.derived.clear();
        }
    }
    edges.derived = derived;
}

fn is_assumed(reason: &Reason) -> bool {
    match reason {
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
            *known == VersionOrder::Assumed
        }
        _ => false,
    }
}

fn is_refuted(reason: &Reason) -> bool {
    match reason {
        Reason::Overwrite { known, .. } | Reason::AntiDependency { known, .. } => {
            matches!(known, VersionOrder::Refuted { .. })
        }
        _ => false,
    }
}

#[test]
fn a_cycle_of_refuted_orders_is_accepted_only_where_the_level_is_violated() {
    let mut accepted = Accepted::new();
    for case in Case::first(volume() / 20) {
        let history = case.history().expect("small");
        if is_ambiguous(&history, Level::Serializable) || history.txn_count() > 4 {
            continue;
        }
        let mut edges = Edges::new(&history);
        derive(&mut edges);
        let rests = |cycle: &Vec<Edge>| cycle.iter().any(|edge| is_refuted(&edge.reason));
        let cycles: Vec<_> = edges.cycles(3).into_iter().filter(rests).collect();
        judge_all(case, &case.draft(), &cycles, &mut accepted);
    }
    let mut strong = ordered_levels().filter(|level| level.implies(Level::Prefix));
    assert!(strong.all(|level| accepted[&level] > 0), "{accepted:?}");
}

/// All cycles of a history together, in which any order of two writers may be assumed.
fn with_assumptions(history: &History) -> Vec<Vec<Edge>> {
    let mut edges = Edges::new(history);
    for first in &edges.txns {
        for second in edges.txns.iter().filter(|second| *second != first) {
            edges.derived.insert((*first, *second), vec![VersionOrder::Assumed]);
        }
    }
    edges.cycles(4)
}

/// Whether the cycles that show something, taken together, close every case.
fn closes_every_case(verifier: &Verifier<'_>, level: Level, cycles: &[Vec<Edge>]) -> bool {
    let left = "the cycles do not close every case";
    let kind = AnomalyKind::NoOrderPossible;
    let shows_something = |cycle: &&Vec<Edge>| {
        let alone = verifier.verify(&claim_cases(level, vec![(*cycle).clone()]));
        alone.is_ok() || alone == Err(Refusal::WrongKind { kind, why: left })
    };
    let cycles = cycles.iter().filter(shows_something).cloned().collect();
    verifier.verify(&claim_cases(level, cycles)).is_ok()
}

/// Whether a level is stated by cycles of dependencies, and not by what is visible to readers.
fn is_stated_by_cycles(level: &Level) -> bool {
    let shape = level.shape();
    let one = matches!(
        shape.visible,
        VisibilityRule::Nothing | VisibilityRule::Dependencies | VisibilityRule::Everything
    );
    shape.nodes == LevelNodes::StartAndCommit || one
}

/// With all cycles at hand, case analysis is also complete: where reads are right and there is no
/// order, the cycles close every case.
fn cases_are_closed_exactly_where_violated(cases: u64, draft: fn(Case) -> Draft) {
    let mut closed = Accepted::new();
    for case in Case::first(cases) {
        let draft = draft(case);
        let history = draft.history().expect("small");
        let options = isolario_oracle::Options::default();
        let holds = |level| satisfies(&history, level, options) == Answer::Satisfied;
        if is_ambiguous(&history, Level::Serializable)
            || history.txn_count() > 4
            || !holds(Level::AdyaReadCommitted)
            || !holds(Level::CutIsolation)
        {
            continue;
        }
        let cycles = with_assumptions(&history);
        if cycles.len() > MOST {
            continue;
        }
        let verifier = Verifier::new(&history, &VerifyOptions::default());
        for level in ordered_levels().filter(is_stated_by_cycles) {
            let accepted = closes_every_case(&verifier, level, &cycles);
            assert_eq!(accepted, !holds(level), "{level}\n{draft}");
            *closed.entry(level).or_default() += u32::from(accepted);
        }
    }
    let mut strong = closed.iter().filter(|(level, _)| level.implies(Level::Prefix));
    assert!(strong.all(|(_, count)| *count > 0), "{closed:?}");
}

#[test]
fn every_case_is_closed_exactly_where_the_level_is_violated() {
    cases_are_closed_exactly_where_violated(volume() / 10, Case::draft);
}

#[test]
fn every_case_of_lists_is_closed_exactly_where_the_level_is_violated() {
    cases_are_closed_exactly_where_violated(volume() / 10, Case::list_draft);
}
