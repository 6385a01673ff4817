//! Orders of versions, right and wrong, whole and in part, tried and trusted.

use isolario_check::CheckOptions;
use isolario_model::{
    AnomalyKind, Edge, Evidence, History, LevelResult, Outcome, Reason, StatedOrder, Verdict,
    VersionOrder,
};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, volume};

use crate::support::{answers, complaint, hinting, oracle, orders_of, random_orders, verify};

/// Histories with blind writes and without, each with a way to read it.
fn cases(count: u64) -> impl Iterator<Item = (History, CheckOptions, Rng)> {
    Case::first(count).flat_map(|case| {
        let mut rng = Rng::new(case.seed ^ 0x6869_6e74);
        let mut options = CheckOptions::default();
        options.session_order = !rng.percent(30);
        options.clock_skew = [0, 0, 0, 1, 4][rng.below(5)];
        [case.draft(), case.read_modify_write_draft()]
            .map(|draft| (draft.history().unwrap(), options.clone(), rng.clone()))
    })
}

#[test]
fn tried_orders_never_change_a_verdict() {
    for (history, options, mut rng) in cases(volume() / 4) {
        let version_order = random_orders(&history, &mut rng);
        let hinted = hinting(&options, version_order, false);
        if let Some(complaint) = complaint(&history, &hinted) {
            panic!("{hinted:?}\n{history:?}\n{complaint}");
        }
    }
}

#[test]
fn trusted_orders_are_part_of_the_question() {
    let (mut kept, mut broken) = (0, 0);
    for (history, options, mut rng) in cases(volume() / 4) {
        let version_order = random_orders(&history, &mut rng);
        let hinted = hinting(&options, version_order, true);
        if let Some(complaint) = complaint(&history, &hinted) {
            panic!("{hinted:?}\n{history:?}\n{complaint}");
        }
        for (alone, hinted) in answers(&history, &options).iter().zip(answers(&history, &hinted)) {
            match (&alone.verdict, &hinted.verdict) {
                (Verdict::Satisfied(_), Verdict::Satisfied(_)) => kept += 1,
                (Verdict::Satisfied(_), Verdict::Violated(_)) => broken += 1,
                _ => {}
            }
        }
    }
    assert!(kept > 0 && broken > 0, "{kept} and {broken}");
}

#[test]
fn what_a_witness_shows_may_be_stated() {
    for (history, options, _) in cases(volume() / 8) {
        for alone in answers(&history, &options) {
            let Verdict::Satisfied(witness) = &alone.verdict else { continue };
            let version_order = orders_of(&history, witness);
            let hinted = hinting(&options, version_order, true);
            let same = answers(&history, &hinted);
            let Some(same) = same.iter().find(|result| result.level == alone.level) else {
                // A stated order is not combined with reads of who may not have committed.
                assert!(history.txns().any(|txn| history.outcome(txn) == Outcome::Unknown));
                continue;
            };
            assert!(matches!(same.verdict, Verdict::Satisfied(_)), "{history:?}\n{same:?}");
            assert_eq!(verify(&history, same, &hinted), Ok(()));
        }
    }
}

#[test]
fn answers_to_one_question_are_none_to_another() {
    let (mut refused, mut accepted) = (0, 0);
    for (history, options, mut rng) in cases(volume() / 8) {
        let mut asked = || {
            let version_order = random_orders(&history, &mut rng);
            hinting(&options, version_order, true)
        };
        let (one, other) = (asked(), asked());
        for result in answers(&history, &one) {
            let expected = match &result.verdict {
                Verdict::Satisfied(_) => Answer::Satisfied,
                _ => Answer::Violated,
            };
            match verify(&history, &result, &other) {
                Ok(()) => {
                    accepted += 1;
                    assert_eq!(oracle(&history, result.level, &other), expected, "{result:?}");
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0 && accepted > 0, "{refused} and {accepted}");
}

/// The edges of an anomaly that rest on statements themselves.
fn stated_edges(result: &LevelResult) -> Vec<(Edge, u64)> {
    let Verdict::Violated(findings) = &result.verdict else { return Vec::new() };
    let edges = findings.anomalies.iter().flat_map(|anomaly| match &anomaly.evidence {
        Evidence::Cycle { edges } => edges.as_slice(),
        _ => &[],
    });
    let place = |edge: &Edge| match &edge.reason {
        Reason::Overwrite { known: VersionOrder::Stated { at }, .. }
        | Reason::AntiDependency { known: VersionOrder::Stated { at }, .. } => Some(*at),
        _ => None,
    };
    edges.filter_map(|edge| Some((edge.clone(), place(edge)?))).collect()
}

#[test]
fn a_violation_names_the_statement_and_falls_with_it() {
    let mut seen = 0;
    for (history, options, mut rng) in cases(volume() / 8) {
        let version_order = random_orders(&history, &mut rng);
        let hinted = hinting(&options, version_order, true);
        for result in answers(&history, &hinted) {
            let Verdict::Violated(findings) = &result.verdict else { continue };
            for (edge, at) in stated_edges(&result) {
                seen += 1;
                let contradicts = |kind| kind == AnomalyKind::OrderContradiction;
                assert!(findings.anomalies.iter().any(|anomaly| contradicts(anomaly.kind)));
                for change in [without, reversed, elsewhere] {
                    let version_order = change(&hinted.version_order, at);
                    let changed = hinting(&hinted, version_order, true);
                    assert!(verify(&history, &result, &changed).is_err(), "{edge:?}");
                }
                let untrusted = hinting(&hinted, hinted.version_order.clone(), false);
                assert!(verify(&history, &result, &untrusted).is_err(), "{edge:?}");
            }
        }
    }
    assert!(seen > 0);
}

fn without(orders: &[StatedOrder], at: u64) -> Vec<StatedOrder> {
    orders.iter().filter(|order| order.at != at).cloned().collect()
}

fn reversed(orders: &[StatedOrder], at: u64) -> Vec<StatedOrder> {
    let mut orders = orders.to_vec();
    orders.iter_mut().filter(|order| order.at == at).for_each(|order| order.writers.reverse());
    orders
}

fn elsewhere(orders: &[StatedOrder], at: u64) -> Vec<StatedOrder> {
    let mut orders = orders.to_vec();
    orders.iter_mut().filter(|order| order.at == at).for_each(|order| order.at += 1);
    orders
}
