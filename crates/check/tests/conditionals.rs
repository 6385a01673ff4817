//! Conditional writes inside transactions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, check};
use isolario_model::{
    AnomalyKind, Evidence, Inapplicable, Level, Verdict, VerdictKind,
    VerdictKind::{NotApplicable, Satisfied, Violated},
};
use isolario_oracle::history;

const LEVELS: [Level; 5] = [
    Level::ReadCommitted,
    Level::Causal,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::Serializable,
];

fn verdict(text: &str, level: Level) -> Verdict {
    check(&history(text), &[level], &CheckOptions::default()).remove(0).verdict
}

fn kinds(text: &str) -> [VerdictKind; 5] {
    LEVELS.map(|level| verdict(text, level).kind())
}

#[test]
fn one_that_took_effect_is_a_read_and_a_write() {
    let lost_update = "a: cas x nil -> 1 ok\n b: cas x nil -> 2 ok";
    assert_eq!(kinds(lost_update), [Satisfied, Satisfied, Satisfied, Violated, Violated]);
    let one_by_one = "a: insert x 1 ok\n b: cas x 1 -> 2 ok\n c: cas x 1 -> 3 failed saw 2";
    assert_eq!(kinds(one_by_one), [Satisfied; 5]);
}

/// It did not find the initial value, so it found the only other one, and its session has seen that then.
#[test]
fn one_that_failed_saw_something_else_than_it_asked_for() {
    let text = "a: w x 1, w y 1\n b: insert x 2 failed\n b: r y nil";
    assert_eq!(kinds(text), [Satisfied, Violated, Violated, Violated, Violated]);
    let text = "a: w x 1, w y 1\n b: insert x 2 failed\n b: r y 1";
    assert_eq!(kinds(text), [Satisfied; 5]);
}

#[test]
fn it_may_have_seen_any_of_several_writes() {
    let either = "a: w x 1, w y 1\n b: w x 2\n c: insert x 9 failed\n c: r y nil";
    assert_eq!(kinds(either), [Satisfied; 5]);
    // But not both ways at once.
    let neither = "a: w x 1, w y 1\n b: w x 2, w y 1\n c: insert x 9 failed\n c: r y nil";
    assert_eq!(kinds(neither), [Satisfied, Violated, Violated, Violated, Violated]);
}

/// Somebody must have written what was there, so a transaction of unknown outcome did commit.
#[test]
fn a_transaction_of_unknown_outcome_may_be_why_it_failed() {
    let text = "a unknown: w x 1, w y 1\n b: insert x 2 failed\n b: r y nil";
    assert_eq!(kinds(text), [Satisfied, Violated, Violated, Violated, Violated]);
    let text = "a unknown: insert x 1 ?\n b: insert x 2 failed";
    assert_eq!(kinds(text), [Satisfied; 5]);
}

/// The transaction that explains it did commit, and what it saw of lists, or appended to them, counts.
#[test]
fn it_shows_what_a_transaction_of_unknown_outcome_did_to_lists() {
    for text in [
        "a unknown: w q 1, r x [10]\n b: insert q 2 failed",
        "a: append x 5\n a unknown: w q 1, r x []\n b: insert q 2 failed",
        "a: insert q 1 failed, r y [11]\n b unknown: append y 14, w q 3\n c: append y 11",
    ] {
        assert_eq!(kinds(text)[2..], [Violated; 3], "{text}");
    }
    let right = "a: append x 5\n a unknown: w q 1, r x [5]\n b: insert q 2 failed";
    assert_eq!(kinds(right), [Satisfied; 5]);
    let other = "a unknown: w q 1, r x [10]\n b: insert q 2 failed\n c unknown: w q 3";
    assert_eq!(kinds(other), [Satisfied; 5]);
}

#[test]
fn what_nothing_explains_is_wrong_in_itself() {
    let kind = |text: &str| match verdict(text, Level::ReadCommitted) {
        Verdict::Violated(findings) => {
            let Evidence::Read { saw: None, instead, .. } = findings.anomalies[0].evidence else {
                return None;
            };
            Some((findings.anomalies[0].kind, instead.map(|op| op.0)))
        }
        _ => None,
    };
    let thin_air = Some((AnomalyKind::ThinAirRead, None));
    assert_eq!(kind("a: cas x nil -> 1 failed"), thin_air);
    assert_eq!(kind("a: cas x nil -> 1 failed\n b aborted: w x 2"), thin_air);
    assert_eq!(kind("a: cas x 1 -> 2 failed saw 1\n b: w x 1"), thin_air);
    let own = Some((AnomalyKind::NotMyOwnWrite, Some(0)));
    assert_eq!(kind("a: w x 1, cas x 1 -> 2 failed\n b: w x 3"), own);
    assert_eq!(kind("a: w x 2, cas x 1 -> 2 failed"), None);
}

#[test]
fn where_it_matters_that_nobody_knows_whether_it_took_effect_nothing_is_decided() {
    let text = "a: insert x 1 ?\n b: r x nil";
    assert_eq!(kinds(text), [NotApplicable; 5]);
    let Verdict::NotApplicable(reason) = verdict(text, Level::Serializable) else {
        unreachable!("asserted above");
    };
    assert!(matches!(reason, Inapplicable::OpenConditional { .. }), "{reason:?}");
    // It wrote y anyway, if it is there.
    let text = "a unknown: insert x 1 ?, w y 1\n b: r y 1";
    assert_eq!(kinds(text), [NotApplicable; 5]);
}
