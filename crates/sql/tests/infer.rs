//! What follows from the lists that statements showed, by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, Checker};
use isolario_model::{AnomalyKind, History, Level, Outcome};
use isolario_sql::{
    Aux, Element, Instrument, Product, Reading, Recorded, RecordedTxn, Round, Schema, Seen, Table,
    Type, history, old_versions,
};

/// A list in its text: `1.2,3.1`.
fn list(text: &str) -> Vec<Element> {
    let element = |part: &str| {
        let (txn, statement) = part.split_once('.').unwrap();
        Element { txn: txn.parse().unwrap(), statement: statement.parse().unwrap() }
    };
    text.split(',').filter(|part| !part.is_empty()).map(element).collect()
}

fn seen(row: &str, text: &str) -> Seen {
    Seen { locked: false, row: row.to_owned(), list: list(text) }
}

/// A statement of a transaction, with the rows that it showed.
fn statement(number: u32, sql: &str, rows: &[(&str, &str)]) -> Recorded {
    let schema =
        Schema { tables: vec![Table::plain("t", &[("c", Type::Integer)], &[])], views: Vec::new() };
    let aux = Aux::avoiding(&schema);
    let product = Product::POSTGRES;
    let instrument = Instrument { product: &product, schema: &schema, aux: &aux };
    let sent = instrument.statement(sql, 1, number);
    let mut recorded = Recorded::new(number, sql, &sent);
    let rows = rows.iter().map(|(row, text)| seen(row, text)).collect();
    match sent.deletes {
        true => (recorded.deleted, recorded.deletes_known) = (rows, true),
        false => recorded.reads = rows,
    }
    recorded
}

const READ: &str = "SELECT c FROM t";
const WRITE: &str = "UPDATE t SET c = 1";
const DELETE: &str = "DELETE FROM t";

fn txn(id: u32, session: u32, statements: Vec<Recorded>) -> RecordedTxn {
    let mut txn = RecordedTxn::new(id, session);
    txn.outcome = Outcome::Committed;
    txn.statements = statements;
    txn
}

/// A look at the whole table in the end.
fn last(id: u32, session: u32, rows: &[(&str, &str)]) -> RecordedTxn {
    let mut read = statement(1, READ, rows);
    read.table = Some("t".to_owned());
    let mut txn = txn(id, session, vec![read]);
    txn.is_final = true;
    txn
}

fn of(transactions: Vec<RecordedTxn>) -> History {
    let round = Round { transactions, ..Round::default() };
    history(&round, Reading::default()).unwrap()
}

fn kinds(history: &History, level: Level) -> Vec<AnomalyKind> {
    let result = Checker::new(history, CheckOptions::default()).check(level);
    result.verdict.anomalies().iter().map(|anomaly| anomaly.kind).collect()
}

#[test]
fn two_who_update_what_they_both_read_lose_an_update() {
    let both = |id| txn(id, id, vec![statement(1, READ, &[("t/1", "")]), statement(2, WRITE, &[])]);
    let history = of(vec![both(1), both(2), last(3, 1, &[("t/1", "1.2,2.2")])]);
    assert!(kinds(&history, Level::RepeatableRead).contains(&AnomalyKind::LostUpdate));
}

#[test]
fn elements_are_compared_and_not_texts() {
    // 1.1 is no prefix of 10.1, nor 1.1 of 1.10.
    let writer = |id| txn(id, id, vec![statement(1, WRITE, &[])]);
    let history = of(vec![writer(1), writer(10), last(11, 1, &[("t/1", "1.1,10.1")])]);
    assert!(kinds(&history, Level::Serializable).is_empty());
}

#[test]
fn what_was_rolled_back_to_a_savepoint_was_never_there() {
    let with_savepoint = |own: &str| {
        let mut txn = txn(
            1,
            1,
            vec![
                statement(1, "SAVEPOINT s1", &[]),
                statement(2, WRITE, &[]),
                statement(3, READ, &[("t/1", "1.2")]),
                statement(4, "ROLLBACK TO SAVEPOINT s1", &[]),
                statement(5, READ, &[("t/1", own)]),
            ],
        );
        txn.undo_to("s1", 4);
        txn
    };
    let right = of(vec![with_savepoint(""), last(2, 2, &[("t/1", "")])]);
    assert!(kinds(&right, Level::Serializable).is_empty());
    let wrong = of(vec![with_savepoint(""), last(2, 2, &[("t/1", "1.2")])]);
    assert_eq!(kinds(&wrong, Level::AdyaReadCommitted), [AnomalyKind::AbortedRead]);
    let still_there = of(vec![with_savepoint("1.2"), last(2, 2, &[("t/1", "")])]);
    assert_eq!(kinds(&still_there, Level::AdyaReadCommitted), [AnomalyKind::AbortedRead]);
}

#[test]
fn what_was_read_before_the_way_back_to_a_savepoint_proves_nothing() {
    let mut twice = txn(
        1,
        1,
        vec![
            statement(1, "SAVEPOINT s1", &[]),
            statement(2, READ, &[("t/1", "")]),
            statement(3, "ROLLBACK TO SAVEPOINT s1", &[]),
            statement(4, READ, &[("t/1", "2.1")]),
        ],
    );
    let writer = || txn(2, 2, vec![statement(1, WRITE, &[])]);
    let last = || last(3, 1, &[("t/1", "2.1")]);
    let both = of(vec![twice.clone(), writer(), last()]);
    assert_eq!(kinds(&both, Level::Serializable), [AnomalyKind::NonRepeatableRead]);
    twice.undo_to("s1", 3);
    assert!(kinds(&of(vec![twice, writer(), last()]), Level::Serializable).is_empty());
}

#[test]
fn a_locking_read_with_a_subquery_by_itself_sees_two_states_of_mysql() {
    let mut mixed = statement(1, READ, &[("t/1", ""), ("t/1", "2.1")]);
    mixed.reads[1].locked = true;
    let mut reader = txn(1, 1, vec![mixed]);
    let writer = txn(2, 2, vec![statement(1, WRITE, &[])]);
    let read = |reader: &RecordedTxn, product: &Product| {
        let transactions = vec![reader.clone(), writer.clone(), last(3, 1, &[("t/1", "2.1")])];
        let round = Round { transactions, ..Round::default() };
        let history = history(&round, Reading::of(product, "serializable")).unwrap();
        kinds(&history, Level::Serializable)
    };
    let wrong = [AnomalyKind::NonRepeatableRead];
    assert_eq!(read(&reader, &Product::MARIADB), wrong);
    reader.autocommit = true;
    assert!(read(&reader, &Product::MARIADB).is_empty());
    assert_eq!(read(&reader, &Product::POSTGRES), wrong);
}

#[test]
fn a_version_under_an_own_write_is_old_only_if_another_transaction_wrote_between() {
    let mysql = Reading::of(&Product::MARIADB, "repeatable-read");
    let told = |reading, rows: &[(&str, &str)], own: Recorded, end: &[(&str, &str)]| {
        let reader = txn(1, 1, vec![own, statement(2, READ, rows)]);
        let writer = txn(2, 2, vec![statement(1, WRITE, &[])]);
        let round =
            Round { transactions: vec![reader, writer, last(3, 1, end)], ..Round::default() };
        let history = history(&round, reading).unwrap();
        (old_versions(&round, reading).len(), kinds(&history, Level::AdyaReadCommitted))
    };
    let update = || statement(1, WRITE, &[]);
    let delete = || statement(1, DELETE, &[("t/1", "2.1")]);
    let end = [("t/1", "2.1,1.1")];
    let (not_seen, nothing) = (vec![AnomalyKind::NotMyOwnWrite], Vec::new());
    // Both versions, or only the old one.
    let both = [("t/1", "2.1,1.1"), ("t/1", "")];
    assert_eq!(told(mysql, &both, update(), &end), (1, nothing.clone()));
    assert_eq!(told(mysql, &both[1..], update(), &end), (1, nothing.clone()));
    assert_eq!(told(mysql, &both[..1], update(), &end), (0, nothing.clone()));
    assert_eq!(told(mysql, &both[1..], delete(), &[]), (1, nothing));
    // Elsewhere, and where the own write came right after what is shown, it is what it looks like.
    assert_eq!(told(Reading::default(), &both, update(), &end), (0, not_seen.clone()));
    assert_eq!(told(mysql, &[("t/1", "2.1")], update(), &end), (0, not_seen.clone()));
    assert_eq!(told(mysql, &[("t/1", "2.1")], delete(), &[]), (0, not_seen));
}

#[test]
fn reads_of_aborted_unfinished_and_future_writes_have_their_names() {
    let mut aborted = txn(1, 1, vec![statement(1, WRITE, &[])]);
    aborted.outcome = Outcome::Aborted;
    let dirty = of(vec![aborted, txn(2, 2, vec![statement(1, READ, &[("t/1", "1.1")])])]);
    assert_eq!(kinds(&dirty, Level::AdyaReadCommitted), [AnomalyKind::AbortedRead]);

    let twice = txn(1, 1, vec![statement(1, WRITE, &[]), statement(2, WRITE, &[])]);
    let early = txn(2, 2, vec![statement(1, READ, &[("t/1", "1.1")])]);
    let unfinished = of(vec![twice, early, last(3, 3, &[("t/1", "1.1,1.2")])]);
    assert_eq!(kinds(&unfinished, Level::AdyaReadCommitted), [AnomalyKind::IntermediateRead]);

    let ahead = txn(1, 1, vec![statement(1, READ, &[("t/1", "1.2")]), statement(2, WRITE, &[])]);
    let future = of(vec![ahead, last(2, 2, &[("t/1", "1.2")])]);
    assert_eq!(kinds(&future, Level::AdyaReadCommitted), [AnomalyKind::FutureRead]);

    let nobody = of(vec![txn(1, 1, vec![statement(1, READ, &[("t/1", "7.1")])])]);
    assert_eq!(kinds(&nobody, Level::AdyaReadCommitted), [AnomalyKind::ThinAirRead]);
}

#[test]
fn lists_that_part_are_an_anomaly() {
    let writer = |id| txn(id, id, vec![statement(1, WRITE, &[])]);
    let one = txn(3, 3, vec![statement(1, READ, &[("t/1", "1.1")])]);
    let other = txn(4, 4, vec![statement(1, READ, &[("t/1", "2.1")])]);
    let history = of(vec![writer(1), writer(2), one, other]);
    assert_eq!(kinds(&history, Level::Serializable), [AnomalyKind::IncompatibleOrder]);
}

#[test]
fn a_delete_overwrites_what_it_met_and_comes_after_whoever_read_it() {
    // T1 read the row that T2 deleted, and overwrote what T2 had read: write skew.
    let reader = txn(1, 1, vec![statement(1, READ, &[("t/1", "")]), statement(2, WRITE, &[])]);
    let deleter =
        txn(2, 2, vec![statement(1, READ, &[("t/2", "")]), statement(2, DELETE, &[("t/1", "")])]);
    let history = of(vec![reader, deleter, last(3, 1, &[("t/2", "1.2")])]);
    assert_eq!(kinds(&history, Level::RepeatableRead), [AnomalyKind::WriteSkew]);
}

#[test]
fn a_write_that_its_own_session_does_not_find_is_lost() {
    let mut insert = statement(1, "INSERT INTO t (c) VALUES (1)", &[]);
    insert.inserted = vec!["t/1.1.1".to_owned()];
    let found = of(vec![txn(1, 1, vec![insert.clone()]), last(2, 1, &[("t/1.1.1", "1.1")])]);
    assert!(kinds(&found, Level::Serializable).is_empty());
    let lost = of(vec![txn(1, 1, vec![insert]), last(2, 1, &[])]);
    assert!(!kinds(&lost, Level::Serializable).is_empty());
}
