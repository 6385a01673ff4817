//! Orders that a database promises: the figures of "Bringing Order to Practical Validation of Database
//! Isolation Levels" (Clark et al.), and what a promise does to a verdict.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{Options, check};
use isolario_formats::{Source, find};
use isolario_model::{
    AnomalyKind, Evidence, ExpectedVersion, History, Inapplicable, KeyId, Level, OpId,
    PromisedOrder, TxnId, Verdict,
};

fn history(text: &str) -> History {
    let source = Source::from_bytes("figure.txt", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// The verdict on a level if transactions take effect in the order of these numbers.
fn in_order(text: &str, level: Level, order: &[u32]) -> Verdict {
    let history = history(text);
    let txns: Vec<TxnId> = order.iter().map(|txn| TxnId(*txn)).collect();
    let options = Options::default().with_promised_order(PromisedOrder::of_txns(&history, &txns));
    check(&history, &[level], &options).remove(0).verdict
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
    assert_eq!(verdict, Verdict::NotApplicable(Inapplicable::NoPlace { txn: TxnId(0) }));
    let verdict = in_order(&text, Level::ReadCommitted, &[0, 1]);
    assert_eq!(verdict, Verdict::NotApplicable(Inapplicable::NotByPromisedOrder));
}

/// Each transaction in a session of its own.
fn sessions(txns: &str) -> String {
    let lines = txns.lines().filter(|line| !line.trim().is_empty()).enumerate();
    let text = lines.map(|(session, line)| format!("session s{session}\n  {}\n", line.trim()));
    format!("initial nil\n{}", text.collect::<String>())
}
