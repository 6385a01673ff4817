//! Right and wrong evidence, made by hand.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, Evidence, Findings, Inapplicable, KeyId, Level,
    LevelResult, OpId, Reason, TxnId, Verdict, VersionOrder,
};
use isolario_oracle::history;
use isolario_verify::{Refusal, VerifyOptions, verify};

fn judge_verdict(text: &str, level: Level, verdict: Verdict) -> Result<(), Refusal> {
    let result = LevelResult { level, decided_by: Attempt::Rule, verdict };
    verify(&history(text), &result, &VerifyOptions::default())
}

fn judge(text: &str, level: Level, kind: AnomalyKind, evidence: Evidence) -> Result<(), Refusal> {
    let anomalies = vec![Anomaly::new(kind, evidence)];
    judge_verdict(text, level, Verdict::Violated(Findings::new(anomalies, true)))
}

fn read(read: u32, saw: Option<u32>, instead: Option<u32>) -> Evidence {
    Evidence::Read { read: OpId(read), saw: saw.map(OpId), instead: instead.map(OpId) }
}

fn edge(from: TxnId, to: TxnId, reason: Reason) -> Edge {
    Edge { from, to, reason }
}

fn read_from(key: u32, read: u32, write: u32) -> Reason {
    Reason::Read { key: KeyId(key), read: OpId(read), write: Some(OpId(write)) }
}

const T: [TxnId; 4] = [TxnId(0), TxnId(1), TxnId(2), TxnId(3)];

#[test]
fn each_bad_read_is_known_by_its_own_name_only() {
    use AnomalyKind::*;
    let cases = [
        (ThinAirRead, "a: r x 1", read(0, None, None)),
        (AbortedRead, "a aborted: w x 1\n b: r x 1", read(1, Some(0), None)),
        (FutureRead, "a: r x 1, w x 1", read(0, Some(1), None)),
        (NotMyOwnWrite, "a: w x 1\n b: w x 2, r x 1", read(2, Some(0), Some(1))),
        (NotMyLastWrite, "a: w x 1, w x 2, r x 1", read(2, Some(0), Some(1))),
        (IntermediateRead, "a: w x 1, w x 2\n b: r x 1", read(2, Some(0), Some(1))),
    ];
    for (right, text, evidence) in &cases {
        for (kind, ..) in &cases {
            let judged = judge(text, Level::AdyaReadCommitted, *kind, evidence.clone());
            assert_eq!(judged.is_ok(), kind == right, "{right} as {kind}: {judged:?}");
        }
    }
}

#[test]
fn a_read_that_some_write_explains_is_not_bad() {
    let level = Level::AdyaReadCommitted;
    let explained = |text, evidence| judge(text, level, AnomalyKind::AbortedRead, evidence);
    let text = "a aborted: w x 1\n b: w x 1\n c: r x 1";
    assert!(matches!(explained(text, read(2, Some(0), None)), Err(Refusal::WrongKind { .. })));
    let both_aborted = "a aborted: w x 1\n b aborted: w x 1\n c: r x 1";
    assert_eq!(explained(both_aborted, read(2, Some(0), None)), Ok(()));
}

#[test]
fn reads_of_transactions_that_need_not_have_committed_prove_nothing() {
    for outcome in ["aborted", "unknown"] {
        let text = format!("a {outcome}: r x 1");
        let judged = judge(&text, Level::Causal, AnomalyKind::ThinAirRead, read(0, None, None));
        assert_eq!(judged, Err(Refusal::NotCommitted(T[0])));
    }
    let seen = "a unknown: r x 1, w y 1\n b: r y 1";
    let judged = judge(seen, Level::Causal, AnomalyKind::ThinAirRead, read(0, None, None));
    assert_eq!(judged, Ok(()));
}

#[test]
fn a_cycle_of_reads_is_forbidden_and_a_broken_one_is_none() {
    let text = "a: r x 2, w y 1\n b: r y 1, w x 2";
    let (forth, back) =
        (edge(T[0], T[1], read_from(1, 2, 1)), edge(T[1], T[0], read_from(0, 0, 3)));
    let judge = |kind, edges: &[&Edge]| {
        let edges = edges.iter().map(|edge| (*edge).clone()).collect();
        judge(text, Level::AdyaReadCommitted, kind, Evidence::Cycle { edges })
    };
    assert_eq!(judge(AnomalyKind::CyclicCo, &[&forth, &back]), Ok(()));
    assert!(judge(AnomalyKind::CyclicCo, &[]).is_err());
    assert!(judge(AnomalyKind::CyclicCo, &[&forth]).is_err());
    assert!(judge(AnomalyKind::CyclicCo, &[&forth, &forth]).is_err());
    assert!(judge(AnomalyKind::NonMonoReadCo, &[&forth, &back]).is_err());
}

/// AWDIT, Figure 4b: the reader saw y of the second transaction and missed its x.
const FRACTURED: &str = "a: w x 1\n a: w x 2, w y 2\n b: r x 1, r y 2";

fn fractured(rule: Level) -> Evidence {
    let path = vec![edge(T[1], T[2], read_from(1, 4, 2))];
    let (key, reader, read) = (KeyId(0), T[2], OpId(3));
    let missed = Reason::Visible { rule, key, reader, read, path };
    Evidence::Cycle { edges: vec![edge(T[0], T[1], Reason::Session), edge(T[1], T[0], missed)] }
}

#[test]
fn the_rule_of_a_level_must_be_one_of_the_level_and_its_path_must_fit() {
    let kind = AnomalyKind::FracturedReadCo;
    assert_eq!(judge(FRACTURED, Level::ReadAtomic, kind, fractured(Level::ReadAtomic)), Ok(()));
    assert_eq!(judge(FRACTURED, Level::Causal, kind, fractured(Level::ReadAtomic)), Ok(()));
    // Read committed would need the read of y before the one of x.
    assert!(judge(FRACTURED, Level::ReadAtomic, kind, fractured(Level::ReadCommitted)).is_err());
    assert!(judge(FRACTURED, Level::ReadAtomic, kind, fractured(Level::Causal)).is_err());
    let allowed = judge(FRACTURED, Level::ReadCommitted, kind, fractured(Level::ReadAtomic));
    assert!(matches!(allowed, Err(Refusal::WrongEdge { .. })));
}

#[test]
fn session_edges_need_session_order() {
    let result = LevelResult {
        level: Level::ReadAtomic,
        decided_by: Attempt::Rule,
        verdict: Verdict::Violated(Findings::new(
            vec![Anomaly::new(AnomalyKind::FracturedReadCo, fractured(Level::ReadAtomic))],
            true,
        )),
    };
    let judge = |session_order| {
        let options = VerifyOptions::default().with_session_order(session_order);
        verify(&history(FRACTURED), &result, &options)
    };
    assert_eq!(judge(true), Ok(()));
    assert!(matches!(judge(false), Err(Refusal::WrongEdge { .. })));
}

#[test]
fn reasons_that_rely_on_an_ambiguous_read_are_refused() {
    let text = "a: r x 2, w y 1\n b: r y 1, w x 2\n c: w x 2";
    let edges = vec![edge(T[0], T[1], read_from(1, 2, 1)), edge(T[1], T[0], read_from(0, 0, 3))];
    let judged = judge(text, Level::Causal, AnomalyKind::CyclicCo, Evidence::Cycle { edges });
    assert_eq!(judged, Err(Refusal::Ambiguous(OpId(0))));
}

#[test]
fn two_reads_disagree_only_if_they_saw_two_others() {
    let pair = |first, second| Evidence::Reads {
        key: KeyId(0),
        first: OpId(first),
        second: OpId(second),
        edges: Vec::new(),
    };
    let judge =
        |text, evidence| judge(text, Level::CutIsolation, AnomalyKind::NonRepeatableRead, evidence);
    assert_eq!(judge("a: w x 1\n b: r x nil, r x 1", pair(1, 2)), Ok(()));
    assert!(judge("a: w x 1\n b: r x 1, r x 1", pair(1, 2)).is_err());
    assert!(judge("a: r x nil, w x 1, r x 1", pair(0, 2)).is_err());
    assert!(judge("a aborted: w x 1\n b: r x nil, r x 1", pair(1, 2)).is_err());
    assert!(judge("a: w x 1\n b: r x nil\n b: r x 1", pair(1, 2)).is_err());
}

/// Evidence of two appends in one session, of which a read shows only the later one.
fn forgotten(first: TxnId, second: TxnId, read: u32) -> Evidence {
    let known = VersionOrder::AppendedLater { read: OpId(read) };
    let later = edge(second, first, Reason::Overwrite { key: KeyId(0), known });
    Evidence::Cycle { edges: vec![edge(first, second, Reason::Session), later] }
}

#[test]
fn an_append_that_a_read_does_not_show_comes_after_the_last_that_it_shows() {
    let judge =
        |text, evidence| judge(text, Level::AdyaReadCommitted, AnomalyKind::CyclicCo, evidence);
    let text = "a: append x 1\n a: append x 2\n b: r x [2]";
    assert_eq!(judge(text, forgotten(T[0], T[1], 2)), Ok(()));
    // Own appends at the end of a list are left out.
    let own = "a: append x 1\n a: append x 2\n b: append x 3, r x [2 3]";
    assert_eq!(judge(own, forgotten(T[0], T[1], 3)), Ok(()));
    for (why, text) in [
        ("it is shown", "a: append x 1\n a: append x 2\n b: r x [1 2]"),
        ("the other is not shown", "a: append x 1\n a: append x 2\n b: r x []"),
        ("another is the last one", "a: append x 1\n a: append x 2\n b: r x [2 3]\n c: append x 3"),
        ("it may be shown", "a: append x 1\n a: append x 2\n b: r x [1 2]\n c: append x 1"),
        ("the last may be another's", "a: append x 1\n a: append x 2\n b: r x [2]\n c: append x 2"),
        ("it aborted", "a aborted: append x 1\n a: append x 2\n b: r x [2]"),
        ("it may have aborted", "a unknown: append x 1\n a: append x 2\n b: r x [2]"),
        ("the reader aborted", "a: append x 1\n a: append x 2\n b aborted: r x [2]"),
        ("it is another list", "a: append x 1\n a: append x 2\n b: r y [2]\n c: append y 2"),
        ("it is no list", "a: w x 1\n a: w x 2\n b: r x 2"),
    ] {
        assert!(judge(text, forgotten(T[0], T[1], 2)).is_err(), "{why}");
    }
}

#[test]
fn a_key_has_one_initial_value_though_any_may_be_it() {
    let pair = |first, second| Evidence::Reads {
        key: KeyId(0),
        first: OpId(first),
        second: OpId(second),
        edges: Vec::new(),
    };
    let (level, kind) = (Level::AdyaReadCommitted, AnomalyKind::ThinAirRead);
    let two = "initial unwritten\n a: r x 5\n b: r x 7";
    assert_eq!(judge(two, level, kind, pair(0, 1)), Ok(()));
    assert!(judge(two, level, kind, read(0, None, None)).is_err());
    assert!(judge(two, Level::CutIsolation, kind, pair(0, 1)).is_err());
    for (why, text) in [
        ("they are the same", "initial unwritten\n a: r x 5\n b: r x 5"),
        ("they are of two keys", "initial unwritten\n a: r x 5\n b: r y 7"),
        ("one was written", "initial unwritten\n a: r x 5\n b: r x 7\n c: w x 7"),
        ("one was not read", "initial unwritten\n a: r x 5\n b unknown: r x 7"),
        ("one is initial, and the other is not", "initial 5\n a: r x 5\n b: r x 7"),
    ] {
        assert!(judge(text, level, kind, pair(0, 1)).is_err(), "{why}");
    }
    let (level, kind) = (Level::CutIsolation, AnomalyKind::NonRepeatableRead);
    assert_eq!(judge("initial unwritten\n a: r x 5, r x 7", level, kind, pair(0, 1)), Ok(()));
    assert!(judge("initial unwritten\n a: r x 5, r x 5", level, kind, pair(0, 1)).is_err());
    assert!(judge(two, level, kind, pair(0, 1)).is_err());
}

#[test]
fn a_list_is_wrong_if_everyone_who_appended_an_element_is() {
    use AnomalyKind::{AbortedRead, FutureRead};
    let judge = |text, kind, evidence| judge(text, Level::AdyaReadCommitted, kind, evidence);
    let aborted = "a aborted: append x 1\n b aborted: append x 1\n c: r x [1]";
    assert_eq!(judge(aborted, AbortedRead, read(2, Some(0), None)), Ok(()));
    assert_eq!(judge(aborted, AbortedRead, read(2, Some(1), None)), Ok(()));
    let future = "a aborted: append x 1\n b: r x [1], append x 1";
    assert_eq!(judge(future, AbortedRead, read(1, Some(0), None)), Ok(()));
    assert_eq!(judge(future, FutureRead, read(1, Some(2), None)), Ok(()));
    let explained = "a aborted: append x 1\n b: append x 1\n c: r x [1]";
    assert!(judge(explained, AbortedRead, read(2, Some(0), None)).is_err());
    let unknown = "a aborted: append x 1\n b unknown: append x 1\n c: r x [1]";
    assert!(judge(unknown, AbortedRead, read(2, Some(0), None)).is_err());
}

/// Two transactions that each overwrite what the other read.
const SKEW: &str = "a: r x nil, w y 1\n b: r y nil, w x 1";

#[test]
fn write_skew_is_forbidden_at_serializable_only() {
    let anti = |from, to, key, read| {
        let (key, read) = (KeyId(key), OpId(read));
        let (writer, known) = (TxnId::INIT, VersionOrder::Initial);
        edge(from, to, Reason::AntiDependency { key, read, writer, known })
    };
    let edges = vec![anti(T[0], T[1], 0, 0), anti(T[1], T[0], 1, 2)];
    let judge = |level| {
        let evidence = Evidence::Cycle { edges: edges.clone() };
        judge(SKEW, level, AnomalyKind::WriteSkew, evidence)
    };
    assert_eq!(judge(Level::Serializable), Ok(()));
    assert!(judge(Level::SnapshotIsolation).is_err());
}

#[test]
fn real_time_counts_at_the_strict_levels_only() {
    let text = "a [1, 2]: w x 1\n b [3, 4]: r x nil";
    let (key, read) = (KeyId(0), OpId(1));
    let (writer, known) = (TxnId::INIT, VersionOrder::Initial);
    let stale = edge(T[1], T[0], Reason::AntiDependency { key, read, writer, known });
    let judge = |level, finish, start| {
        let time = edge(T[0], T[1], Reason::RealTime { finish, start });
        let edges = vec![time, stale.clone()];
        judge(text, level, AnomalyKind::RealTimeCycle, Evidence::Cycle { edges })
    };
    assert_eq!(judge(Level::StrictSerializable, 2, 3), Ok(()));
    assert!(judge(Level::StrictSerializable, 1, 3).is_err());
    assert!(judge(Level::Serializable, 2, 3).is_err());
}

#[test]
fn clocks_that_may_differ_order_less() {
    let text = "a [1, 2]: w x 1\n b [7, 8]: r x nil";
    let (key, read) = (KeyId(0), OpId(1));
    let (writer, known) = (TxnId::INIT, VersionOrder::Initial);
    let stale = edge(T[1], T[0], Reason::AntiDependency { key, read, writer, known });
    let time = edge(T[0], T[1], Reason::RealTime { finish: 2, start: 7 });
    let evidence = Evidence::Cycle { edges: vec![time, stale] };
    let anomalies = vec![Anomaly::new(AnomalyKind::RealTimeCycle, evidence)];
    let verdict = Verdict::Violated(Findings::new(anomalies, true));
    let result =
        LevelResult { level: Level::StrictSerializable, decided_by: Attempt::Versions, verdict };
    let judge =
        |skew| verify(&history(text), &result, &VerifyOptions::default().with_clock_skew(skew));
    assert_eq!([judge(0), judge(2)], [Ok(()), Ok(())]);
    assert!(judge(3).is_err() && judge(u64::MAX).is_err());
}

#[test]
fn findings_show_something_and_count_what_they_show() {
    let verdict =
        |anomalies, total| Verdict::Violated(Findings { total, ..Findings::new(anomalies, false) });
    let thin_air = Anomaly::new(AnomalyKind::ThinAirRead, read(0, None, None));
    let judge = |verdict| judge_verdict("a: r x 1", Level::Causal, verdict);
    assert_eq!(judge(verdict(vec![thin_air.clone()], 7)), Ok(()));
    assert_eq!(judge(verdict(Vec::new(), 0)), Err(Refusal::NoAnomaly));
    let miscounted = Err(Refusal::Miscounted { shown: 1, total: 0 });
    assert_eq!(judge(verdict(vec![thin_air], 0)), miscounted);
}

#[test]
fn the_reason_why_a_level_does_not_apply_is_checked_too() {
    let judge = |text, reason| judge_verdict(text, Level::Causal, Verdict::NotApplicable(reason));
    let ambiguous = |read, first: Option<u32>, second| Inapplicable::AmbiguousRead {
        read: OpId(read),
        first: first.map(OpId),
        second: OpId(second),
        total: 1,
    };
    let text = "a: w x 1\n b: w x 1\n c: r x 1\n d: r x nil";
    assert_eq!(judge(text, ambiguous(2, Some(0), 1)), Ok(()));
    assert!(judge(text, ambiguous(2, Some(0), 0)).is_err());
    assert!(judge(text, ambiguous(2, None, 1)).is_err());
    assert!(judge(text, ambiguous(3, None, 1)).is_err());
    assert!(judge(text, Inapplicable::Operation { op: OpId(0) }).is_err());
    assert!(judge(text, Inapplicable::Operation { op: OpId(99) }).is_err());
    // Lists are verified like registers.
    assert!(judge("a: append x 1", Inapplicable::Operation { op: OpId(0) }).is_err());
    let lists = "a: append x 1\n b: append x 1\n c: r x [1]";
    assert_eq!(judge(lists, ambiguous(2, Some(0), 1)), Ok(()));
    assert!(judge(lists, ambiguous(2, Some(0), 0)).is_err());
    assert_eq!(judge(text, Inapplicable::NoTimes), Ok(()));
    assert!(judge("a [1, 2]: w x 1", Inapplicable::NoTimes).is_err());
}

#[test]
fn a_level_does_not_apply_where_a_conditional_write_does_not_tell_enough() {
    let judge = |text: &str, reason| {
        let verdict = Verdict::NotApplicable(reason);
        let result = LevelResult { level: Level::Causal, decided_by: Attempt::Rule, verdict };
        verify(&history(text), &result, &VerifyOptions::default())
    };
    let open = |op| Inapplicable::OpenConditional { op: OpId(op) };
    assert_eq!(judge("a: insert x 1 ?", open(0)), Ok(()));
    assert!(judge("a: insert x 1 ok", open(0)).is_err());
    assert!(judge("a: insert x 1 ?", open(1)).is_err());
    assert!(judge("a: insert x 1 ok", Inapplicable::Operation { op: OpId(0) }).is_err());
}
