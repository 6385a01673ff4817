//! Predicates without version sets: what is decided, what is not, and why.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, check};
use isolario_formats::{Source, find};
use isolario_model::{
    Anomaly, AnomalyKind, Batch, Evidence, History, Inapplicable, ItemView, Level, Limit, Op, OpId,
    SinkError, Stamp, TxnId, Verdict, Witness,
};
use isolario_sim::{
    Mix, TableAnomaly, TableChronicle, TableConfig, TablePlant, TableWorkload, VersionSet,
    generate_table,
};

const SER: Level = Level::Serializable;
const SI: Level = Level::SnapshotIsolation;

fn history(text: &str) -> History {
    let source = Source::from_bytes("case.txt", text.into()).unwrap();
    find("text").unwrap().read(&source).unwrap().history
}

/// Each transaction in a session of its own.
fn sessions(txns: &str) -> String {
    let lines = txns.lines().map(str::trim).filter(|line| !line.is_empty());
    let session = |(at, line): (usize, &str)| format!("session s{at}\n  {line}\n");
    format!("initial nil\n{}", lines.enumerate().map(session).collect::<String>())
}

fn verdict(txns: &str, level: Level) -> Verdict {
    check(&history(&sessions(txns)), &[level], &CheckOptions::default()).remove(0).verdict
}

/// The same with rows of a table in place of the registers x and y: once deleted, they come back as others.
fn in_rows(txns: &str) -> String {
    let value = |text: String, (key, n): (char, u8)| {
        let text = text.replace(&format!("{key} {n}"), &format!("{key} (value={n})"));
        text.replace(&format!("{key}: {n}"), &format!("{key}: (value={n})"))
    };
    let values = ['x', 'y'].into_iter().flat_map(|key| (0..=9).map(move |n| (key, n)));
    let text = values.fold(txns.to_owned(), value);
    let row = |text: String, (key, row): (&str, &str)| {
        let named = |name: String| (name.clone(), name.replacen(key, row, 1));
        let names =
            [format!("{key} ("), format!("{key}: "), format!("{key} nil"), format!("delete {key}")];
        names.into_iter().map(named).fold(text, |text, (name, named)| text.replace(&name, &named))
    };
    [("x", "t(id=1)"), ("y", "t(id=2)")].into_iter().fold(text, row)
}

/// What is found at a level that is violated.
fn kinds(txns: &str, level: Level) -> Vec<AnomalyKind> {
    match verdict(txns, level) {
        Verdict::Violated(findings) => findings.anomalies.iter().map(|a| a.kind).collect(),
        other => panic!("{level} is {other:?}"),
    }
}

fn holds(txns: &str, level: Level) -> bool {
    match verdict(txns, level) {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        other => panic!("{level} is {other:?}"),
    }
}

/// Two look for a row and find none, and each then inserts one that the other would have found.
const PREDICATE_WRITE_SKEW: &str = "
    T1: select value > 0 -> {}, w x 1
    T2: select value > 0 -> {}, w y 1";

#[test]
fn predicate_write_skew_is_allowed_by_snapshot_isolation_and_not_serializable() {
    assert!(holds(PREDICATE_WRITE_SKEW, SI) && !holds(PREDICATE_WRITE_SKEW, SER));
}

/// The same with reads and writes by key alone: nothing is wrong with it.
#[test]
fn single_rows_do_not_show_it() {
    assert!(holds("T1: w x 1\nT2: w y 1", SER));
    let of_rows = "T1: select value > 0 -> {}, w x 1\nT2: w y 1";
    assert!(holds(of_rows, SER));
}

#[test]
fn a_row_that_appears_between_two_reads_is_a_phantom_at_every_level_of_snapshots() {
    let phantom = "
        T1: w x 1
        T2: w y 2
        T3: select value < 5 -> {x: 1}, select value < 5 -> {x: 1, y: 2}";
    for level in [Level::Prefix, SI, SER] {
        assert_eq!(kinds(phantom, level), [AnomalyKind::Phantom]);
    }
    // The reads alone are right.
    let Verdict::NotApplicable(reason) = verdict(phantom, Level::ReadCommitted) else {
        panic!("read committed allows it, and ignores rows")
    };
    assert!(matches!(reason, Inapplicable::UnreturnedRows { .. }), "{reason:?}");
}

#[test]
fn the_order_that_explains_a_missing_row_is_found() {
    let Verdict::Satisfied(Witness::CommitOrder(order)) = verdict(
        "T1: w x 1
         T2: w y 2
         T3: select value > 0 -> {x: 1}",
        SER,
    ) else {
        panic!("T3 comes before T2")
    };
    assert_eq!(order, [0, 2, 1].map(TxnId));
}

/// T3 saw T1's row as T2 left it, out of reach of the predicate. Only T2's version will do.
#[test]
fn a_version_that_does_not_match_explains_a_missing_row() {
    let versions = "
        T1: w x 1
        T2: r x 1, w x 9, w z 1
        T3: select value < 5 -> {z: 1}";
    assert!(holds(versions, SER));
    let before_it = versions.replace("-> {z: 1}", "-> {}").replace("w z 1", "w z 1, w u 9");
    assert!(holds(&before_it, SER));
    // It saw T2 elsewhere, and x as T1 had left it would have been there.
    let neither = "
        T1: w x 1, w u 1
        T2: r x 1, w x 2, w z 1
        T3: select value < 5 -> {z: 1, u: 1}";
    assert!(!holds(neither, SER));
}

#[test]
fn all_reads_of_a_row_by_one_transaction_count_together() {
    // Below 5 it may have been 9, above 5 it may have been 1: but it was one of the two.
    let one = "
        T1: w x 1, w u 0
        T2: r x 1, w x 9
        T3: r u 0, select value > 0 and value < 5 -> {}, select value > 5 -> {}";
    assert!(!holds(one, SER));
    assert!(holds(&one.replace(", select value > 5 -> {}", ""), SER));
}

#[test]
fn versions_of_aborted_transactions_and_intermediate_ones_explain_nothing() {
    let row = "
        T1: w x 1, w u 7
        T2: OUTCOME
        T3: r u 7, select value > 0 and value < 5 -> {}";
    let with = |txn: &str| row.replace("T2: OUTCOME", txn);
    assert!(holds(&with("T2: r x 1, delete x"), SER));
    assert!(!holds(&with("T2 aborted: r x 1, delete x"), SER));
    assert!(!holds(&with("T2: r x 1, delete x, w x 2"), SER));
    // One of unknown outcome may be the reason, and then it committed.
    let unknown = history(&sessions(&with("T2 unknown: r x 1, delete x")));
    let result = check(&unknown, &[SER], &CheckOptions::default()).remove(0);
    let Verdict::Satisfied(Witness::CommitOrder(order)) = result.verdict else {
        panic!("{:?}", result.verdict)
    };
    assert_eq!(order, [0, 1, 2].map(TxnId));
    // If it can have: here it saw what nobody wrote.
    assert!(!holds(&with("T2 unknown: r x 8, delete x"), SER));
}

#[test]
fn a_result_that_no_version_explains_is_told_with_its_row() {
    let text = sessions(
        "T1: w x 1, w u 7
         T2: r u 7, select value > 0 and value < 5 -> {}",
    );
    let history = history(&text.replace("initial nil", "initial 3"));
    let Verdict::Violated(findings) =
        check(&history, &[SER], &CheckOptions::default()).remove(0).verdict
    else {
        panic!("every version of x matches")
    };
    assert_eq!(findings.anomalies[0].kind, AnomalyKind::UnexplainedResult);
    let Evidence::Row { key, read, .. } = findings.anomalies[0].evidence else {
        panic!("{findings:?}")
    };
    assert!(matches!(history.op(read), Op::PredicateRead { .. }));
    assert_eq!(history.key_name(key), "x".into());
}

/// The names of what a level finds, each verified, and with Elle's name of it.
fn named(initial: &str, txns: &str, level: Level) -> Vec<(AnomalyKind, Option<String>)> {
    let text = sessions(txns).replace("initial nil", &format!("initial {initial}"));
    let history = history(&text);
    let result = check(&history, &[level], &CheckOptions::default()).remove(0);
    let verified = isolario_verify::verify(&history, &result, &Default::default());
    assert_eq!(verified, Ok(()), "{result:?}");
    let name = |anomaly: &Anomaly| anomaly.elle_name().map(std::borrow::Cow::into_owned);
    result.verdict.anomalies().iter().map(|a| (a.kind, name(a))).collect()
}

#[test]
fn one_cycle_has_its_name() {
    use AnomalyKind as A;
    let cases: [(&str, &str, Level, A, &str); 10] = [
        ("nil", PREDICATE_WRITE_SKEW, SER, A::PredicateWriteSkew, "G2"),
        // The one by predicate, the other by key: G2, and not G2-item.
        (
            "nil",
            "T1: select value > 0 -> {}, w x 1
             T2: r x nil, w y 1",
            SER,
            A::PredicateWriteSkew,
            "G2",
        ),
        (
            "nil",
            "T1: w x 1, w u 1
             T2: r u 1, select value > 0 and value < 9 -> {u: 1}",
            SI,
            A::Phantom,
            "G-single",
        ),
        (
            "nil",
            "T1: w x 1, w u 5
             T2: r u 5, w v 2
             T3: r v 2, select value = 1 -> {}",
            SER,
            A::PredicateSingleAntiDependency,
            "G-single",
        ),
        // Of T1, the one predicate saw what it did to x, and the other not what it did to y.
        (
            "1",
            "T1: w x 9, w y 8
             T2: select key = 'x' and value = 1 -> {}, select value = 8 -> {}",
            SER,
            A::PredicateManyPreceders,
            "G-single",
        ),
        // The anti-dependency is of a row that was returned.
        (
            "1",
            "T1: w x 9, w y 8
             T2: select value = 1 -> {y: 1}",
            SER,
            A::ReadSkew,
            "G-single-item",
        ),
        (
            "nil",
            "T1: select value = 1 -> {}, w y 2
             T2: select value = 2 -> {}, w z 3
             T3: select value = 3 -> {}, w x 1",
            SER,
            A::PredicateAntiDependencyCycle,
            "G2",
        ),
        // Both found the initial row, and each took it out of the other's sight.
        (
            "3",
            "T1: update key = 'x' and value = 3 -> {x: 7}, w y 1
             T2: update key = 'x' and value = 3 -> {x: 8}, w z 1",
            SER,
            A::PredicateSingleAntiDependency,
            "G-single",
        ),
        // Rows that were returned are read like any other.
        (
            "0",
            "T1: select key = 'x' -> {x: 0}, w y 1
             T2: select key = 'y' -> {y: 0}, w x 1",
            SER,
            A::WriteSkew,
            "G2-item",
        ),
        (
            "0",
            "T1: select value = 0 -> {x: 0}, w x 1
             T2: r x 0, w x 2",
            SI,
            A::LostUpdate,
            "lost-update",
        ),
    ];
    for (initial, txns, level, kind, elle) in cases {
        assert_eq!(named(initial, txns, level), [(kind, Some(elle.to_owned()))], "{txns}");
    }
}

#[test]
fn one_impossible_result_has_its_name() {
    use AnomalyKind as A;
    let names = |txns: &str| -> Vec<A> {
        named("3", txns, SER).into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(names("T1: select value > 2 -> {}, w x 4"), [A::UnexplainedResult]);
    assert_eq!(names("T1: update value > 9 -> {x: 4}"), [A::UnexplainedResult]);
    assert_eq!(names("T1: w x 1, select value < 2 -> {}"), [A::NotMyOwnWrite]);
    assert_eq!(names("T1: w x 1, delete x, update value > 0 -> {x: 4}"), [A::NotMyOwnWrite]);
    assert_eq!(names("T1: select value > 5 -> {x: 3}"), [A::ResultMismatch]);
    assert_eq!(names("T1: r x 3, select value > 2 -> {}"), [A::Phantom]);
    // Each is explained by a version of x, and both by none.
    let two = "T1: w x 9\nT2: select value < 5 -> {}, select value > 5 -> {}";
    assert_eq!(names(two), [A::PredicateManyPreceders]);
    // Every wrong read is told.
    let two = "T1: w x 1, select value < 2 -> {}\nT2 aborted: w y 7\nT3: r y 7";
    assert_eq!(names(two), [A::NotMyOwnWrite, A::AbortedRead]);
}

/// What rules out a level that allows it would be a wrong answer about that level.
#[test]
fn a_name_rules_out_no_more_than_was_shown() {
    let rules_out = |txns: &str, level: Level| -> Vec<Level> {
        let Verdict::Violated(findings) = verdict(txns, level) else { panic!("{level} holds") };
        findings.anomalies[0].rules_out.weakest().iter().collect()
    };
    assert_eq!(rules_out(PREDICATE_WRITE_SKEW, SER), [SER, Level::Linearizable]);
    let phantom = "
        T1: w x 1, w u 1
        T2: r u 1, select value > 0 and value < 9 -> {u: 1}";
    assert!(rules_out(phantom, SI).contains(&Level::ReadAtomic));
    // That x was not there follows from two reads, of which each might have met another version
    // where a transaction may see several.
    let two = "
        T1: w x 1, w u 7
        T2: r x 1, w x 6
        T3: r u 7, select value = 1 -> {}, select value = 6 -> {}";
    assert_eq!(kinds(two, SI), [AnomalyKind::Phantom]);
    assert_eq!(rules_out(two, SI), [SI]);
}

#[test]
fn planted_anomalies_of_predicates_are_found_by_name_without_a_certificate() {
    for (kind, name, allowed) in [
        (TableAnomaly::Phantom, AnomalyKind::Phantom, None),
        (TableAnomaly::PredicateWriteSkew, AnomalyKind::PredicateWriteSkew, Some(SI)),
    ] {
        for seed in 0..3 {
            let mix = "insert:30,update:30,range-read:40".parse::<Mix>().unwrap();
            let config = TableConfig {
                level: SER,
                workload: TableWorkload { keys: 100, mix, ..TableWorkload::default() },
                txns: 200,
                anomalies: vec![TablePlant { kind, at: 0.5 }],
                seed,
                ..TableConfig::default()
            };
            let mut batch = Batch::new();
            generate_table(&config, &mut batch, &mut Unheard).unwrap();
            let history = batch.build().unwrap();
            // Nothing is wrong with the rows that were seen.
            let items = ItemView::new(&history).unwrap();
            let of_items = check(items.history(), &[SER], &CheckOptions::default());
            assert!(of_items[0].verdict.is_satisfied(), "{of_items:?}");
            for result in check(&history, &[SI, SER], &CheckOptions::default()) {
                let verified = isolario_verify::verify(&history, &result, &Default::default());
                assert_eq!(verified, Ok(()));
                let found: Vec<_> = result.verdict.anomalies().iter().map(|a| a.kind).collect();
                match allowed == Some(result.level) {
                    true => assert!(result.verdict.is_satisfied(), "{result:?}"),
                    false => assert_eq!(found, [name], "{:?}", result.verdict),
                }
            }
        }
    }
}

/// Nobody listens to what the store knows.
struct Unheard;

impl TableChronicle for Unheard {
    fn version(&mut self, _row: u64, _writer: u64) -> Result<(), SinkError> {
        Ok(())
    }

    fn met(&mut self, _txn: u64, _op: usize, _set: VersionSet<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn committed(&mut self, _txn: u64, _place: Stamp) -> Result<(), SinkError> {
        Ok(())
    }
}

/// PostgreSQL's repeatable read does this: the deleted row is still in the snapshot of whoever inserts another one
/// of its key.
#[test]
fn a_deleted_row_beside_the_one_in_its_place_is_no_violation_below_serializability() {
    let twice = "
        T1: w x 1
        T2: r x 1, delete x
        T3: w x 3, select value > 0 -> {x: 1, x: 3}, select value < 2 -> {x: 1}";
    // A register is the same one afterwards.
    assert!(!holds(twice, SI));
    let holds = |txns: &str, level| holds(&in_rows(txns), level);
    for level in [Level::Prefix, SI] {
        assert!(holds(twice, level), "{level}");
        // Others show it only its own.
        let own = twice.replace("{x: 1, x: 3}, select value < 2 -> {x: 1}", "{x: 3}");
        assert!(holds(&own, level), "{level}");
        // The delete need not have read anything.
        assert!(holds(&twice.replace("r x 1, ", ""), level), "{level}");
        // Nobody deleted it.
        assert!(!holds(&twice.replace("delete x", "w x 2"), level), "{level}");
        // Of its own row it has to see the last version,
        assert!(!holds(&twice.replace("w x 3,", "w x 3, w x 4,"), level), "{level}");
        // and of the other one that of its snapshot.
        assert!(!holds(&twice.replace("{x: 1}", "{x: 2}"), level), "{level}");
        // It knew of the delete.
        let later = twice.replace("T2: r x 1,", "T2: w y 5,").replace("T3:", "T3: r y 5,");
        assert!(!holds(&later, level), "{level}");
    }
    // What these levels say about rows that were not returned, nobody knows.
    let verdict = verdict(&in_rows(twice), Level::Causal);
    let expected = Inapplicable::UnreturnedRows { op: OpId(4) };
    assert!(matches!(&verdict, Verdict::NotApplicable(why) if *why == expected), "{verdict:?}");
    // Where transactions run one after the other, a key is one row. That says nothing about the others.
    let serial = self::verdict(&in_rows(twice), SER);
    let anomalies = serial.anomalies();
    assert!(!anomalies.is_empty() && !anomalies.iter().any(|a| a.rules_out.contains(SI)));
    // Nor may there be two that are the same.
    assert!(!holds("T1: w x 1, select value > 0 -> {x: 1, x: 1}", SI));
    assert!(!holds("T1: w x 1, select value > 0 -> {x: 1, x: 1}", SER));
    // One that aborted proves nothing.
    let aborted = twice.replace("T3:", "T3 aborted:");
    assert!(holds(&aborted, SI));
}

/// A row that its transaction deletes by its key, or by a predicate that both satisfy, is gone with the one
/// beside it. One that it deletes by a predicate that only its own satisfies leaves the other in sight.
#[test]
fn a_delete_of_the_own_row_leaves_the_former_one_in_sight_unless_it_is_by_key() {
    let shown = "
        T1: w x 1
        T2: delete x
        T3: w x 3, DELETES, SEES";
    let of = |deletes: &str, sees: &str| {
        in_rows(&shown.replace("DELETES", deletes).replace("SEES", sees))
    };
    let by_predicate = "update value = 3 -> {x: nil}";
    let (selected, read) = ("select value > 0 -> {x: 1}", "r x 1");
    for level in [Level::Prefix, SI] {
        for sees in [selected, read, "r x nil", "select value > 0 -> {}"] {
            assert!(holds(&of(by_predicate, sees), level), "{level}: {sees}");
        }
        for deletes in ["delete x", "delete x, delete x", "delete x, w x 4, delete x"] {
            for sees in [selected, read] {
                let kinds = kinds(&of(deletes, sees), level);
                assert_eq!(kinds, [AnomalyKind::NotMyOwnWrite], "{level}: {deletes}, {sees}");
            }
        }
        // Its own row is there again, and found by its key.
        let again = format!("{by_predicate}, w x 4");
        assert!(holds(&of(&again, "select value > 0 -> {x: 1, x: 4}"), level));
        assert!(holds(&of(&again, "select value > 0 -> {x: 1, x: 4}, r x 4"), level));
        assert!(!holds(&of(&again, read), level));
        assert!(!holds(&of("r y nil", read), level));
        // Of its snapshot there is one row.
        let two = format!("{read}, r x 2");
        assert!(!holds(&of(by_predicate, &two).replace("T2:", "T2: w x 2,"), level));
    }
    // At weaker levels, nothing is wrong with that either.
    for level in [Level::AdyaReadCommitted, Level::Causal, Level::ConsistentView] {
        let verdict = verdict(&of(by_predicate, read), level);
        assert!(matches!(verdict, Verdict::NotApplicable(_)), "{level}: {verdict:?}");
    }
}

/// What is asked about another table says nothing about whether a row comes back, and neither does how the row
/// is called. A register does not come back.
#[test]
fn rows_come_back_with_and_without_predicates() {
    let lost = "
        T1: w x 1
        T2: r x 1, delete x
        T3: r x 1, w x 2";
    let asked = format!("{lost}\n        T4: select FROM u WHERE value > 9 -> {{}}");
    let inserted = format!("{lost}\n        T4: insert y 5 ok");
    for txns in [lost, &asked, &inserted] {
        assert_eq!(kinds(txns, SI), [AnomalyKind::LostUpdate], "{txns}");
        assert!(holds(&in_rows(txns), SI) && !holds(&in_rows(txns), SER), "{txns}");
        // That a key is one row at serializability rules out no level at which it is several.
        let Verdict::Violated(findings) = verdict(&in_rows(txns), SER) else { panic!("{txns}") };
        let rules_out = |level| findings.anomalies.iter().any(|a| a.rules_out.contains(level));
        assert!(rules_out(SER) && !rules_out(SI), "{txns}: {findings:?}");
        let kept = in_rows(&txns.replace("delete x", "w x 3"));
        assert_eq!(kinds(&kept, SI), [AnomalyKind::LostUpdate], "{kept}");
        for level in
            [Level::ConsistentView, Level::ParallelSnapshotIsolation, Level::RepeatableRead]
        {
            assert!(matches!(verdict(&in_rows(txns), level), Verdict::NotApplicable(_)), "{level}");
            assert!(matches!(verdict(txns, level), Verdict::Violated(_)), "{level}");
        }
        // Levels that are not about versions take a key for a key.
        for level in [Level::Prefix, Level::Causal, Level::ReadCommitted] {
            let (row, register) = (verdict(&in_rows(txns), level), verdict(txns, level));
            assert_eq!(row.kind(), register.kind(), "{level}: {txns}");
        }
    }
}

/// It wrote x and did not find it, so it did not commit; who found no y may have seen another delete, or
/// what was there at first.
#[test]
fn a_transaction_of_unknown_outcome_that_contradicts_itself_need_not_be_there() {
    let unknown = "
        T1 unknown: w x 2, select value > 0 -> {}, delete y
        T2: r y nil, select value < 2 -> {}
        T3: w x 3
        T4: delete y, w x 4";
    for level in [Level::Prefix, SI, SER] {
        assert!(holds(unknown, level), "{level}");
        // Now it has to have committed.
        let there = unknown.replace("delete y\n        T2:", "w y 1\n        T2: r y 1,");
        assert!(!holds(&there.replace("r y nil, ", ""), level), "{level}");
    }
}

#[test]
fn results_must_agree_with_what_the_transaction_wrote_itself() {
    assert!(!holds("T1: w x 1, select value > 0 -> {}", SER));
    assert!(holds("T1: w x 1, select value > 0 -> {x: 1}", SER));
    assert!(!holds("T1: w x 1, update value > 0 -> {}", SI));
    assert!(!holds("T1: w x 1, delete x, update value > 0 -> {x: 2}", SI));
    // Nor may a row be returned that does not match.
    assert!(!holds("T1: w x 1\nT2: select value > 5 -> {x: 1}", SER));
}

#[test]
fn a_write_by_predicate_found_the_rows_that_it_wrote() {
    let updates = "
        T1: w x 1
        T2: w x 9
        T3: update value < 5 -> {x: 2}
        T4: r x 2";
    let Verdict::Satisfied(Witness::CommitOrder(order)) = verdict(updates, SER) else {
        panic!("T1 comes before T3, and T2 not between them")
    };
    let place = |txn| order.iter().position(|other| *other == TxnId(txn));
    assert!(place(0) < place(2) && !(place(0) < place(1) && place(1) < place(2)));
    assert!(!holds("T2: w x 9\nT3: update value < 5 -> {x: 2}", SER));
}

#[test]
fn a_function_over_rows_is_explained_or_left_open() {
    let counts = "T1: w x 1\nT2: w y 1\nT3: aggregate count(*) where value > 0 -> 2";
    assert!(holds(counts, SER));
    let Verdict::NotApplicable(reason) = verdict(&counts.replace("-> 2", "-> 3"), SER) else {
        panic!("nothing is said about single rows")
    };
    assert_eq!(reason, Inapplicable::BareAggregate { op: OpId(2) });
    // What is violated without it is violated.
    let skew = format!("{PREDICATE_WRITE_SKEW}\nT3: aggregate count(*) where value > 0 -> 7");
    assert!(!holds(&skew, SER));
}

#[test]
fn a_write_that_nobody_observed_may_be_the_reason() {
    let hidden = "
        T1 unknown: update value < 5 -> ?
        T2: w x 1
        T3: select value > 0 -> {x: 1}";
    // As a value that nobody else wrote, and as a row that is missing.
    let missing = "
        T1 unknown: update value < 5 -> ?
        T2: w x 1, w u 7
        T3: r u 7, select value > 0 and value < 5 -> {}";
    let changed = [hidden.replace("{x: 1}", "{x: 4}"), missing.to_owned()];
    for level in [Level::Prefix, SI, SER] {
        assert!(holds(hidden, level));
        for txns in &changed {
            let Verdict::Undecided(undecided) = verdict(txns, level) else {
                panic!("{level}: T1 may be the reason\n{txns}")
            };
            assert_eq!(undecided.limit, Limit::UnobservedWrite(OpId(0)));
        }
    }
    // If it committed, it did write.
    let Verdict::Undecided(_) = verdict(&hidden.replace(" unknown", ""), SER) else {
        panic!("nobody knows what it wrote")
    };
}

/// Both start before the other commits. What comes after a delete is a new row.
#[test]
fn a_row_that_comes_back_is_another_row_for_its_writers() {
    let overlapping = "
        T1: w x 1, w u 0, w v 0
        T2: r u 0, r v 0, WRITES, w u 1
        T3: r u 0, r v 0, w x 3, w v 1
        T4: select value = 3 -> {x: 3}";
    assert!(holds(&in_rows(&overlapping.replace("WRITES", "delete x")), SI));
    assert!(!holds(&in_rows(&overlapping.replace("WRITES", "w x 2")), SI));
    // A register is the same one.
    assert!(!holds(&overlapping.replace("WRITES", "delete x"), SI));
}

/// Two read a row; one deletes it, and the other writes what may be a new row of the same key.
#[test]
fn no_update_is_lost_where_a_delete_may_lie_between() {
    let both = "
        T1: w x 1
        T2: r x 1, CHANGES x, AGAIN
        T3: select value = 1 -> {x: 1}, w x 3";
    let of = |change: &str, again: &str| {
        in_rows(&both.replace("CHANGES x", change).replace("AGAIN", again))
    };
    let (deleted, written) = (of("delete x", "r y nil"), of("w x 2", "r y nil"));
    assert!(holds(&deleted, SI) && !holds(&deleted, SER) && !holds(&written, SI));
    for level in [Level::ConsistentView, Level::ParallelSnapshotIsolation, Level::RepeatableRead] {
        assert!(matches!(verdict(&deleted, level), Verdict::NotApplicable(_)), "{level}");
        assert_eq!(kinds(&written, level), [AnomalyKind::LostUpdate], "{level}");
    }
    let rules_out_si = |txns: &str| {
        let anomalies = verdict(txns, SER).anomalies().to_vec();
        anomalies.iter().any(|anomaly| anomaly.rules_out.contains(SI))
    };
    assert!(rules_out_si(&written) && !rules_out_si(&deleted));
    // Beside a read that is wrong by itself.
    let (deleted, written) = (of("delete x", "r x 1"), of("w x 2", "r x 1"));
    assert_eq!(kinds(&deleted, SI), [AnomalyKind::NotMyOwnWrite]);
    assert_eq!(kinds(&written, SI), [AnomalyKind::NotMyOwnWrite, AnomalyKind::LostUpdate]);
}

#[test]
fn levels_below_prefix_are_violated_by_single_rows_or_left_open() {
    let dirty = "T1 aborted: w x 1\nT2: select value > 0 -> {x: 1}";
    let right = "T1: w x 1\nT2: select value > 0 -> {x: 1}";
    for level in Level::decided().filter(|level| !level.implies(Level::Prefix)) {
        let Verdict::NotApplicable(_) = verdict(right, level) else {
            panic!("{level} ignores rows that were not returned")
        };
    }
    for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal, SER] {
        assert_eq!(kinds(dirty, level), [AnomalyKind::AbortedRead]);
    }
}

/// What nobody wrote can explain the results of a transaction of unknown outcome, and another one read from
/// it: it did commit.
#[test]
fn a_transaction_that_was_read_from_has_to_be_explained() {
    let text = "
        T1: w k 3
        T2 unknown: select value > 0 -> {}, update value > 0 -> {k: 5}
        T3: r k 5";
    for level in [Level::Prefix, SI, SER] {
        assert!(!holds(text, level), "{level}");
    }
    let unseen = "
        T1: w k 3
        T2 unknown: select value > 0 -> {}, update value > 0 -> {k: 5}
        T3: r k 3";
    assert!(holds(unseen, SER));
}
