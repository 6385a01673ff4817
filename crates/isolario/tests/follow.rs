//! Levels of files that are read piece by piece are what a check of the loaded history says, with evidence
//! that verifies, however little is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Cursor;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use isolario::check::{CheckOptions, FollowStatus, Follower, HistoryQuery, check};
use isolario::follow::proof::{Means, Told, Verified};
use isolario::follow::spill::{Spilled, decide};
use isolario::follow::{Decided, FollowError, Following, Input, Order, Settings, Step, proof};
use isolario::formats::{LiveRecorder, OutputTarget, find};
use isolario::model::{
    AnomalyKind, Batch, History, Level, LevelResult, Limit, Meta, Op, OpInput, Outcome, TxnEnd,
    TxnId, TxnSink, TxnStart, ValueRef, Verdict, VerdictKind,
};
use isolario::report::{
    Github, Human, Json, Junit, Renderer, Report, Style, bug_report, dot, html, svg,
};
use isolario::sim::{Config, Kind, Plant, Workload, generate, templates};
use isolario::verify::proof::VerifiedProof;
use isolario::verify::{self, verify};
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, Draft, satisfies, volume};

/// A few lines: blocks are larger, so that it is files of lines that are looked at in many steps.
const PIECE: usize = 400;

/// Writes a history in a format, its transactions in an order.
fn write(history: &History, order: &[TxnId], format: &str, path: &Path) {
    let format = find(format).unwrap();
    let mut writer = format.writer(OutputTarget::Path(path.to_owned())).unwrap();
    writer.meta(history.meta()).unwrap();
    order.iter().for_each(|txn| history.replay_txn(*txn, &mut *writer).unwrap());
    writer.finish().unwrap();
}

fn following<'i>(path: &'i Path, format: &str, level: Level, tail: usize) -> Following<'i> {
    let input = Input::new(path, find(format).unwrap());
    let settings = Settings::default().with_tail(tail).with_pieces_of(PIECE);
    Following::new(input, level, &CheckOptions::default(), settings).unwrap()
}

/// Compares what came of a level with a check of the loaded history.
fn compare(level: Level, decided: Option<&Decided>, path: &Path) -> bool {
    let whole = isolario::formats::read(path).unwrap().history;
    let expected = check(&whole, &[level], &CheckOptions::default()).remove(0);
    let Some(Decided { part, result, .. }) = decided else {
        assert_eq!(expected.verdict.kind(), VerdictKind::Satisfied, "{level}: {expected:?}");
        return false;
    };
    assert_eq!(result.verdict.kind(), expected.verdict.kind(), "{level}: {result:?}");
    verify(part, result, &verify::VerifyOptions::default()).unwrap();
    is_part(part, &whole);
    true
}

/// What is in a part is in the whole, under the same names.
fn is_part(part: &History, whole: &History) {
    for txn in part.txns() {
        let label = part.txn_label(txn);
        let there = whole.txns().find(|other| whole.txn_label(*other) == label).unwrap();
        assert_eq!(part.txn_end(txn), whole.txn_end(there), "{label}");
    }
}

fn is_fit(history: &History) -> bool {
    let mut follower = Follower::new(Level::Causal, CheckOptions::default(), 1).unwrap();
    history.replay(&mut follower).unwrap();
    !matches!(follower.check().unwrap(), FollowStatus::Unfit(_))
}

#[test]
fn small_files_are_decided_as_they_are_when_they_are_loaded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut satisfied, mut violated, mut again) = (0, 0, 0);
    for case in Case::first(volume().min(500)) {
        let draft: Draft =
            if case.seed % 2 == 0 { case.draft() } else { case.read_modify_write_draft() };
        let history = draft.history().unwrap();
        if !is_fit(&history) {
            continue;
        }
        let format = if case.seed % 3 == 0 { "isolario" } else { "jsonl" };
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
        satisfied > 50 && violated > 50 && again > 5,
        "{satisfied} satisfied, {violated} not, {again} again"
    );
}

/// A history of the simulated store, in the order in which transactions finished.
fn simulated(kind: Kind, txns: u64, seed: u64, plants: Vec<Plant>) -> (History, Vec<TxnId>) {
    let config = Config {
        level: Level::StrictSerializable,
        workload: Workload { kind, ops: 4, keys: 20, ..Workload::default() },
        txns,
        sessions: 6,
        seed,
        anomalies: plants,
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
        let (history, order) = simulated(kind, 300, seed, vec![plant]);
        if !is_fit(&history) {
            continue;
        }
        write(&history, &order, "jsonl", file.path());
        for level in [Level::ReadCommitted, Level::Causal, Level::SnapshotIsolation] {
            let mut following = following(file.path(), "jsonl", level, 25);
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
    let input = |format| Input::new(file.path(), find(format).unwrap());
    let new = |format, level| {
        Following::new(input(format), level, &CheckOptions::default(), Settings::default())
            .map(|_| ())
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

const LEVELS: [Level; 5] = [
    Level::ReadCommitted,
    Level::ReadAtomic,
    Level::Causal,
    Level::SnapshotIsolation,
    Level::StrictSerializable,
];

/// Decides a file in bounded memory, and compares with a check of the loaded history.
fn spill(path: &Path, format: &str, tail: usize) -> Spilled {
    let (options, directory) = (CheckOptions::default(), tempfile::tempdir().unwrap());
    let input = Input::new(path, find(format).unwrap());
    let settings = Settings::default().with_tail(tail).with_pieces_of(PIECE).with_orders(true);
    let mut spilled = decide(input, &LEVELS, &options, settings, directory.path()).unwrap();
    let whole = isolario::formats::read(path).unwrap().history;
    prove(input, &spilled, &whole, &verify::VerifyOptions::default(), directory.path());
    prove_by_part(input, &spilled.results, &whole, directory.path());
    spilled.orders.clear();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it is removed");
    for (result, expected) in spilled.results.iter().zip(check(&whole, &LEVELS, &options)) {
        assert_eq!(result.level, expected.level);
        let (kind, expected_kind) = (result.verdict.kind(), expected.verdict.kind());
        assert_eq!(kind, expected_kind, "{}: {result:?}, {expected:?}", result.level);
        if result.verdict.is_violated() {
            verify(&spilled.part, result, &verify::VerifyOptions::default()).unwrap();
        }
    }
    is_part(&spilled.part, &whole);
    assert_eq!(spilled.figures.outcomes.iter().sum::<u64>(), whole.txn_count() as u64);
    assert_eq!(spilled.figures.operations, whole.op_count() as u64);
    assert_eq!(spilled.figures.keys, whole.key_count() as u64);
    assert_eq!(spilled.figures.sessions, whole.session_count() as u64);
    spilled
}

/// The proof of what was decided piece by piece is one of the whole history.
fn prove(
    input: Input<'_>,
    spilled: &Spilled,
    whole: &History,
    options: &verify::VerifyOptions,
    directory: &Path,
) {
    let is_open = |(result, order): (&LevelResult, &Option<Rc<Order>>)| {
        result.verdict.is_satisfied() && order.is_none()
    };
    let mut file = Vec::new();
    let written = proof::write(input, spilled, options, "whole", &mut file);
    if spilled.results.iter().zip(&spilled.orders).any(is_open) {
        assert!(written.is_err(), "it takes more than an order");
        return;
    }
    written.unwrap();
    let verified = verify::proof::verify_proof(whole, &file).unwrap();
    assert_eq!(verified.proof.results.len(), spilled.results.len());
    assert!(verified.is_right(), "{:?}", verified.refusals);
    for memory in [ENOUGH, LITTLE] {
        match by_pieces(input, &file, memory, directory) {
            Verified::Told(told) => is_as_right(&told, &verified, whole),
            Verified::TooLarge(_) => assert_eq!(memory, LITTLE),
            // Why a level does not apply is asked of the whole history.
            Verified::TakesAll => {
                let is_open = |verdict: &Verdict| {
                    matches!(verdict, Verdict::NotApplicable(_) | Verdict::Undecided(_))
                };
                assert!(spilled.results.iter().any(|result| is_open(&result.verdict)));
            }
            other => panic!("{other:?}"),
        }
    }
    // It is about this history, and no other one.
    let other = Batch::new().build().unwrap();
    assert!(verify::proof::verify_proof(&other, &file).unwrap_err().is_wrong_proof());
}

/// Memory for any of these histories, and for some hundred operations.
const ENOUGH: u64 = 1 << 30;
const LITTLE: u64 = 1 << 14;

fn by_pieces(input: Input<'_>, file: &[u8], memory: u64, directory: &Path) -> Verified {
    let means = Means { memory, directory };
    proof::verify(input, &mut Cursor::new(file), means).unwrap()
}

/// What came of a proof piece by piece is what comes of it by the whole history.
fn is_as_right(told: &Told, by_all: &VerifiedProof, whole: &History) {
    assert_eq!(told.txns, whole.txn_count() as u64);
    let has_unknown = whole.txns().any(|txn| whole.outcome(txn) == Outcome::Unknown);
    let claims = by_all.proof.results.iter().zip(&told.orders);
    for ((result, order), refusal) in claims.zip(&told.verified.refusals) {
        // One of unknown outcome may be known to have committed by others of unknown outcome.
        let may_be_open = result.verdict.is_violated() && has_unknown;
        assert!(refusal.is_none() || may_be_open, "{}: {refusal:?}", result.level);
        assert_eq!(order.is_some(), result.verdict.is_satisfied());
    }
}

fn is_violated(result: &LevelResult) -> bool {
    result.verdict.is_violated()
}

/// A proof that levels are violated is re-checked by a part of the file, and a forged one is refused.
fn prove_by_part(input: Input<'_>, results: &[LevelResult], whole: &History, directory: &Path) {
    let levels = |is_wanted: fn(&LevelResult) -> bool| -> Vec<Level> {
        results.iter().filter(|result| is_wanted(result)).map(|result| result.level).collect()
    };
    let (violated, satisfied) = (levels(is_violated), levels(|one| one.verdict.is_satisfied()));
    if violated.is_empty() {
        return;
    }
    let settings = Settings::default().with_tail(20).with_pieces_of(PIECE);
    let spilled = decide(input, &violated, &CheckOptions::default(), settings, directory).unwrap();
    let mut file = Vec::new();
    let options = verify::VerifyOptions::default();
    proof::write(input, &spilled, &options, "whole", &mut file).unwrap();
    let told = by_pieces(input, &file, ENOUGH, directory);
    let Verified::Told(told) = told else { panic!("{told:?}") };
    let verified = told.verified;
    assert_eq!(verified.proof.results.len(), violated.len());
    // One of unknown outcome may be known to have committed by others of unknown outcome.
    let has_unknown = whole.txns().any(|txn| whole.outcome(txn) == Outcome::Unknown);
    let by_whole = || has_unknown && verify::proof::verify_proof(whole, &file).unwrap().is_right();
    assert!(verified.is_right() || by_whole(), "{:?}", verified.refusals);
    for level in satisfied {
        let text = String::from_utf8(file.clone()).unwrap();
        let name = |level: &Level| format!("\"{}\"", level.name());
        let forged = text.replace(&name(&violated[0]), &name(&level));
        let is_refused = match by_pieces(input, forged.as_bytes(), ENOUGH, directory) {
            Verified::Told(told) => told.verified.refusals[0].is_some(),
            other => matches!(other, Verified::NoProof(_)),
        };
        assert!(is_refused, "{level}: {forged}");
    }
}

#[test]
fn random_histories_are_spilled_as_they_are_loaded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut proven, mut violated) = (0, 0);
    for case in Case::first(volume().min(200)) {
        let draft: Draft =
            if case.seed % 2 == 0 { case.draft() } else { case.read_modify_write_draft() };
        let history = draft.history().unwrap();
        if !is_fit(&history) {
            continue;
        }
        write(&history, &history.txns().collect::<Vec<_>>(), "jsonl", file.path());
        let spilled = spill(file.path(), "jsonl", 1 + (case.seed % 3) as usize);
        violated += usize::from(spilled.part.txn_count() > 0);
        proven += spilled.results.iter().filter(|result| result.verdict.is_satisfied()).count();
    }
    assert!(proven > 50 && violated > 20, "{proven} satisfied, {violated} violated");
}

#[test]
fn what_parts_prove_is_told_of_a_larger_part() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut told = 0;
    for (seed, template) in (0..).zip(templates()) {
        // Strong levels end with the first, weak ones with the second.
        let plant = |kind, at| Plant { kind, at };
        let plants = [plant(AnomalyKind::LostUpdate, 0.2), plant(template.kind, 0.8)];
        let (history, order) = simulated(Kind::General, 200, seed, plants.to_vec());
        if !is_fit(&history) {
            continue;
        }
        write(&history, &order, "jsonl", file.path());
        let decide = |level: &Level| following(file.path(), "jsonl", *level, 20).to_end().unwrap();
        let decided: Vec<Box<Decided>> = LEVELS.iter().filter_map(decide).collect();
        let mut joint = HistoryQuery::about(decided.iter().map(|one| (&one.part, &one.places)));
        let mut all = Batch::new();
        all.meta(history.meta()).unwrap();
        order.iter().for_each(|txn| history.replay_txn(*txn, &mut all).unwrap());
        joint.add(vec![all]).unwrap();
        let (larger, places) = joint.into_part().unwrap();
        is_part(&larger, &isolario::formats::read(file.path()).unwrap().history);
        for Decided { part, places: own, result, .. } in decided.iter().map(Box::as_ref) {
            let larger = (&larger, &places);
            let result = own.result_in_larger(part, result, larger).unwrap();
            verify(larger.0, &result, &verify::VerifyOptions::default()).unwrap();
            told += usize::from(part.txn_count() < larger.0.txn_count());
        }
    }
    assert!(told > 5, "{told}");
}

#[test]
fn spilled_histories_are_decided_as_loaded_ones_in_whatever_order_they_are() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut sorted, mut violated) = (0, 0);
    for (seed, template) in (0..).zip(templates()) {
        let kind = if seed % 2 == 0 { Kind::Mini } else { Kind::General };
        let plant = (seed % 4 != 3).then_some(Plant { kind: template.kind, at: 0.5 });
        let (history, by_finish) = simulated(kind, 250, seed, plant.into_iter().collect());
        if !is_fit(&history) {
            continue;
        }
        let by_session: Vec<TxnId> = history.txns().collect();
        let (order, format) = match seed % 3 {
            0 => (&by_finish, "jsonl"),
            1 => (&by_session, "isolario"),
            _ => (&by_session, "jsonl"),
        };
        write(&history, order, format, file.path());
        let spilled = spill(file.path(), format, 20);
        sorted += usize::from(spilled.bytes > 0);
        violated += usize::from(spilled.part.txn_count() > 0);
    }
    assert!(sorted > 5 && violated > 5, "{sorted} sorted, {violated} violated");
}

#[test]
fn what_does_not_fit_into_memory_is_undecided() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (history, order) = simulated(Kind::Mini, 300, 1, Vec::new());
    write(&history, &order, "isolario", file.path());
    let directory = tempfile::tempdir().unwrap();
    let input = Input::new(file.path(), find("isolario").unwrap());
    let decide = |memory| {
        let settings = Settings::default().with_tail(20).with_memory(Some(memory));
        let options = CheckOptions::default();
        decide(input, &[Level::Causal], &options, settings, directory.path()).unwrap().results
    };
    assert!(decide(1 << 20)[0].verdict.is_satisfied());
    let Verdict::Undecided(undecided) = &decide(9000)[0].verdict else { panic!("decided") };
    assert_eq!(undecided.limit, Limit::Memory(9000));
}

#[test]
fn a_file_that_is_read_again_is_not_out_of_order_for_that() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // Blind writes: which of two is the last one is a guess until somebody reads.
    let (history, order) = simulated(Kind::General, 600, 3, Vec::new());
    write(&history, &order, "jsonl", file.path());
    let spilled = spill(file.path(), "jsonl", 5);
    assert!(spilled.returns > 0);
    assert_eq!(spilled.bytes, 0);
}

#[test]
fn doubts_are_cleared_up_by_going_back_a_little() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut returns, mut restarts) = (0, 0);
    for seed in 0..4 {
        let (history, order) = simulated(Kind::General, 2000, seed, Vec::new());
        write(&history, &order, "jsonl", file.path());
        // Levels, orders and figures are those of the loaded history, and proofs verify.
        let spilled = spill(file.path(), "jsonl", 10);
        returns += spilled.returns;
        restarts += spilled.restarts;
    }
    assert!(returns > 10 && restarts * 4 < returns, "{returns} returns, {restarts} restarts");
}

#[test]
fn what_is_sorted_in_several_parts_is_the_same_history() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // More than a block, session by session.
    let (history, _) = simulated(Kind::Mini, 70_000, 1, Vec::new());
    write(&history, &history.txns().collect::<Vec<_>>(), "isolario", file.path());
    let directory = tempfile::tempdir().unwrap();
    let input = Input::new(file.path(), find("isolario").unwrap());
    let settings = Settings::default().with_memory(Some(30_000_000));
    let levels = [Level::ReadCommitted, Level::StrictSerializable];
    let done =
        decide(input, &levels, &CheckOptions::default(), settings, directory.path()).unwrap();
    assert!(done.bytes > 0);
    assert!(done.results.iter().all(|result| result.verdict.is_satisfied()), "{done:?}");
    assert_eq!(done.figures.operations, history.op_count() as u64);
}

#[test]
fn what_a_stronger_level_shows_of_weaker_ones_is_not_shown_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (history, order) = simulated(Kind::Mini, 300, 1, Vec::new());
    write(&history, &order, "jsonl", file.path());
    let directory = tempfile::tempdir().unwrap();
    let input = Input::new(file.path(), find("jsonl").unwrap());
    let settings = Settings::default().with_tail(20).with_orders(true);
    let levels = [Level::SnapshotIsolation, Level::ReadCommitted, Level::Causal];
    let done =
        decide(input, &levels, &CheckOptions::default(), settings, directory.path()).unwrap();
    let told: Vec<Level> = done.results.iter().map(|result| result.level).collect();
    assert_eq!(told, levels);
    assert!(done.results.iter().all(|result| result.verdict.is_satisfied()));
    let [snapshot, committed, causal] = &done.orders[..] else { panic!("three orders") };
    assert!(Rc::ptr_eq(committed.as_ref().unwrap(), causal.as_ref().unwrap()));
    assert!(snapshot.as_ref().unwrap().in_points());
    let mut proof = Vec::new();
    proof::write(input, &done, &verify::VerifyOptions::default(), "whole", &mut proof).unwrap();
    let whole = isolario::formats::read(file.path()).unwrap().history;
    assert!(verify::proof::verify_proof(&whole, &proof).unwrap().is_right());
}

#[test]
fn where_nothing_can_be_written_nothing_is_sorted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (history, _) = simulated(Kind::Mini, 300, 1, Vec::new());
    write(&history, &history.txns().collect::<Vec<_>>(), "isolario", file.path());
    let input = Input::new(file.path(), find("isolario").unwrap());
    let settings = Settings::default().with_tail(20);
    let nowhere = file.path().join("nowhere");
    let done = decide(input, &[Level::Causal], &CheckOptions::default(), settings, &nowhere);
    assert!(matches!(done, Err(FollowError::Spill { .. })));
}

/// A history, and a way to spill it that keeps next to nothing in memory.
#[derive(Debug)]
struct Spilling {
    history: History,
    order: Vec<TxnId>,
    format: &'static str,
    levels: Vec<Level>,
    options: CheckOptions,
    settings: Settings,
    /// Whether the oracle takes it.
    is_small: bool,
    /// Whether all reports are rendered.
    renders: bool,
}

impl Spilling {
    /// The spilling of a seed; none if its history is of a kind that is not spilled.
    fn of(case: Case) -> Option<Spilling> {
        let mut rng = Rng::new(!case.seed);
        let is_small = rng.below(20) > 0;
        let history = if is_small {
            let mut draft = match rng.below(3) {
                0 => case.draft(),
                1 => case.read_modify_write_draft(),
                _ => case.ambiguous_draft(),
            };
            if rng.percent(4) {
                // Orders without a transaction.
                let outcome = [Outcome::Aborted, Outcome::Unknown][rng.below(2)];
                draft.txns.iter_mut().for_each(|txn| txn.outcome = outcome);
            }
            let draft = if rng.percent(10) { draft.at_both_ends() } else { draft };
            draft.history().unwrap()
        } else {
            let kind = templates()[rng.below(templates().len())].kind;
            let plant = rng.percent(50).then_some(Plant { kind, at: 0.5 });
            let kind = if rng.percent(30) { Kind::Mini } else { Kind::General };
            let txns = 20 + rng.below(60) as u64;
            simulated(kind, txns, case.seed, plant.into_iter().collect()).0
        };
        let mut levels = Follower::levels().to_vec();
        levels.retain(|_| rng.percent(45));
        if levels.is_empty() || !is_fit(&history) {
            return None;
        }
        let skews = [0, 0, 0, 1, 4, case.extreme_skew()];
        let mut options = CheckOptions::default()
            .with_session_order(!rng.percent(25))
            .with_clock_skew(skews[rng.below(skews.len())]);
        options.timeout = rng.percent(15).then_some(Duration::from_nanos(1));
        let settings = Settings::default()
            .with_tail(1 + rng.below(3))
            .with_pieces_of(40 + rng.below(400))
            .with_memory(rng.percent(25).then_some(600 * (1 + rng.below(12) as u64)))
            .with_orders(rng.percent(80));
        let format = ["jsonl", "isolario"][rng.below(2)];
        let order = shuffled(&history, &mut rng);
        let renders = !is_small || rng.percent(25);
        Some(Spilling { history, order, format, levels, options, settings, is_small, renders })
    }

    fn is_limited(&self) -> bool {
        self.options.timeout.is_some() || self.settings.memory.is_some()
    }
}

/// The transactions of a history in any order that keeps that of each session.
fn shuffled(history: &History, rng: &mut Rng) -> Vec<TxnId> {
    let mut sessions: Vec<_> = history.sessions().map(|one| history.session_txns(one)).collect();
    let mut order = Vec::new();
    while !sessions.is_empty() {
        let at = rng.below(sessions.len());
        match sessions[at].next() {
            Some(txn) => order.push(txn),
            None => drop(sessions.swap_remove(at)),
        }
    }
    order
}

/// Names the case in which a test panics.
struct Naming(Case);

impl Drop for Naming {
    #[allow(clippy::print_stderr, reason = "added to the message of the panic")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}: {:?}", self.0, Spilling::of(self.0));
        }
    }
}

/// Renders a report in every form.
fn render(spilled: &Spilled, levels: &[Level]) {
    let report = Report::new("h", &spilled.part, &spilled.results).with_named(levels);
    let mut out = Vec::new();
    let renderers: [&mut dyn Renderer; 4] =
        [&mut Human::new(Style::Plain), &mut Json, &mut Junit, &mut Github];
    for renderer in renderers {
        renderer.report(&report, &mut out).unwrap();
    }
    html::write(&report, None, &mut out).unwrap();
    dot::write(&report, &mut out).unwrap();
    svg::write(&report, &mut out).unwrap();
    bug_report::write(&report, None, &mut out).unwrap();
    assert!(!out.is_empty());
}

/// How many levels were compared, and what came of them.
#[derive(Debug, Default)]
struct Compared {
    levels: u64,
    by_oracle: u64,
    violated: u64,
    undecided: u64,
    empty: u64,
    proofs: u64,
    rendered: u64,
}

#[test]
fn whatever_is_spilled_in_next_to_no_memory_is_decided_proved_and_rendered() {
    let directory = tempfile::tempdir().unwrap();
    let mut compared = Compared::default();
    for case in Case::first(volume() / 40) {
        let naming = Naming(case);
        let Some(spilling) = Spilling::of(case) else { continue };
        spill_and_compare(&spilling, directory.path(), &mut compared);
        drop(naming);
    }
    println!("{compared:?}");
    let Compared { levels, by_oracle, violated, undecided, empty, proofs, rendered } = compared;
    let cases = volume() / 40;
    assert!(levels > cases && by_oracle > cases / 2 && violated > cases / 4, "{levels} levels");
    assert!(undecided > cases / 20 && empty > cases / 200 && proofs > cases / 4, "{undecided}");
    assert!(rendered > cases / 20, "{rendered}");
}

/// Cases in which the order of a level has no sources for reads of a value that two transactions wrote, one of
/// them long settled.
#[test]
fn orders_of_spilled_histories_with_equal_versions_are_verified() {
    let directory = tempfile::tempdir().unwrap();
    let mut compared = Compared::default();
    for seed in [6980, 54555, 57340, 60687] {
        let spilling = Spilling::of(Case { seed }).unwrap();
        spill_and_compare(&spilling, directory.path(), &mut compared);
    }
    assert_eq!(compared.proofs, 4);
}

fn spill_and_compare(spilling: &Spilling, directory: &Path, compared: &mut Compared) {
    let Spilling { history, order, format, levels, options, settings, is_small, renders } =
        spilling;
    let path = directory.join("history");
    let _ = std::fs::remove_file(&path);
    write(history, order, format, &path);
    let input = Input::new(&path, find(format).unwrap());
    let spilled = decide(input, levels, options, *settings, directory).unwrap();
    let whole = isolario::formats::read(&path).unwrap().history;
    let mut unlimited = options.clone();
    unlimited.timeout = None;
    let expected = check(&whole, levels, &unlimited);
    let by_verifier = verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    let by_oracle = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    for (result, expected) in spilled.results.iter().zip(&expected) {
        compared.levels += 1;
        let (level, kind) = (result.level, result.verdict.kind());
        if kind == VerdictKind::Undecided {
            assert!(spilling.is_limited(), "{result:?}");
            compared.undecided += 1;
            continue;
        }
        assert_eq!(kind, expected.verdict.kind(), "{level}: {result:?}, {expected:?}");
        let answer = match is_small {
            true => satisfies(&whole, level, by_oracle),
            false => Answer::Unsupported,
        };
        match (kind, answer) {
            (VerdictKind::Satisfied, answer) => assert_ne!(answer, Answer::Violated, "{level}"),
            (VerdictKind::Violated, answer) => assert_ne!(answer, Answer::Satisfied, "{level}"),
            _ => {}
        }
        compared.by_oracle += u64::from(answer != Answer::Unsupported);
        if kind == VerdictKind::Violated {
            verify(&spilled.part, result, &by_verifier).unwrap();
            compared.violated += 1;
        }
    }
    is_part(&spilled.part, &whole);
    if *renders {
        render(&spilled, levels);
        compared.rendered += 1;
    }
    if settings.orders {
        prove(input, &spilled, &whole, &by_verifier, directory);
        compared.proofs += 1;
        compared.empty += u64::from(spilled.figures.outcomes[0] == 0);
    }
}

/// Decides levels of lines with one transaction kept, compares with a check of all of them, and verifies
/// the proof.
fn spilled_line_by_line(lines: &str, levels: &[Level]) -> Spilled {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    std::fs::write(&path, format!("{{\"isolario\":2,\"initial\":null}}\n{lines}")).unwrap();
    let input = Input::new(&path, find("jsonl").unwrap());
    let settings = Settings::default().with_tail(1).with_pieces_of(40).with_orders(true);
    let options = CheckOptions::default();
    let spilled = decide(input, levels, &options, settings, directory.path()).unwrap();
    let whole = isolario::formats::read(&path).unwrap().history;
    assert_eq!(kinds(&spilled.results), kinds(&check(&whole, levels, &options)));
    prove(input, &spilled, &whole, &verify::VerifyOptions::default(), directory.path());
    spilled
}

fn kinds(results: &[LevelResult]) -> Vec<VerdictKind> {
    results.iter().map(|result| result.verdict.kind()).collect()
}

fn decided_line_by_line(lines: &str, levels: &[Level]) -> Vec<VerdictKind> {
    kinds(&spilled_line_by_line(lines, levels).results)
}

/// A read saw what an aborted transaction had written, until another one turns out to have written it, too.
#[test]
fn a_violation_is_none_before_all_writers_of_what_was_read_are_there() {
    let lines = "{\"session\":1,\"outcome\":\"aborted\",\"ops\":[[\"w\",\"y\",4]]}\n\
        {\"session\":1,\"ops\":[[\"r\",\"y\",4]]}\n\
        {\"session\":0,\"ops\":[[\"w\",\"x\",1]]}\n\
        {\"session\":0,\"ops\":[[\"w\",\"x\",2]]}\n\
        {\"session\":0,\"ops\":[[\"w\",\"y\",4]]}\n";
    for level in Follower::levels().iter().filter(|level| !level.shape().real_time) {
        assert_eq!(decided_line_by_line(lines, &[*level]), [VerdictKind::Satisfied], "{level}");
    }
}

#[test]
fn times_may_come_late_or_end_early() {
    let levels = [Level::StrongSnapshotIsolation, Level::StrictSerializable];
    let line = |n: u32, times: bool| {
        let times = if times {
            format!("\"start\":{},\"finish\":{},", 10 * n, 10 * n + 5)
        } else {
            String::new()
        };
        let before = if n == 0 { "null".to_owned() } else { n.to_string() };
        let ops = format!("[\"r\",\"x\",{before}],[\"w\",\"x\",{}]", n + 1);
        format!("{{\"session\":{n},{times}\"ops\":[{ops}]}}\n")
    };
    let lines =
        |has_times: fn(u32) -> bool| -> String { (0..12).map(|n| line(n, has_times(n))).collect() };
    let satisfied = [VerdictKind::Satisfied; 2];
    assert_eq!(decided_line_by_line(&lines(|n| n >= 8), &levels), satisfied);
    assert_eq!(decided_line_by_line(&lines(|n| n < 4), &levels), satisfied);
    assert_eq!(decided_line_by_line(&lines(|n| n == 6), &levels), satisfied);
    assert_eq!(decided_line_by_line(&lines(|_| false), &levels), [VerdictKind::NotApplicable; 2]);
}

/// The last read may have seen either of two equal versions, of which the first is settled. If only the
/// first explains the history, the values and an order do not prove the level.
#[test]
fn an_order_is_kept_unless_a_read_saw_the_older_of_equal_versions() {
    let lines = |reads: &str| {
        format!(
            "{{\"session\":0,\"ops\":[[\"w\",\"x\",1]]}}\n\
             {{\"session\":0,\"ops\":[[\"w\",\"z\",1]]}}\n\
             {{\"session\":1,\"ops\":[[\"w\",\"x\",1],[\"w\",\"y\",5]]}}\n\
             {{\"session\":2,\"ops\":[{reads}]}}\n"
        )
    };
    let of_either = lines("[\"r\",\"z\",1],[\"r\",\"x\",1]");
    let of_older = lines("[\"r\",\"y\",null],[\"r\",\"x\",1]");
    for level in [Level::ReadCommitted, Level::ReadAtomic, Level::Causal] {
        for (lines, has_order) in [(&of_either, true), (&of_older, false)] {
            let spilled = spilled_line_by_line(lines, &[level]);
            assert_eq!(kinds(&spilled.results), [VerdictKind::Satisfied], "{level}");
            assert_eq!(spilled.returns, 0, "{level}");
            let has_one = spilled.orders[0].is_some();
            assert_eq!(has_one, has_order, "{level}: {lines}");
        }
    }
}
