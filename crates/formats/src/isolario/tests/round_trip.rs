//! What goes in comes out.

use isolario_fuzz::arbitrary::{Facts, history_of};
use isolario_model::{Op, OpInput, Outcome, ValueRef};
use proptest::prelude::*;

use super::{BlockSize, any, blocks, history, load, mixed_file, tell, write};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_history_comes_back(
        expected in history_of(Facts::All, 0..20),
        in_blocks in 0..20usize,
        per_block in 1..20usize,
    ) {
        let size = BlockSize { txns: per_block, ..BlockSize::default() };
        let in_blocks = in_blocks.min(expected.txn_count());
        for bytes in [
            blocks(size, |sink| expected.replay(sink)),
            mixed_file(&expected, in_blocks, per_block),
        ] {
            let loaded = load(&bytes).unwrap();
            prop_assert!(loaded.history == expected);
            prop_assert!(loaded.warnings.is_empty() && loaded.ignored.is_empty());
        }
    }
}

#[test]
fn the_same_history_gives_the_same_bytes() {
    let bytes = || blocks(BlockSize::default(), |sink| any(50).replay(sink));
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_history_of_nothing_is_a_file() {
    let bytes = blocks(BlockSize::default(), |_| Ok(()));
    let loaded = load(&bytes).unwrap();
    assert_eq!((loaded.history.txn_count(), loaded.warnings.len()), (0, 0));
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads() {
    let bytes = blocks(BlockSize { txns: 7, parts: 50, ..BlockSize::default() }, |sink| {
        any(300).replay(sink)
    });
    let load_with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| load(&bytes).unwrap().history)
    };
    let (one, four) = (load_with(1), load_with(4));
    assert!(one == four);
    assert_eq!(one.encoded_values(), four.encoded_values());
    assert_eq!(one.op_keys(), four.op_keys());
}

#[test]
fn long_lists_cost_what_they_add_and_those_that_diverge_come_back() {
    let list = |len: i64| (0..len).map(ValueRef::Int).collect::<Vec<_>>();
    let (long, mut other) = (list(1000), list(900));
    other[10] = ValueRef::Int(-1);
    let read = |elements| Op::ReadList { key: ValueRef::Text("l"), elements: Some(elements) };
    let mut ops: Vec<OpInput<'_>> = (0..1000).map(|len| read(&long[..len])).collect();
    ops.extend([read(&other), read(&other[..20]), read(&long[..5]), read(&[])]);
    let fill = |sink: &mut dyn isolario_model::TxnSink| tell(sink, 1, &ops, Outcome::Committed);
    let bytes = blocks(BlockSize::default(), fill);
    assert!(bytes.len() < 8000, "{} bytes for half a million elements", bytes.len());
    assert!(load(&bytes).unwrap().history == history(fill));
}

#[test]
fn a_transaction_larger_than_a_block_is_a_block() {
    let ops: Vec<_> = (0..500).map(|i| write(i, i)).collect();
    let fill = |sink: &mut dyn isolario_model::TxnSink| {
        (0..5).try_for_each(|session| tell(sink, session, &ops, Outcome::Aborted))
    };
    let bytes = blocks(BlockSize { txns: 100, parts: 10, ..BlockSize::default() }, fill);
    assert!(load(&bytes).unwrap().history == history(fill));
}
