//! List-append histories at the weak levels.

use isolario_model::Level;

use crate::support::{names, weakest_violated};

const SATISFIED: [&str; 0] = [];

#[test]
fn a_list_reads_from_the_writer_of_its_last_element() {
    let text = "session a\n t1: append x 1\nsession b\n t2: r x [1], append x 2
                session c\n t3: r x [1 2]\nsession d\n t4: r x []";
    assert_eq!(weakest_violated(text), SATISFIED);
    let cycle = "session a\n t1: append x 1, r y [2]\nsession b\n t2: r x [1], append y 2";
    assert_eq!(names(cycle, Level::AdyaReadCommitted), ["CyclicCO"]);
}

#[test]
fn own_appends_come_last_and_are_no_source() {
    let cases = [
        ("append x 2, r x [1 2]", vec![]),
        ("append x 2, r x [1]", vec!["NotMyOwnWrite"]),
        ("append x 2, r x [2 1]", vec!["NotMyOwnWrite"]),
        ("append x 2, append x 3, r x [1 2]", vec!["NotMyLastWrite"]),
        ("r x [1 2], append x 2", vec!["FutureRead"]),
        ("append x 2, r x [1 2 2]", vec!["DuplicateElements"]),
    ];
    for (txn, expected) in cases {
        let text = format!("session a\n t1: append x 1\nsession b\n t2: {txn}");
        assert_eq!(names(&text, Level::AdyaReadCommitted), expected, "{txn}");
    }
}

#[test]
fn elements_of_others_are_whole_transactions_that_committed() {
    let cases = [
        ("t1: append x 1", "r x [1 7]", vec!["ThinAirRead"]),
        ("t1 aborted: append x 1", "r x [1]", vec!["AbortedRead"]),
        ("t1: append x 1, append x 2", "r x [1]", vec!["IntermediateRead"]),
        ("t1: append x 1, append x 2", "r x [2]", vec!["IntermediateRead"]),
        ("t1: append x 1", "r x [1 1]", vec!["DuplicateElements"]),
        ("t1: append x 1, append x 1", "r x [1 1]", vec![]),
    ];
    for (writer, reader, expected) in cases {
        let text = format!("session a\n {writer}\nsession b\n t2: {reader}");
        assert_eq!(names(&text, Level::AdyaReadCommitted), expected, "{writer}; {reader}");
    }
}

#[test]
fn the_order_of_elements_orders_their_writers() {
    // Two lists show two transactions in opposite orders.
    let dirty = "session a\n t1: append x 1, append y 1\nsession b\n t2: append x 2, append y 2
                 session c\n t3: r x [1 2]\nsession d\n t4: r y [2 1]";
    assert_eq!(names(dirty, Level::AdyaReadCommitted), ["DirtyWrite"]);
    // Session order and a list disagree.
    let against_session = "session a\n t1: append x 1\n t2: append x 2\nsession b\n t3: r x [2 1]";
    assert_eq!(names(against_session, Level::AdyaReadCommitted), ["CyclicCO"]);
}

#[test]
fn the_order_of_elements_makes_nothing_visible() {
    // t3 saw t2's element after t1's, and misses what t1 did to y: no level up to causal minds.
    let text = "session a\n t1: append x 1, append y 1\nsession b\n t2: append x 2
                session c\n t3: r x [1 2], r y []";
    assert_eq!(weakest_violated(text), SATISFIED);
    // Having read from t1 itself, read committed does.
    let read = "session a\n t1: append x 1, append y 1\nsession c\n t3: r x [1], r y []";
    assert_eq!(weakest_violated(read), ["read-committed"]);
}

#[test]
fn lists_never_forget() {
    // t2 comes before t3, which read x from t1: by read atomic's rule t2 comes before t1, and the
    // version of t1 would be [2 1]. A register could have been overwritten, a list cannot.
    let lost = "session a\n t1: append x 1\nsession b\n t2: append x 2\n t3: r x [1]";
    assert_eq!(weakest_violated(lost), ["read-atomic"]);
    assert_eq!(names(lost, Level::ReadAtomic), ["SessionGuaranteeViolation"]);
    // Session order alone puts t1 before t2, and the version of t2 would be [1 2].
    let behind = "session a\n t1: append x 1\n t2: append x 2\nsession b\n t3: r x [2]";
    assert_eq!(names(behind, Level::AdyaReadCommitted), ["CyclicCO"]);
    // Also where a shorter read leaves out what a longer one shows elsewhere.
    let late = "session a\n t1: append x 1\n t2: append x 2\nsession b\n t3: append x 3
                session c\n t4: r x [1]\nsession d\n t5: r x [1 3]";
    assert_eq!(weakest_violated(late), SATISFIED);
    let own = "session a\n t1: append x 1\n t2: r x [1], append x 2\nsession b\n t3: append x 3";
    assert_eq!(weakest_violated(own), SATISFIED);
}

#[test]
fn two_reads_of_which_neither_is_a_prefix_of_the_other() {
    let text = "session a\n t1: append x 1\nsession b\n t2: append x 2
                session c\n t3: r x [1]\nsession d\n t4: r x [2]";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["IncompatibleOrder"]);
    // What a reader appended itself does not count.
    let own = "session a\n t1: append x 1\nsession b\n t2: r x [1], append x 2, r x [1 2]
               session c\n t3: append x 3, r x [1 3]";
    assert_eq!(weakest_violated(own), SATISFIED);
}

#[test]
fn an_element_of_an_unknown_transaction_shows_that_it_committed() {
    let text = "session a\n t1 unknown: r z [9], append x 1\nsession b\n t2: append x 2
                session c\n t3: r x [1 2]";
    assert_eq!(names(text, Level::AdyaReadCommitted), ["ThinAirRead"]);
}
