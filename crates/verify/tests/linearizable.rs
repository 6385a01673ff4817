//! Linearizability: the oracle and the checker agree on random histories of single operations, the
//! verifier accepts what the checker shows, and refuses what is made of it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{Evidence, History, Level, LevelResult, Verdict, Witness};
use isolario_oracle::random::{Case, Rng, shrink};
use isolario_oracle::{Answer, Draft, satisfies, volume};
use isolario_verify::verify;

/// By how much the clocks of a case may differ.
fn skew(case: Case) -> u64 {
    [0, 0, 0, 1, 4][case.seed as usize % 5]
}

fn checked(history: &History, clock_skew: u64) -> LevelResult {
    let mut options = isolario_check::Options::default();
    options.clock_skew = clock_skew;
    check(history, &[Level::Linearizable], &options).remove(0)
}

fn verified(history: &History, result: &LevelResult, skew: u64) -> Result<(), String> {
    let options = isolario_verify::Options::default().with_clock_skew(skew);
    verify(history, result, &options).map_err(|refusal| refusal.to_string())
}

fn complaint(draft: &Draft, skew: u64) -> Option<String> {
    let history = draft.history().expect("small");
    let options = isolario_oracle::Options::default().with_clock_skew(skew);
    let answer = satisfies(&history, Level::Linearizable, options);
    // A panic is a finding like any other, to be shrunk and shown.
    let Ok(result) = std::panic::catch_unwind(|| checked(&history, skew)) else {
        return Some("the checker panics".to_owned());
    };
    let agrees = match (&result.verdict, answer) {
        (Verdict::Satisfied(_), answer) => answer == Answer::Satisfied,
        (Verdict::Violated(_), answer) => answer == Answer::Violated,
        (Verdict::NotApplicable(_), answer) => answer == Answer::Unsupported,
        _ => false,
    };
    if !agrees {
        return Some(format!("the oracle says {answer:?}\n{result:#?}"));
    }
    let refusal = verified(&history, &result, skew).err()?;
    Some(format!("the verifier says: {refusal}\n{result:#?}"))
}

#[test]
fn oracle_checker_and_verifier_agree_on_single_operations() {
    let mut violated = 0;
    for case in Case::first(volume()) {
        let (draft, skew) = (case.single_draft(), skew(case));
        if complaint(&draft, skew).is_some() {
            let small = shrink(draft, |draft| complaint(draft, skew).is_some());
            let complaint = complaint(&small, skew).unwrap_or_default();
            panic!("clock skew {skew}\n{small}\n{complaint}");
        }
        let history = draft.history().expect("small");
        violated += u64::from(matches!(checked(&history, skew).verdict, Verdict::Violated(_)));
    }
    assert!(violated > volume() / 10 && violated < volume() / 2, "{violated}");
}

/// Changes a witness or a list of operations in one place.
fn mutate<T: Copy>(list: &mut Vec<T>, rng: &mut Rng) {
    let (one, other) = (rng.below(list.len()), rng.below(list.len()));
    match rng.below(3) {
        0 => drop(list.remove(one)),
        1 => list.swap(one, other),
        _ => list.push(list[one]),
    }
}

/// Whatever is made of a proof, it proves nothing that is not so.
#[test]
fn nothing_untrue_is_ever_proved() {
    let (mut refused, mut tried) = (0, 0);
    for case in Case::first(volume() / 4) {
        let (history, skew) = (case.single_draft().history().expect("small"), skew(case));
        let result = checked(&history, skew);
        let mut rng = Rng::new(case.seed);
        let mut forged = result.clone();
        match &mut forged.verdict {
            Verdict::Satisfied(Witness::Linearization(order)) if !order.is_empty() => {
                mutate(order, &mut rng);
            }
            Verdict::Violated(findings) => match &mut findings.anomalies[0].evidence {
                Evidence::Operations { ops, .. } => mutate(ops, &mut rng),
                _ => continue,
            },
            _ => continue,
        }
        tried += 1;
        refused += u64::from(verified(&history, &forged, skew).is_err());
        let opposite = match result.verdict {
            Verdict::Satisfied(Witness::Linearization(ops)) => {
                let key = isolario_model::KeyId(0);
                let ops = ops.into_iter().filter(|op| history.op_keys()[op.index()] == key);
                let evidence = Evidence::Operations { key, ops: ops.collect() };
                let kind = isolario_model::AnomalyKind::NotLinearizable;
                let anomalies = vec![isolario_model::Anomaly { kind, evidence }];
                Verdict::Violated(isolario_model::Findings { anomalies, total: 1, exact: false })
            }
            _ => {
                let ops = history.txns().flat_map(|txn| history.txn_ops(txn)).collect();
                Verdict::Satisfied(Witness::Linearization(ops))
            }
        };
        let untrue = LevelResult { verdict: opposite, ..forged };
        assert!(verified(&history, &untrue, skew).is_err(), "{case:?}\n{}", case.single_draft());
    }
    assert!(refused > tried / 2, "{refused} of {tried}");
}
