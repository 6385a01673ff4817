//! Levels of files that are read piece by piece are what a check of the loaded history says, with evidence
//! that verifies, however little is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use isolario::check::{Follower, Look, Options, Proven, check};
use isolario::follow::{FollowError, Following, Input, Settings, Step};
use isolario::formats::{LiveRecorder, Target, find};
use isolario::model::{
    Batch, History, Level, Meta, Op, OpInput, Outcome, TxnEnd, TxnId, TxnStart, ValueRef,
    VerdictKind,
};
use isolario::sim::{Config, Kind, Plant, Workload, generate, templates};
use isolario::verify::{self, verify};
use isolario_oracle::random::Case;
use isolario_oracle::{Draft, volume};

/// Writes a history in a format, its transactions in an order.
fn write(history: &History, order: &[TxnId], format: &str, path: &Path) {
    let format = find(format).unwrap();
    let mut writer = format.writer(Target::Path(path.to_owned())).unwrap();
    writer.meta(history.meta()).unwrap();
    order.iter().for_each(|txn| history.replay_txn(*txn, &mut *writer).unwrap());
    writer.finish().unwrap();
}

fn following<'i>(path: &'i Path, format: &str, level: Level, tail: usize) -> Following<'i> {
    let input = Input { path, format: find(format).unwrap() };
    let settings = Settings::default().with_tail(tail);
    Following::new(input, level, &Options::default(), settings).unwrap()
}

/// Compares what came of a level with a check of the loaded history.
fn compare(level: Level, decided: Option<&Proven>, path: &Path) -> bool {
    let whole = isolario::formats::read(path).unwrap().history;
    let expected = check(&whole, &[level], &Options::default()).remove(0);
    let Some(Proven { part, result, .. }) = decided else {
        assert_eq!(expected.verdict.kind(), VerdictKind::Satisfied, "{level}: {expected:?}");
        return false;
    };
    assert_eq!(result.verdict.kind(), expected.verdict.kind(), "{level}: {result:?}");
    verify(part, result, &verify::Options::default()).unwrap();
    for txn in part.txns() {
        let label = part.txn_label(txn);
        let there = whole.txns().find(|other| whole.txn_label(*other) == label).unwrap();
        assert_eq!(part.txn_end(txn), whole.txn_end(there), "{label}");
    }
    true
}

fn is_fit(history: &History) -> bool {
    let mut follower = Follower::new(Level::Causal, Options::default(), 1).unwrap();
    history.replay(&mut follower).unwrap();
    !matches!(follower.look().unwrap(), Look::Unfit(_))
}

#[test]
fn small_files_are_decided_as_they_are_when_they_are_loaded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut satisfied, mut violated, mut again) = (0, 0, 0);
    for case in Case::first(volume().min(250)) {
        let draft: Draft =
            if case.seed % 2 == 0 { case.draft() } else { case.read_modify_write_draft() };
        let history = draft.history().unwrap();
        if !is_fit(&history) {
            continue;
        }
        let format = if case.seed % 3 == 0 { "jsonl" } else { "isolario" };
        write(&history, &history.txns().collect::<Vec<_>>(), format, file.path());
        for at in [0, 4] {
            let level = Follower::levels()[(case.seed + at) as usize % 9];
            let mut following = following(file.path(), format, level, 1 + (case.seed % 2) as usize);
            let decided = following.to_end().unwrap();
            match compare(level, decided.as_deref(), file.path()) {
                true => violated += 1,
                false => satisfied += 1,
            }
            again += following.follower().restarts();
        }
    }
    assert!(
        satisfied > 50 && violated > 50,
        "{satisfied} satisfied, {violated} not, {again} again"
    );
}

/// A history of the simulated store, in the order in which transactions finished.
fn simulated(kind: Kind, txns: u64, seed: u64, plant: Option<Plant>) -> (History, Vec<TxnId>) {
    let config = Config {
        level: Level::StrictSerializable,
        workload: Workload { kind, ops: 4, keys: 20, ..Workload::default() },
        txns,
        sessions: 6,
        seed,
        anomalies: plant.into_iter().collect(),
        abort_ratio: 0.05,
        unknown_ratio: 0.02,
        ..Config::default()
    };
    let mut batch = Batch::new();
    generate(&config, &mut batch).unwrap();
    let history = batch.build().unwrap();
    let mut order: Vec<TxnId> = history.txns().collect();
    order.sort_by_key(|txn| history.finish(*txn).or(history.start(*txn)));
    (history, order)
}

#[test]
fn planted_anomalies_are_found_across_cuts() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut found = 0;
    for (seed, template) in (0..).zip(templates()) {
        let kind = if seed % 2 == 0 { Kind::Mini } else { Kind::General };
        let plant = Plant { kind: template.kind, at: 0.6 };
        let (history, order) = simulated(kind, 300, seed, Some(plant));
        if !is_fit(&history) {
            continue;
        }
        write(&history, &order, "isolario", file.path());
        for level in [Level::ReadCommitted, Level::Causal, Level::SnapshotIsolation] {
            let mut following = following(file.path(), "isolario", level, 25);
            let decided = following.to_end().unwrap();
            found += usize::from(compare(level, decided.as_deref(), file.path()));
        }
    }
    assert!(found > 15, "{found}");
}

#[test]
fn a_recording_is_followed_while_it_goes_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let recorder = LiveRecorder::create(file.path(), &Meta::default()).unwrap();
    let mut following = following(file.path(), "isolario", Level::Serializable, 3);
    let (x, y) = (ValueRef::Text("x"), ValueRef::Text("y"));
    let start = |session: i64| TxnStart { session: session.into(), id: None, line: None };
    let committed = || TxnEnd::new(Outcome::Committed);
    let (mut writer, mut reader) = (recorder.session(), recorder.session());
    let write: OpInput<'_> = Op::Write { key: x, value: 1i64.into() };
    // What it wrote is seen by many before the file has its end.
    writer.begin(&start(0), None, &[write]).unwrap();
    writer.op(&write).unwrap();
    writer.end(&committed()).unwrap();
    for _ in 0..20 {
        reader.begin(&start(1), None, &[]).unwrap();
        reader.op(&Op::Read { key: x, value: Some(1i64.into()) }).unwrap();
        reader.end(&committed()).unwrap();
        let step = following.step().unwrap();
        assert!(matches!(step, Step::Holds { .. } | Step::Nothing), "{step:?}");
        let step = following.look_back().unwrap();
        assert!(matches!(step, Step::Holds { .. }), "{step:?}");
    }
    writer.flush().unwrap();
    assert!(matches!(following.step().unwrap(), Step::Holds { waiting: 0 }));
    // Somebody reads what nobody writes; that is certain when the recording is over.
    reader.begin(&start(1), None, &[]).unwrap();
    reader.op(&Op::Read { key: y, value: Some(7i64.into()) }).unwrap();
    reader.end(&committed()).unwrap();
    reader.flush().unwrap();
    assert!(matches!(following.step().unwrap(), Step::Holds { waiting: 1 }));
    assert!(!following.is_complete());
    drop((writer, reader));
    recorder.finish().unwrap();
    assert!(matches!(following.step().unwrap(), Step::Nothing));
    assert!(following.is_complete());
    let decided = following.to_end().unwrap();
    assert!(compare(Level::Serializable, decided.as_deref(), file.path()));
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let level = Level::ReadCommitted;
    let input = |format| Input { path: file.path(), format: find(format).unwrap() };
    let new = |format, level| {
        Following::new(input(format), level, &Options::default(), Settings::default()).map(|_| ())
    };
    assert!(matches!(new("plume", level), Err(FollowError::Format { .. })));
    assert!(matches!(new("isolario", level), Err(FollowError::Read(_))));
    assert!(matches!(new("jsonl", Level::Linearizable), Err(FollowError::Level(_))));
    std::fs::write(file.path(), "{\"session\": 1, \"ops\": [[\"append\", \"x\", 1]]}\n").unwrap();
    let unfit = following(file.path(), "jsonl", level, 1).to_end();
    assert!(matches!(unfit, Err(FollowError::Unfit(_))));
    std::fs::write(file.path(), "{\"session\": 1, \"ops\": 3}\n").unwrap();
    let bad = following(file.path(), "jsonl", level, 1).to_end();
    assert!(matches!(bad, Err(FollowError::Read(_))));
}
