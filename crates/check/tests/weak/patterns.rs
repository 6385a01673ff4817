//! Each of Plume's fourteen patterns, and the one that has no letter, under its own name.

use isolario_model::Level;

use crate::support::{names, weakest_violated};

/// A history that shows exactly one pattern, and the weakest levels that forbid it.
pub const PATTERNS: &[(&str, &str, &[&str])] = &[
    ("ThinAirRead", "session a\n t: r x 1", &["adya-read-committed"]),
    (
        "AbortedRead",
        "session a\n t1 aborted: w x 1\nsession b\n t2: r x 1",
        &["adya-read-committed"],
    ),
    ("FutureRead", "session a\n t: r x 1, w x 1", &["adya-read-committed"]),
    (
        "NotMyOwnWrite",
        "session a\n t1: w x 1\nsession b\n t2: w x 2, r x 1",
        &["adya-read-committed"],
    ),
    ("NotMyLastWrite", "session a\n t: w x 1, w x 2, r x 1", &["adya-read-committed"]),
    (
        "IntermediateRead",
        "session a\n t1: w x 1, w x 2\nsession b\n t2: r x 1",
        &["adya-read-committed"],
    ),
    (
        "CyclicCO",
        "session a\n t1: r y 2, w x 1\nsession b\n t2: r x 1, w y 2",
        &["adya-read-committed"],
    ),
    (
        "NonMonoReadCO",
        "session a\n t1: w x 1\n t2: w x 2, w y 2\nsession b\n t3: r y 2, r x 1",
        &["read-committed"],
    ),
    (
        "NonMonoReadCM",
        "session a\n t1: w x 1, w p 1\nsession b\n t2: w x 2, w y 2
         session c\n t3: r y 2, r x 1\nsession d\n t4: r p 1, r x 2",
        &["read-committed"],
    ),
    (
        "NonMonotonicRead",
        "session a\n t1: w x 1\n t2: w x 2\nsession b\n t3: r x 2, r x 1",
        &["read-committed", "cut-isolation"],
    ),
    (
        "NonRepeatableRead",
        "session a\n t1: w x 1\nsession b\n t2: w x 2\nsession c\n t3: r x 1, r x 2",
        &["cut-isolation"],
    ),
    (
        "FracturedReadCO",
        "session a\n t1: w x 1\n t2: w x 2, w y 2\nsession b\n t3: r x 1, r y 2",
        &["read-atomic"],
    ),
    (
        "FracturedReadCM",
        "session a\n t1: w x 1, w p 1\nsession b\n t2: w x 2, w y 2
         session c\n t3: r x 1, r y 2\nsession d\n t4: r x 2, r p 1",
        &["read-atomic"],
    ),
    (
        "COConflictCM",
        "session a\n t1: w x 1\nsession b\n t2: r x 1, w x 2
         session c\n t3: r x 2, w y 3\nsession d\n t4: r y 3, r x 1",
        &["causal"],
    ),
    (
        "ConflictCM",
        "session a\n t1: w x 1\n t1b: w p 1\nsession b\n t2: w x 2\n t2b: w q 2
         session c\n t3: r q 2, r x 1\nsession d\n t4: r p 1, r x 2",
        &["causal"],
    ),
];

#[test]
fn each_pattern_is_found_under_its_own_name() {
    for (name, text, levels) in PATTERNS {
        let text = format!("initial none\n{text}");
        assert_eq!(weakest_violated(&text), *levels, "{name}");
        let level = Level::find(levels[0]).unwrap();
        assert!(names(&text, level).contains(name), "{name}: {:?}", names(&text, level));
    }
}

#[test]
fn the_session_case_of_tap_k_and_tap_l() {
    let k = "initial none\nsession a\n t1: w x 1\nsession b\n t2: r x 1, w x 2\n t3: r x 1";
    assert_eq!(names(k, Level::ReadAtomic), ["SessionGuaranteeViolation"]);
    assert_eq!(names(k, Level::Causal), ["SessionGuaranteeViolation"]);
    let l = "initial none\nsession a\n t1: w x 1\n t4: r x 2\nsession b\n t2: w x 2\n t3: r x 1";
    assert_eq!(names(l, Level::ReadAtomic), ["SessionGuaranteeViolation"]);
}

#[test]
fn read_committed_and_read_atomic_go_on_after_a_causal_cycle() {
    let text = "initial none
        session a\n c1: r q 2, w p 1\nsession b\n c2: r p 1, w q 2
        session c\n t1: w x 1\n t2: w x 2, w y 2\nsession d\n t3: r y 2, r x 1";
    assert_eq!(names(text, Level::ReadCommitted), ["CyclicCO", "NonMonoReadCO"]);
    assert_eq!(names(text, Level::ReadAtomic), ["CyclicCO", "NonMonoReadCO"]);
    assert_eq!(names(text, Level::Causal), ["CyclicCO"]);
}
