//! Version certificates: the figures of "Bringing Order to Practical Validation of Database Isolation
//! Levels" (Clark et al.), what tells repeatable read and serializability apart, and stores whose
//! certificates are known.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod snapshots;
mod stores;

use isolario_check::{CheckOptions, StatedOrder, StatedSet, check};
use isolario_formats::{Source, find, version_order};
use isolario_model::{AnomalyKind, History, Inapplicable, ItemView, KeyId, Level, TxnId, Verdict};
use isolario_verify::Verifier;

/// Each transaction in a session of its own.
fn history(txns: &str) -> History {
    let lines = txns.lines().filter(|line| !line.trim().is_empty()).enumerate();
    let text = lines.map(|(session, line)| format!("session s{session}\n  {}\n", line.trim()));
    let text = format!("initial nil\n{}", text.collect::<String>());
    let source = Source::from_bytes("figure.txt", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// The verdict on a level by a certificate, which the verifier accepts.
fn verdict(history: &History, certificate: &str, level: Level) -> Verdict {
    let source = Source::from_bytes("certificate.jsonl", certificate.as_bytes().to_vec()).unwrap();
    let stated = version_order::read(&source, history).unwrap();
    decided(history, &stated.orders, &stated.sets, level)
}

fn decided(history: &History, orders: &[StatedOrder], sets: &[StatedSet], level: Level) -> Verdict {
    let options = CheckOptions::default()
        .with_version_order(orders.to_vec())
        .with_version_sets(sets.to_vec())
        .with_trusted_version_order(true);
    let result = check(history, &[level], &options).remove(0);
    let as_read = isolario_verify::VerifyOptions::default().with_trusted_version_order(true);
    let verifier =
        Verifier::new(history, &as_read).with_version_order(orders).with_version_sets(sets);
    assert_eq!(verifier.verify(&result), Ok(()), "{result:?}");
    result.verdict
}

/// The names of what is wrong; none where nothing is.
fn wrong(history: &History, certificate: &str, level: Level) -> Vec<AnomalyKind> {
    match verdict(history, certificate, level) {
        Verdict::Satisfied(_) => Vec::new(),
        Verdict::Violated(findings) => findings.anomalies.iter().map(|a| a.kind).collect(),
        other => panic!("{other:?}"),
    }
}

fn satisfies(history: &History, certificate: &str, level: Level) -> bool {
    wrong(history, certificate, level).is_empty()
}

#[test]
fn figure_1_a_phantom_is_no_anomaly_of_items() {
    let figure = history(
        "
        T1: w x 1
        T2: w y 2
        T3: select value < 5 -> {x: 1}, select value < 5 -> {x: 1, y: 2}",
    );
    let certificate = r#"
        {"txn": "T3", "op": 0, "versions": [["x", "T1"]]}
        {"txn": "T3", "op": 1, "versions": [["x", "T1"], ["y", "T2"]]}"#;
    assert_eq!(wrong(&figure, certificate, Level::Serializable), [AnomalyKind::Phantom]);
    assert!(satisfies(&figure, certificate, Level::RepeatableRead));
    assert!(!satisfies(&figure, certificate, Level::SnapshotIsolation));
}

#[test]
fn figures_2_and_3_the_order_of_timestamps_is_part_of_the_question() {
    let all = r#"{"txn": "T3", "op": 0, "versions": [["x", "T1"], ["y", "T2"]]}"#;
    let figure_2 = history("T1: w x 1\n T2: w y 2\n T3: select value > 0 -> {x: 1, y: 2}");
    assert!(satisfies(&figure_2, all, Level::Serializable));
    let figure_3 = history("T1: w x 1\n T2: w y 2\n T3: select value > 0 -> {x: 1}");
    assert_eq!(wrong(&figure_3, all, Level::Serializable), [AnomalyKind::ResultMismatch]);
    assert_eq!(wrong(&figure_3, all, Level::AdyaReadCommitted), [AnomalyKind::ResultMismatch]);
    assert!(satisfies(&figure_3, all, Level::ReadUncommitted));
    // In another order it would have been right.
    let fewer = r#"{"txn": "T3", "op": 0, "versions": [["x", "T1"]]}"#;
    assert!(satisfies(&figure_3, fewer, Level::Serializable));
}

const FIGURE_4: &str = "
    T1: w x 4
    T2: w x 6
    T3: select value < 5 -> {}, r x 4";

#[test]
fn figures_4_to_6_only_a_read_by_predicate_closes_the_cycle() {
    let figure = history(FIGURE_4);
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2"]}
        {"txn": "T3", "op": 0, "versions": [["x", "T2"]]}"#;
    // Of items alone, nothing is wrong (Figure 5).
    let items = ItemView::new(&figure).unwrap();
    let of_items = check(items.history(), &[Level::Serializable], &CheckOptions::default());
    assert!(of_items[0].verdict.is_satisfied());
    assert_eq!(wrong(&figure, certificate, Level::Serializable), [AnomalyKind::ReadSkew]);
    // The read by predicate counts for repeatable read as well.
    assert_eq!(wrong(&figure, certificate, Level::RepeatableRead), [AnomalyKind::ReadSkew]);
    assert!(satisfies(&figure, certificate, Level::AdyaReadCommitted));
}

#[test]
fn figure_7_a_result_that_does_not_fit_is_wrong_by_itself() {
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2"]}
        {"txn": "T3", "op": 0, "versions": [["x", "T1"]]}"#;
    let mismatch = [AnomalyKind::ResultMismatch];
    assert_eq!(wrong(&history(FIGURE_4), certificate, Level::Serializable), mismatch);
}

/// A row that was inserted and updated by one transaction, which the tracking of conflicts of
/// PostgreSQL 12.3 lost sight of: each of the two misses what the other wrote (Section 8.2).
#[test]
fn postgresql_12_3_lets_two_transactions_miss_each_other() {
    let anomaly = history(
        "
        T1: r y nil, w x 1, w x 2
        T2: select value > 1 -> {}, w y 1",
    );
    let certificate = r#"{"txn": "T2", "op": 0, "versions": []}"#;
    assert_eq!(
        wrong(&anomaly, certificate, Level::Serializable),
        [AnomalyKind::PredicateWriteSkew]
    );
    assert!(satisfies(&anomaly, certificate, Level::SnapshotIsolation));
}

/// Long locks on rows and short ones on ranges give repeatable read, and allow this: a cycle with an
/// anti-dependency of a predicate is none of items, whatever else is in it.
#[test]
fn a_cycle_of_both_kinds_of_anti_dependency_is_none_of_items() {
    let mixed = history(
        "
        T1: select value > 9 -> {}, w x 1
        T2: r x nil, w z 10",
    );
    let certificate = r#"{"txn": "T1", "op": 0, "versions": []}"#;
    assert!(satisfies(&mixed, certificate, Level::RepeatableRead));
    assert_eq!(wrong(&mixed, certificate, Level::Serializable), [AnomalyKind::PredicateWriteSkew]);
    let items = history("T1: r z nil, w x 1\n T2: r x nil, w z 10\n T3: select value > 99 -> {}");
    let certificate = r#"{"txn": "T3", "op": 0, "versions": []}"#;
    assert_eq!(wrong(&items, certificate, Level::RepeatableRead), [AnomalyKind::WriteSkew]);
}

#[test]
fn what_a_transaction_took_back_itself_changed_nothing() {
    let no_op = history(
        "
        T1: w x 0
        T2: w x 5, w x 0, w y 1
        T3: select value > 3 -> {}, r y 1",
    );
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2"]}
        {"txn": "T3", "op": 0, "versions": [["x", "T1"]]}"#;
    assert!(satisfies(&no_op, certificate, Level::Serializable));
}

#[test]
fn own_rows_are_met_as_they_were_left() {
    let own = history(
        "
        T1: w x 5
        T2: w x 9, select value > 3 -> {x: 9}",
    );
    let certificate = r#"
        {"key": "x", "writers": ["T2", "T1"]}
        {"txn": "T2", "op": 1, "versions": []}"#;
    assert!(satisfies(&own, certificate, Level::Serializable));
}

#[test]
fn what_an_aborted_transaction_wrote_must_not_have_been_met() {
    let text =
        "initial nil\nsession a\n  T1 aborted: w x 5\nsession b\n  T2: select value > 9 -> {}\n";
    let source = Source::from_bytes("h.txt", text.into()).unwrap();
    let history = find("text").unwrap().read(&source).unwrap().history;
    let certificate = r#"{"txn": "T2", "op": 0, "versions": [["x", "T1"]]}"#;
    let expected = [AnomalyKind::AbortedRead];
    assert_eq!(wrong(&history, certificate, Level::AdyaReadCommitted), expected);
    assert!(satisfies(&history, certificate, Level::ReadUncommitted));
}

/// Of a row that a transaction has written itself, it meets what it left there: the set says nothing about
/// it, aborted version or not.
#[test]
fn a_set_says_nothing_about_the_own_row() {
    let own = history(
        "
        T1 aborted: w t(id=1) (a=9)
        T2: w t(id=1) (a=0), select from t where a > 5 -> {}",
    );
    let certificate =
        r#"{"txn": "T2", "op": 1, "versions": [[{"table": "t", "row": {"id": 1}}, "T1"]]}"#;
    for level in [Level::AdyaReadCommitted, Level::SnapshotIsolation, Level::Serializable] {
        assert!(satisfies(&own, certificate, level), "{level}");
    }
    // Before its write, the row is not its own.
    let others = history(
        "
        T1 aborted: w t(id=1) (a=9)
        T2: select from t where a > 5 -> {}, w t(id=1) (a=0)",
    );
    let certificate = certificate.replace("\"op\": 1", "\"op\": 0");
    let aborted = [AnomalyKind::AbortedRead];
    assert_eq!(wrong(&others, &certificate, Level::AdyaReadCommitted), aborted);
}

#[test]
fn a_certificate_says_everything() {
    let two = history("T1: w x 1\n T2: w x 2\n T3: select value > 0 -> {x: 2}");
    let set = r#"{"txn": "T3", "op": 0, "versions": [["x", "T2"]]}"#;
    let key = KeyId(0);
    let open = Verdict::NotApplicable(Inapplicable::OpenVersionOrder { key });
    assert_eq!(verdict(&two, set, Level::Serializable), open);
    let order = r#"{"key": "x", "writers": ["T1", "T2"]}"#;
    assert!(satisfies(&two, &format!("{order}\n{set}"), Level::Serializable));
}

/// What an update met at PostgreSQL's read committed, nothing says. Its rows count as writes, and the
/// rest is judged without it.
#[test]
fn an_operation_without_a_set_may_have_met_anything_that_explains_it() {
    let order = r#"{"key": "x", "writers": ["T1", "T2"]}"#;
    let explained = history("T1: w x 1\n T2: w x 7\n T3: select value > 5 -> {x: 7}");
    for level in [Level::Serializable, Level::SnapshotIsolation, Level::ConsistentView] {
        assert!(satisfies(&explained, order, level), "{level}");
    }
    // It came after the first insert and met the row, or before, and did not.
    let elsewhere = history("T1: w x 7\n T2: r x 7, w x 1\n T3: select value > 5 -> {}, r x 1");
    assert!(satisfies(&elsewhere, order, Level::Serializable));
    // Below serializability and snapshots it may always have met the initial version.
    let before = history("T1: w x 7\n T2: r x 7, w y 7\n T3: select value > 5 -> {y: 7}");
    let stated = r#"{"txn": "T3", "op": 0, "versions": [["y", "T2"]]}"#;
    assert!(satisfies(&before, stated, Level::RepeatableRead));
    let op = before.txn_ops(TxnId(2)).next().unwrap();
    let unset = Verdict::NotApplicable(Inapplicable::NoVersionSet { op, total: 1 });
    let nothing = r#"{"key": "x", "writers": ["T1"]}"#;
    assert!(satisfies(&before, nothing, Level::AdyaReadCommitted));
    assert!(satisfies(&before, nothing, Level::RepeatableRead));
    assert_eq!(verdict(&before, nothing, Level::Serializable), unset);
    assert_eq!(verdict(&before, nothing, Level::SnapshotIsolation), unset);
    assert!(!satisfies(&before, stated, Level::Serializable));
}

#[test]
fn rows_of_an_operation_without_a_set_are_reads_and_writes_like_others() {
    let cyclic = history("T1: r y 1, w x 7\n T2: select value > 5 -> {x: 7}, w y 1");
    let nothing = r#"{"key": "x", "writers": ["T1"]}"#;
    assert_eq!(wrong(&cyclic, nothing, Level::AdyaReadCommitted), [AnomalyKind::CyclicCo]);
    assert!(satisfies(&cyclic, nothing, Level::ReadUncommitted));
    let dirty = "initial nil\nsession a\n  T1 aborted: w x 7\nsession b\n  T2: select value > 5 -> {x: 7}\n";
    let source = Source::from_bytes("h.txt", dirty.into()).unwrap();
    let dirty = find("text").unwrap().read(&source).unwrap().history;
    let nothing = r#"{"key": "x", "writers": []}"#;
    assert_eq!(wrong(&dirty, nothing, Level::AdyaReadCommitted), [AnomalyKind::AbortedRead]);
}

/// The same with a row of a table in place of the register x: once deleted, it comes back as another one.
fn in_rows(text: &str) -> String {
    let value = |text: String, n: u8| {
        let text = text.replace(&format!("x {n}"), &format!("x (value={n})"));
        text.replace(&format!("x: {n}"), &format!("x: (value={n})"))
    };
    let named = |text: String, name: &str| text.replace(name, &name.replacen('x', "t(id=1)", 1));
    let text = (0..=9).fold(text.to_owned(), value);
    let text = ["x (", "x: ", "x nil", "delete x"].into_iter().fold(text, named);
    text.replace("\"x\"", r#"{"table": "t", "row": {"id": 1}}"#)
}

/// PostgreSQL lets a transaction insert a row that a concurrent one deleted, and then shows it both.
#[test]
fn a_result_may_hold_two_incarnations_of_one_key() {
    let both = "
        T1: w x 1
        T2: delete x
        T3: w x 2, select value > 0 -> {x: 1, x: 2}";
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2", "T3"]}
        {"txn": "T3", "op": 1, "versions": [["x", "T1"]]}"#;
    let [rows, of_rows] = [both, certificate].map(in_rows);
    assert!(satisfies(&history(&rows), &of_rows, Level::SnapshotIsolation));
    assert!(satisfies(&history(&rows), &of_rows, Level::RepeatableRead));
    assert!(!satisfies(&history(&rows), &of_rows, Level::Serializable));
    // A register is the same one after a delete.
    assert!(!satisfies(&history(both), certificate, Level::SnapshotIsolation));
}

/// What the former row held is also what another transaction wrote and replaced: that is not what was read.
#[test]
fn a_former_row_that_looks_like_an_intermediate_write_is_none() {
    let both = in_rows(
        "
        T1: w x 1
        T2: delete x
        T3: w x 2, select value > 0 -> {x: 1, x: 2}
        T4: w x 1, w x 5",
    );
    let certificate = in_rows(
        r#"
        {"key": "x", "writers": ["T1", "T2", "T3", "T4"]}
        {"txn": "T3", "op": 1, "versions": [["x", "T1"]]}"#,
    );
    for level in [Level::AdyaReadCommitted, Level::SnapshotIsolation, Level::RepeatableRead] {
        assert!(satisfies(&history(&both), &certificate, level), "{level}");
    }
}

/// T3 read the former row, so it comes before T2, of which it read y. The row is read whether or not it looks like
/// the transaction's own one, and by a sum, too.
#[test]
fn a_former_row_is_read_whatever_it_looks_like() {
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2", "T3"]}
        {"txn": "T3", "op": 2, "versions": [["x", "T1"]]}"#;
    for (own, read) in [
        (2, "select value < 3 -> {x: 1, x: 2}"),
        (1, "select value < 3 -> {x: 1, x: 1}"),
        (2, "aggregate sum(value) where value < 3 -> 3"),
    ] {
        let of = |y: u8| {
            format!("T1: w x 1\nT2: delete x, w y 5\nT3: r y {y}, w x {own}, {read}\nT4: w y 6")
        };
        let [late, other] = [of(5), of(6)].map(|text| history(&in_rows(&text)));
        let stated =
            |y: &str| format!("{}\n{{\"key\": \"y\", \"writers\": {y}}}", in_rows(certificate));
        let orders = [stated(r#"["T2", "T4"]"#), stated(r#"["T4", "T2"]"#)];
        for level in [Level::ConsistentView, Level::SnapshotIsolation, Level::RepeatableRead] {
            assert!(!satisfies(&late, &orders[0], level), "{level}: {read}");
            assert!(satisfies(&other, &orders[1], level), "{level}: {read}");
        }
        assert!(satisfies(&late, &orders[0], Level::AdyaReadCommitted), "{read}");
    }
}

/// A transaction deletes its own row by a predicate that the former one of its key does not satisfy, which is
/// still there, then. Its own was another row all the same, though it left nothing.
#[test]
fn the_former_row_is_there_when_the_own_one_is_gone() {
    let order = r#"{"key": "x", "writers": ["T1", "T2", "T3"]}"#;
    let update = r#"{"txn": "T3", "op": 1, "versions": [["x", "T1"]]}"#;
    let select = r#"{"txn": "T3", "op": 2, "versions": [["x", "T1"]]}"#;
    let selecting = in_rows(&format!("{order}\n{update}\n{select}"));
    let reading = in_rows(&format!("{order}\n{update}"));
    let of = |ops: &str| history(&in_rows(&format!("T1: w x 1\nT2: delete x\nT3: w x 3, {ops}")));
    let by_predicate = "update value = 3 -> {x: nil}";
    let selected = of(&format!("{by_predicate}, select value > 0 -> {{x: 1}}"));
    let read = of(&format!("{by_predicate}, r x 1"));
    for level in [
        Level::ReadUncommitted,
        Level::AdyaReadCommitted,
        Level::ConsistentView,
        Level::SnapshotIsolation,
        Level::RepeatableRead,
    ] {
        assert_eq!(wrong(&selected, &selecting, level), [], "{level}");
        assert_eq!(wrong(&read, &reading, level), [], "{level}");
    }
    assert!(!satisfies(&selected, &selecting, Level::Serializable));
    assert!(!satisfies(&read, &reading, Level::Serializable));
    // Its own row was there; and a delete by the key means both.
    let update = of("update value = 9 -> {}, r x 1");
    assert!(!satisfies(&update, &reading, Level::AdyaReadCommitted));
    let deleted = of("delete x, select value > 0 -> {x: 1}");
    let certificate = in_rows(&format!("{order}\n{select}"));
    assert!(!satisfies(&deleted, &certificate, Level::AdyaReadCommitted));
}

/// Rows come back whether or not the history has predicates. A read by key is a search for the key, so at
/// repeatable read, where a key that was read stays as it is, T3 comes before T2 and T2 before T3.
#[test]
fn a_certificate_of_single_rows_knows_which_of_them_come_back() {
    let text = "T1: w x 1\nT2: r x 1, delete x\nT3: r x 1, w x 2";
    let certificate = r#"{"key": "x", "writers": ["T1", "T2", "T3"]}"#;
    let [rows, of_rows] = [text, certificate].map(in_rows);
    for level in [Level::ConsistentView, Level::SnapshotIsolation] {
        assert!(satisfies(&history(&rows), &of_rows, level), "{level}");
        assert!(!satisfies(&history(text), certificate, level), "{level}");
    }
    for level in [Level::RepeatableRead, Level::Serializable] {
        assert!(!satisfies(&history(&rows), &of_rows, level), "{level}");
    }
    assert!(satisfies(&history(&rows), &of_rows, Level::Causal));
}

/// Both transactions read what T1 wrote. A delete of what the other one has changed meanwhile loses that
/// change. But a write after a concurrent delete makes another row, and loses nothing: below repeatable read
/// that is no lost update.
#[test]
fn an_update_may_be_lost_by_a_delete_but_not_by_an_insert_in_its_place() {
    let both = history(&in_rows(
        "
        T1: w x 1
        T2: r x 1, w x 2
        T3: r x 1, delete x
        T4: select value > 99 -> {}",
    ));
    let set = r#"{"txn": "T4", "op": 0, "versions": []}"#;
    let order =
        |writers: &str| in_rows(&format!("{set}\n{{\"key\": \"x\", \"writers\": {writers}}}"));
    let deleted_last = order(r#"["T1", "T2", "T3"]"#);
    // Clients could not tell: in the other order, nothing is lost.
    let stated = [AnomalyKind::OrderContradiction];
    for level in [Level::ConsistentView, Level::SnapshotIsolation, Level::RepeatableRead] {
        assert_eq!(wrong(&both, &deleted_last, level), stated, "{level}");
    }
    let inserted_last = order(r#"["T1", "T3", "T2"]"#);
    for level in [Level::ConsistentView, Level::SnapshotIsolation] {
        assert!(satisfies(&both, &inserted_last, level), "{level}");
    }
    for level in [Level::RepeatableRead, Level::Serializable] {
        assert!(!satisfies(&both, &inserted_last, level), "{level}");
    }
}

/// Two transactions each overwrote what the other one read. That is no lost update: they read different
/// versions.
#[test]
fn a_lost_update_is_one_of_two_who_read_the_same_version() {
    let different = history(
        "
        T1: w x 1
        T2: r x 3, w x 2
        T3: w x 3
        T4: r x 1, w x 4
        T5: select value > 99 -> {}",
    );
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2", "T3", "T4"]}
        {"txn": "T5", "op": 0, "versions": []}"#;
    for level in [Level::RepeatableRead, Level::Serializable] {
        let found = wrong(&different, certificate, level);
        assert!(!found.is_empty() && !found.contains(&AnomalyKind::LostUpdate), "{found:?}");
    }
}

/// x is inserted and deleted twice: it is not there in three of its five versions.
const DELETED_TWICE: &str = r#"
    {"key": "x", "writers": ["T1", "T2", "T3", "T4"]}
    {"txn": "T6", "op": 0, "versions": []}"#;

#[test]
fn who_finds_no_row_may_have_seen_any_of_several_deletes() {
    // By the timestamps it saw the second one, and T3 came after it: so it was the first.
    let first = history(
        "
        T1 db [1, 2]: w x 1
        T2 db [3, 4]: delete x
        T3 db [5, 6]: r z 1, w x 3
        T4 db [7, 8]: delete x
        T5 db [9, 10]: r x nil, w z 1
        T6: select value > 99 -> {}",
    );
    for level in [Level::RepeatableRead, Level::SnapshotIsolation, Level::Serializable] {
        assert!(satisfies(&first, DELETED_TWICE, level), "{level}");
    }
}

#[test]
fn where_every_delete_closes_a_cycle_there_is_no_possible_order() {
    // After T1 and before T2 the row is there.
    let never = history(
        "
        T1: w x 1, w y 1
        T2: r z 1, delete x
        T3: w x 3
        T4: delete x
        T5: r y 1, r x nil, w z 1
        T6: select value > 99 -> {}",
    );
    let expected = [AnomalyKind::NoOrderPossible];
    assert_eq!(wrong(&never, DELETED_TWICE, Level::Serializable), expected);
    // Nobody says which was missed.
    assert!(satisfies(&never, DELETED_TWICE, Level::AdyaReadCommitted));
}

#[test]
fn deletes_are_stated_by_their_writers() {
    let deleted = history("T1: w x 1\n T2: delete x\n T3: w x 3\n T4: delete x");
    let by_value = r#"{"key": "x", "values": [1, null, 3, null]}"#;
    let source = Source::from_bytes("orders", by_value.as_bytes().to_vec()).unwrap();
    let error = version_order::read(&source, &deleted).unwrap_err().to_string();
    assert!(error.contains("T2") && error.contains("T4"), "{error}");
}

#[test]
fn levels_without_a_rule_say_so() {
    let figure = history("T1: w x 1\n T2: select value > 0 -> {x: 1}");
    let certificate = r#"{"txn": "T2", "op": 0, "versions": [["x", "T1"]]}"#;
    for level in [Level::ReadCommitted, Level::Causal, Level::Prefix, Level::Linearizable] {
        let verdict = verdict(&figure, certificate, level);
        assert_eq!(verdict, Verdict::NotApplicable(Inapplicable::NotByCertificate), "{level}");
    }
}

/// The third transaction missed what the certificate says it met: another order of the first two would
/// have been right.
#[test]
fn whether_another_order_would_have_done_can_be_asked() {
    let rejected = history("T1: w x 7\n T2: w x 1\n T3: select value > 5 -> {x: 7}, r x 7");
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2"]}
        {"txn": "T3", "op": 0, "versions": [["x", "T2"]]}"#;
    let source = Source::from_bytes("certificate", certificate.as_bytes().to_vec()).unwrap();
    let stated = version_order::read(&source, &rejected).unwrap();
    let options = CheckOptions::default()
        .with_version_order(stated.orders)
        .with_version_sets(stated.sets)
        .with_trusted_version_order(true);
    let checker = isolario_check::Checker::new(&rejected, options);
    let results = checker.check_all(&[Level::ReadUncommitted, Level::Serializable]);
    assert!(results[0].verdict.is_satisfied() && results[1].verdict.is_violated());
    let otherwise = checker.without_statements(&results, std::time::Duration::from_secs(5));
    assert_eq!(otherwise.len(), 1);
    assert!(otherwise[0].verdict.is_satisfied(), "{otherwise:?}");
}
