//! Shrinking: what is left shows the anomaly, nothing more can go, and nothing is made up.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod long_fork;
mod lost_update;
mod stale_read;

use isolario::Level;
use isolario::check::{CheckOptions, Checker};
use isolario::model::{AnomalyKind, History, HistoryPart, OpId, StatedOrder, TxnId};
use isolario::shrink::{Settings, ShrinkError, Shrunk, shrink};
use isolario::verify::{self, verify};
use isolario_oracle::random::tables::black_box_case;
use isolario_oracle::random::{Case, Rng};
use isolario_oracle::{Answer, Draft, Shown, history, satisfies, satisfies_predicates, volume};

fn shrunk(text: &str, settings: &Settings) -> Shrunk {
    shrink(&history(text), settings).unwrap()
}

/// Whether a history violates a level by a kind of anomaly.
fn shows(history: &History, level: Level, kind: AnomalyKind) -> bool {
    let result = Checker::new(history, CheckOptions::default()).check(level);
    result.verdict.anomalies().iter().any(|anomaly| anomaly.kind == kind)
}

fn assert_minimal(shrunk: &Shrunk) {
    let Shrunk { history, result, anomaly, .. } = shrunk;
    verify(history, result, &verify::VerifyOptions::default())
        .unwrap_or_else(|refusal| panic!("{}", refusal.describe(history)));
    assert!(shrunk.is_minimal && shows(history, result.level, *anomaly));
    for txn in history.txns() {
        let mut part = HistoryPart::whole(history);
        part.remove_txn(history, txn);
        assert!(!shows(&part.build(history).unwrap(), result.level, *anomaly), "{history:?}");
    }
    for op in (0..history.op_count()).map(OpId::at) {
        let mut part = HistoryPart::whole(history);
        part.remove_op(op);
        assert!(!shows(&part.build(history).unwrap(), result.level, *anomaly), "{history:?}");
    }
}

/// Two increments of x that read the same value, among transactions that have nothing to do with it.
const LOST_UPDATE: &str = "
    initial 0
    a: r x 0, w x 1, w z 9
    b: r x 0, r y 0, w x 2
    a: r x 1, w y 3
    c: r y 3, w y 4
    c: r z 9, r y 4";

/// One saw x and not y, the other y and not x.
const LONG_FORK: &str = "
    initial 0
    a: w x 1, w z 7
    b: w y 2
    c: r x 1, r y 0, r z 7
    d: r y 2, r x 0
    d: r z 7";

/// The second begins when the first is over, and does not see what it wrote.
const STALE_READ: &str = "
    initial 0
    a [10, 20]: w x 1
    c [15, 40]: w y 5
    b [30, 50]: r x 0
    c [60, 70]: r y 5";

#[test]
fn what_has_nothing_to_do_with_it_goes() {
    for (text, level, kind, txns, ops) in [
        (LOST_UPDATE, Level::SnapshotIsolation, AnomalyKind::LostUpdate, 2, 4),
        (LONG_FORK, Level::Prefix, AnomalyKind::LongFork, 4, 6),
        (STALE_READ, Level::StrictSerializable, AnomalyKind::StaleRead, 2, 2),
    ] {
        let shrunk = shrunk(text, &Settings::default().with_level(level));
        assert_eq!((shrunk.result.level, shrunk.anomaly), (level, kind));
        assert_eq!((shrunk.history.txn_count(), shrunk.history.op_count()), (txns, ops), "{kind}");
        assert_minimal(&shrunk);
    }
}

#[test]
fn lists_lose_elements_and_stay_lists() {
    let text = "
        a: append x 1
        a: append x 2
        b: r x [1 2], append x 3
        c: r x [1 2], append x 4
        d: r x [1 2 3 4]
        d: r x [1 2 4 3]";
    let settings = Settings::default().with_anomaly(AnomalyKind::IncompatibleOrder);
    let shrunk = shrunk(text, &settings);
    assert_minimal(&shrunk);
    let left = history(
        "b: append x 3
         c: append x 4
         d: r x [3 4]
         d: r x [4 3]",
    );
    assert_eq!(shrunk.history.op_count(), left.op_count());
}

#[test]
fn a_level_that_is_not_violated_has_nothing_to_shrink() {
    let serial = history("a: w x 1\nb: r x 1");
    let error = shrink(&serial, &Settings::default()).unwrap_err();
    assert!(matches!(error, ShrinkError::NotViolated { .. }), "{error}");
    let error = shrink(&serial, &Settings::default().with_level(Level::Causal)).unwrap_err();
    assert_eq!(error.to_string(), "causal is satisfied");
    let settings = Settings::default().with_anomaly(AnomalyKind::WriteSkew);
    let error = shrink(&history(LONG_FORK), &settings).unwrap_err();
    assert!(matches!(error, ShrinkError::OtherAnomalies { .. }), "{error}");
}

/// The tests that are written are compiled and run with this one: they are its modules.
#[test]
fn tests_in_rust_are_what_was_shrunk() {
    for (text, level, written) in [
        (LOST_UPDATE, Level::SnapshotIsolation, include_str!("lost_update.rs")),
        (LONG_FORK, Level::Prefix, include_str!("long_fork.rs")),
        (STALE_READ, Level::StrictSerializable, include_str!("stale_read.rs")),
    ] {
        let shrunk = shrunk(text, &Settings::default().with_level(level));
        assert_eq!(shrunk.as_rust_test(), written, "{}", shrunk.as_rust_test());
    }
}

fn random_drafts(case: Case) -> [Draft; 5] {
    let registers = [case.draft(), case.read_modify_write_draft(), case.ambiguous_draft()];
    let [one, other, third] = registers;
    [one, other, third, case.list_draft(), case.single_draft()]
}

/// By the oracle: whatever a history satisfies, all its parts do.
#[test]
fn a_part_never_looks_worse_than_the_whole() {
    let options = isolario_oracle::Options::default();
    for case in Case::first(volume() / 10) {
        for draft in random_drafts(case) {
            let whole = draft.history().unwrap();
            let part = random_part(&whole, case.seed).build(&whole).unwrap();
            // Where the order of versions is what reads before writes show, a part may show more of it:
            // once an earlier write is gone, a read comes before the first one.
            for level in Level::decided().filter(|level| !level.needs().version_order) {
                let answers = [&whole, &part].map(|history| satisfies(history, level, options));
                assert_ne!(
                    answers,
                    [Answer::Satisfied, Answer::Violated],
                    "{level}\n{draft}\nleft: {part:?}"
                );
            }
        }
    }
}

/// The same where rows are asked for by predicate.
#[test]
fn a_part_of_a_table_never_looks_worse_than_the_whole() {
    let options = isolario_oracle::Options::default();
    let mut kept = 0;
    for seed in 0..volume() / 10 {
        let whole = black_box_case(seed).unwrap();
        let part = random_part(&whole, seed).build(&whole).unwrap();
        kept += usize::from(part.has_predicates());
        for level in [Level::Serializable, Level::Prefix, Level::SnapshotIsolation] {
            let answers =
                [&whole, &part].map(|history| satisfies_predicates(history, level, options));
            assert!(
                !matches!(answers, [Answer::Satisfied, Answer::Violated]),
                "{seed} {level}\n{:#?}\nleft: {:#?}",
                Shown(&whole),
                Shown(&part)
            );
        }
    }
    assert!(kept as u64 > volume() / 50, "{kept}");
}

/// A history of rows is shrunk like any other.
#[test]
fn what_is_left_of_a_table_is_minimal() {
    let mut predicates = 0;
    for seed in 0..volume() / 50 {
        let whole = black_box_case(seed).unwrap();
        for level in [Level::Serializable, Level::SnapshotIsolation] {
            let settings = Settings::default().with_level(level);
            let Ok(once) = shrink(&whole, &settings) else { continue };
            assert_minimal(&once);
            predicates += usize::from(once.history.has_predicates());
            let twice = shrink(&once.history, &settings.with_anomaly(once.anomaly)).unwrap();
            assert_eq!(once.history, twice.history, "{seed}");
        }
    }
    assert!(predicates > 0);
}

/// Orders that are stated of the whole have its numbers: nothing is made of them.
#[test]
fn what_rests_on_a_stated_order_is_not_shrunk() {
    let lost = history(LOST_UPDATE);
    let (key, writers) = (lost.find_key("x".into()).unwrap(), vec![TxnId(0), TxnId(1)]);
    let orders = vec![StatedOrder { key, writers, at: 1 }];
    let options =
        CheckOptions::default().with_version_order(orders).with_trusted_version_order(true);
    let settings = Settings::default().with_level(Level::Serializable).with_options(options);
    let error = shrink(&lost, &settings).unwrap_err();
    assert!(matches!(error, ShrinkError::StatedOrder), "{error}");
}

fn random_part(history: &History, seed: u64) -> HistoryPart {
    let mut rng = Rng::new(seed);
    let mut part = HistoryPart::whole(history);
    for txn in (0..history.txn_count()).map(TxnId::at) {
        if rng.percent(25) {
            part.remove_txn(history, txn);
        }
    }
    for op in (0..history.op_count()).map(OpId::at) {
        if rng.percent(15) {
            part.remove_op(op);
        }
    }
    part
}

#[test]
fn what_is_left_is_minimal_and_shrinks_no_further() {
    for case in Case::first(volume() / 100) {
        for draft in random_drafts(case) {
            let whole = draft.history().unwrap();
            let Ok(once) = shrink(&whole, &Settings::default()) else { continue };
            assert_minimal(&once);
            let settings =
                Settings::default().with_level(once.result.level).with_anomaly(once.anomaly);
            let twice = shrink(&once.history, &settings).unwrap();
            assert_eq!(once.history, twice.history, "{draft}");
        }
    }
}
