//! Orders that a database promises: the figures of "Bringing Order to Practical Validation of Database
//! Isolation Levels" (Clark et al.), and what a promise does to a verdict.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, check};
use isolario_formats::{Source, find};
use isolario_model::{
    AnomalyKind, Evidence, ExpectedVersion, History, Inapplicable, KeyId, Level, LevelResult, OpId,
    PromisedOrder, TxnId, Verdict,
};
use isolario_verify::Verifier;

fn history(text: &str) -> History {
    let source = Source::from_bytes("figure.txt", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// The verdict on a level if transactions take effect in the order of these numbers.
fn in_order(text: &str, level: Level, order: &[u32]) -> Verdict {
    let history = history(text);
    let txns: Vec<TxnId> = order.iter().map(|txn| TxnId(*txn)).collect();
    verdict(&history, level, &PromisedOrder::of_txns(&history, &txns))
}

/// The verdict on a level if transactions take effect by the timestamps of a history.
fn by_stamps(text: &str, level: Level) -> Verdict {
    let history = history(&sessions(text));
    verdict(&history, level, &PromisedOrder::of_stamps(&history))
}

/// The verdict on a level by an order, which the verifier accepts.
fn verdict(history: &History, level: Level, order: &PromisedOrder) -> Verdict {
    let options = CheckOptions::default().with_promised_order(order.clone());
    let result = check(history, &[level], &options).remove(0);
    assert_eq!(verify(history, order, &result), Ok(()), "{result:?}");
    result.verdict
}

fn verify(
    history: &History,
    order: &PromisedOrder,
    result: &LevelResult,
) -> Result<(), isolario_verify::Refusal> {
    let options = isolario_verify::VerifyOptions::default();
    Verifier::new(history, &options).with_promised_order(order).verify(result)
}

fn serializable_in(text: &str, order: &[u32]) -> bool {
    match in_order(text, Level::Serializable, order) {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        other => panic!("{other:?}"),
    }
}

const ORDERS: [[u32; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn figure_1_a_phantom_is_in_no_order() {
    let phantom = "
        T1: w x 1
        T2: w y 2
        T3: select value < 5 -> {x: 1}, select value < 5 -> {x: 1, y: 2}";
    assert!(ORDERS.iter().all(|order| !serializable_in(&sessions(phantom), order)));
}

#[test]
fn figure_2_is_serializable_in_the_order_of_timestamps() {
    let figure = sessions(
        "
        T1: w x 1
        T2: w y 2
        T3: select value > 0 -> {x: 1, y: 2}",
    );
    assert!(serializable_in(&figure, &[0, 1, 2]) && serializable_in(&figure, &[1, 0, 2]));
    assert!(!serializable_in(&figure, &[0, 2, 1]));
}

#[test]
fn figure_3_is_serializable_but_not_in_the_order_of_timestamps() {
    let figure = sessions(
        "
        T1: w x 1
        T2: w y 2
        T3: select value > 0 -> {x: 1}",
    );
    assert!(serializable_in(&figure, &[0, 2, 1]));
    let Verdict::Violated(findings) = in_order(&figure, Level::Serializable, &[0, 1, 2]) else {
        panic!("the row of T2 is missing")
    };
    let anomaly = &findings.anomalies[0];
    assert_eq!((anomaly.kind, findings.total), (AnomalyKind::OrderContradiction, 1));
    let missing = ExpectedVersion { key: KeyId(1), write: Some(OpId(1)) };
    let evidence = Evidence::Unexpected { op: OpId(2), expected: vec![missing], result: None };
    assert_eq!(anomaly.evidence, evidence);
}

#[test]
fn figure_4_reads_what_it_did_not_see_by_predicate() {
    let figure = sessions(
        "
        T1: w x 4
        T2: w x 6
        T3: select value < 5 -> {}, r x 4",
    );
    assert!(ORDERS.iter().all(|order| !serializable_in(&figure, order)));
}

#[test]
fn writers_need_a_place_and_readers_find_one() {
    let text = sessions(
        "
        T1: w x 1
        T2: w x 2
        T3: r x 1",
    );
    assert!(serializable_in(&text, &[0, 1]));
    let verdict = in_order(&text, Level::Serializable, &[1, 2]);
    assert_eq!(verdict, Verdict::NotApplicable(Inapplicable::NotInPromisedOrder { txn: TxnId(0) }));
    let verdict = in_order(&text, Level::ReadCommitted, &[0, 1]);
    assert_eq!(verdict, Verdict::NotApplicable(Inapplicable::NotByPromisedOrder));
}

/// At 182 the register holds 12, so T1 found something else than nothing and wrote nothing.
#[test]
fn a_conditional_write_of_unknown_effect_is_decided_at_the_start_of_its_transaction() {
    let text = |read: &str| {
        format!(
            "
            T0 db [14, 100]: w x 12
            T2 db [172, 200]: delete x
            T1 unknown db [182, 300]: cas x nil -> 16 ?
            T3 db [385, 400]: r x {read}"
        )
    };
    for level in [Level::Prefix, Level::SnapshotIsolation] {
        assert!(by_stamps(&text("16"), level).is_violated(), "{level}");
        assert!(by_stamps(&text("nil"), level).is_satisfied(), "{level}");
    }
    // One after the other, T1 comes after the delete.
    assert!(by_stamps(&text("16"), Level::Serializable).is_satisfied());
    assert!(by_stamps(&text("nil"), Level::Serializable).is_violated());
}

/// T1 found no x, wrote nothing, and is no rival of T0.
#[test]
fn a_conditional_write_without_effect_excludes_nobody() {
    let rivals = |found: &str| {
        format!(
            "
            T0 db [41, 200]: w x 10
            T1 unknown db [22, 100]: cas x {found} -> 2 ?"
        )
    };
    assert!(by_stamps(&rivals("3"), Level::SnapshotIsolation).is_satisfied());
    assert!(by_stamps(&rivals("nil"), Level::SnapshotIsolation).is_violated());
}

/// A transaction whose conditional writes take no effect wrote nothing, so only its start counts.
#[test]
fn a_transaction_without_effect_commits_at_its_start() {
    let overlapping = |found: &str| {
        let text = format!(
            "initial nil\nsession a\n  T1 db [10, 50]: cas x {found} -> 2 ?\n  T2 db [20, 60]: w y 1\n"
        );
        let history = history(&text);
        verdict(&history, Level::Prefix, &PromisedOrder::of_stamps(&history))
    };
    assert!(overlapping("3").is_satisfied());
    assert!(overlapping("nil").is_violated());
}

/// Whether T1 found the register empty depends on which of the two came first at 20.
#[test]
fn a_conditional_write_at_the_moment_of_another_write_is_left_open() {
    let text = "
        T0 db [10, 20]: w x 1
        T1 db [20, 30]: cas x nil -> 2 ?
        T2 db [40, 50]: r x 2";
    let open = Inapplicable::TiedInPromisedOrder { first: TxnId(0), second: TxnId(1) };
    assert_eq!(by_stamps(text, Level::Prefix), Verdict::NotApplicable(open));
}

/// T2 may have written what T4 read, at a place that nobody knows.
#[test]
fn what_an_order_left_out_may_be_the_reason() {
    let text = sessions(
        "
        T2 unknown: w m 10
        T4: r m 10
        T5: w z 1",
    );
    let left_out = Inapplicable::NotInPromisedOrder { txn: TxnId(0) };
    let found = in_order(&text, Level::Serializable, &[2]);
    assert_eq!(found, Verdict::NotApplicable(left_out));
    // Without T2, the same history is violated. Said of the one with T2, it is refused.
    let without = "T2 aborted: w m 10\n T4: r m 10\n T5: w z 1";
    let violated = in_order(&sessions(without), Level::Serializable, &[2]);
    assert!(violated.is_violated());
    let history = history(&text);
    let order = PromisedOrder::of_txns(&history, &[TxnId(2)]);
    let options = CheckOptions::default().with_promised_order(order.clone());
    let result = check(&history, &[Level::Serializable], &options).remove(0);
    let forged = LevelResult { verdict: violated, ..result };
    assert!(verify(&history, &order, &forged).is_err());
}

/// What does not depend on results is wrong whatever was left out.
#[test]
fn a_session_contradicts_an_order_whatever_it_left_out() {
    let text = "initial nil\nsession a\n  T1: w x 1\n  T2: w y 1\nsession b\n  T3 unknown: w z 1\n
        session c\n  T4: r z 1\n";
    let found = in_order(text, Level::Serializable, &[1, 0]);
    assert_eq!(found.anomalies().len(), 1, "{found:?}");
    let edges = found.anomalies()[0].evidence.edges();
    assert_eq!(edges.len(), 2);
}

/// Equal timestamps are no order, so real time may choose one.
#[test]
fn transactions_at_one_moment_are_in_real_time() {
    let text = "
        T1 [60, 70] db [1, 1]: w x 1
        T2 [10, 20] db [1, 1]: w y 1";
    for level in [Level::StrictSerializable, Level::StrongSnapshotIsolation] {
        assert!(by_stamps(text, level).is_satisfied(), "{level}");
    }
}

/// Each transaction in a session of its own.
fn sessions(txns: &str) -> String {
    let lines = txns.lines().filter(|line| !line.trim().is_empty()).enumerate();
    let text = lines.map(|(session, line)| format!("session s{session}\n  {}\n", line.trim()));
    format!("initial nil\n{}", text.collect::<String>())
}
