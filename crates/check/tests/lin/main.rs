//! Linearizability: what it means, by example. Agreement with brute force is tested where the
//! verifier is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use isolario_check::{CheckOptions, check};
use isolario_model::{
    Evidence, History, Inapplicable, Level, LevelResult, Limit, OpId, SearchProgress, TxnId,
    Verdict,
};
use isolario_oracle::Draft;
use isolario_oracle::random::Rng;
use isolario_oracle::random::single::{SingleShape, generate};

fn decide(history: &History, options: &CheckOptions) -> LevelResult {
    let result = check(history, &[Level::Linearizable], options).remove(0);
    let verifying = isolario_verify::VerifyOptions::default().with_clock_skew(options.clock_skew);
    let verified = isolario_verify::verify(history, &result, &verifying);
    assert!(verified.is_ok(), "{verified:?}\n{result:#?}");
    result
}

fn verdict(text: &str) -> Verdict {
    decide(&Draft::parse(text).unwrap().history().unwrap(), &CheckOptions::default()).verdict
}

/// Satisfied, or what the anomalies are called.
fn outcome(text: &str) -> String {
    match verdict(text) {
        Verdict::Satisfied(_) => "satisfied".to_owned(),
        Verdict::Violated(findings) => {
            let names: Vec<_> = findings.anomalies.iter().map(|a| a.kind.name()).collect();
            names.join(" ")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn figure_4_of_the_mtc_paper() {
    let linearizable = "initial 0
        a [0, 20]: cas x 0 -> 1 ok
        b [10, 30]: cas x 1 -> 2 ok
        c [15, 40]: cas x 2 -> 3 ok";
    assert_eq!(outcome(linearizable), "satisfied");
    // The second operation finished before the first one started, whose value it found.
    let not = "initial 0
        a [30, 40]: cas x 0 -> 1 ok
        b [10, 20]: cas x 1 -> 2 ok
        c [15, 50]: cas x 2 -> 3 ok";
    assert_eq!(outcome(not), "RealTimeCycle");
}

#[test]
fn violations_have_names() {
    for (text, name) in [
        ("a [0, 1]: w x 1\n b [2, 3]: r x nil", "StaleRead"),
        ("a [0, 1]: w x 1\n b [2, 3]: w x 2\n c [4, 5]: r x 1", "StaleRead"),
        ("a [0, 9]: insert x 1 ok\n b [0, 9]: insert x 2 ok", "LostUpdate"),
        ("a [0, 1]: r x 1\n b [2, 3]: w x 1", "RealTimeCycle"),
        ("a [0, 9]: cas x 1 -> 2 ok\n b [0, 9]: cas x 2 -> 1 ok", "CyclicCO"),
        ("a [0, 9]: w x 1\n b [0, 9]: r x 2", "ThinAirRead"),
        ("a aborted [0, 9]: w x 1\n b [0, 9]: cas x 1 -> 2 ok", "AbortedRead"),
        ("a [0, 9]: cas x 1 -> 2 failed saw 1\n b [0, 9]: w x 1", "NotLinearizable"),
    ] {
        assert_eq!(outcome(text), name, "{text}");
    }
}

#[test]
fn keys_are_decided_one_by_one_and_reported_together() {
    let text = "a [0, 1]: w x 1\n b [2, 3]: r x nil\n a [4, 5]: w y 1\n b [6, 7]: r y 1
                a [8, 9]: w z 1\n b [10, 11]: r z nil";
    let Verdict::Violated(findings) = verdict(text) else { panic!("it is linearizable") };
    assert_eq!((findings.anomalies.len(), findings.total, findings.exact), (2, 2, false));
}

#[test]
fn what_is_unknown_may_have_happened_at_any_later_time_or_not_at_all() {
    let unknown = |rest: &str| outcome(&format!("a unknown [0, 1]: w x 1\n{rest}"));
    assert_eq!(unknown("b [2, 3]: r x nil\n b [4, 5]: r x 1"), "satisfied");
    assert_eq!(unknown("b [2, 3]: r x nil"), "satisfied");
    assert_eq!(unknown("b [2, 3]: r x 1\n b [4, 5]: r x nil"), "NotLinearizable");
    assert_eq!(outcome("a unknown [5, 6]: w x 1\n b [2, 3]: r x 1"), "NotLinearizable");
}

#[test]
fn a_failed_comparison_may_be_explained_by_what_is_unknown() {
    let failed = "b [0, 1]: insert x 1 ok\n c [4, 5]: cas x 1 -> 3 failed";
    assert_eq!(outcome(failed), "NotLinearizable");
    assert_eq!(outcome(&format!("{failed}\n d unknown [2, 3]: cas x 1 -> 2 ?")), "satisfied");
    assert_eq!(outcome(&format!("{failed}\n d unknown [6, 7]: cas x 1 -> 2 ?")), "NotLinearizable");
}

#[test]
fn a_delete_makes_a_key_absent_again() {
    let text =
        "a [0, 1]: insert x 1 ok\n a [2, 3]: delete x\n a [4, 5]: insert x 2 ok\n b [6, 7]: r x 2";
    assert_eq!(outcome(text), "satisfied");
    assert_eq!(outcome(&text.replace("delete x", "r x 1")), "LostUpdate");
}

#[test]
fn values_may_repeat() {
    let text = "initial 0
        a [0, 1]: w x 1\n a [2, 3]: w x 0\n b [4, 5]: r x 0\n b [6, 7]: r x 1";
    assert_eq!(outcome(text), "NotLinearizable");
    assert_eq!(outcome(&text.replace("r x 1", "r x 0")), "satisfied");
}

#[test]
fn evidence_is_small_in_a_long_history() {
    let mut text = "initial 0\n".to_owned();
    for turn in 0..200 {
        let (from, to) = (turn % 5, (turn + 1) % 5);
        text += &format!("s [{}, {}]: cas x {from} -> {to} ok\n", 10 * turn, 10 * turn + 5);
    }
    text += "t [5000, 5001]: r x 3";
    let Verdict::Violated(findings) = verdict(&text) else { panic!("it is linearizable") };
    let Evidence::Operations { ops, .. } = &findings.anomalies[0].evidence else {
        panic!("{findings:?}")
    };
    assert!(ops.len() < 100 && ops.last() == Some(&OpId(200)), "{ops:?}");
}

#[test]
fn clocks_that_differ_widen_every_interval() {
    let history =
        Draft::parse("a [0, 10]: w x 1\n b [15, 20]: r x nil").unwrap().history().unwrap();
    for (clock_skew, violated) in [(0, true), (2, true), (3, false)] {
        let mut options = CheckOptions::default();
        options.clock_skew = clock_skew;
        let result = decide(&history, &options);
        assert_eq!(matches!(result.verdict, Verdict::Violated(_)), violated, "{clock_skew}");
    }
}

#[test]
fn it_is_about_single_operations_with_times() {
    let not_applicable = |text: &str| match verdict(text) {
        Verdict::NotApplicable(why) => why,
        other => panic!("{other:?}"),
    };
    let two = "a [0, 1]: w x 1\n b [2, 3]: r x 1, r x 1";
    assert_eq!(not_applicable(two), Inapplicable::SeveralOperations { txn: TxnId(1) });
    assert_eq!(not_applicable("a: w x 1"), Inapplicable::NoTimes);
    assert_eq!(not_applicable("a [0, 1]: append x 1"), Inapplicable::Operation { op: OpId(0) });
    // What aborted may be anything.
    assert_eq!(outcome("a aborted [0, 1]: w x 1, w y 1\n b [0, 1]: w x 2"), "satisfied");
}

/// Many writes of few values, all at the same time, most of which cannot be told apart.
fn hard() -> History {
    let shape = SingleShape {
        ops: (90, 90),
        values: Some(40),
        kinds: [50, 20, 0, 0, 30],
        length: 5000,
        ..SingleShape::default()
    };
    generate(&shape, &mut Rng::new(1)).history().unwrap()
}

#[test]
fn the_search_gives_up_at_its_limits_and_says_how_far_it_came() {
    let mut late = CheckOptions::default();
    late.timeout = Some(Duration::ZERO);
    let mut large = CheckOptions::default();
    large.memory = Some(1 << 16);
    for (options, limit) in [(late, Limit::Time(Duration::ZERO)), (large, Limit::Memory(1 << 16))] {
        let verdict = decide(&hard(), &options).verdict;
        let Verdict::Undecided(undecided) = &verdict else { panic!("{verdict:?}") };
        assert_eq!(undecided.limit, limit);
        assert!(matches!(undecided.progress, Some(SearchProgress::Keys { others: 0, .. })));
    }
}
