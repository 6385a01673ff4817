//! One history for each adjacent pair of levels that separates them.

use crate::support::weakest_violated;

#[test]
fn read_committed_is_stronger_than_adyas() {
    let text = "session a\n t1: w x 1\n t2: w x 2, w y 2\nsession b\n t3: r y 2, r x 1";
    assert_eq!(weakest_violated(text), ["read-committed"]);
}

#[test]
fn cut_isolation_is_not_implied_by_read_committed() {
    let text = "session a\n t1: w x 1\n t2: w x 2\nsession b\n t3: r x 1, r x 2";
    assert_eq!(weakest_violated(text), ["cut-isolation"]);
}

#[test]
fn read_atomic_is_stronger_than_read_committed_and_cut_isolation() {
    let text = "session a\n t1: w x 1, w y 1\nsession b\n t2: r x nil, r y 1";
    assert_eq!(weakest_violated(text), ["read-atomic"]);
}

#[test]
fn causal_is_stronger_than_read_atomic() {
    let text =
        "session a\n t1: w x 1\nsession b\n t2: r x 1, w y 2\nsession c\n t3: r y 2, r x nil";
    assert_eq!(weakest_violated(text), ["causal"]);
}

#[test]
fn causal_allows_what_only_stronger_levels_forbid() {
    let long_fork = "session a\n t1: w x 1\nsession b\n t2: w y 2
        session c\n t3: r x 1, r y nil\nsession d\n t4: r y 2, r x nil";
    let lost_update = "session a\n t1: r x nil, w x 1\nsession b\n t2: r x nil, w x 2";
    let write_skew =
        "session a\n t1: r x nil, r y nil, w x 1\nsession b\n t2: r x nil, r y nil, w y 2";
    for text in [long_fork, lost_update, write_skew] {
        assert!(weakest_violated(text).is_empty(), "{text}");
    }
}
