//! The verifier as a judge of start and commit points: over all ways to place them in a small
//! history, it accepts one exactly where the oracle finds the level satisfied.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_model::{
    Attempt, History, KeyId, Level, LevelResult, Outcome, Point, TxnId, Verdict, Witness,
};
use isolario_oracle::random::{Case, shrink};
use isolario_oracle::{Answer, Draft, history, satisfies, volume};
use isolario_verify::{Refusal, Verifier, VerifyOptions};

const LEVELS: [Level; 3] =
    [Level::Prefix, Level::SnapshotIsolation, Level::StrongSnapshotIsolation];

fn claim(level: Level, points: &[Point]) -> LevelResult {
    let verdict = Verdict::Satisfied(Witness::Points(points.to_vec()));
    LevelResult { level, decided_by: Attempt::Search, verdict }
}

/// Whether some way to place the points of some of the transactions is accepted.
fn some_points_are_accepted(history: &History, accepted: &dyn Fn(&[Point]) -> bool) -> bool {
    let may_commit = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
    let txns: Vec<TxnId> = history.txns().filter(may_commit).collect();
    some_extension(&mut Vec::new(), &txns, accepted)
}

fn some_extension(
    points: &mut Vec<Point>,
    txns: &[TxnId],
    accepted: &dyn Fn(&[Point]) -> bool,
) -> bool {
    let next = |txn: &TxnId| match (Point::Start(*txn), Point::Commit(*txn)) {
        (start, _) if !points.contains(&start) => Some(start),
        (_, commit) => (!points.contains(&commit)).then_some(commit),
    };
    let possible: Vec<Point> = txns.iter().filter_map(next).collect();
    let longer = possible.into_iter().any(|point| {
        points.push(point);
        let found = some_extension(points, txns, accepted);
        points.pop();
        found
    });
    longer || accepted(points)
}

fn complaint(draft: &Draft, session_order: bool, skew: u64) -> Option<String> {
    let history = draft.history().expect("small");
    let options = isolario_oracle::Options::default();
    let options = options.with_session_order(session_order).with_clock_skew(skew);
    let satisfied = |level| satisfies(&history, level, options) == Answer::Satisfied;
    let options = VerifyOptions::default().with_session_order(session_order).with_clock_skew(skew);
    let verifier = Verifier::new(&history, &options);
    let accepted = |level| {
        some_points_are_accepted(&history, &|points| verifier.verify(&claim(level, points)).is_ok())
    };
    let wrong = LEVELS.iter().find(|level| satisfied(**level) != accepted(**level))?;
    Some(format!("{wrong}: satisfied is {}, accepted is not", satisfied(*wrong)))
}

fn are_accepted_exactly_where_the_oracle_finds_an_order(cases: u64, draft: fn(Case) -> Draft) {
    for case in Case::first(cases) {
        let (draft, session_order) = (draft(case), case.seed % 4 != 0);
        let skew = case.seed % 3;
        if draft.txns.len() <= 4 && complaint(&draft, session_order, skew).is_some() {
            let small = shrink(draft, |draft| complaint(draft, session_order, skew).is_some());
            let complaint = complaint(&small, session_order, skew).unwrap_or_default();
            panic!("session order: {session_order}, skew: {skew}\n{small}\n{complaint}");
        }
    }
}

#[test]
fn points_are_accepted_exactly_where_the_oracle_finds_an_order() {
    are_accepted_exactly_where_the_oracle_finds_an_order(volume() / 10, Case::draft);
}

#[test]
fn points_of_lists_are_accepted_exactly_where_the_oracle_finds_an_order() {
    are_accepted_exactly_where_the_oracle_finds_an_order(volume() / 10, Case::list_draft);
}

/// Points from their short form: `s0 c0` and so on.
fn points(text: &str) -> Vec<Point> {
    let point = |word: &str| {
        let txn = TxnId(word[1..].parse().expect("a number"));
        if word.starts_with('s') { Point::Start(txn) } else { Point::Commit(txn) }
    };
    text.split_whitespace().map(point).collect()
}

fn judge(text: &str, level: Level, at: &str) -> Result<(), Refusal> {
    let history = history(text);
    Verifier::new(&history, &VerifyOptions::default()).verify(&claim(level, &points(at)))
}

#[test]
fn every_committed_transaction_starts_once_and_commits_once_after() {
    let text = "a: w x 1\n b: r x 1\n c aborted: w y 1\n d unknown: w z 1";
    for level in LEVELS {
        let judge = |at| judge(text, level, at);
        assert_eq!(judge("s0 c0 s1 c1"), Ok(()));
        assert_eq!(judge("s0 c0 s3 s1 c3 c1"), Ok(()));
        assert_eq!(judge("s0 c0"), Err(Refusal::Missing(TxnId(1))));
        assert_eq!(judge("s0 c0 s1"), Err(Refusal::Missing(TxnId(1))));
        assert_eq!(judge("s0 c0 s1 c1 s3"), Err(Refusal::Missing(TxnId(3))));
        assert_eq!(judge("c0 s0 s1 c1"), Err(Refusal::NotStarted(TxnId(0))));
        assert_eq!(judge("s0 c0 s1 c1 s1"), Err(Refusal::Repeated(TxnId(1))));
        assert_eq!(judge("s0 c0 s1 c1 c1"), Err(Refusal::Repeated(TxnId(1))));
        assert_eq!(judge("s0 c0 s1 c1 s2 c2"), Err(Refusal::NotCommitted(TxnId(2))));
        assert_eq!(judge("s0 c0 s1 c1 s9 c9"), Err(Refusal::NoSuchTxn(TxnId(9))));
        let init = judge("s0 c0 s1 c1 s4294967295 c4294967295");
        assert_eq!(init, Err(Refusal::NotCommitted(TxnId::INIT)));
        assert!(matches!(judge("s0 s1 c0 c1"), Err(Refusal::Unexplained { .. })));
    }
}

#[test]
fn writers_of_one_key_overlap_at_prefix_only() {
    let lost_update = "a: r x nil, w x 1\n b: r x nil, w x 2";
    assert_eq!(judge(lost_update, Level::Prefix, "s0 s1 c0 c1"), Ok(()));
    let (first, second) = (TxnId(0), TxnId(1));
    let refused = judge(lost_update, Level::SnapshotIsolation, "s0 s1 c0 c1");
    assert_eq!(refused, Err(Refusal::Conflict { key: KeyId(0), first, second }));
    let skew = "a: r x nil, r y nil, w x 1\n b: r x nil, r y nil, w y 1";
    assert_eq!(judge(skew, Level::SnapshotIsolation, "s0 s1 c1 c0"), Ok(()));
}

#[test]
fn session_order_and_real_time_put_a_commit_before_the_next_start() {
    let session = "a: w x 1\n a: r y nil";
    let (first, second) = (TxnId(0), TxnId(1));
    let refused = judge(session, Level::Prefix, "s0 s1 c0 c1");
    assert_eq!(refused, Err(Refusal::OutOfOrder { first, second, why: "session order" }));
    let stale = "a [1, 2]: w x 1\n b [3, 4]: r x nil";
    assert_eq!(judge(stale, Level::SnapshotIsolation, "s1 s0 c0 c1"), Ok(()));
    let refused = judge(stale, Level::StrongSnapshotIsolation, "s1 s0 c0 c1");
    assert_eq!(refused, Err(Refusal::OutOfOrder { first, second, why: "real time" }));
}

#[test]
fn a_transaction_sees_its_snapshot_and_its_own_writes() {
    let text = "a: w x 1\n b: r x nil, w y 1, r y 1, w y 2, r y 2\n c: r x 1, r y nil";
    for level in LEVELS {
        assert_eq!(judge(text, level, "s1 s0 c0 s2 c1 c2"), Ok(()));
        assert!(judge(text, level, "s0 c0 s1 s2 c1 c2").is_err());
        assert!(judge(text, level, "s1 s0 c0 c1 s2 c2").is_err());
    }
}

#[test]
fn lists_are_what_the_snapshot_holds_and_the_own_appends() {
    let text = "a: append x 1\n b: r x [1], append x 2, r x [1 2]\n c: r x [1], append x 3, r x [1 3]\n \
                d: r x [1 2 3]";
    assert_eq!(judge(text, Level::Prefix, "s0 c0 s1 s2 c1 c2 s3 c3"), Ok(()));
    assert!(judge(text, Level::Prefix, "s0 c0 s1 s2 c2 c1 s3 c3").is_err());
    assert!(judge(text, Level::Prefix, "s0 c0 s1 c1 s2 c2 s3 c3").is_err());
    assert!(judge(text, Level::SnapshotIsolation, "s0 c0 s1 s2 c1 c2 s3 c3").is_err());
}
