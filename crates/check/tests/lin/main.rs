//! Linearizability: what it means, by example. Agreement with brute force is tested where the
//! verifier is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use isolario_check::{Options, check};
use isolario_model::{
    Evidence, History, Inapplicable, Level, LevelResult, Limit, OpId, SearchProgress, TxnId,
    Verdict,
};
use isolario_oracle::Draft;
use isolario_oracle::random::Rng;
use isolario_oracle::random::single::{SingleShape, generate};

fn decide(history: &History, options: &Options) -> LevelResult {
    let result = check(history, &[Level::Linearizable], options).remove(0);
    let verifying = isolario_verify::Options::default().with_clock_skew(options.clock_skew);
    let verified = isolario_verify::verify(history, &result, &verifying);
    assert!(verified.is_ok(), "{verified:?}\n{result:#?}");
    result
}

fn verdict(text: &str) -> Verdict {
    decide(&Draft::parse(text).unwrap().history().unwrap(), &Options::default()).verdict
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
        a: c(x,0,1,ok) @0..20
        b: c(x,1,2,ok) @10..30
        c: c(x,2,3,ok) @15..40";
    assert_eq!(outcome(linearizable), "satisfied");
    // The second operation finished before the first one started, whose value it found.
    let not = "initial 0
        a: c(x,0,1,ok) @30..40
        b: c(x,1,2,ok) @10..20
        c: c(x,2,3,ok) @15..50";
    assert_eq!(outcome(not), "RealTimeCycle");
}

#[test]
fn violations_have_names() {
    for (text, name) in [
        ("a: w(x,1) @0..1\n b: r(x,nil) @2..3", "StaleRead"),
        ("a: w(x,1) @0..1\n b: w(x,2) @2..3\n c: r(x,1) @4..5", "StaleRead"),
        ("a: i(x,1,ok) @0..9\n b: i(x,2,ok) @0..9", "LostUpdate"),
        ("a: r(x,1) @0..1\n b: w(x,1) @2..3", "RealTimeCycle"),
        ("a: c(x,1,2,ok) @0..9\n b: c(x,2,1,ok) @0..9", "CyclicCO"),
        ("a: w(x,1) @0..9\n b: r(x,2) @0..9", "ThinAirRead"),
        ("a: w(x,1) aborted @0..9\n b: c(x,1,2,ok) @0..9", "AbortedRead"),
        ("a: c(x,1,2,saw:1) @0..9\n b: w(x,1) @0..9", "NotLinearizable"),
    ] {
        assert_eq!(outcome(text), name, "{text}");
    }
}

#[test]
fn keys_are_decided_one_by_one_and_reported_together() {
    let text = "a: w(x,1) @0..1\n b: r(x,nil) @2..3\n a: w(y,1) @4..5\n b: r(y,1) @6..7
                a: w(z,1) @8..9\n b: r(z,nil) @10..11";
    let Verdict::Violated(findings) = verdict(text) else { panic!("it is linearizable") };
    assert_eq!((findings.anomalies.len(), findings.total, findings.exact), (2, 2, false));
}

#[test]
fn what_is_unknown_may_have_happened_at_any_later_time_or_not_at_all() {
    let unknown = |rest: &str| outcome(&format!("a: w(x,1) unknown @0..1\n{rest}"));
    assert_eq!(unknown("b: r(x,nil) @2..3\n b: r(x,1) @4..5"), "satisfied");
    assert_eq!(unknown("b: r(x,nil) @2..3"), "satisfied");
    assert_eq!(unknown("b: r(x,1) @2..3\n b: r(x,nil) @4..5"), "NotLinearizable");
    assert_eq!(outcome("a: w(x,1) unknown @5..6\n b: r(x,1) @2..3"), "NotLinearizable");
}

#[test]
fn a_failed_comparison_may_be_explained_by_what_is_unknown() {
    let failed = "b: i(x,1,ok) @0..1\n c: c(x,1,3,no) @4..5";
    assert_eq!(outcome(failed), "NotLinearizable");
    assert_eq!(outcome(&format!("{failed}\n d: c(x,1,2,?) unknown @2..3")), "satisfied");
    assert_eq!(outcome(&format!("{failed}\n d: c(x,1,2,?) unknown @6..7")), "NotLinearizable");
}

#[test]
fn a_delete_makes_a_key_absent_again() {
    let text = "a: i(x,1,ok) @0..1\n a: d(x) @2..3\n a: i(x,2,ok) @4..5\n b: r(x,2) @6..7";
    assert_eq!(outcome(text), "satisfied");
    assert_eq!(outcome(&text.replace("d(x)", "r(x,1)")), "LostUpdate");
}

#[test]
fn values_may_repeat() {
    let text = "initial 0
        a: w(x,1) @0..1\n a: w(x,0) @2..3\n b: r(x,0) @4..5\n b: r(x,1) @6..7";
    assert_eq!(outcome(text), "NotLinearizable");
    assert_eq!(outcome(&text.replace("r(x,1)", "r(x,0)")), "satisfied");
}

#[test]
fn evidence_is_small_in_a_long_history() {
    let mut text = "initial 0\n".to_owned();
    for turn in 0..200 {
        let (from, to) = (turn % 5, (turn + 1) % 5);
        text += &format!("s: c(x,{from},{to},ok) @{}..{}\n", 10 * turn, 10 * turn + 5);
    }
    text += "t: r(x,3) @5000..5001";
    let Verdict::Violated(findings) = verdict(&text) else { panic!("it is linearizable") };
    let Evidence::Operations { ops, .. } = &findings.anomalies[0].evidence else {
        panic!("{findings:?}")
    };
    assert!(ops.len() < 100 && ops.last() == Some(&OpId(200)), "{ops:?}");
}

#[test]
fn clocks_that_differ_widen_every_interval() {
    let history =
        Draft::parse("a: w(x,1) @0..10\n b: r(x,nil) @15..20").unwrap().history().unwrap();
    for (clock_skew, violated) in [(0, true), (2, true), (3, false)] {
        let mut options = Options::default();
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
    let two = "a: w(x,1) @0..1\n b: r(x,1) r(x,1) @2..3";
    assert_eq!(not_applicable(two), Inapplicable::SeveralOperations { txn: TxnId(1) });
    assert_eq!(not_applicable("a: w(x,1)"), Inapplicable::NoTimes);
    assert_eq!(not_applicable("a: a(x,1) @0..1"), Inapplicable::Operation { op: OpId(0) });
    // What aborted may be anything.
    assert_eq!(outcome("a: w(x,1) w(y,1) aborted @0..1\n b: w(x,2) @0..1"), "satisfied");
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
    let mut late = Options::default();
    late.timeout = Some(Duration::ZERO);
    let mut large = Options::default();
    large.memory = Some(1 << 16);
    for (options, limit) in [(late, Limit::Time(Duration::ZERO)), (large, Limit::Memory(1 << 16))] {
        let verdict = decide(&hard(), &options).verdict;
        let Verdict::Undecided(undecided) = &verdict else { panic!("{verdict:?}") };
        assert_eq!(undecided.limit, limit);
        assert!(matches!(undecided.progress, Some(SearchProgress::Keys { others: 0, .. })));
    }
}
