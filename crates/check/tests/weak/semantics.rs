//! The places where checkers go wrong, one test for each rule.

use isolario_check::{CheckOptions, check};
use isolario_model::{Level, Verdict};

use crate::support::{anomalies, history, names, not_applicable, weak_levels, weakest_violated};

const SATISFIED: [&str; 0] = [];

#[test]
fn initial_state_precedes_everything() {
    // A stale read of the initial value: the session itself had overwritten it.
    let stale = "initial 0\nsession a\n T1: w x 1\n T2: r x 0";
    assert_eq!(weakest_violated(stale), ["read-atomic"]);
    assert_eq!(names(stale, Level::ReadAtomic), ["SessionGuaranteeViolation"]);
    // From another session it may simply have come first.
    assert_eq!(
        weakest_violated("initial 0\nsession a\n T1: w x 1\nsession b\n T2: r x 0"),
        SATISFIED
    );
    // Not after having seen something else of the same transaction.
    let fractured = "initial 0\nsession a\n T1: w x 1, w y 1\nsession b\n T2: r y 1, r x 0";
    assert_eq!(weakest_violated(fractured), ["read-committed"]);
    assert_eq!(names(fractured, Level::ReadCommitted), ["NonMonoReadCO"]);
}

#[test]
fn initial_state_that_a_client_writes_too_is_ambiguous() {
    let text = "initial 0\nsession a\n T1: w x 0\nsession b\n T2: r x 0";
    assert_eq!(names(text, Level::Causal), SATISFIED);
    let forked = LONG_FORK.replace("nil", "0");
    assert_eq!(names(&format!("{text}\n{forked}"), Level::Causal), SATISFIED);
    // Whoever wrote it, the reader's own session had written something else.
    let overwritten = "initial 0\nsession a\n T1: w x 0\n T2: w x 5\n T3: r x 0";
    assert_eq!(names(overwritten, Level::ReadAtomic), ["NoOrderPossible"]);
    assert_eq!(names(overwritten, Level::ReadCommitted), SATISFIED);
    // A delete writes what is there at first: nothing.
    let deleted = "initial nil\nsession a\n T1: delete x\nsession b\n T2: r x nil";
    assert_eq!(names(deleted, Level::Causal), SATISFIED);
}

#[test]
fn without_an_initial_state_a_value_nobody_wrote_is_thin_air() {
    let text = "initial none\nsession a\n T1: r x 0";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["ThinAirRead"]);
}

#[test]
fn a_key_has_one_initial_value_also_where_any_unwritten_one_may_be_it() {
    let one = "initial unwritten\nsession a\n T1: r x 5, r y 7\nsession b\n T2: r x 5";
    assert_eq!(weakest_violated(one), SATISFIED);
    let two = "initial unwritten\nsession a\n T1: r x 5\nsession b\n T2: r x 7";
    assert_eq!(weakest_violated(two), ["adya-read-committed"]);
    assert_eq!(names(two, Level::AdyaReadCommitted), ["ThinAirRead"]);
    let in_one = "initial unwritten\nsession a\n T1: r x 5, r x 7";
    assert_eq!(names(in_one, Level::CutIsolation), ["NonRepeatableRead"]);
    let timed = "initial unwritten\nsession a\n T1 [0, 1]: r x 5\nsession b\n T2 [2, 3]: r x";
    assert_eq!(names(&format!("{timed} 5"), Level::Linearizable), SATISFIED);
    assert_eq!(names(&format!("{timed} 7"), Level::Linearizable), ["ThinAirRead"]);
}

#[test]
fn ambiguous_reads_that_are_wrong_whichever_write_they_saw_are_violations() {
    let aborted = "session a\n T1 aborted: w x 1\nsession b\n T2 aborted: w x 1
                   session c\n T3: r x 1";
    assert_eq!(names(aborted, Level::AdyaReadCommitted), ["AbortedRead"]);
    let intermediate = "session a\n T1: w x 1, w x 2\nsession b\n T2: w x 1, w x 3
                        session c\n T3: r x 1";
    assert_eq!(names(intermediate, Level::AdyaReadCommitted), ["IntermediateRead"]);
    let future = "session a\n T1 aborted: w x 1\nsession b\n T2: r x 1, w x 1";
    let names_of_future = names(future, Level::AdyaReadCommitted);
    assert!(names_of_future == ["AbortedRead"] || names_of_future == ["FutureRead"]);
    // One that may be right is enough.
    let open = "session a\n T1 aborted: w x 1\nsession b\n T2 aborted: w x 1
                session d\n T4: w x 1\nsession c\n T3: r x 1";
    assert_eq!(names(open, Level::Causal), SATISFIED);
    // So is the initial version, if it may be that.
    let initial = "session a\n T1: r x nil, delete x\nsession b\n T2 aborted: delete x";
    assert_eq!(names(initial, Level::Causal), SATISFIED);
    let list = "session a\n T1 aborted: append x 1\nsession b\n T2 aborted: append x 1
                session c\n T3: r x [1]";
    assert_eq!(names(list, Level::AdyaReadCommitted), ["AbortedRead"]);
}

#[test]
fn unique_values_are_asked_for_only_where_somebody_reads() {
    let unread = "session a\n T1: w x 1\nsession b\n T2: w x 1";
    assert_eq!(weakest_violated(unread), SATISFIED);
    let read = "session a\n T1: w x 1\nsession b\n T2: w x 1\nsession c\n T3: r x 1";
    assert_eq!(names(read, Level::Causal), SATISFIED);
    // Where no serial order explains the rest, one of the writes still explains the read.
    assert_eq!(weakest_violated(&format!("{read}\n{LONG_FORK}")), SATISFIED);
    // Elements of lists are asked for.
    let list = "session a\n T1: append x 1\nsession b\n T2: append x 1\nsession c\n T3: r x [1]";
    for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
        assert!(not_applicable(list, level).contains("AmbiguousRead"), "{level}");
    }
}

/// Two readers that see two writes in opposite orders: no prefix of one order of commits explains it,
/// and the weak levels do not mind.
const LONG_FORK: &str = "session d\n T4: w y 1\nsession e\n T5: w z 1
                         session f\n T6: r y 1, r z nil\nsession g\n T7: r z 1, r y nil";

#[test]
fn unique_values_missing_do_not_hide_what_is_wrong_anyway() {
    let text = "session a\n T1: w x 1\nsession b\n T2: w x 1\nsession c\n T3: r x 1, r y 7";
    assert_eq!(names(text, Level::ReadCommitted), ["ThinAirRead"]);
}

#[test]
fn the_same_value_twice_in_one_transaction_is_its_final_write() {
    let text = "session a\n T1: w x 1, w x 2, w x 1\nsession b\n T2: r x 1";
    assert_eq!(weakest_violated(text), SATISFIED);
}

#[test]
fn aborted_transactions_keep_their_writes_to_be_recognised() {
    let text = "session a\n T1 aborted: w x 1\nsession b\n T2: r x 1";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["AbortedRead"]);
}

/// A write that was computed from what an aborted transaction had written keeps it alive.
#[test]
fn an_update_of_an_aborted_write_is_a_dirty_update() {
    let text = "session a\n T1 aborted: w x 1\nsession b\n T2: r x 1, w x 2";
    for level in [Level::AdyaReadCommitted, Level::ReadCommitted, Level::Causal] {
        assert_eq!(names(text, level), ["AbortedRead", "DirtyUpdate"], "{level}");
    }
    // Not where it wrote the key first, or only another one.
    for ops in ["w x 2, r x 1, w x 3", "r x 1, w y 2"] {
        let text = format!("session a\n T1 aborted: w x 1\nsession b\n T2: {ops}");
        assert!(!names(&text, Level::ReadCommitted).contains(&"DirtyUpdate"), "{ops}");
    }
}

#[test]
fn aborted_transactions_prove_nothing_by_their_reads() {
    let text = "session a\n T1 aborted: r x 7, w x 1, r x 9\nsession b\n T2: w x 2";
    assert_eq!(weakest_violated(text), SATISFIED);
}

#[test]
fn unknown_outcomes_that_nobody_saw_are_dropped() {
    let text = "session a\n T1 unknown: r y 9, w x 1\n T2: r x nil\nsession b\n T3: r x nil";
    assert_eq!(weakest_violated(text), SATISFIED);
}

#[test]
fn unknown_outcomes_that_somebody_saw_did_commit() {
    // Through another unknown one: T1 is seen by T2, which is seen by T3.
    let text = "session a\n T1 unknown: r z 9, w x 1\nsession b\n T2 unknown: r x 1, w y 1
                session c\n T3: r y 1";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["ThinAirRead"]);
    let half = "session a\n T1 unknown: w x 1, w y 1\nsession b\n T2: r x 1, r y nil";
    assert_eq!(weakest_violated(half), ["read-committed"]);
}

#[test]
fn unknown_outcomes_are_followed_by_nothing_in_their_session() {
    // T1 took effect only after T2: no violation, although T2 comes later in the session.
    let late = "session a\n T1 unknown: w x 1\n T2: r x nil\nsession b\n T3: r x 1";
    assert_eq!(weakest_violated(late), SATISFIED);
    // But it does follow what came before it in the session.
    let early = "session a\n T0: w x 0\n T1 unknown: w y 1, r x nil\nsession b\n T3: r y 1";
    assert_eq!(weakest_violated(early), ["read-atomic"]);
}

#[test]
fn own_writes_are_seen_and_the_last_of_them() {
    let cases = [
        ("T1: w x 1, r x 1", vec![]),
        ("T1: w x 1, w x 2, r x 1", vec!["NotMyLastWrite"]),
        ("T1: w x 1, r x 0", vec!["NotMyOwnWrite"]),
        ("T1: r x 1, w x 1", vec!["FutureRead"]),
        ("T1: r x 2, w x 1, w x 2", vec!["FutureRead"]),
        ("T1: r x 1, w x 1, w x 2", vec!["FutureRead"]),
        ("T1: w x 1, r x 1, w x 2, r x 2", vec![]),
        ("T1: w x 1, r x 1, w x 2, w x 3, r x 3", vec![]),
        ("T1: w x 1, r x 2, w x 2", vec!["FutureRead"]),
    ];
    for (txn, expected) in cases {
        let text = format!("initial 0\nsession a\n {txn}");
        assert_eq!(names(&text, Level::AdyaReadCommitted), expected, "{txn}");
    }
}

#[test]
fn own_writes_settle_a_value_that_others_wrote_too() {
    let text = "session a\n T1: w x 1, r x 1\nsession b\n T2: w x 1";
    assert_eq!(weakest_violated(text), SATISFIED);
    // Whoever it came from, the own last write was missed.
    let missed = "session a\n T1: w x 2, r x 1\nsession b\n T2: w x 1\nsession c\n T3: w x 1";
    assert_eq!(names(missed, Level::AdyaReadCommitted), ["NotMyOwnWrite"]);
}

/// A version is the last write of its key by its transaction. Reads of others say nothing about the order of
/// versions.
#[test]
fn an_intermediate_write_is_no_version() {
    let text = "session a\n T1: r y 1, w y 2, w y 3\nsession b\n T2: r y 2, w y 1";
    assert!(names(text, Level::ReadUncommitted).is_empty());
    let text = "session a\n T1: r y 1, w y 2, w y 3\nsession b\n T2: r y 3, w y 1";
    assert_eq!(names(text, Level::ReadUncommitted), ["CyclicVersions"]);
}

#[test]
fn an_intermediate_write_is_not_for_others() {
    let text = "session a\n T1: w x 1, w x 2\nsession b\n T2: r x 1";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["IntermediateRead"]);
}

#[test]
fn a_read_can_be_wrong_in_several_ways() {
    let text = "session a\n T1 aborted: w x 1\nsession b\n T2: w x 2, r x 1";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["AbortedRead", "NotMyOwnWrite"]);
}

#[test]
fn every_wrong_read_is_reported() {
    let text = "session a\n T1: r x 7, r x 7, r y 8\n T2: r x 7";
    let results = check(&history(text), &[Level::AdyaReadCommitted], &CheckOptions::default());
    let Verdict::Violated(findings) = &results[0].verdict else { panic!("{results:?}") };
    assert_eq!((findings.total, findings.exact, findings.anomalies.len()), (4, true, 4));
}

#[test]
fn repeated_reads_are_all_checked() {
    // The non-monotonic read hides behind a third read that agrees with the first.
    let text = "session a\n T1: w x 1\n T2: w x 2\nsession b\n T3: r x 2, r x 1, r x 2";
    assert_eq!(names(text, Level::ReadCommitted), ["NonMonotonicRead"]);
    assert_eq!(names(text, Level::CutIsolation), ["NonRepeatableRead"]);
    // The same version twice is no cycle.
    assert_eq!(weakest_violated("session a\n T1: w x 1\nsession b\n T2: r x 1, r x 1"), SATISFIED);
}

#[test]
fn repeated_reads_keep_the_two_nearest_distinct_writers() {
    // T3 reads y from T2, x from T2, then x from T1: T2 before T1, although the nearest read of x
    // after y is T2's own.
    let text = "session a\n T1: w x 1\n T2: w x 2, w y 2\nsession b\n T3: r y 2, r x 2, r x 1";
    let found = names(text, Level::ReadCommitted);
    assert!(found.contains(&"NonMonoReadCO"), "{found:?}");
}

#[test]
fn session_order_can_be_dropped() {
    let text = history("initial 0\nsession a\n T1: w x 1\n T2: r x 0");
    let mut options = CheckOptions::default();
    options.session_order = false;
    for level in weak_levels() {
        assert_eq!(anomalies(&text, level, &options), [], "{level}");
    }
}

#[test]
fn a_write_a_read_and_a_write_again_is_fine() {
    let text = "session a\n T1: w x 1, r x 1, w x 2\nsession b\n T2: r x 2, w x 3, r x 3, w x 4";
    assert_eq!(weakest_violated(text), SATISFIED);
}

#[test]
fn a_value_nobody_wrote_is_a_finding_and_no_crash() {
    assert_eq!(names("session a\n T1: r x 1", Level::ReadCommitted), ["ThinAirRead"]);
}
