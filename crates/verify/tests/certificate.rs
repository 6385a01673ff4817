//! Random small tables with version certificates go through the oracle and the checker, and the two
//! must agree.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, Findings, History, Inapplicable, Level, LevelResult,
    OpId, Outcome, Reason, Stamp, StatedSet, TxnId, Verdict, VerdictKind, VersionOrder, VersionSet,
    Witness,
};
use isolario_oracle::random::certificates::{CertificateCase, certificate_case};
use isolario_oracle::random::postgres::{PostgresCase, postgres_case};
use isolario_oracle::{Answer, Shown, satisfies_certificate, volume};
use isolario_verify::{Refusal, Verifier};

const LEVELS: [Level; 12] = [
    Level::ReadUncommitted,
    Level::StrongReadUncommitted,
    Level::AdyaReadCommitted,
    Level::StrongAdyaReadCommitted,
    Level::ConsistentView,
    Level::ParallelSnapshotIsolation,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::RepeatableRead,
    Level::StrongRepeatableRead,
    Level::Serializable,
    Level::StrictSerializable,
];

/// By how much clocks may differ in a case.
fn skew(seed: u64) -> u64 {
    [0, 0, 0, 3][seed as usize / 3 % 4]
}

fn options(case: &CertificateCase, session_order: bool, skew: u64) -> isolario_check::CheckOptions {
    isolario_check::CheckOptions::default()
        .with_session_order(session_order)
        .with_clock_skew(skew)
        .with_version_order(case.orders.clone())
        .with_version_sets(case.sets.clone())
        .with_trusted_version_order(true)
}

#[test]
fn the_checker_agrees_with_all_changers_and_all_cycles() {
    let (mut satisfied, mut violated, mut refused) = (0u64, 0u64, 0u64);
    let (mut unstated, mut left_open) = (0u64, 0u64);
    let (mut by_snapshots, mut by_cases) = (0u64, 0u64);
    let (mut timed, mut by_time) = (0u64, 0u64);
    for seed in 0..volume() {
        let case = certificate_case(seed).expect("a history");
        if !case.history.has_predicates() || case.orders.is_empty() && case.sets.is_empty() {
            continue;
        }
        let (session_order, skew) = (!seed.is_multiple_of(3), skew(seed));
        let has_snapshot = case.sets.iter().any(is_snapshot);
        let results = check(&case.history, &LEVELS, &options(&case, session_order, skew));
        let kind_at = |level| {
            let mut results = results.iter().filter(|result: &&LevelResult| result.level == level);
            results.next().map(|result| result.verdict.kind())
        };
        by_time += u64::from(
            has_snapshot
                && kind_at(Level::SnapshotIsolation) == Some(VerdictKind::Satisfied)
                && kind_at(Level::StrongSnapshotIsolation) == Some(VerdictKind::Violated),
        );
        if let Some((anomaly, level)) = claims_too_much(&results) {
            panic!(
                "seed {seed}: {anomaly:?} does not rule out {level}\n{:#?}",
                Shown(&case.history)
            );
        }
        for result in results {
            let level = result.level;
            let by_oracle = isolario_oracle::Options::default()
                .with_session_order(session_order)
                .with_clock_skew(skew);
            let accepted = verify(&case, session_order, skew, &result);
            assert!(
                accepted.is_ok(),
                "seed {seed}, {level}: {accepted:?} {:?}\n{:#?}\n{:#?}\n{:#?}",
                result.verdict,
                case.orders,
                case.sets,
                Shown(&case.history)
            );
            let anomalies = result.verdict.anomalies();
            let is_by_cases =
                |anomaly: &Arc<Anomaly>| matches!(anomaly.evidence, Evidence::Cases { .. });
            by_cases += u64::from(anomalies.iter().any(is_by_cases));
            by_snapshots +=
                u64::from(anomalies.iter().any(|anomaly| anomaly.evidence.rests_on_snapshots()));
            let (orders, sets) = (&case.orders, &case.sets);
            let answer = satisfies_certificate(&case.history, level, by_oracle, orders, sets);
            unstated +=
                u64::from(lacks_sets(&case) && result.verdict.kind() != VerdictKind::NotApplicable);
            let agrees = match (&result.verdict, answer) {
                (Verdict::NotApplicable(Inapplicable::NoVersionSet { .. }), _) => {
                    left_open += 1;
                    true
                }
                (Verdict::Satisfied(_), Answer::Satisfied) => {
                    satisfied += 1;
                    true
                }
                (Verdict::Violated(_), Answer::Violated) => {
                    violated += 1;
                    true
                }
                (Verdict::NotApplicable(_), Answer::Unsupported) => {
                    refused += 1;
                    true
                }
                _ => false,
            };
            assert!(
                agrees,
                "seed {seed}, {level}: {:?}, and by the oracle {answer:?}\n{:#?}\n{:#?}\n{:#?}",
                result.verdict,
                case.orders,
                case.sets,
                Shown(&case.history)
            );
            let is_decided = result.verdict.kind() != VerdictKind::NotApplicable;
            timed += u64::from(has_snapshot && is_decided && level.shape().real_time);
        }
    }
    // Of levels in real time, those of histories with snapshots, and those that real time alone violates.
    assert!(timed > volume() / 5 * 9 && by_time > volume() / 100, "{timed} {by_time}");
    let decided = satisfied + violated;
    assert!(
        satisfied > decided / 10 && violated > decided / 10 && refused < decided / 5,
        "{satisfied} {violated} {refused}"
    );
    assert!(by_cases > satisfied / 10_000, "{by_cases} of {satisfied}");
    assert!(by_snapshots > satisfied / 3000, "{by_snapshots} of {satisfied}");
    // Of the levels of histories with operations whose sets are not stated, most are decided.
    assert!(left_open < unstated / 2 && left_open > 0, "{left_open} {unstated}");
}

/// What a small model of PostgreSQL's repeatable read recorded, with the certificate of the model or with
/// another one.
#[test]
fn the_checker_agrees_about_rows_that_come_back() {
    let (mut satisfied, mut violated, mut open, mut true_ones) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..volume() / 4 {
        let PostgresCase { stated: case, is_true } = postgres_case(seed).expect("a history");
        if case.orders.is_empty() && case.sets.is_empty() {
            continue;
        }
        let shown = || format!("{:#?}\n{:#?}\n{:#?}", case.orders, case.sets, Shown(&case.history));
        let results = check(&case.history, &LEVELS, &options(&case, true, 0));
        assert!(claims_too_much(&results).is_none(), "seed {seed}: {results:?}\n{}", shown());
        let by_certificate = case.history.has_predicates() || case.history.may_reuse_rows();
        for result in results.into_iter().filter(|_| by_certificate) {
            let (level, verdict) = (result.level, &result.verdict);
            let accepted = verify(&case, true, 0, &result);
            assert!(accepted.is_ok(), "seed {seed}: {accepted:?} {result:?}\n{}", shown());
            let by_oracle = isolario_oracle::Options::default();
            let (orders, sets) = (&case.orders, &case.sets);
            let answer = satisfies_certificate(&case.history, level, by_oracle, orders, sets);
            let count = match (verdict, answer) {
                (Verdict::Satisfied(_), Answer::Satisfied) => &mut satisfied,
                (Verdict::Violated(_), Answer::Violated) => &mut violated,
                (Verdict::NotApplicable(Inapplicable::NoVersionSet { .. }), _)
                // It is open whether a transaction of unknown outcome committed.
                | (_, Answer::Unsupported) => &mut open,
                _ => panic!("seed {seed}: {result:?}, and by the oracle {answer:?}\n{}", shown()),
            };
            *count += 1;
            let is_given = Level::StrongSnapshotIsolation.implies(level);
            assert!(!(is_true && is_given && verdict.is_violated()), "seed {seed}: {}", shown());
            true_ones += u64::from(is_true && is_given && verdict.is_satisfied());
        }
    }
    assert!(satisfied > volume() / 2 && violated > volume() / 8, "{satisfied} {violated}");
    assert!(open < satisfied / 5 && true_ones > volume() / 8, "{open} {true_ones}");
}

/// An anomaly that is said to rule out a level which is satisfied.
fn claims_too_much(results: &[LevelResult]) -> Option<(&Anomaly, Level)> {
    let satisfied = results.iter().filter(|result| result.verdict.is_satisfied());
    let satisfied: Vec<Level> = satisfied.map(|result| result.level).collect();
    let mut anomalies = results.iter().flat_map(|result| result.verdict.anomalies());
    anomalies.find_map(|anomaly| {
        let level = satisfied.iter().find(|level| anomaly.rules_out.contains(**level))?;
        Some((&**anomaly, *level))
    })
}

fn is_snapshot(set: &StatedSet) -> bool {
    matches!(set.versions, VersionSet::Snapshot(_))
}

/// Whether it is not stated what some operation met.
fn lacks_sets(case: &CertificateCase) -> bool {
    let history = &case.history;
    let is_stated = |op: OpId| case.sets.iter().any(|set| set.op == op);
    let mut ops = history.txns().flat_map(|txn| history.txn_ops(txn));
    ops.any(|op| history.op_predicate(op).is_some() && !is_stated(op))
}

fn verify(
    case: &CertificateCase,
    session_order: bool,
    skew: u64,
    result: &LevelResult,
) -> Result<(), Refusal> {
    let options = isolario_verify::VerifyOptions::default()
        .with_session_order(session_order)
        .with_clock_skew(skew)
        .with_trusted_version_order(true);
    Verifier::new(&case.history, &options)
        .with_version_order(&case.orders)
        .with_version_sets(&case.sets)
        .verify(result)
}

/// Whatever is changed about a proof, it is refused: an edge of another row, an operation of somebody
/// else, the other verdict, another name.
#[test]
fn spoilt_proofs_are_refused() {
    let mut refused = 0u64;
    for seed in 0..volume() / 10 {
        let case = certificate_case(seed).expect("a history");
        if !case.history.has_predicates() || case.orders.is_empty() && case.sets.is_empty() {
            continue;
        }
        for result in check(&case.history, &LEVELS, &options(&case, true, 0)) {
            for spoilt in spoilt(&case.history, &result) {
                let accepted = verify(&case, true, 0, &spoilt);
                assert!(accepted.is_err(), "seed {seed}: {spoilt:?}\n{:#?}", Shown(&case.history));
                refused += 1;
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

fn spoilt(history: &History, result: &LevelResult) -> Vec<LevelResult> {
    let with = |verdict| LevelResult { verdict, ..result.clone() };
    let found = |anomaly| with(Verdict::Violated(Findings::new(vec![anomaly], false)));
    match &result.verdict {
        Verdict::Satisfied(witness) => {
            let mut others = vec![with(Verdict::Satisfied(Witness::Empty))];
            if let Witness::CommitOrder(order) = witness
                && !order.is_empty()
            {
                let mut twice = order.clone();
                twice.extend(order.first());
                others.push(with(Verdict::Satisfied(Witness::CommitOrder(twice))));
                let fewer = order.iter().skip(1).copied().collect();
                others.push(with(Verdict::Satisfied(Witness::CommitOrder(fewer))));
            }
            // A cycle of a single step of nothing.
            let edges = vec![Edge { from: TxnId(0), to: TxnId(0), reason: Reason::Session }];
            let evidence = Evidence::Cycle { edges };
            others.push(found(Anomaly::new(AnomalyKind::DirtyWrite, evidence)));
            others
        }
        Verdict::Violated(findings) => {
            let mut others = Vec::new();
            // In the order of their numbers, and each reads the writes of those before it.
            let kept = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
            let order = Witness::CommitOrder(kept.collect());
            others.push(with(Verdict::Satisfied(order)));
            for anomaly in &findings.anomalies {
                let other_kind = match anomaly.kind {
                    AnomalyKind::ResultMismatch => AnomalyKind::AbortedRead,
                    _ => AnomalyKind::ResultMismatch,
                };
                others.push(found(Anomaly::new(other_kind, anomaly.evidence.clone())));
                // One of several cases shows nothing.
                if let Evidence::Cases { cycles } = &anomaly.evidence {
                    let cycles = vec![cycles[0].clone()];
                    others.push(found(Anomaly::new(anomaly.kind, Evidence::Cases { cycles })));
                }
                if let Evidence::Cycle { edges } = &anomaly.evidence {
                    let fewer = edges[1..].to_vec();
                    others
                        .push(found(Anomaly::new(anomaly.kind, Evidence::Cycle { edges: fewer })));
                    others.extend((0..edges.len()).flat_map(|at| {
                        spoilt_edges(edges, at).into_iter().map(|edges| {
                            found(Anomaly::new(anomaly.kind, Evidence::Cycle { edges }))
                        })
                    }));
                }
            }
            others
        }
        _ => Vec::new(),
    }
}

/// The same edges, with something wrong about one of them.
fn spoilt_edges(edges: &[Edge], at: usize) -> Vec<Vec<Edge>> {
    let nowhere = OpId(1_000_000);
    let reasons = match edges[at].reason.clone() {
        Reason::PredicateRead { read, key, write } => vec![
            // What was met is not what was missed.
            Reason::PredicateAntiDependency { read, key, write, evaluated: None },
            Reason::PredicateRead { read: write, key, write },
            Reason::PredicateRead { read, key, write: nowhere },
            Reason::PredicateRead { read: nowhere, key, write },
        ],
        Reason::PredicateAntiDependency { read, key, write, .. } => vec![
            Reason::PredicateRead { read, key, write },
            Reason::PredicateAntiDependency { read: write, key, write, evaluated: None },
            Reason::PredicateAntiDependency { read, key, write: nowhere, evaluated: None },
            Reason::PredicateAntiDependency { read: nowhere, key, write, evaluated: None },
        ],
        Reason::Overwrite { key, .. } => {
            vec![Reason::Overwrite { key, known: VersionOrder::Stated { at: 999 } }]
        }
        Reason::StartDependency { op, snapshot } => vec![
            Reason::StartDependency { op: nowhere, snapshot },
            // Another snapshot than the one that is stated.
            Reason::StartDependency {
                op,
                snapshot: Stamp { logical: snapshot.logical + 1, ..snapshot },
            },
            Reason::Stated { at: 1 },
        ],
        _ => vec![Reason::Initial],
    };
    let with = |reason| {
        let mut edges = edges.to_vec();
        edges[at].reason = reason;
        edges
    };
    reasons.into_iter().map(with).collect()
}
