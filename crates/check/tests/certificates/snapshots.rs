//! Stated snapshots, and who had committed before a start.

use isolario_model::{AnomalyKind, Level, Verdict};

use super::{history, satisfies, verdict, wrong};

/// T2's snapshot is later than the commit of T1, and T2 read what was there before.
const MISSED: &str = "
    T1 db [1, 10]: w x 1
    T2 db [15, 20]: select value > 99 -> {}, r x nil";

#[test]
fn a_snapshot_shows_everybody_who_had_committed_whatever_was_met() {
    let snapshot = r#"{"txn": "T2", "op": 0, "snapshot": 15}"#;
    let contradiction = [AnomalyKind::OrderContradiction];
    assert_eq!(wrong(&history(MISSED), snapshot, Level::SnapshotIsolation), contradiction);
    // A list of versions says what was met of these rows, and nothing else.
    let versions = r#"{"txn": "T2", "op": 0, "versions": [["x", "T1"]]}"#;
    assert!(satisfies(&history(MISSED), versions, Level::SnapshotIsolation));
    // Nor does a snapshot that does not show the other.
    let earlier = r#"{"txn": "T2", "op": 0, "snapshot": 9}"#;
    assert!(satisfies(&history(MISSED), earlier, Level::SnapshotIsolation));
}

/// As in Adya's definitions, serializability does not imply snapshot isolation where starts are known.
#[test]
fn snapshots_are_a_matter_of_snapshot_isolation_alone() {
    let snapshot = r#"{"txn": "T2", "op": 0, "snapshot": 15}"#;
    let missed = history(MISSED);
    let others = [
        Level::ReadUncommitted,
        Level::AdyaReadCommitted,
        Level::ConsistentView,
        Level::ParallelSnapshotIsolation,
        Level::RepeatableRead,
        Level::Serializable,
    ];
    for level in others {
        assert!(satisfies(&missed, snapshot, level), "{level}");
    }
    let Verdict::Violated(findings) = verdict(&missed, snapshot, Level::SnapshotIsolation) else {
        panic!("satisfied")
    };
    let ruled_out: Vec<Level> = findings.anomalies[0].rules_out.iter().collect();
    assert_eq!(ruled_out, [Level::SnapshotIsolation, Level::StrongSnapshotIsolation]);
}

/// An engine may read from a snapshot and make sure at commit that nothing has changed since.
#[test]
fn a_transaction_may_start_later_than_its_snapshot() {
    let overtaken = history(
        "
        T1 db [1, 20]: w x 1
        T2 db [15, 30]: select value > 99 -> {}, w x 2",
    );
    let certificate = r#"
        {"key": "x", "writers": ["T1", "T2"]}
        {"txn": "T2", "op": 0, "snapshot": 15}"#;
    assert!(satisfies(&overtaken, certificate, Level::SnapshotIsolation));
    // It may not have changed what was read, though.
    let changed = history(
        "
        T1 db [1, 20]: w x 1
        T2 db [15, 30]: select value > 0 -> {}, w x 2",
    );
    assert!(!satisfies(&changed, certificate, Level::SnapshotIsolation));
}

#[test]
fn of_several_snapshots_of_a_transaction_the_latest_counts() {
    let twice = history(
        "
        T1 db [1, 10]: w x 1
        T2 db [5, 20]: select value > 99 -> {}, r x nil, select value > 99 -> {}",
    );
    let first = r#"{"txn": "T2", "op": 0, "snapshot": 5}"#;
    let same = format!("{first}\n{}", r#"{"txn": "T2", "op": 2, "snapshot": 5}"#);
    assert!(satisfies(&twice, &same, Level::SnapshotIsolation));
    let later = format!("{first}\n{}", r#"{"txn": "T2", "op": 2, "snapshot": 15}"#);
    let contradiction = [AnomalyKind::OrderContradiction];
    assert_eq!(wrong(&twice, &later, Level::SnapshotIsolation), contradiction);
}

#[test]
fn a_snapshot_as_of_the_own_commit_shows_what_had_committed_before() {
    let snapshots = r#"
        {"txn": "T1", "op": 0, "snapshot": 10}
        {"txn": "T2", "op": 0, "snapshot": 10}"#;
    let together = history(
        "
        T1 db [1, 10]: select value > 99 -> {}, w x 1
        T2 db [1, 10]: select value > 99 -> {}, w y 1",
    );
    assert!(satisfies(&together, snapshots, Level::SnapshotIsolation));
    let later = r#"{"txn": "T2", "op": 0, "snapshot": 20}"#;
    assert!(!satisfies(&history(MISSED), later, Level::SnapshotIsolation));
}

#[test]
fn a_start_dependency_may_be_one_step_of_a_longer_cycle() {
    let longer = history(
        "
        T1 db [1, 10]: w x 1
        T2 db [12, 14]: r x 1, w y 1
        T3 db [20, 30]: select value > 99 -> {}, r y nil
        T4 db [20, 40]: r x nil, r y 1",
    );
    let snapshot = r#"{"txn": "T3", "op": 0, "snapshot": 20}"#;
    let found = verdict(&longer, snapshot, Level::SnapshotIsolation);
    // Without the snapshot, T4 is wrong by itself; and it comes first.
    assert_eq!(found.anomalies().len(), 1);
    assert_ne!(found.anomalies()[0].kind, AnomalyKind::OrderContradiction);
    let without = history(
        "
        T1 db [1, 10]: w x 1
        T2 db [12, 50]: w y 1
        T3 db [20, 30]: select value > 99 -> {}, r z nil
        T4 db [60, 70]: r y 1, w z 1, r x nil",
    );
    assert!(satisfies(&without, snapshot, Level::SnapshotIsolation));
    let closed = history(
        "
        T1 db [1, 10]: w x 1
        T2 db [12, 50]: r s 1, w y 1
        T3 db [20, 30]: select value > 99 -> {}, w s 1
        T4 db [60, 70]: r y 1, r x nil",
    );
    let contradiction = [AnomalyKind::OrderContradiction];
    assert_eq!(wrong(&closed, snapshot, Level::SnapshotIsolation), contradiction);
}

/// Neither the snapshot nor real time alone is contradicted.
#[test]
fn a_cycle_may_take_a_snapshot_and_real_time() {
    let both = history(
        "
        T1 [0, 20] db [1, 10]: w x 1
        T2 [0, 5] db [15, 20]: select value > 99 -> {}
        T3 [6, 9] db [2, 30]: r x nil",
    );
    let snapshot = r#"{"txn": "T2", "op": 0, "snapshot": 15}"#;
    assert!(satisfies(&both, snapshot, Level::SnapshotIsolation));
    let contradiction = [AnomalyKind::OrderContradiction];
    assert_eq!(wrong(&both, snapshot, Level::StrongSnapshotIsolation), contradiction);
}

/// T3 started after T2 had finished, so T2 comes first in real time, and last by the versions of the row. A
/// snapshot of T3 that shows T1 changes nothing about that.
#[test]
fn real_time_counts_beside_a_snapshot() {
    let overtaken = history(
        "
        T1 db [?, 10]: w t(id=2) (a=0)
        T2 [1, 2] db [?, 30]: w t(id=1) (a=2)
        T3 [5, 6] db [?, 20]: w t(id=1) (a=1), select from t where a > 5 -> {}",
    );
    let order = r#"{"key": {"table": "t", "row": {"id": 1}}, "writers": ["T3", "T2"]}"#;
    let none = r#"{"txn": "T3", "op": 1, "versions": []}"#;
    let snapshot = r#"{"txn": "T3", "op": 1, "snapshot": 11}"#;
    for set in [none, snapshot] {
        let certificate = format!("{order}\n{set}");
        assert!(satisfies(&overtaken, &certificate, Level::SnapshotIsolation), "{set}");
        let found = wrong(&overtaken, &certificate, Level::StrongSnapshotIsolation);
        assert_eq!(found, [AnomalyKind::OrderContradiction], "{set}");
    }
}
