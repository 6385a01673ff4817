//! Random small tables with an order that the database promises go through the oracle and the checker,
//! and the two must agree.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::check;
use isolario_model::{
    Anomaly, AnomalyKind, Batch, ConditionalOutcome, Evidence, ExpectedVersion, Findings, History,
    Inapplicable, KeyId, Level, LevelNodes, LevelResult, OpId, Outcome, Point, PromisedOrder,
    Stamp, TxnEnd, TxnSink, TxnStart, Verdict, VerdictKind, Witness,
};
use isolario_oracle::random::Case;
use isolario_oracle::random::tables::{TableCase, table_case};
use isolario_oracle::{Answer, Draft, Shown, satisfies_promised, satisfies_stated, volume};
use isolario_verify::{Refusal, Verifier};

const LEVELS: [Level; 5] = [
    Level::Serializable,
    Level::StrictSerializable,
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
];

#[test]
fn the_replay_agrees_with_every_order_that_is_left_open() {
    let (mut satisfied, mut violated, mut refused) = (0u64, 0u64, 0u64);
    // Of the levels that are decided: those of histories with conditional writes of unknown effect, with
    // transactions of unknown outcome in the order, and with some that it left out.
    let (mut open, mut placed, mut left_out) = (0u64, 0u64, 0u64);
    for seed in 0..volume() {
        let case = table_case(seed).expect("a history");
        let has_open = has_open_effects(&case.history);
        let (has_placed, has_left_out) = (has_unknown(&case, true), has_unknown(&case, false));
        let session_order = !seed.is_multiple_of(3);
        let options = isolario_check::CheckOptions::default()
            .with_session_order(session_order)
            .with_promised_order(case.order.clone());
        for result in check(&case.history, &LEVELS, &options) {
            let level = result.level;
            let by_oracle = isolario_oracle::Options::default().with_session_order(session_order);
            let answer = || satisfies_promised(&case.history, level, by_oracle, &case.order);
            let accepted = verify(&case, session_order, &result);
            assert!(
                accepted.is_ok(),
                "seed {seed}, {level}: {accepted:?} {:?}\n{:#?}\n{:#?}",
                result.verdict,
                case.order,
                Shown(&case.history)
            );
            let agrees = match &result.verdict {
                Verdict::Satisfied(_) => {
                    satisfied += 1;
                    answer() == Answer::Satisfied
                }
                Verdict::Violated(_) => {
                    violated += 1;
                    answer() == Answer::Violated
                }
                Verdict::NotApplicable(Inapplicable::NotByPromisedOrder) => true,
                Verdict::NotApplicable(Inapplicable::NotInPromisedOrder { txn })
                    if case.history.outcome(*txn) == Outcome::Unknown =>
                {
                    left_out += 1;
                    answer() != Answer::Satisfied
                }
                Verdict::NotApplicable(_) => {
                    refused += 1;
                    true
                }
                _ => false,
            };
            assert!(
                agrees,
                "seed {seed}, {level}: {:?}, and by the oracle {:?}\n{:#?}\n{:#?}",
                result.verdict,
                answer(),
                case.order,
                Shown(&case.history),
            );
            if result.verdict.kind() != VerdictKind::NotApplicable {
                open += u64::from(has_open);
                placed += u64::from(has_placed);
                left_out += u64::from(has_left_out);
            }
        }
    }
    assert!(satisfied > refused && violated > refused / 4, "{satisfied} {violated} {refused}");
    let enough = volume() / 8 * 5;
    assert!(open > enough && placed > enough && left_out > enough, "{open} {placed} {left_out}");
}

/// Whether nobody knows of some conditional write whether it took effect.
fn has_open_effects(history: &History) -> bool {
    let mut ops = (0..history.op_count()).map(OpId::at);
    ops.any(|op| {
        history.conditional(op).is_some_and(|write| write.ended == ConditionalOutcome::Unknown)
    })
}

/// Whether some transaction of unknown outcome has a place, or lacks one.
fn has_unknown(case: &TableCase, has_place: bool) -> bool {
    let mut txns = case.history.txns();
    txns.any(|txn| {
        case.history.outcome(txn) == Outcome::Unknown
            && case.order.points(txn).is_some() == has_place
    })
}

fn verify(case: &TableCase, session_order: bool, result: &LevelResult) -> Result<(), Refusal> {
    let options = isolario_verify::VerifyOptions::default().with_session_order(session_order);
    Verifier::new(&case.history, &options).with_promised_order(&case.order).verify(result)
}

#[test]
fn the_opposite_of_a_verdict_is_refused() {
    for seed in 0..volume() / 10 {
        let case = table_case(seed).expect("a history");
        let options =
            isolario_check::CheckOptions::default().with_promised_order(case.order.clone());
        for mut result in check(&case.history, &LEVELS, &options) {
            let forged = match &result.verdict {
                Verdict::Satisfied(_) => all_reads_wrong(&case.history),
                Verdict::Violated(_) => vec![in_the_order_of_numbers(&case.history, result.level)],
                _ => continue,
            };
            for verdict in forged {
                result.verdict = verdict;
                let accepted = verify(&case, true, &result);
                assert!(accepted.is_err(), "seed {seed}: {result:?}\n{:#?}", Shown(&case.history));
            }
        }
    }
}

/// One claim per operation: that it returned something else than what was there.
fn all_reads_wrong(history: &History) -> Vec<Verdict> {
    let ops = (0..history.op_count()).map(OpId::at);
    let claim = |op: OpId| {
        let key = KeyId(0);
        let expected = vec![ExpectedVersion { key, write: None }];
        let evidence = Evidence::Unexpected { op, expected, result: None };
        let anomaly = Anomaly::new(AnomalyKind::OrderContradiction, evidence);
        Verdict::Violated(Findings::new(vec![anomaly], true))
    };
    ops.map(claim).collect()
}

/// The claim that transactions took effect in the order of their numbers.
fn in_the_order_of_numbers(history: &History, level: Level) -> Verdict {
    let kept = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
    Verdict::Satisfied(match level.shape().nodes {
        LevelNodes::One => Witness::CommitOrder(kept.collect()),
        _ => {
            Witness::Points(kept.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]).collect())
        }
    })
}

/// Commit timestamps say in which order versions follow each other, too.
#[test]
fn levels_over_versions_take_the_order_of_commits() {
    let levels: Vec<Level> = Level::all().filter(|level| level.needs().version_order).collect();
    let (mut satisfied, mut violated) = (0u64, 0u64);
    for case in Case::first(volume() / 10) {
        let history = stamped(&case.draft(), case.seed);
        let order = PromisedOrder::of_stamps(&history);
        let Ok(versions) = order.version_orders(&history) else { continue };
        let options = isolario_check::CheckOptions::default().with_promised_order(order.clone());
        for result in check(&history, &levels, &options) {
            let plain = isolario_verify::VerifyOptions::default();
            let accepted =
                Verifier::new(&history, &plain).with_promised_order(&order).verify(&result);
            assert!(accepted.is_ok(), "{case:?}, {result:?}: {accepted:?}");
            let by_oracle = isolario_oracle::Options::default();
            let answer = || satisfies_stated(&history, result.level, by_oracle, &versions);
            let agrees = match &result.verdict {
                Verdict::Satisfied(_) => {
                    satisfied += 1;
                    answer() == Answer::Satisfied
                }
                Verdict::Violated(_) => {
                    violated += 1;
                    answer() == Answer::Violated
                }
                _ => true,
            };
            assert!(agrees, "{case:?}, {result:?}, and by the oracle {:?}", answer());
        }
    }
    assert!(satisfied > 0 && violated > 0, "{satisfied} {violated}");
}

/// The history of a draft, with commit timestamps in an order that follows from a number.
fn stamped(draft: &Draft, number: u64) -> History {
    let history = draft.history().expect("a history");
    let mut batch = Batch::new();
    batch.meta(history.meta()).expect("what holds of it");
    let count = history.txn_count() as u64;
    for txn in history.txns() {
        let session = history.session_name(history.session_of(txn));
        batch.begin(&TxnStart { session, id: None, line: None }).expect("a transaction");
        for op in history.txn_ops(txn) {
            history.with_op_input(op, |op| batch.op(op)).expect("an operation");
        }
        let place = (u64::from(txn.0) + number % 3 * (u64::from(txn.0) % 2)) % count.max(1);
        let db_commit = Some(Stamp { physical: place, logical: 0 });
        batch.end(&TxnEnd { db_commit, ..history.txn_end(txn) }).expect("its end");
    }
    batch.build().expect("a history")
}
