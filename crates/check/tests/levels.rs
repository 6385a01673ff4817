//! What the table of levels promises is what the checkers do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, Checker, check};
use isolario_model::{
    Batch, History, Inapplicable, Level, Op, OpFamily, OpInput, Outcome, Predicate, TxnEnd,
    TxnSink, TxnStart, ValueRef, Verdict,
};

const FAMILIES: [OpFamily; 4] =
    [OpFamily::Registers, OpFamily::Lists, OpFamily::Conditionals, OpFamily::Predicates];

/// A write and a read of a family, each a transaction of its own, one after the other; with times, so
/// that no level lacks them.
fn history(family: OpFamily) -> History {
    let (x, one, zero) = (ValueRef::Text("x"), ValueRef::Int(1), ValueRef::Nil);
    let list = [one];
    let predicate = Predicate::unparsed("v > 0");
    let ops: Vec<OpInput<'_>> = match family {
        OpFamily::Registers => {
            vec![Op::Write { key: x, value: one }, Op::Read { key: x, value: Some(one) }]
        }
        OpFamily::Lists => {
            vec![
                Op::Append { key: x, element: one },
                Op::ReadList { key: x, elements: Some(&list) },
            ]
        }
        OpFamily::Conditionals => vec![
            Op::CompareAndSet { key: x, expected: zero, new: one, applied: Some(true), seen: None },
            Op::Read { key: x, value: Some(one) },
        ],
        _ => vec![Op::PredicateRead { predicate: &predicate, rows: None }],
    };
    built(&ops)
}

fn built(ops: &[OpInput<'_>]) -> History {
    with_times(ops, true)
}

fn with_times(ops: &[OpInput<'_>], is_timed: bool) -> History {
    let mut batch = Batch::new();
    for (at, op) in (0..).zip(ops) {
        batch.begin(&TxnStart { session: "a".into(), id: None, line: None }).unwrap();
        batch.op(op).unwrap();
        let (start, finish) = (is_timed.then_some(10 * at), is_timed.then_some(10 * at + 5));
        batch.end(&TxnEnd { start, finish, ..TxnEnd::new(Outcome::Committed) }).unwrap();
    }
    batch.build().unwrap()
}

#[test]
fn levels_are_decided_for_the_operations_that_the_table_says() {
    for family in FAMILIES {
        let history = history(family);
        for level in Level::all() {
            let verdict = &check(&history, &[level], &CheckOptions::default())[0].verdict;
            let expected = level.needs().operations.contains(&family);
            let is_decided = !matches!(
                verdict,
                Verdict::NotApplicable(
                    Inapplicable::Operation { .. }
                        | Inapplicable::NoChecker
                        | Inapplicable::UnreturnedRows { .. }
                )
            );
            assert_eq!(is_decided, expected, "{level} of {family:?}: {verdict:?}");
            assert_eq!(verdict.is_satisfied(), expected, "{level} of {family:?}: {verdict:?}");
        }
    }
}

#[test]
fn a_named_level_that_does_not_apply_is_looked_at_through_those_it_implies() {
    // A list that lost an append of the reader's own session, without times.
    let (x, list) = (ValueRef::Text("x"), [ValueRef::Int(1), ValueRef::Int(2)]);
    let ops = [
        Op::Append { key: x, element: list[0] },
        Op::Append { key: x, element: list[1] },
        Op::ReadList { key: x, elements: Some(&list[1..]) },
    ];
    let history = with_times(&ops, false);
    let named = [Level::StrictSerializable];
    let results = Checker::new(&history, CheckOptions::default()).check_named(&named, &named);
    assert!(matches!(results[0].verdict, Verdict::NotApplicable(_)));
    assert!(results.len() > 1 && results[1..].iter().all(|result| result.verdict.is_violated()));
    assert!(results[1..].iter().all(|result| Level::StrictSerializable.implies(result.level)));
    // Nothing else is decided where the level applies, or was not named.
    let checker = Checker::new(&history, CheckOptions::default());
    assert_eq!(checker.check_all(&named).len(), 1);
    assert_eq!(checker.check_named(&[Level::Causal], &[Level::Causal]).len(), 1);
}

#[test]
fn what_a_level_needs_is_said_where_it_lacks() {
    let mut batch = Batch::new();
    batch.begin(&TxnStart { session: "a".into(), id: None, line: None }).unwrap();
    batch.op(&Op::Write { key: "x".into(), value: 1i64.into() }).unwrap();
    batch.op(&Op::Write { key: "y".into(), value: 1i64.into() }).unwrap();
    batch.end(&TxnEnd::new(Outcome::Committed)).unwrap();
    let history = batch.build().unwrap();
    for level in Level::decided() {
        let verdict = &check(&history, &[level], &CheckOptions::default())[0].verdict;
        let needs = level.needs();
        match verdict {
            Verdict::NotApplicable(Inapplicable::NoTimes) => assert!(needs.times, "{level}"),
            Verdict::NotApplicable(Inapplicable::SeveralOperations { .. }) => {
                assert!(needs.single_operations, "{level}");
            }
            verdict => assert!(verdict.is_satisfied() && !needs.times, "{level}: {verdict:?}"),
        }
    }
}
