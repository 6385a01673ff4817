//! What is assumed of every register (`--assume`): the versions that it orders, and what contradicts it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{CheckOptions, check, patterns, supported, supported_patterns};
use isolario_model::{
    Anomaly, AnomalyKind, Evidence, History, Inapplicable, KeyAssumption, Level, LevelNodes,
    LevelResult, PatternResult, Reason, Verdict, VerdictKind, VersionOrder,
};
use isolario_oracle::history;
use isolario_verify::verify;

const SEQUENTIAL: &[KeyAssumption] = &[KeyAssumption::SequentialKeys];
const LINEARIZABLE: &[KeyAssumption] = &[KeyAssumption::LinearizableKeys];

fn assuming(assumptions: &[KeyAssumption]) -> CheckOptions {
    CheckOptions::default().with_assumptions(assumptions.iter().copied().collect())
}

/// The result, after the verifier has accepted it; without the assumption it must not accept a violation.
fn decide(history: &History, level: Level, assumptions: &[KeyAssumption]) -> LevelResult {
    let result = check(history, &[level], &assuming(assumptions)).remove(0);
    let plain = isolario_verify::VerifyOptions::default();
    let assuming = plain.with_assumptions(assumptions.iter().copied().collect());
    assert_eq!(verify(history, &result, &assuming), Ok(()), "{level}");
    let rests = result.verdict.anomalies().iter().any(|a| a.evidence.rests_on_assumptions());
    assert!(!rests || verify(history, &result, &plain).is_err(), "{level}");
    result
}

fn anomalies(result: &LevelResult) -> Vec<&Anomaly> {
    result.verdict.anomalies().iter().map(|anomaly| &**anomaly).collect()
}

/// Whether an argument names an assumption, and no other.
fn names(anomaly: &Anomaly, assumption: KeyAssumption) -> bool {
    let Evidence::Cycle { edges } = &anomaly.evidence else { return false };
    let named = edges.iter().filter_map(|edge| match &edge.reason {
        Reason::Overwrite { known: VersionOrder::Guaranteed { by, .. }, .. }
        | Reason::AntiDependency { known: VersionOrder::Guaranteed { by, .. }, .. } => Some(*by),
        _ => None,
    });
    let named: Vec<KeyAssumption> = named.collect();
    !named.is_empty() && named.iter().all(|by| *by == assumption)
}

/// Two transactions that wrote two keys in opposite orders, as two readers saw one by one.
const DIRTY_WRITE: &str = "a: w x 1, w y 1
     b: w x 2, w y 2
     c: r x 1
     c: r x 2
     d: r y 2
     d: r y 1";

#[test]
fn sequential_keys_show_a_dirty_write() {
    let history = history(DIRTY_WRITE);
    let plain = check(&history, &[Level::ReadUncommitted], &CheckOptions::default()).remove(0);
    assert_eq!(plain.verdict, Verdict::NotApplicable(Inapplicable::NoVersionOrder));
    for level in [Level::ReadUncommitted, Level::AdyaReadCommitted, Level::Serializable] {
        let result = decide(&history, level, SEQUENTIAL);
        let [anomaly] = anomalies(&result)[..] else { panic!("{result:?}") };
        assert_eq!(anomaly.kind, AnomalyKind::DirtyWrite, "{level}");
        assert!(names(anomaly, KeyAssumption::SequentialKeys), "{level}");
        assert_eq!(anomaly.elle_name().as_deref(), Some("G0"));
    }
}

#[test]
fn linearizable_keys_show_a_dirty_write_in_real_time() {
    let history = history(
        "a [1, 20]: w x 1, w y 1
         b [1, 20]: w x 2, w y 2
         c [10, 11]: r x 1
         d [12, 13]: r x 2
         e [10, 11]: r y 2
         f [12, 13]: r y 1",
    );
    let plain = decide(&history, Level::AdyaReadCommitted, &[]);
    assert!(plain.verdict.is_satisfied());
    let result = decide(&history, Level::AdyaReadCommitted, LINEARIZABLE);
    let [anomaly] = anomalies(&result)[..] else { panic!("{result:?}") };
    assert_eq!(anomaly.kind, AnomalyKind::DirtyWrite);
    assert!(names(anomaly, KeyAssumption::LinearizableKeys));
}

/// Blind writes have no order of their own; with one, the levels that need it are decided.
#[test]
fn levels_that_need_a_version_order_apply_where_it_becomes_total() {
    let history = history("a: w x 1\n b: w x 2\n c: r x 1\n c: r x 2");
    for level in supported().iter().filter(|level| level.needs().version_order) {
        let result = decide(&history, *level, SEQUENTIAL);
        assert_ne!(decide(&history, *level, &[]).verdict.kind(), VerdictKind::Satisfied, "{level}");
        match level.needs().times {
            true => assert_eq!(result.verdict, Verdict::NotApplicable(Inapplicable::NoTimes)),
            false => assert!(result.verdict.is_satisfied(), "{result:?}"),
        }
    }
}

/// A session that goes back and forth between two versions: no order of them is sequential.
#[test]
fn an_assumption_that_leads_to_cyclic_versions_is_reported_at_every_level() {
    let back = history("a: w x 1\n b: w x 2\n c: r x 1\n c: r x 2\n c: r x 1");
    let initial = history("a: w x 1\n c: r x 1\n c: r x nil");
    let update = history("a: w x 1\n b: r x 1, w x 2\n c: r x 2\n c: r x 1");
    let mixed = history("a: w x 1, w y 1\n a: w x 2, r y 1\n c: r x 2\n c: r x 1");
    for history in [back, initial, update, mixed] {
        for level in supported().iter().filter(|level| level.shape().nodes != LevelNodes::None) {
            if level.needs().times || level.needs().single_operations {
                continue;
            }
            let result = decide(&history, *level, SEQUENTIAL);
            let told = anomalies(&result);
            let cyclic = told.iter().find(|a| a.kind == AnomalyKind::CyclicVersions);
            let Some(cyclic) = cyclic else { panic!("{result:?}") };
            assert!(names(cyclic, KeyAssumption::SequentialKeys), "{level}");
            assert_eq!(cyclic.elle_name().as_deref(), Some("cyclic-versions"));
        }
        let cut = decide(&history, Level::CutIsolation, SEQUENTIAL);
        assert!(cut.verdict.is_satisfied());
    }
}

#[test]
fn cyclic_versions_in_real_time_are_reported() {
    let history = history(
        "a [1, 2]: w x 1
         b [3, 4]: w x 2
         c [5, 6]: r x 1",
    );
    let result = decide(&history, Level::ReadUncommitted, LINEARIZABLE);
    let [anomaly] = anomalies(&result)[..] else { panic!("{result:?}") };
    assert_eq!(anomaly.kind, AnomalyKind::CyclicVersions);
    assert!(names(anomaly, KeyAssumption::LinearizableKeys));
}

#[test]
fn nothing_follows_a_transaction_of_unknown_outcome_and_aborted_ones_do_not_count() {
    let levels = [Level::AdyaReadCommitted, Level::Serializable];
    let held = |text: &str, assumptions: &[KeyAssumption]| {
        let history = history(text);
        levels.iter().all(|level| decide(&history, *level, assumptions).verdict.is_satisfied())
    };
    assert!(!held("a: w x 1\n b: w x 2\n c: r x 2\n c: r x 1\n d: r x 1\n d: r x 2", SEQUENTIAL));
    // Whoever is never heard of again may come at any time.
    let unknown =
        "a: w x 1\n c unknown: r x 2, w y 1\n c: r x 1\n b: w x 2\n d: r x 1\n d: r x 2\n e: r y 1";
    assert!(held(unknown, SEQUENTIAL));
    let aborted = "a: w x 1\n c aborted: r x 2, w y 1\n c: r x 1\n b: w x 2\n d: r x 1\n d: r x 2";
    assert!(held(aborted, SEQUENTIAL));
    // The same in real time: it has no finish.
    let finished = "a [1, 2]: w x 1\n b [3, 4]: w x 2\n c [6, 7]: r x 1";
    assert!(!held(finished, LINEARIZABLE));
    assert!(held(
        "a [1, 2]: w x 1\n b unknown [3, 4]: w x 2\n c [6, 7]: r x 1\n d [8, 9]: r x 2",
        LINEARIZABLE
    ));
    assert!(held("a [1, 2]: w x 1\n b aborted [3, 4]: w x 2\n c [6, 7]: r x 1", LINEARIZABLE));
}

#[test]
fn clocks_that_differ_order_less() {
    let history = history("a [1, 2]: w x 1\n b [3, 4]: w x 2\n c [6, 7]: r x 1");
    let violated = |skew| {
        let options = assuming(LINEARIZABLE).with_clock_skew(skew);
        check(&history, &[Level::AdyaReadCommitted], &options)[0].verdict.is_violated()
    };
    assert!(violated(0) && !violated(1));
}

#[test]
fn without_times_nothing_is_linearizable() {
    let history = history("a: w x 1");
    for level in supported() {
        let result = decide(&history, *level, LINEARIZABLE);
        let is_missing = result.verdict == Verdict::NotApplicable(Inapplicable::NoTimes);
        assert_eq!(is_missing, *level != Level::CutIsolation, "{result:?}");
    }
}

/// Every level takes it for granted that who reads a version and then writes the key writes a later one.
#[test]
fn that_writes_follow_reads_is_assumed_anyway() {
    let history = history("a: r x 2, w x 1\n b: r x 1, w x 2\n c: r x 1\n c: r x 2");
    let wfr = assuming(&[KeyAssumption::WritesFollowReads]);
    assert_eq!(
        check(&history, supported(), &wfr),
        check(&history, supported(), &CheckOptions::default())
    );
}

/// Along the session, the initial version comes after the first one. Anomalies are found one by one all the same.
#[test]
fn anomalies_are_found_where_a_version_comes_before_the_initial_one() {
    let history = history("a: w x 1\n a: r x nil");
    let kinds: Vec<AnomalyKind> = supported_patterns().collect();
    let found = patterns(&history, &kinds, &assuming(SEQUENTIAL));
    let plain = patterns(&history, &kinds, &CheckOptions::default());
    let kinds_of = |results: &[PatternResult]| -> Vec<VerdictKind> {
        results.iter().map(|result| result.verdict.kind()).collect()
    };
    assert!(found.iter().any(|result| result.verdict.is_violated()));
    assert_eq!(kinds_of(&found), kinds_of(&plain));
}

/// Lists show their order by themselves.
#[test]
fn assumptions_are_about_registers() {
    let history = history("a: append x 1\n b: append x 2\n c: r x [1 2]\n c: r x [1]");
    let with = check(&history, supported(), &assuming(SEQUENTIAL));
    assert_eq!(with, check(&history, supported(), &CheckOptions::default()));
}

/// A history in which all keep to it: long ones cost no more than a few edges per access.
#[test]
fn long_histories_are_decided_with_assumptions() {
    let mut text = String::new();
    for at in 0..2000 {
        let start = 10 * at;
        text += &format!("s{} [{start}, {}]: w x {at}\n", at % 7, start + 5);
        text += &format!("r{} [{}, {}]: r x {at}\n", at % 5, start + 6, start + 8);
    }
    let history = history(&text);
    for assumptions in [SEQUENTIAL, LINEARIZABLE, &[SEQUENTIAL, LINEARIZABLE].concat()] {
        let result = decide(&history, Level::StrictSerializable, assumptions);
        assert!(result.verdict.is_satisfied());
    }
    let psi = decide(&history, Level::ParallelSnapshotIsolation, LINEARIZABLE);
    assert!(psi.verdict.is_satisfied(), "{:?}", psi.verdict.kind());
}
