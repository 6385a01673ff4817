//! Small histories, what is said about them, and three opinions: checker, oracle, verifier.

use isolario_check::{CheckOptions, check};
use isolario_model::{
    History, KeyId, Level, LevelResult, OpKind, Outcome, Point, StatedOrder, TxnId, Verdict,
    Witness,
};
use isolario_oracle::random::Rng;
use isolario_oracle::{Answer, satisfies, satisfies_stated};
use isolario_verify::{Refusal, Verifier};

pub const LEVELS: [Level; 5] = [
    Level::Prefix,
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// The same options with orders of versions, tried or trusted.
pub fn hinting(options: &CheckOptions, orders: Vec<StatedOrder>, trusted: bool) -> CheckOptions {
    let mut options = options.clone();
    (options.version_order, options.trust_version_order) = (orders, trusted);
    options
}

/// The answers at the strong levels that apply.
pub fn answers(history: &History, options: &CheckOptions) -> Vec<LevelResult> {
    answers_at(&LEVELS, history, options)
}

/// The answers at some levels, as far as they apply.
pub fn answers_at(levels: &[Level], history: &History, options: &CheckOptions) -> Vec<LevelResult> {
    let applies = |result: &LevelResult| !matches!(result.verdict, Verdict::NotApplicable(_));
    check(history, levels, options).into_iter().filter(applies).collect()
}

/// What brute force says to the same question.
pub fn oracle(history: &History, level: Level, options: &CheckOptions) -> Answer {
    let read = isolario_oracle::Options::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew);
    match options.trust_version_order {
        true => satisfies_stated(history, level, read, &options.version_order),
        false => satisfies(history, level, read),
    }
}

/// What the verifier says to an answer to the same question.
pub fn verify(
    history: &History,
    result: &LevelResult,
    options: &CheckOptions,
) -> Result<(), Refusal> {
    let read = isolario_verify::VerifyOptions::default()
        .with_session_order(options.session_order)
        .with_clock_skew(options.clock_skew)
        .with_trusted_version_order(options.trust_version_order);
    Verifier::new(history, &read).with_version_order(&options.version_order).verify(result)
}

/// What is wrong with the answers at the strong levels, if anything is.
pub fn complaint(history: &History, options: &CheckOptions) -> Option<String> {
    complaint_at(&LEVELS, history, options)
}

/// What is wrong with the answers at some levels, if anything is.
pub fn complaint_at(levels: &[Level], history: &History, options: &CheckOptions) -> Option<String> {
    answers_at(levels, history, options).iter().find_map(|result| {
        let expected = oracle(history, result.level, options);
        let found = match &result.verdict {
            Verdict::Satisfied(_) => Answer::Satisfied,
            Verdict::Violated(_) => Answer::Violated,
            _ => Answer::Unsupported,
        };
        if found != expected {
            return Some(format!("the oracle says {expected:?}\n{result:#?}"));
        }
        let refusal = verify(history, result, options).err()?;
        Some(format!("the verifier says: {refusal}\n{result:#?}"))
    })
}

/// The writers of a key that did not abort.
fn writers(history: &History, key: KeyId) -> Vec<TxnId> {
    let writes = |txn: &TxnId| {
        let mut ops = history.op_range(*txn);
        let is_write = |op| matches!(history.op_kinds()[op], OpKind::Write | OpKind::Delete);
        ops.any(|op| is_write(op) && history.op_keys()[op] == key)
    };
    let may_have_committed = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
    history.txns().filter(may_have_committed).filter(writes).collect()
}

/// Some of the versions of every key in any order: now right, now wrong, now in part.
pub fn random_orders(history: &History, rng: &mut Rng) -> Vec<StatedOrder> {
    let places: Vec<u64> = history.txns().map(|_| rng.bits()).collect();
    // One order for all keys is right more often than one for each.
    let of_its_own = rng.percent(30);
    let share = [30, 60, 100][rng.below(3)];
    let mut orders = Vec::new();
    for key in (0..history.key_count()).map(KeyId::at) {
        let mut writers = writers(history, key);
        writers.retain(|_| rng.percent(share));
        if of_its_own {
            writers.sort_by_cached_key(|_| rng.bits());
        } else {
            writers.sort_by_key(|txn| places[txn.index()]);
        }
        orders.push(StatedOrder { key, writers, at: u64::from(key.0) * 3 + 1 });
    }
    orders
}

/// The transactions of a witness in the order of their commits.
pub fn commits(witness: &Witness) -> Vec<TxnId> {
    match witness {
        Witness::CommitOrder(order) => order.clone(),
        Witness::Points(points) => points
            .iter()
            .filter_map(|point| match point {
                Point::Commit(txn) => Some(*txn),
                Point::Start(_) => None,
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// The order of versions of a witness: right for its level.
pub fn orders_of(history: &History, witness: &Witness) -> Vec<StatedOrder> {
    let commits = commits(witness);
    let place = |txn: &TxnId| commits.iter().position(|other| other == txn);
    let of_key = |key: KeyId| {
        let mut writers = writers(history, key);
        writers.retain(|txn| place(txn).is_some());
        writers.sort_by_key(place);
        StatedOrder { key, writers, at: u64::from(key.0) + 1 }
    };
    (0..history.key_count()).map(KeyId::at).map(of_key).collect()
}
