//! The verifier as a judge of commit orders: over all orders of a small history, it accepts one
//! exactly where the oracle finds the level satisfied.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_model::{
    Attempt, History, KeyAssumption, KeyAssumptions, KeyId, Level, LevelNodes, LevelResult, Op,
    OpId, Outcome, StatedOrder, TxnId, Verdict, VisibilityRule, Witness,
};
use isolario_oracle::random::{Case, Rng, shrink};
use isolario_oracle::{Answer, Draft, history, is_ambiguous, levels, satisfies_stated, volume};
use isolario_verify::{Refusal, Verifier, VerifyOptions};

/// The levels that are shown by a commit order.
fn ordered_levels() -> impl Iterator<Item = Level> {
    levels().filter(|level| level.shape().nodes == LevelNodes::One)
}

fn judge(
    history: &History,
    level: Level,
    witness: Witness,
    options: &VerifyOptions,
) -> Result<(), Refusal> {
    judge_stated(history, level, witness, options, &[])
}

fn judge_stated(
    history: &History,
    level: Level,
    witness: Witness,
    options: &VerifyOptions,
    stated: &[StatedOrder],
) -> Result<(), Refusal> {
    let result =
        LevelResult { level, decided_by: Attempt::Rule, verdict: Verdict::Satisfied(witness) };
    Verifier::new(history, options).with_version_order(stated).verify(&result)
}

/// A way to read a history, by the oracle and the verifier alike.
#[derive(Clone, Copy, Debug)]
struct Reading {
    session_order: bool,
    /// The seed of orders of versions that are trusted.
    stated: Option<u64>,
    assume: KeyAssumptions,
}

impl Reading {
    /// For each key, some of its writers in some order.
    fn stated(self, history: &History) -> Vec<StatedOrder> {
        let Some(seed) = self.stated else { return Vec::new() };
        let mut rng = Rng::new(seed);
        let writes = |txn: &TxnId, key: KeyId| {
            let is_write = |op: OpId| {
                use Op::{Append, Delete, Write};
                matches!(history.op(op), Write { .. } | Delete { .. } | Append { .. })
            };
            history.txn_ops(*txn).any(|op| is_write(op) && history.op_keys()[op.index()] == key)
        };
        let statement = |key: usize| {
            let mut writers: Vec<TxnId> =
                history.txns().filter(|txn| writes(txn, KeyId::at(key))).collect();
            for at in (1..writers.len()).rev() {
                writers.swap(at, rng.below(at + 1));
            }
            writers.truncate(3);
            if rng.percent(20) {
                writers.insert(rng.below(writers.len() + 1), TxnId::INIT);
            }
            StatedOrder { key: KeyId::at(key), writers, at: key as u64 }
        };
        (0..history.key_count()).map(statement).collect()
    }
}

/// Whether some order of some of the transactions is accepted: all beginnings are tried, the whole
/// set of transactions first.
fn some_order_is_accepted(history: &History, level: Level, reading: Reading) -> bool {
    let may_commit = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
    let txns: Vec<TxnId> = history.txns().filter(may_commit).collect();
    let stated = reading.stated(history);
    let options = VerifyOptions::default()
        .with_session_order(reading.session_order)
        .with_trusted_version_order(reading.stated.is_some())
        .with_assumptions(reading.assume);
    some_extension(&mut Vec::new(), &txns, &|order| {
        let witness = Witness::CommitOrder(order.to_vec());
        judge_stated(history, level, witness, &options, &stated).is_ok()
    })
}

fn some_extension(
    order: &mut Vec<TxnId>,
    txns: &[TxnId],
    accepted: &dyn Fn(&[TxnId]) -> bool,
) -> bool {
    let rest: Vec<TxnId> = txns.iter().copied().filter(|txn| !order.contains(txn)).collect();
    let longer = rest.into_iter().any(|txn| {
        order.push(txn);
        let found = some_extension(order, txns, accepted);
        order.pop();
        found
    });
    longer || accepted(order)
}

fn complaint(draft: &Draft, reading: Reading) -> Option<String> {
    let history = draft.history().expect("small");
    let options = isolario_oracle::Options::default()
        .with_session_order(reading.session_order)
        .with_assumptions(reading.assume);
    let stated = reading.stated(&history);
    let satisfied =
        |level| satisfies_stated(&history, level, options, &stated) == Answer::Satisfied;
    // Replaying needs no resolution of reads; the other levels refuse what is ambiguous. So do all
    // where the order of versions depends on what reads saw.
    let decided = |level: &Level| {
        level.shape().visible == VisibilityRule::Everything && !reading.assume.order_versions()
            || !is_ambiguous(&history, *level)
    };
    let wrong = ordered_levels()
        .filter(decided)
        .find(|level| satisfied(*level) != some_order_is_accepted(&history, *level, reading));
    if let Some(level) = wrong {
        return Some(format!("{level}: satisfied is {}, accepted is not", satisfied(level)));
    }
    let options = VerifyOptions::default().with_session_order(reading.session_order);
    let cut = judge(&history, Level::CutIsolation, Witness::Empty, &options).is_ok();
    (!is_ambiguous(&history, Level::CutIsolation) && cut != satisfied(Level::CutIsolation))
        .then(|| format!("cut-isolation: accepted is {cut}, satisfied is not"))
}

#[track_caller]
fn are_accepted_exactly_where_the_oracle_finds_one(draft: Draft, reading: Reading) {
    if draft.txns.len() <= 5 && complaint(&draft, reading).is_some() {
        let small = shrink(draft, |draft| complaint(draft, reading).is_some());
        let complaint = complaint(&small, reading).unwrap_or_default();
        panic!("{reading:?}\n{small}\n{complaint}");
    }
}

#[test]
fn an_order_is_accepted_exactly_where_the_oracle_finds_one() {
    for case in Case::first(volume() / 20) {
        let reading = Reading {
            session_order: case.seed % 4 != 0,
            stated: None,
            assume: KeyAssumptions::default(),
        };
        are_accepted_exactly_where_the_oracle_finds_one(case.draft(), reading);
    }
}

#[test]
fn an_order_of_lists_is_accepted_exactly_where_the_oracle_finds_one() {
    for case in Case::first(volume() / 20) {
        let reading = Reading {
            session_order: case.seed % 4 != 0,
            stated: None,
            assume: KeyAssumptions::default(),
        };
        are_accepted_exactly_where_the_oracle_finds_one(case.list_draft(), reading);
    }
}

#[test]
fn an_order_with_statements_is_accepted_exactly_where_the_oracle_finds_one() {
    for case in Case::first(volume() / 40) {
        let reading = Reading {
            session_order: case.seed % 4 != 0,
            stated: Some(case.seed),
            assume: KeyAssumptions::default(),
        };
        are_accepted_exactly_where_the_oracle_finds_one(case.draft(), reading);
        are_accepted_exactly_where_the_oracle_finds_one(case.list_draft(), reading);
    }
}

#[test]
fn an_order_with_assumptions_is_accepted_exactly_where_the_oracle_finds_one() {
    for case in Case::first(volume() / 20) {
        let both = [KeyAssumption::SequentialKeys, KeyAssumption::LinearizableKeys];
        let some = [&both[..1], &both[1..], &both[..]][case.seed as usize % 3];
        let assume = some.iter().copied().collect();
        let reading = Reading { session_order: case.seed % 4 != 0, stated: None, assume };
        are_accepted_exactly_where_the_oracle_finds_one(case.draft(), reading);
    }
}

fn judge_order(text: &str, level: Level, order: &[u32]) -> Result<(), Refusal> {
    let order = order.iter().map(|txn| TxnId(*txn)).collect();
    judge(&history(text), level, Witness::CommitOrder(order), &VerifyOptions::default())
}

#[test]
fn an_order_has_every_committed_transaction_once_and_nothing_else() {
    let text = "a: w x 1\n b: r x 1\n c aborted: w y 1\n d unknown: w z 1";
    for level in ordered_levels() {
        let judge = |order: &[u32]| judge_order(text, level, order);
        assert_eq!(judge(&[0, 1]), Ok(()));
        assert_eq!(judge(&[0, 3, 1]), Ok(()));
        assert_eq!(judge(&[0]), Err(Refusal::Missing(TxnId(1))));
        assert_eq!(judge(&[0, 1, 0]), Err(Refusal::Repeated(TxnId(0))));
        assert_eq!(judge(&[0, 1, 2]), Err(Refusal::NotCommitted(TxnId(2))));
        assert_eq!(judge(&[0, 1, 9]), Err(Refusal::NoSuchTxn(TxnId(9))));
        assert_eq!(judge(&[0, 1, u32::MAX]), Err(Refusal::NotCommitted(TxnId::INIT)));
    }
}

#[test]
fn an_unknown_transaction_that_was_read_from_must_be_in_the_order() {
    for level in ordered_levels() {
        let judge = |order: &[u32]| judge_order("a unknown: w x 1\n b: r x 1", level, order);
        assert_eq!(judge(&[0, 1]), Ok(()));
        let dirty =
            level.implies(Level::ReadUncommitted) && !level.implies(Level::AdyaReadCommitted);
        let without = judge(&[1]);
        assert!(dirty || matches!(without, Err(Refusal::Unexplained { .. })), "{level}");
        assert!(!dirty || without.is_ok(), "{level}");
    }
}

#[test]
fn lists_are_replayed_as_a_whole() {
    let text =
        "a: append x 1\n a: append x 2\n b: r x [1]\n c: append x 3, r x [1 2 3]\n d: r x []";
    for level in [Level::Serializable, Level::StrictSerializable] {
        assert_eq!(judge_order(text, level, &[4, 0, 2, 1, 3]), Ok(()));
        assert!(judge_order(text, level, &[0, 4, 2, 1, 3]).is_err());
        assert!(judge_order(text, level, &[4, 0, 1, 2, 3]).is_err());
        assert!(judge_order(text, level, &[4, 0, 2, 3, 1]).is_err());
        // The element 1 and a list of two elements are stored as the same word, and are not the same.
        assert!(judge_order("a: append x 1\n b: r x [1 2]", level, &[0, 1]).is_err());
    }
}

#[test]
fn a_list_that_diverges_from_all_others_is_compared_element_by_element() {
    let text = "a: append x 1\n b: append x 2\n c: r x [1]\n d: r x [2]";
    for order in [[0, 1, 2, 3], [0, 2, 1, 3], [1, 3, 0, 2]] {
        assert!(judge_order(text, Level::Serializable, &order).is_err());
    }
    let diverging =
        "a: append x 1\n b: append x 2\n c aborted: r x [1]\n d: r x [2]\n e: r x [2 1]";
    assert_eq!(judge_order(diverging, Level::Serializable, &[1, 3, 0, 4]), Ok(()));
}

#[test]
fn an_order_respects_sessions_and_reads() {
    let why = "session order";
    let (first, second) = (TxnId(0), TxnId(1));
    let refused = judge_order("a: w x 1\n a: w x 2", Level::Causal, &[1, 0]);
    assert_eq!(refused, Err(Refusal::OutOfOrder { first, second, why }));
    let refused = judge_order("a: w x 1\n b: r x 1", Level::AdyaReadCommitted, &[1, 0]);
    assert!(matches!(refused, Err(Refusal::OutOfOrder { .. })));
}

#[test]
fn a_long_chain_needs_no_deep_stack() {
    let count = 20_000;
    let txns = (0..count).map(|i| format!("s{}: r x {}, w x {}\n", i % 7, i - 1, i));
    let text = format!("initial -1\n{}", txns.collect::<String>());
    let order: Vec<u32> = {
        // Sessions are contiguous in the history: transaction i of the text is found there.
        let history = history(&text);
        let mut by_write: Vec<(i64, u32)> = history
            .txns()
            .map(|txn| {
                let write = history.txn_ops(txn).last().expect("two operations");
                let value = history.encoded_values()[write.index()] as i64;
                (value, txn.0)
            })
            .collect();
        by_write.sort_unstable();
        by_write.into_iter().map(|(_, txn)| txn).collect()
    };
    for level in ordered_levels() {
        assert_eq!(judge_order(&text, level, &order), Ok(()), "{level}");
    }
}

#[test]
fn a_witness_of_the_wrong_kind_shows_nothing() {
    let history = history("a: w x 1");
    let judge = |level, witness| judge(&history, level, witness, &VerifyOptions::default());
    let order = Witness::CommitOrder(vec![TxnId(0)]);
    assert_eq!(judge(Level::Causal, Witness::Empty), Err(Refusal::WrongWitness(Level::Causal)));
    let refused = Err(Refusal::WrongWitness(Level::SnapshotIsolation));
    assert_eq!(judge(Level::SnapshotIsolation, order.clone()), refused);
    assert_eq!(judge(Level::CutIsolation, order), Err(Refusal::WrongWitness(Level::CutIsolation)));
}
