//! When the linear-time checker applies, and what it finds in larger cycles.

use isolario_check::CheckOptions;
use isolario_model::{Attempt, Level, Verdict, Witness};

use crate::support::{decided_by, history, names, result};

#[test]
fn transactions_may_be_of_any_size() {
    let ops: Vec<String> =
        (0..100).map(|key| format!("r k{key} 0, w k{key} 1, r k{key} 1, w k{key} 2")).collect();
    let text = format!("initial 0\nsession a\n T1: {}\n T2: r k0 2, r k99 2", ops.join(", "));
    assert_eq!(names(&text, Level::Serializable), [""; 0]);
    assert_eq!(decided_by(&text, Level::Serializable), Attempt::Versions);
    let missed = text.replace("r k99 2", "r k99 0");
    assert_eq!(names(&missed, Level::Serializable), ["SessionGuaranteeViolation"]);
}

/// Whether the order of versions has to be searched for.
fn is_searched(text: &str) -> bool {
    matches!(decided_by(text, Level::SnapshotIsolation), Attempt::Segments | Attempt::Search)
}

#[test]
fn a_key_may_have_one_loader_if_nobody_else_overwrote_its_initial_value() {
    let loaded = "initial 0\nsession a\n T1: w x 1, w y 1\nsession b\n T2: r x 1, w x 2, r y 0";
    assert_eq!(decided_by(loaded, Level::Serializable), Attempt::Versions);
    assert_eq!(names(loaded, Level::Serializable), ["NonMonoReadCO"]);
    let also_from_initial = "initial 0\nsession a\n T1: w x 1\nsession b\n T2: r x 0, w x 2";
    assert!(is_searched(also_from_initial));
    let two_loaders = "initial 0\nsession a\n T1: w x 1\nsession b\n T2: w x 2";
    assert!(is_searched(two_loaders));
}

#[test]
fn a_read_after_the_write_or_one_whose_answer_is_unknown_does_not_count() {
    let late = "initial 0\nsession a\n T1: w x 1, r x 1\n T2: r x 1, w x 2\nsession b\n T3: w x 3";
    assert!(is_searched(late));
    let unanswered = "initial 0\nsession a\n T1 unknown: r x ?, w x 1\nsession b\n T2: r x 1\n\
                      session c\n T3: w x 3";
    assert!(is_searched(unanswered));
}

#[test]
fn transactions_that_nobody_saw_do_not_break_the_pattern() {
    let text = "initial 0\nsession a\n T1: r x 0, w x 1\nsession b\n T2 unknown: w x 2\n\
                session c\n T3 aborted: w x 3";
    assert_eq!(decided_by(text, Level::Serializable), Attempt::Versions);
}

#[test]
fn a_cycle_of_reads_is_found_at_snapshot_isolation() {
    // Two transactions that waited for each other: found only if a start comes before its commit.
    let text =
        "initial 0\nsession a\n T1: r x 0, r y 1, w x 1\nsession b\n T2: r y 0, r x 1, w y 1";
    assert_eq!(names(text, Level::SnapshotIsolation), ["CyclicCO"]);
}

#[test]
fn three_anti_dependencies_in_a_row_are_allowed_by_snapshot_isolation() {
    let text = "initial 0\nsession a\n T1: r x 0, r y 0, w x 1\n\
                session b\n T2: r y 0, r z 0, w y 1\nsession c\n T3: r z 0, r x 0, w z 1";
    assert_eq!(names(text, Level::SnapshotIsolation), [""; 0]);
    assert_eq!(names(text, Level::Serializable), ["ItemAntiDependencyCycle"]);
}

#[test]
fn the_shortest_cycle_of_each_component_is_reported() {
    let text = "initial 0\nsession a\n T1: r x 0, r y 0, w x 1\nsession b\n T2: r x 0, r y 0, w y 1\n\
                session c\n T3: r u 0, r v 0, w u 1\nsession d\n T4: r u 0, r v 0, w v 1\n\
                session e\n T5: r u 1, r v 0";
    assert_eq!(names(text, Level::Serializable), ["WriteSkew", "WriteSkew"]);
}

#[test]
fn sessions_can_be_left_out_of_account() {
    let text = history("initial 0\nsession a\n T1: r x 0, w x 1\n T2: r x 0");
    let mut options = CheckOptions::default();
    options.session_order = false;
    let verdict = result(&text, Level::Serializable, &options).verdict;
    assert!(matches!(verdict, Verdict::Satisfied(Witness::CommitOrder(_))), "{verdict:?}");
    let verdict = result(&text, Level::SnapshotIsolation, &options).verdict;
    assert!(matches!(verdict, Verdict::Satisfied(Witness::Points(_))), "{verdict:?}");
}
