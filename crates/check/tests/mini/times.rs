//! Real time.

use isolario_check::{CheckOptions, check};
use isolario_formats::{Source, find};
use isolario_model::{Inapplicable, Level, Verdict};

use crate::support::{history, names, names_with, result};

const STALE: &str =
    "initial 0\nsession a\n T1 [10, 20]: r x 0, w x 1\nsession b\n T2 [30, 40]: r x 0";

fn with_skew(clock_skew: u64) -> CheckOptions {
    let mut options = CheckOptions::default();
    options.clock_skew = clock_skew;
    options
}

#[test]
fn a_stale_read_is_allowed_until_real_time_counts() {
    assert_eq!(names(STALE, Level::Serializable), [""; 0]);
    assert_eq!(names(STALE, Level::StrongSnapshotIsolation), ["StaleRead"]);
    assert_eq!(names(STALE, Level::StrictSerializable), ["StaleRead"]);
}

#[test]
fn clocks_that_differ_excuse_what_they_may_have_caused() {
    assert_eq!(names_with(STALE, Level::StrictSerializable, &with_skew(4)), ["StaleRead"]);
    assert_eq!(names_with(STALE, Level::StrictSerializable, &with_skew(5)), [""; 0]);
}

#[test]
fn a_tie_orders_nothing() {
    let text = STALE.replace("30, 40", "20, 40");
    assert_eq!(names(&text, Level::StrictSerializable), [""; 0]);
}

#[test]
fn whoever_has_no_times_is_not_constrained() {
    let text = STALE.replace("T2 [30, 40]", "T2");
    assert_eq!(names(&text, Level::StrictSerializable), [""; 0]);
}

#[test]
fn a_finish_before_the_own_start_leaves_out_both_times() {
    let text = STALE.replace("10, 20", "25, 20");
    let source = Source::from_bytes("test", text.into_bytes())
        .unwrap()
        .leaving_out_contradictory_times(true);
    let history = find("text").unwrap().read(&source).unwrap().history;
    let found = result(&history, Level::StrictSerializable, &CheckOptions::default());
    assert!(found.verdict.is_satisfied(), "{found:?}");
}

#[test]
fn a_transaction_of_unknown_outcome_never_finished() {
    let text = "initial 0\nsession a\n T1 [10, 20] unknown: r x 0, w x 1\n\
                session b\n T2 [30, 40]: r x 0\nsession c\n T3 [50, 60]: r x 1";
    assert_eq!(names(text, Level::StrictSerializable), [""; 0]);
}

#[test]
fn a_longer_way_back_through_time_is_a_cycle_of_its_own() {
    // T3 saw T2, which saw T1, although T3 had finished before T1 started.
    let text = "initial 0\nsession a\n T1 [50, 60]: r x 0, w x 1\n\
                session b\n T2 [0, 100]: r x 1, r y 0, w y 1\nsession c\n T3 [10, 20]: r y 1";
    assert_eq!(names(text, Level::Serializable), [""; 0]);
    assert_eq!(names(text, Level::StrongSnapshotIsolation), ["RealTimeCycle"]);
}

#[test]
fn the_strict_levels_need_times() {
    let history = history("initial 0\nsession a\n T1: r x 0, w x 1");
    let verdict =
        &check(&history, &[Level::StrictSerializable], &CheckOptions::default())[0].verdict;
    assert_eq!(verdict, &Verdict::NotApplicable(Inapplicable::NoTimes));
}
