//! Random small histories go through the oracle and the checkers. The two must agree, and the
//! verifier must accept what the checkers show for their answers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_check::{check, supported};
use isolario_model::{
    AnomalyKind, ConditionalOutcome, History, Inapplicable, Initial, KeyAssumption, KeyAssumptions,
    KeyId, Level, LevelResult, Op, OpId, OpKind, Outcome, StatedOrder, TxnId, Verdict, VerdictKind,
};
use isolario_oracle::random::{Case, append_twin, append_twin_in_some_order, shrink};
use isolario_oracle::{Answer, Draft, is_ambiguous, satisfies_stated, volume};
use isolario_verify::Verifier;

/// How a history is read, by all three alike.
#[derive(Clone, Copy, Debug)]
struct Reading {
    session_order: bool,
    clock_skew: u64,
    stated: Stated,
    assume: KeyAssumptions,
}

/// What is stated of the order of versions, and trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stated {
    Nothing,
    /// The order in which the transactions are written down.
    InOrder,
    /// The opposite order.
    Backwards,
    /// That of two writers of a key, the other ones left out.
    InPart,
    /// The opposite order, two writers at a time.
    InPairs,
}

impl Default for Reading {
    fn default() -> Self {
        let assume = KeyAssumptions::default();
        Reading { session_order: true, clock_skew: 0, stated: Stated::Nothing, assume }
    }
}

impl Reading {
    fn of(case: Case) -> Reading {
        let clock_skew = [0, 0, 0, 1, 4][case.seed as usize % 5];
        Reading { session_order: !case.seed.is_multiple_of(4), clock_skew, ..Reading::default() }
    }

    /// With a clock skew that leaves no two transactions in order.
    fn unordered(self) -> Reading {
        Reading { clock_skew: u64::MAX, ..self }
    }

    /// With sequential keys, linearizable keys, or both.
    fn with_assumptions(case: Case) -> Reading {
        let both = [KeyAssumption::SequentialKeys, KeyAssumption::LinearizableKeys];
        let some = [&both[..1], &both[1..], &both[..]][case.seed as usize / 5 % 3];
        Reading { assume: some.iter().copied().collect(), ..Reading::of(case) }
    }

    fn with_statements(case: Case) -> Reading {
        use Stated::{Backwards, InOrder, InPairs, InPart};
        let stated = [InOrder, InOrder, InOrder, InPart, Backwards, InPairs];
        let stated = stated[case.seed as usize / 3 % stated.len()];
        Reading { stated, ..Reading::of(case) }
    }

    fn by_checker(self, orders: &[StatedOrder]) -> isolario_check::CheckOptions {
        let mut options = isolario_check::CheckOptions::default();
        (options.session_order, options.clock_skew) = (self.session_order, self.clock_skew);
        options.version_order = orders.to_vec();
        options.trust_version_order = self.stated != Stated::Nothing;
        options.with_assumptions(self.assume)
    }

    fn by_oracle(self) -> isolario_oracle::Options {
        isolario_oracle::Options::default()
            .with_session_order(self.session_order)
            .with_clock_skew(self.clock_skew)
            .with_assumptions(self.assume)
    }

    fn by_verifier(self) -> isolario_verify::VerifyOptions {
        isolario_verify::VerifyOptions::default()
            .with_session_order(self.session_order)
            .with_clock_skew(self.clock_skew)
            .with_trusted_version_order(self.stated != Stated::Nothing)
            .with_assumptions(self.assume)
    }

    /// The orders of versions that are stated.
    fn orders(self, draft: &Draft, history: &History) -> Vec<StatedOrder> {
        let keys = (0..history.key_count()).map(KeyId::at);
        let of_key = |key: KeyId| {
            let mut writers = writers(draft, history, key);
            match self.stated {
                Stated::Nothing => writers.clear(),
                Stated::InOrder => {}
                Stated::Backwards | Stated::InPairs => writers.reverse(),
                Stated::InPart => writers = writers.into_iter().step_by(2).take(2).collect(),
            }
            let together = if self.stated == Stated::InPairs { 2 } else { writers.len().max(1) };
            let parts: Vec<Vec<TxnId>> = writers.windows(together).map(<[TxnId]>::to_vec).collect();
            parts.into_iter().map(move |writers| (key, writers))
        };
        let lines = (0..).zip(keys.flat_map(of_key));
        lines.map(|(at, (key, writers))| StatedOrder { key, writers, at }).collect()
    }
}

/// Who wrote a key, in the order in which transactions are written down. A history has those of a
/// session together.
fn writers(draft: &Draft, history: &History, key: KeyId) -> Vec<TxnId> {
    let mut sessions: Vec<&str> = Vec::new();
    for txn in &draft.txns {
        if !sessions.contains(&txn.session.as_str()) {
            sessions.push(&txn.session);
        }
    }
    let place = |at: &usize| sessions.iter().position(|name| *name == draft.txns[*at].session);
    let mut places: Vec<usize> = (0..draft.txns.len()).collect();
    places.sort_by_key(place);
    let writes = |txn: &TxnId| {
        let is_write = |op: OpId| match history.conditional(op) {
            Some(conditional) => conditional.ended == ConditionalOutcome::Applied,
            None => !matches!(history.op(op), Op::Read { .. } | Op::ReadList { .. }),
        };
        let mut ops = history.txn_ops(*txn);
        ops.any(|op| is_write(op) && history.op_keys()[op.index()] == key)
    };
    let mut writers: Vec<TxnId> = history.txns().filter(writes).collect();
    writers.retain(|txn| history.outcome(*txn) != Outcome::Aborted);
    writers.sort_by_key(|txn| places[txn.index()]);
    writers
}

/// What is wrong with one result.
fn complaint(
    history: &History,
    result: &LevelResult,
    reading: Reading,
    orders: &[StatedOrder],
) -> Option<String> {
    let level = result.level;
    let answer = satisfies_stated(history, level, reading.by_oracle(), orders);
    let agrees = match (&result.verdict, answer) {
        (_, Answer::Unsupported) => true,
        (Verdict::Satisfied(_), answer) => answer == Answer::Satisfied,
        (Verdict::Violated(_), answer) => answer == Answer::Violated,
        (Verdict::NotApplicable(Inapplicable::AmbiguousRead { .. }), _) => {
            is_ambiguous(history, level) && may_be_refused(history, level, reading)
        }
        (Verdict::NotApplicable(Inapplicable::NoTimes), _) => !history.has_times(),
        (Verdict::NotApplicable(Inapplicable::NoVersionOrder), _) => {
            // Of a conditional write that may have taken effect, nothing is stated.
            let is_open = |op: OpId| {
                history.conditional(op).is_some_and(|it| it.ended == ConditionalOutcome::Unknown)
            };
            !matches!(reading.stated, Stated::InOrder | Stated::Backwards)
                || (0..history.op_count()).map(OpId::at).any(is_open)
        }
        (Verdict::NotApplicable(reason), _) => {
            matches!(reason, Inapplicable::Operation { .. } | Inapplicable::OpenConditional { .. })
        }
        _ => false,
    };
    if !agrees {
        return Some(format!("{level}: the oracle says {answer:?}\n{result:#?}"));
    }
    let options = reading.by_verifier();
    let verifier = Verifier::new(history, &options).with_version_order(orders);
    let refusal = verifier.verify(result).err()?;
    Some(format!("{level}: the verifier says: {refusal}\n{result:#?}"))
}

/// Whether an ambiguous read may be a reason not to decide a level.
fn may_be_refused(history: &History, level: Level, reading: Reading) -> bool {
    let has_lists = history
        .op_kinds()
        .iter()
        .any(|kind| matches!(kind, OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved));
    let has_unknown = history.txns().any(|txn| history.outcome(txn) == Outcome::Unknown);
    // Only transactions that cannot have committed, by what they read themselves, explain some read.
    let nobody_may_be_there = || {
        let weakest = Level::AdyaReadCommitted;
        satisfies_stated(history, weakest, reading.by_oracle(), &[]) == Answer::Violated
    };
    // Each two of a transaction's reads may have seen one transaction, but not all of them.
    let may_be_apart_together = || {
        let is_read = |op: OpId| matches!(history.op(op), Op::Read { .. });
        history.txns().any(|txn| {
            let reads: Vec<OpId> = history.txn_ops(txn).filter(|op| is_read(*op)).collect();
            let of_key = |one: &OpId| {
                let keys = history.op_keys();
                reads.iter().filter(|op| keys[op.index()] == keys[one.index()]).count()
            };
            reads.iter().any(|read| of_key(read) > 2)
        })
    };
    level.needs().version_order
        || level == Level::CutIsolation && (has_unknown || may_be_apart_together())
        || has_lists
        || reading.assume.order_versions()
        || *history.initial() == Initial::Unwritten
        || has_unknown && (reading.stated != Stated::Nothing || nobody_may_be_there())
}

fn complaints(draft: &Draft, reading: Reading) -> Option<String> {
    let history = draft.history().expect("small");
    let orders = reading.orders(draft, &history);
    let options = reading.by_checker(&orders);
    // A panic is a finding like any other, to be shrunk and shown.
    let Ok(results) = std::panic::catch_unwind(|| check(&history, supported(), &options)) else {
        return Some("the checker panics".to_owned());
    };
    results.iter().find_map(|result| complaint(&history, result, reading, &orders))
}

#[track_caller]
fn agree(draft: Draft, reading: Reading) {
    if complaints(&draft, reading).is_some() {
        let small = shrink(draft, |draft| complaints(draft, reading).is_some());
        let complaint = complaints(&small, reading).unwrap_or_default();
        panic!("{reading:?}\n{small}\n{complaint}");
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers() {
    for case in Case::first(volume()) {
        agree(case.draft(), Reading::of(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_what_is_assumed_of_registers() {
    for case in Case::first(volume()) {
        let reading = Reading::with_assumptions(case);
        let draft = match case.seed % 3 {
            0 => case.read_modify_write_draft(),
            _ => case.draft(),
        };
        agree(draft, reading);
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers_read_before_written() {
    for case in Case::first(volume()) {
        agree(case.read_modify_write_draft(), Reading::of(case));
    }
}

/// Times and clock skews at both ends of 64 bits.
#[test]
fn oracle_checkers_and_verifier_agree_at_both_ends_of_the_clock() {
    let mut in_order = 0;
    for case in Case::first(volume()) {
        let draft = match case.seed % 3 {
            0 => case.draft(),
            1 => case.read_modify_write_draft(),
            _ => case.list_draft(),
        };
        let assume = Reading::with_assumptions(case).assume;
        let assume = if case.seed % 4 == 0 { assume } else { KeyAssumptions::default() };
        let draft = draft.at_both_ends();
        let reading = Reading { clock_skew: case.extreme_skew(), assume, ..Reading::of(case) };
        in_order +=
            u64::from(kinds_with(&draft, reading) != kinds_with(&draft, reading.unordered()));
        agree(draft, reading);
    }
    assert!(in_order > volume() / 200, "{in_order}");
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers_written_alike() {
    for case in Case::first(volume()) {
        agree(case.ambiguous_draft(), Reading::of(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers_written_alike_with_a_stated_order() {
    for case in Case::first(volume() / 2) {
        agree(case.ambiguous_draft(), Reading::with_statements(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_conditional_writes() {
    let mut decided = [0; 3];
    for case in Case::first(volume()) {
        let draft = case.conditional_draft();
        count_decided(&draft, &mut decided);
        agree(draft, Reading::of(case));
    }
    assert!(decided[..2].iter().all(|count| *count > decided[2]), "{decided:?}");
}

/// Counts levels that are satisfied, violated and left open.
fn count_decided(draft: &Draft, decided: &mut [u64; 3]) {
    let levels = [Level::Causal, Level::Prefix, Level::SnapshotIsolation, Level::Serializable];
    for (_, kind) in kinds(draft).iter().filter(|(level, _)| levels.contains(level)) {
        let known = [VerdictKind::Satisfied, VerdictKind::Violated];
        decided[known.iter().position(|known| known == kind).unwrap_or(2)] += 1;
    }
}

/// Which transactions of unknown outcome committed may follow from failed conditional writes alone, and
/// what they did to lists counts if they did.
#[test]
fn oracle_checkers_and_verifier_agree_on_lists_and_conditional_writes() {
    let (mut decided, mut open) = ([0; 3], 0);
    let count = volume() / 2;
    for case in Case::first(count) {
        let draft = case.mixed_draft();
        if may_depend_on_lists(&draft.history().expect("small")) {
            count_decided(&draft, &mut decided);
            open += 1;
        }
        agree(draft, Reading::of(case));
    }
    let [satisfied, violated, undecided] = decided;
    assert!(open > count / 5 && satisfied + violated > 8 * undecided, "{open} {decided:?}");
    assert!(violated > open / 5, "{open} {decided:?}");
}

#[test]
fn oracle_checkers_and_verifier_agree_on_lists_and_conditional_writes_with_a_stated_order() {
    for case in Case::first(volume() / 8) {
        agree(case.mixed_draft(), Reading::with_statements(case));
        agree(case.mixed_draft(), Reading::with_assumptions(case));
    }
}

/// Whether a conditional write failed without saying what it found, and a transaction of unknown outcome
/// read or appended to a list.
fn may_depend_on_lists(history: &History) -> bool {
    let mut ops = (0..history.op_count()).map(OpId::at);
    let is_open = |op: OpId| {
        let ended = history.conditional(op).map(|conditional| conditional.ended);
        ended == Some(ConditionalOutcome::FoundAnother)
            && history.outcome(history.op_txn(op)) != Outcome::Aborted
    };
    let is_of_list = |op: OpId| matches!(history.op(op), Op::ReadList { .. } | Op::Append { .. });
    let unknown = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
    ops.any(is_open) && history.txns().filter(unknown).any(|t| history.txn_ops(t).any(is_of_list))
}

/// The verdicts of checker, oracle and verifier at the levels of snapshots and serial orders.
fn strong_kinds(text: &str) -> [VerdictKind; 3] {
    let draft = Draft::parse(text).expect("well formed");
    agree(draft.clone(), Reading::default());
    let kinds = kinds(&draft);
    let of = |level| kinds.iter().find(|(other, _)| *other == level).map(|(_, kind)| *kind);
    [Level::Prefix, Level::SnapshotIsolation, Level::Serializable]
        .map(|level| of(level).expect("decided by the checker"))
}

#[test]
fn a_failed_insert_shows_that_a_transaction_committed_with_all_that_it_did_to_lists() {
    use VerdictKind::{NotApplicable, Satisfied, Violated};
    for text in [
        "a unknown: w q 1, r x [10]\n b: insert q 2 failed",
        "a: append x 5\n a unknown: w q 1, r x []\n b: insert q 2 failed",
        "a: insert q 1 failed, r y [11]\n b unknown: append y 14, w q 3\n c: append y 11",
        // The one that it shows to have committed shows another one.
        "a unknown: w q 1, r x [10]\n b unknown: insert q 2 failed, w p 1\n c: insert p 2 failed",
    ] {
        assert_eq!(strong_kinds(text), [Violated; 3], "{text}");
    }
    for text in [
        "a: append x 5\n a unknown: w q 1, r x [5]\n b: insert q 2 failed",
        "a: insert q 1 failed, r y [11 14]\n b unknown: append y 14, w q 3\n c: append y 11",
        // Somebody else may be why it failed.
        "a unknown: w q 1, r x [10]\n c unknown: w q 3, r x []\n b: insert q 2 failed",
        "a unknown: w q 1, r x [10]\n c: w q 3\n b: insert q 2 failed",
    ] {
        let d = strong_kinds(text);
        assert!(d.iter().all(|kind| *kind != Violated), "{text} {d:?}");
    }
    let text = "a unknown: w q 1, r x [10]\n c unknown: w q 3\n b: insert q 2 failed";
    assert_eq!(strong_kinds(text), [Satisfied; 3]);
    // Each of the outcomes is wrong in a way of its own.
    let text = "a unknown: w q 1, r x [10]\n c unknown: w q 3, r x [11]\n b: insert q 2 failed";
    assert_eq!(strong_kinds(text), [NotApplicable; 3]);
}

/// Also of an aborted transaction, or of one that replaced its write, at cut isolation.
#[test]
fn at_cut_isolation_a_failed_insert_shows_nothing() {
    for text in [
        "a unknown: w q 1, r x nil, r x 1\n b: insert q 2 failed\n c aborted: w q 5\n d: w x 1",
        "a unknown: w q 1, r x nil, r x 1\n b: insert q 2 failed\n d: w x 1",
    ] {
        agree(Draft::parse(text).expect("well formed"), Reading::default());
    }
}

#[test]
fn at_read_uncommitted_a_read_of_an_intermediate_write_orders_nothing() {
    let at_lowest = |text: &str| {
        let draft = Draft::parse(text).expect("well formed");
        for reading in Case::first(30).map(Reading::with_assumptions) {
            agree(draft.clone(), reading);
        }
        for reading in Case::first(30).map(Reading::with_statements) {
            agree(draft.clone(), reading);
        }
        agree(draft.clone(), Reading::default());
        kinds(&draft).iter().find(|(level, _)| *level == Level::ReadUncommitted).map(|(_, k)| *k)
    };
    let intermediate = "a: r y 1, w y 2, w y 3\n b: r y 2, w y 1";
    assert_eq!(at_lowest(intermediate), Some(VerdictKind::Satisfied));
    let last = "a: r y 1, w y 2, w y 3\n b: r y 3, w y 1";
    assert_eq!(at_lowest(last), Some(VerdictKind::Violated));
    // The last write of the value is the last one of the key.
    let again = "a: r y 1, w y 2, w y 3, w y 2\n b: r y 2, w y 1";
    assert_eq!(at_lowest(again), Some(VerdictKind::Violated));
    // It may have seen either.
    let either = "a: r y 1, w y 2, w y 3\n b: r y 2, w y 1\n c: r y 1, w y 2";
    assert_ne!(at_lowest(either), Some(VerdictKind::Violated));
}

/// Each of the three returned what one transaction wrote that wrote another of them, too, but two of them did
/// not.
#[test]
fn reads_are_compared_with_all_that_came_before() {
    for text in [
        "a: w x 3, w x 4\n b: r x 4, r x nil, r x 3\n c: w x 4, delete x",
        "a: w x 2, w x 3\n b: r x 2, r x 3, r x nil\n c: w x 2, delete x",
    ] {
        agree(Draft::parse(text).expect("well formed"), Reading::default());
    }
}

/// A transaction that may not be there follows its session, whatever it read of lists.
#[test]
fn session_order_is_the_reason_that_needs_no_outcome() {
    let text = "b: append y 1\n a: cas x nil -> 3 failed, r y []\n a unknown: w x 3
                b unknown: w x 4, r y [1]";
    agree(Draft::parse(text).expect("well formed"), Reading::default());
}

/// A version is the last write of its key by its transaction: a read of an earlier one orders nothing at
/// read uncommitted.
#[test]
fn oracle_checkers_and_verifier_agree_on_reads_of_intermediate_writes() {
    let (mut intermediate, mut decided) = (0, 0);
    let count = volume() / 4;
    for case in Case::first(count) {
        let draft = case.intermediate_draft();
        let history = draft.history().expect("small");
        if history.txns().any(|txn| overwrites_after_intermediate_read(&history, txn)) {
            intermediate += 1;
            let kinds = kinds(&draft);
            let at = |level: Level| kinds.iter().find(|(other, _)| *other == level);
            let is_decided = |kind: VerdictKind| kind != VerdictKind::NotApplicable;
            let found = at(Level::ReadUncommitted).is_some_and(|(_, kind)| is_decided(*kind));
            decided += u64::from(found);
        }
        let reading = match case.seed % 5 {
            0 | 1 => Reading::with_statements(case),
            2 => Reading::with_assumptions(case),
            _ => Reading::of(case),
        };
        agree(draft, reading);
    }
    assert!(intermediate > count / 4 && decided > count / 20, "{intermediate} {decided}");
}

/// Whether a committed transaction read a write that another committed one replaced, and then wrote the
/// key itself.
fn overwrites_after_intermediate_read(history: &History, reader: TxnId) -> bool {
    let key = |op: OpId| history.op_keys()[op.index()];
    let is_committed = |txn: TxnId| history.outcome(txn) == Outcome::Committed;
    let writes = |op: OpId| matches!(history.op(op), Op::Write { .. } | Op::Delete { .. });
    let is_intermediate = |read: OpId| {
        let of_key =
            |txn: TxnId| history.txn_ops(txn).filter(|op| key(*op) == key(read) && writes(*op));
        let others = history.txns().filter(|txn| *txn != reader && is_committed(*txn));
        let mut others = others.map(|txn| of_key(txn).collect::<Vec<OpId>>());
        let is_seen = |op: &OpId| history.encoded_version(*op) == history.encoded_version(read);
        let replaced = |ops: &Vec<OpId>| ops.iter().rev().skip(1).any(is_seen);
        matches!(history.op(read), Op::Read { value: Some(_), .. })
            && others.any(|ops| replaced(&ops))
            && of_key(reader).next().is_some_and(|first| first > read)
    };
    is_committed(reader) && history.txn_ops(reader).any(is_intermediate)
}

#[test]
fn oracle_checkers_and_verifier_agree_on_conditional_writes_with_a_stated_order() {
    for case in Case::first(volume() / 4) {
        agree(case.conditional_draft(), Reading::with_statements(case));
        agree(case.conditional_draft(), Reading::with_assumptions(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_lists() {
    for case in Case::first(volume()) {
        agree(case.list_draft(), Reading::of(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_registers_with_a_stated_order() {
    for case in Case::first(volume()) {
        agree(case.draft(), Reading::with_statements(case));
    }
}

#[test]
fn oracle_checkers_and_verifier_agree_on_lists_with_a_stated_order() {
    for case in Case::first(volume() / 2) {
        agree(case.list_draft(), Reading::with_statements(case));
    }
}

/// Who is told to have written first is taken to have done so, whatever it read before.
#[test]
fn at_read_uncommitted_a_stated_order_counts_more_than_what_was_read() {
    let text = "a: w x 1\n b: r x 1, w x 2\n c: r x 2, w x 3";
    let draft = Draft::parse(text).expect("well formed");
    for stated in [Stated::Backwards, Stated::InPairs, Stated::InPart] {
        let reading = Reading { stated, ..Reading::default() };
        agree(draft.clone(), reading);
        let history = draft.history().expect("small");
        let options = reading.by_checker(&reading.orders(&draft, &history));
        let of = |level| check(&history, &[level], &options).remove(0).verdict;
        assert!(of(Level::ReadUncommitted).is_satisfied(), "{stated:?}");
        let contradicts = stated != Stated::InPart;
        assert_eq!(of(Level::AdyaReadCommitted).is_violated(), contradicts, "{stated:?}");
    }
}

/// What is stated about a version that may not be there says something about the others.
#[test]
fn statements_imply_an_order_by_way_of_unknown_outcomes() {
    let text = "a: w x 1\n b unknown: w x 2\n a: r y 3, r x 4, w x 5\n c: r x 1, w x 4, w y 3";
    let draft = Draft::parse(text).expect("well formed");
    agree(draft, Reading { stated: Stated::InPairs, ..Reading::default() });
}

#[test]
fn a_read_between_two_own_writes_of_one_value_saw_the_first() {
    let draft = Draft::parse("a: w x 3, r x 3, w x 3").expect("well formed");
    agree(draft, Reading::default());
}

/// That a transaction which may not be there follows its session is one reason, and that the other had
/// read what it overwrote is another: only the first leads from commit to start.
#[test]
fn a_transaction_that_may_not_be_there_follows_its_session() {
    let text = "a: w x 1, r y nil\n a unknown: r x nil, w y 2\n b unknown: r y 3, w y 2
                b: r y 2, w y 3";
    agree(Draft::parse(text).expect("well formed"), Reading::default());
}

/// Cut isolation does not count what an aborted transaction may have written.
#[test]
fn a_read_that_may_be_of_an_aborted_write_need_not_agree_with_another() {
    let text = "a aborted: w y 2\n a: w y 2, w y 3\n b: r y nil, r y 2";
    agree(
        Draft::parse(text).expect("well formed"),
        Reading { session_order: false, ..Reading::default() },
    );
}

/// Whose version it overwrote, the reader does not tell; that it overwrote one of them counts.
#[test]
fn a_transaction_that_overwrote_one_of_two_versions_came_after_one_of_them() {
    let text = "b: r y 5, delete y\n a: w y 5, w y 6\n b: w y 5, w y 8";
    let draft = Draft::parse(text).expect("well formed");
    for stated in [Stated::Nothing, Stated::InOrder, Stated::Backwards] {
        agree(draft.clone(), Reading { stated, ..Reading::default() });
    }
}

/// It is enough for cut isolation if both reads may have been of one transaction.
#[test]
fn reads_agree_if_one_transaction_may_have_written_both() {
    let text = "a: w x 1, w x 2\n b: r x 2, r x 1\n c: w x 1, w x 4";
    agree(Draft::parse(text).expect("well formed"), Reading::default());
}

/// Each write of 3 was replaced by its transaction, so that the read is wrong at all other levels. At cut
/// isolation it did see one of them, and not the initial value.
#[test]
fn a_read_that_is_wrong_whatever_it_saw_counts_for_cut_isolation() {
    let text = "a: r x 3, r x nil\n a: w x 3, w x 4\n a: w x 3, w x 5";
    agree(Draft::parse(text).expect("well formed"), Reading::default());
}

#[test]
fn an_element_is_wrong_if_everyone_who_appended_it_is() {
    for text in [
        "a: r x [1], append x 1\n b aborted: append x 1",
        "a aborted: append x 1\n b: r x [1], append x 1",
        "a: append x 1, r x [1 1]\n b aborted: append x 1",
        "a: append x 1, r x [1 1], append x 1\n b aborted: append x 1",
        "a: append x 1, r x [1 1]\n b: append x 1",
    ] {
        agree(Draft::parse(text).expect("well formed"), Reading::default());
    }
}

/// What its own session wrote only later is wrong to have seen, also if it was written twice.
#[test]
fn a_read_is_wrong_if_its_own_session_wrote_it_only_later_whichever_write_it_was() {
    let levels = [Level::AdyaReadCommitted, Level::Causal, Level::Serializable];
    let check = |text: &str| {
        let draft = Draft::parse(text).expect("well formed");
        agree(draft.clone(), Reading::default());
        agree(draft.clone(), Reading { session_order: false, ..Reading::default() });
        check(&draft.history().expect("small"), &levels, &Reading::default().by_checker(&[]))
    };
    for text in [
        "a: r x 1\n a: w x 1\n a: w x 1",
        "a: r x 1\n a: w x 1\n a: w x 1\n b aborted: w x 1",
        "a: r x 1\n a: w x 1\n a unknown: w x 1\n b: w x 1, w x 2",
    ] {
        assert!(check(text).iter().all(|result| result.verdict.is_violated()), "{text}");
    }
    for text in [
        "a: r x 1\n a: w x 1\n a: w x 1\n b: w x 1",
        "initial 1\n a: r x 1\n a: w x 1\n a: w x 1",
        "a unknown: r x 1\n a: w x 1\n a: w x 1\n b: r x 1",
    ] {
        assert!(!check(text).iter().any(|result| result.verdict.is_violated()), "{text}");
    }
}

fn kinds(draft: &Draft) -> Vec<(Level, VerdictKind)> {
    kinds_with(draft, Reading::default())
}

fn kinds_with(draft: &Draft, reading: Reading) -> Vec<(Level, VerdictKind)> {
    let history = draft.history().expect("small");
    let results = check(&history, supported(), &reading.by_checker(&[]));
    results.iter().map(|result| (result.level, result.verdict.kind())).collect()
}

/// A list shows more than a register: whatever explains what all reads of lists show explains what the
/// reads of registers saw. Not at read uncommitted, where dirty reads of lists mean less than those of
/// registers.
#[test]
fn the_append_twin_of_a_violation_is_never_satisfied() {
    let mut compared = [0; 2];
    for case in Case::first(volume()) {
        let registers = case.draft();
        let Some(lists) = append_twin_in_some_order(&registers, case.seed) else { continue };
        for ((level, of_registers), (_, of_lists)) in kinds(&registers).iter().zip(kinds(&lists)) {
            let is_clean = !matches!(level, Level::ReadUncommitted | Level::StrongReadUncommitted);
            let satisfied = is_clean && of_lists == VerdictKind::Satisfied;
            let violated = *of_registers == VerdictKind::Violated;
            assert!(!satisfied || !violated, "{level}\n{registers}\n{lists}");
            compared[0] += u64::from(satisfied);
            compared[1] += u64::from(violated);
        }
    }
    assert!(compared.iter().all(|count| *count > volume() / 10), "{compared:?}");
}

/// Where every write follows a read, registers show the order of their versions as lists do. Below, two may
/// have overwritten one version, and registers forget what lists show.
#[test]
fn append_twins_have_equal_verdicts_where_every_write_follows_a_read() {
    let mut compared = [0; 2];
    let no_update_is_lost = |level: Level| {
        AnomalyKind::LostUpdate.forbidden_at(level) && !level.needs().single_operations
    };
    for case in Case::first(volume()) {
        let registers = case.read_modify_write_draft();
        let Some(lists) = append_twin(&registers) else { continue };
        for ((level, of_registers), (_, of_lists)) in kinds(&registers).iter().zip(kinds(&lists)) {
            if no_update_is_lost(*level) && *of_registers != VerdictKind::NotApplicable {
                assert_eq!(*of_registers, of_lists, "{level}\n{registers}\n{lists}");
                compared[usize::from(of_lists == VerdictKind::Satisfied)] += 1;
            }
        }
    }
    assert!(compared.iter().all(|count| *count > volume() / 10), "{compared:?}");
}
