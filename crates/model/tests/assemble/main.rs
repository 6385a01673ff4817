//! However transactions arrive, the history is the same, and it is what a naive model says.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod arrivals;
mod figures;
mod reference;

use arrivals::{TestOp, TestTxn, feed, owned_key, pieces, txns};
use figures::check_figures;
use isolario_model::{Batch, BatchEntries, Clock, History, KeyId, Meta, OpId, SinkError, TxnSink};
use proptest::prelude::*;
use reference::check_against_reference;

fn batch_of(txns: &[TestTxn]) -> Batch {
    let mut batch = Batch::new();
    txns.iter().for_each(|txn| feed(txn, &mut batch));
    batch
}

/// Equal histories whose ids are the same, too: nothing tells how they were loaded.
fn assert_identical(a: &History, b: &History) {
    assert!(a == b);
    assert_eq!(a.op_kinds(), b.op_kinds());
    assert_eq!(a.op_keys(), b.op_keys());
    assert_eq!(a.encoded_values(), b.encoded_values());
    assert_eq!(a.key_count(), b.key_count());
    for key in (0..a.key_count()).map(KeyId::at) {
        assert_eq!(a.key_name(key), b.key_name(key));
        assert_eq!(a.list_pool(key), b.list_pool(key));
    }
    for op in (0..a.op_count()).map(OpId::at) {
        assert_eq!(a.op_version_id(op), b.op_version_id(op));
    }
}

/// Cuts a sequence at the given places.
fn cut<T: Clone>(items: &[T], cuts: &[prop::sample::Index]) -> Vec<Vec<T>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(items.len() + 1)).collect();
    places.extend([0, items.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| items[pair[0]..pair[1]].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_replayed_history_is_equal(txns in txns()) {
        let history = batch_of(&txns).build().unwrap();
        let mut again = Batch::new();
        history.replay(&mut again).unwrap();
        prop_assert!(again.build().unwrap() == history);
    }

    #[test]
    fn batches_cut_anywhere_join_to_the_same_history(
        txns in txns(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let whole = batch_of(&txns).build().unwrap();
        let batches = cut(&txns, &cuts).iter().map(|part| batch_of(part)).collect();
        assert_identical(&History::from_batches(batches, BatchEntries::Whole).unwrap(), &whole);
    }

    #[test]
    fn transactions_in_interleaved_pieces_are_put_together(
        (txns, pieces) in pieces(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let whole = batch_of(&txns).build().unwrap();
        let batches = cut(&pieces, &cuts).iter().map(|part| batch_of(part)).collect();
        let joined = History::from_batches(batches, BatchEntries::ByName).unwrap();
        prop_assert!(joined == whole);
        let single = History::from_batches(vec![batch_of(&pieces)], BatchEntries::ByName).unwrap();
        assert_identical(&joined, &single);
    }

    #[test]
    fn the_accessors_agree_with_a_naive_model(txns in txns()) {
        check_against_reference(&txns, &batch_of(&txns).build().unwrap());
    }

    #[test]
    fn figures_and_findings_agree_with_naive_counts(txns in txns()) {
        check_figures(&txns, &batch_of(&txns).build().unwrap());
    }
}

#[test]
fn no_batches_are_an_empty_history() {
    let history = History::from_batches(Vec::new(), BatchEntries::Whole).unwrap();
    assert!(history == Batch::new().build().unwrap());
    assert_eq!((history.txn_count(), history.session_count()), (0, 0));
}

#[test]
fn the_first_batchs_meta_holds() {
    let meta = Meta { clock: Clock::EventOrder, ..Meta::default() };
    let mut first = Batch::new();
    first.meta(&meta).unwrap();
    let history = History::from_batches(vec![first, Batch::new()], BatchEntries::Whole).unwrap();
    assert_eq!(*history.meta(), meta);
}

#[test]
fn pieces_of_one_name_in_two_sessions_are_refused() {
    let txn = |session| TestTxn::named(owned_key(session), owned_key(7));
    let batches = [txn(0), txn(1)].iter().map(|txn| batch_of(std::slice::from_ref(txn))).collect();
    let error = History::from_batches(batches, BatchEntries::ByName).unwrap_err();
    assert!(matches!(error, SinkError::TwoSessions { .. }));
    assert_eq!(error.to_string(), "transaction 7 belongs to session 0 and to session 1");
}

#[test]
fn nameless_pieces_that_follow_one_another_in_their_session_are_one_transaction() {
    let nameless = |session, value: i64| {
        let mut txn = TestTxn::named(owned_key(session), owned_key(0));
        txn.id = None;
        txn.ops.push((TestOp::Write(owned_key(1), owned_key(value)), Default::default()));
        txn
    };
    let named = TestTxn::named(owned_key(0), owned_key(5));
    // Another session in between parts nothing; a named transaction does.
    let arrivals = [nameless(0, 1), nameless(1, 2), nameless(0, 3), named, nameless(0, 4)];
    let history = History::from_batches(vec![batch_of(&arrivals)], BatchEntries::ByName).unwrap();
    let sizes: Vec<_> = history.txns().map(|txn| history.op_range(txn).len()).collect();
    assert_eq!(sizes, [2, 0, 1, 1]);
    assert_eq!(history.session_count(), 2);
}
