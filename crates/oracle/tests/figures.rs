//! The papers' figures, and the places where the semantics of histories are easily got wrong.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use isolario_model::{KeyId, Level, Level::*, StatedOrder, TxnId};
use isolario_oracle::{
    Answer, Options, has_bad_read, history, is_ambiguous, levels, satisfies, satisfies_stated,
};

fn answer(text: &str, level: Level, options: Options) -> Answer {
    satisfies(&history(text), level, options)
}

/// Asserts the strongest level satisfied and the weakest violated.
#[track_caller]
fn between(text: &str, satisfied: Level, violated: Level) {
    satisfies_level(text, satisfied);
    violates_level(text, violated);
}

#[track_caller]
fn satisfies_level(text: &str, level: Level) {
    assert_eq!(answer(text, level, Options::default()), Answer::Satisfied, "{level}");
}

#[track_caller]
fn violates_level(text: &str, level: Level) {
    assert_eq!(answer(text, level, Options::default()), Answer::Violated, "{level}");
}

#[test]
fn awdit_figure_1a_is_not_read_committed() {
    let text = "t1: w x 1
                t2: w x 2
                t3: w x 3
                t3: w x 4, w z 4
                t5: r x 1, r x 2, r x 3
                t6: r z 4, r x 1";
    between(text, AdyaReadCommitted, ReadCommitted);
}

#[test]
fn awdit_figure_1b_is_not_causal() {
    let text = "a: w x 2, w y 2
                b: w x 4
                b: w z 5
                c: r z 5, w x 6, w u 6
                d: r y 2, r u 6, w v 7
                d: r x 4";
    between(text, ReadAtomic, Causal);
}

#[test]
fn awdit_figure_2_breaks_read_consistency_five_ways() {
    for text in [
        "initial none\n a: r x 1",
        "a aborted: w x 1\n b: r x 1",
        "a: r x 1, w x 1",
        "a: w x 1\n b: w x 2, r x 1",
        "a: w x 1, w x 2\n b: r x 1",
        "a: w x 1, w x 2, r x 1",
    ] {
        violates_level(text, AdyaReadCommitted);
        satisfies_level(text, CutIsolation);
    }
}

#[test]
fn awdit_figure_4a_is_not_read_committed() {
    let text = "a: w x 1\n a: w x 2\n b: r x 2, r x 1";
    between(text, AdyaReadCommitted, ReadCommitted);
}

#[test]
fn awdit_figure_4b_is_read_committed_and_not_read_atomic() {
    between("a: w x 1\n a: w x 2, w y 2\n b: r x 1, r y 2", ReadCommitted, ReadAtomic);
}

#[test]
fn awdit_figure_4c_is_read_atomic_and_not_causal() {
    let text = "a: w x 1\n a: w x 2\n b: r x 2, w y 3\n c: r x 1, r y 3";
    between(text, ReadAtomic, Causal);
}

#[test]
fn awdit_figure_4d_is_causal_and_not_serializable() {
    let text = "a: w x 1\n a: r x 1, w x 2\n b: r x 1, w x 4";
    between(text, Causal, Serializable);
}

#[test]
fn long_forks_separate_causal_from_prefix() {
    let text = "a: w x 1\n b: w y 1\n c: r x 1, r y nil\n d: r x nil, r y 1";
    between(text, Causal, Prefix);
}

#[test]
fn lost_updates_separate_prefix_from_snapshot_isolation() {
    between("a: r x nil, w x 1\n b: r x nil, w x 2", Prefix, SnapshotIsolation);
}

#[test]
fn write_skew_separates_snapshot_isolation_from_serializable() {
    let text = "a: r x nil, w y 1\n b: r y nil, w x 1";
    between(text, SnapshotIsolation, Serializable);
}

#[test]
fn stale_reads_separate_the_strict_levels_from_the_others() {
    let text = "a [1, 2]: w x 1\n b [3, 4]: r x nil";
    between(text, Serializable, StrongSnapshotIsolation);
    between(text, Serializable, StrictSerializable);
    satisfies_level("a [1, 3]: w x 1\n b [3, 4]: r x nil", StrictSerializable);
}

#[test]
fn cut_isolation_and_read_committed_are_incomparable() {
    between("a: w x 1\n b: r x nil, r x 1", ReadCommitted, CutIsolation);
    between("a aborted: w x 1\n b: r x 1, r x 1", CutIsolation, AdyaReadCommitted);
}

#[test]
fn the_initial_state_precedes_every_session() {
    between("a: w x 1\n a: r x nil", ReadCommitted, ReadAtomic);
    let alone = Options::default().with_session_order(false);
    let text = "a: w x 1\n a: r x nil";
    assert_eq!(answer(text, Serializable, alone), Answer::Satisfied);
    assert_eq!(answer("a: r x nil, r y nil\n a: r x nil", Serializable, alone), Answer::Satisfied);
}

#[test]
fn an_initial_value_that_is_also_written_leaves_a_choice() {
    satisfies_level("a: w x 1\n a: delete x\n a: r x nil", Serializable);
    violates_level("initial 0 unless written\n a: r x 0\n a: w x 0", AdyaReadCommitted);
    satisfies_level("initial 0\n a: r x 0\n a: w x 0", Serializable);
}

#[test]
fn an_unknown_transaction_that_was_read_from_did_commit() {
    satisfies_level("a unknown: w x 1\n b: r x 1", Serializable);
    violates_level("a unknown: w x 1, w y 1\n b: r x 1, r y nil", ReadAtomic);
    violates_level("a unknown: w x 1\n b: w x 2\n c: r x 1, r x 2", CutIsolation);
}

#[test]
fn an_unknown_transaction_that_nobody_saw_may_have_aborted() {
    satisfies_level("a unknown: w x 1\n a: r x nil", Serializable);
    satisfies_level("a unknown: r x 77", Serializable);
}

#[test]
fn nothing_follows_an_unknown_transaction_in_its_session() {
    satisfies_level("a unknown: w x 1\n a: r x nil\n b: r x 1", Serializable);
    violates_level("a: w x 1\n a unknown: w x 2\n b: r x 2\n b: r x 1", Causal);
    satisfies_level("a unknown [1, 2]: w x 1\n b [3, 4]: r x nil\n c: r x 1", StrictSerializable);
}

#[test]
fn an_unknown_delete_may_be_the_reason_for_what_was_seen() {
    satisfies_level("a: w x 1\n b unknown: delete x\n a: r x nil", Serializable);
}

#[test]
fn reads_of_duplicates_may_have_seen_either_write() {
    satisfies_level("a: w x 1\n a: w x 2\n b: w x 1\n a: r x 1", Serializable);
    satisfies_level("a aborted: w x 1\n b: w x 1\n c: r x 1", Serializable);
}

#[test]
fn lists_are_read_from_the_writer_of_the_last_element_of_others() {
    between("a: append x 1, append y 1\n b: r x [1], r y []", AdyaReadCommitted, ReadCommitted);
    between("a: append x 1, append y 1\n b: r y [], r x [1]", ReadCommitted, ReadAtomic);
    let first = "a: append x 1, append y 1\n b: append x 2\n c: r x [1 2], r y []";
    satisfies_level(first, Causal);
    satisfies_level("a: append x 1\n b: append x 2, r x [1 2], append x 3, r x [1 2 3]", Causal);
}

#[test]
fn the_order_of_elements_orders_their_writers() {
    violates_level("a: append x 1\n a: append x 2\n b: r x [2 1]", ReadCommitted);
    violates_level(
        "a: append x 1, append y 1\n b: append x 2, append y 2\n c: r x [1 2], r y [2 1]",
        ReadCommitted,
    );
}

#[test]
fn bad_list_reads_break_read_consistency() {
    for text in [
        "a: r x [1]",
        "a aborted: append x 1\n b: r x [1]",
        "a: append x 1\n b: r x [1 1]",
        "a: append x 1, append x 2\n b: r x [1]",
        "a: append x 1, append x 2\n b: r x [2 1]",
        "a: append x 1, r x []",
        "a: append x 1\n b: append x 2, r x [2 1]",
        "a: r x [1], append x 1",
        "a: append x 1\n b: append x 2\n c: r x [1]\n d: r x [2]",
    ] {
        violates_level(text, ReadCommitted);
    }
}

#[test]
fn lists_never_forget() {
    // Session order puts the first append before the second, which does not hold it.
    violates_level("a: append x 1\n a: append x 2\n b: r x [2]", AdyaReadCommitted);
    satisfies_level("a: append x 1\n b: append x 2\n c: r x [2]", Serializable);
    // Read atomic puts T2 before T1, and then T3 would have seen both.
    between("a: append x 1\n b: append x 2\n b: r x [1]", ReadCommitted, ReadAtomic);
    // A register may have been overwritten instead.
    satisfies_level("a: w x 1\n b: w x 2\n b: r x 1", Serializable);
    // What nobody saw of a transaction of unknown outcome need not have happened.
    satisfies_level("a unknown: append x 1\n a: append x 2\n b: r x [2]", Serializable);
    violates_level(
        "a unknown: append x 1\n b: r x [1]\n b: append x 2\n c: r x [2]",
        AdyaReadCommitted,
    );
    // Two lists, of which each leaves out what the other shows.
    let crossed = "a: append x 1, append y 1\n b: append x 2, append y 2\n c: r x [1]\n d: r y [2]";
    violates_level(crossed, AdyaReadCommitted);
}

#[test]
fn lists_have_the_levels_of_registers() {
    between("a: r x [], append y 1\n b: r y [], append x 1", SnapshotIsolation, Serializable);
    between("a: r x [], append x 1\n b: r x [], append x 2", Prefix, SnapshotIsolation);
    let fork = "a: append x 1\n b: append y 1\n c: r x [1], r y []\n d: r x [], r y [1]";
    between(fork, Causal, Prefix);
    between("a [1, 2]: append x 1\n b [3, 4]: r x []", Serializable, StrictSerializable);
}

#[test]
fn equal_elements_may_be_of_either_transaction() {
    satisfies_level("a: append x 1\n b: append x 1\n c: r x [1 1]", Serializable);
    between("a: append x 1\n a: append x 1\n b: r x [1]\n b: r x []", ReadAtomic, Causal);
    violates_level("a aborted: append x 1\n b: append x 1\n c: r x [1 1]", AdyaReadCommitted);
}

#[test]
fn a_key_has_one_initial_value_though_any_may_be_it() {
    let two = "initial unwritten\n a: r x 5\n b: r x 7";
    violates_level(two, AdyaReadCommitted);
    satisfies_level(two, CutIsolation);
    violates_level("initial unwritten\n a: r x 5, r x 7", CutIsolation);
    satisfies_level("initial unwritten\n a: r x 5\n b: r x 5, r y 7", Serializable);
    satisfies_level("initial unwritten\n a: r x 5\n b aborted: r x 7", Serializable);
    satisfies_level("initial unwritten\n a: r x 5\n b unknown: r x 7", Serializable);
    violates_level("initial unwritten\n a [1, 2]: r x 5\n b [3, 4]: r x 7", Linearizable);
    satisfies_level("initial unwritten\n a [1, 2]: r x 5\n b [3, 4]: r y 7", Linearizable);
    violates_level("initial unwritten\n a [1, 2]: r x 5\n b [3, 4]: insert x 1 ok", Linearizable);
    satisfies_level(
        "initial unwritten\n a [1, 2]: cas x 5 -> 6 failed\n b [3, 4]: r x 7",
        Linearizable,
    );
    violates_level(
        "initial unwritten\n a [1, 2]: cas x 5 -> 6 failed\n b [3, 4]: r x 5",
        Linearizable,
    );
}

#[test]
fn a_read_is_wrong_if_every_write_that_it_may_have_seen_is() {
    for text in [
        "a aborted: w x 1\n b aborted: w x 1\n c: r x 1",
        "a aborted: w x 1\n b: r x 1, w x 1",
        "a: w x 1, w x 2\n b aborted: w x 1\n c: r x 1",
        "a aborted: append x 1\n b aborted: append x 1\n c: r x [1]",
    ] {
        violates_level(text, AdyaReadCommitted);
        let history = history(text);
        assert!(has_bad_read(&history) && !is_ambiguous(&history, Causal), "{text}");
    }
    // Both are of the reader's future.
    violates_level("a: r x 1\n a: w x 1\n a: w x 1", AdyaReadCommitted);
}

#[test]
fn stated_orders_count_at_every_level_with_an_order() {
    let answer = |text: &str, writers: &[u32], level| {
        let history = history(text);
        let writers = writers.iter().map(|txn| TxnId(*txn)).collect();
        let stated = [StatedOrder { key: KeyId(0), writers, at: 1 }];
        satisfies_stated(&history, level, Options::default(), &stated)
    };
    let text = "a: w x 1\n b: r x 1, w x 2";
    let init = TxnId::INIT.0;
    for level in levels().filter(|level| *level != CutIsolation) {
        // Where reads may be dirty, they only suggest an order.
        let backwards = match level {
            ReadUncommitted | StrongReadUncommitted => Answer::Satisfied,
            _ => Answer::Violated,
        };
        for (writers, expected) in [
            (&[0, 1][..], Answer::Satisfied),
            (&[init, 0, 1], Answer::Satisfied),
            (&[1, 0], backwards),
            (&[0, init], Answer::Violated),
        ] {
            assert_eq!(answer(text, writers, level), expected, "{level}: {writers:?}");
        }
    }
    assert_eq!(answer(text, &[1, 0], CutIsolation), Answer::Satisfied);
    // The rule of a level, and a statement, against each other.
    let text = "a: w x 1\n b: w x 2\n c: r x 2, r x 1";
    assert_eq!(answer(text, &[0, 1], AdyaReadCommitted), Answer::Satisfied);
    assert_eq!(answer(text, &[0, 1], ReadCommitted), Answer::Violated);
    assert_eq!(answer(text, &[1, 0], ReadCommitted), Answer::Satisfied);
}

#[test]
fn what_the_oracle_has_no_axioms_for_is_unsupported() {
    let options = Options::default();
    assert_eq!(answer("a: w x 1", Linearizable, options), Answer::Unsupported);
    assert_eq!(answer(&"a: w x 1\n".repeat(11), Causal, options), Answer::Unsupported);
}
