//! Weak levels where reads may have seen the writes of several transactions: what is said of their
//! sources is checked like everything else.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{
    Anomaly, Attempt, Evidence, Findings, History, Level, LevelResult, OpKind, Outcome, ReadSource,
    TxnId, Verdict, Witness,
};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, history, satisfies, volume};
use isolario_verify::{Refusal, VerifyOptions, verify};

const LEVELS: [Level; 4] =
    [Level::AdyaReadCommitted, Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

fn judge(history: &History, level: Level, verdict: Verdict) -> Result<(), Refusal> {
    let result = LevelResult { level, decided_by: Attempt::Rule, verdict };
    verify(history, &result, &VerifyOptions::default())
}

fn answer(history: &History, level: Level) -> Verdict {
    let options = isolario_check::CheckOptions::default();
    let mut results = check(history, &[level], &options);
    results.remove(0).verdict
}

/// Some order of those that may have committed, and some source of each read.
fn forged(history: &History, rng: &mut Rng) -> Witness {
    let outcome = |txn: &TxnId| history.outcome(*txn);
    let is_there = |txn: &TxnId| match outcome(txn) {
        Outcome::Committed => true,
        Outcome::Unknown => rng.below(2) == 0,
        Outcome::Aborted => false,
    };
    let mut order: Vec<TxnId> = history.txns().filter(is_there).collect();
    // Close to the order in which they are written down, which sessions follow.
    for _ in 0..rng.below(4) {
        let (a, b) = (rng.below(order.len()), rng.below(order.len()));
        if a < order.len() && b < order.len() {
            order.swap(a, b);
        }
    }
    let ops = order.iter().flat_map(|txn| history.txn_ops(*txn)).collect::<Vec<_>>();
    let reads = ops.into_iter().filter(|op| history.op_kinds()[op.index()] == OpKind::Read);
    let txns = history.txn_count();
    let mut writer = || match rng.below(txns + 1) {
        0 => TxnId::INIT,
        txn => TxnId::at(txn - 1),
    };
    let mut sources: Vec<ReadSource> =
        reads.map(|read| ReadSource { read, writer: writer() }).collect();
    sources.sort_unstable();
    Witness::Chosen { order, sources }
}

#[test]
fn no_order_and_no_sources_show_what_is_not_so() {
    let mut refused = 0;
    for case in Case::first(volume() / 8) {
        let history = case.ambiguous_draft().history().expect("small");
        let mut rng = Rng::new(case.seed);
        for level in LEVELS {
            if satisfies(&history, level, isolario_oracle::Options::default()) == Answer::Satisfied
            {
                continue;
            }
            for _ in 0..20 {
                let verdict = Verdict::Satisfied(forged(&history, &mut rng));
                assert!(judge(&history, level, verdict).is_err(), "{}", case.ambiguous_draft());
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

const LONG_FORK: &str = "a: w x 1, w z 1
     b: w y 1, w z 1
     c: r x 1, r y nil
     d: r y 1, r x nil
     e: r z 1";

/// No serial order explains it. Without a stated source, the read is one of the last write of its value that
/// comes before it.
#[test]
fn a_source_may_be_missing_but_not_impossible() {
    let history = history(LONG_FORK);
    for level in LEVELS {
        let verdict = answer(&history, level);
        assert_eq!(judge(&history, level, verdict.clone()), Ok(()), "{level}");
        let Verdict::Satisfied(Witness::Chosen { order, sources }) = verdict else {
            panic!("{level}: {verdict:?}");
        };
        let [only] = sources.as_slice() else { panic!("{sources:?}") };
        let with = |sources: Vec<ReadSource>| {
            let order = order.clone();
            judge(&history, level, Verdict::Satisfied(Witness::Chosen { order, sources }))
        };
        assert_eq!(with(Vec::new()), Ok(()), "{level}");
        for writer in [TxnId::INIT, TxnId(2), TxnId(4), TxnId(77)] {
            assert!(with(vec![ReadSource { writer, ..*only }]).is_err(), "{level} {writer:?}");
        }
        assert_eq!(with(vec![ReadSource { writer: TxnId(0), ..*only }]), Ok(()));
        assert_eq!(with(vec![ReadSource { writer: TxnId(1), ..*only }]), Ok(()));
    }
}

/// Whichever of the two writes of z somebody saw, it missed something that came with it.
#[test]
fn a_violation_whatever_was_seen_takes_a_case_for_each() {
    let history = history(
        "a: w x 1, w z 1
         b: w y 1, w z 1
         c: r z 1, r x nil, r y nil",
    );
    for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
        let verdict = answer(&history, level);
        assert_eq!(judge(&history, level, verdict.clone()), Ok(()), "{level}");
        let Verdict::Violated(findings) = verdict else { panic!("{level}: {verdict:?}") };
        let Evidence::Cases { cycles } = &findings.anomalies[0].evidence else {
            panic!("{findings:?}");
        };
        assert_eq!(cycles.len(), 2, "{level}");
    }
    assert!(answer(&history, Level::AdyaReadCommitted).is_satisfied());
}

#[test]
fn every_case_of_a_refutation_is_needed() {
    let (mut cases, mut with_unknown) = (0, 0);
    for case in Case::first(volume() / 4) {
        let history = case.ambiguous_draft().history().expect("small");
        for level in LEVELS {
            let Verdict::Violated(findings) = answer(&history, level) else { continue };
            let Evidence::Cases { cycles } = &findings.anomalies[0].evidence else { continue };
            let kind = findings.anomalies[0].kind;
            for at in 0..cycles.len() {
                let fewer = [&cycles[..at], &cycles[at + 1..]].concat();
                let anomaly = Anomaly::new(kind, Evidence::Cases { cycles: fewer });
                let verdict = Verdict::Violated(Findings::new(vec![anomaly], false));
                assert!(judge(&history, level, verdict).is_err(), "{}", case.ambiguous_draft());
            }
            cases += 1;
            let is_unknown = |txn| history.outcome(txn) == Outcome::Unknown;
            with_unknown += usize::from(history.txns().any(is_unknown));
        }
    }
    assert!(cases > 10 && with_unknown > 0, "{cases} {with_unknown}");
}
