//! Files whose checksums fit and whose content does not.

use isolario_model::{Meta, TxnSink, TxnStart, ValueRef};

use super::super::block::{Block, Names};
use super::super::layout::{Version, frame, put_frame, put_header};
use super::{BlockSize, Outcome, TxnEnd, Writer, load, tell, write};

/// A file with these frames.
fn file(frames: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_header(&mut bytes, Version::First, &Meta::default()).unwrap();
    for (kind, content) in frames {
        let fill = |out: &mut Vec<u8>| {
            out.extend_from_slice(content);
            Ok(())
        };
        put_frame(&mut bytes, *kind, fill).unwrap();
    }
    bytes
}

fn error(frames: &[(u8, &[u8])]) -> String {
    load(&file(frames)).unwrap_err().to_string()
}

fn block(change: impl FnOnce(&mut Block)) -> Vec<u8> {
    let mut block = Block::default();
    change(&mut block);
    let mut content = Vec::new();
    block.put(&mut content).unwrap();
    content
}

/// `begin`: transaction 0, no facts, session 7, nothing intended.
const BEGIN: (u8, &[u8]) = (frame::BEGIN, &[0, 0, 3, 14, 0]);

#[test]
fn records_that_make_no_sense_are_refused() {
    let empty = block(|_| ());
    assert!(error(&[BEGIN, BEGIN]).contains("0, which has begun already"));
    assert!(error(&[(frame::END, &[0, 0, 0])]).contains("0, which has not, or has ended"));
    assert!(error(&[(frame::OP, &[9])]).contains("9, which has not, or has ended"));
    assert!(error(&[BEGIN, (frame::END, &[0, 3, 0])]).contains("an outcome, 0 to 2"));
    assert!(error(&[BEGIN, (frame::END, &[0, 0, 0, 0])]).contains("1 more bytes"));
    assert!(error(&[BEGIN, (frame::BLOCK, &empty)]).contains("found a block"));
    assert!(error(&[(frame::FINISH, &[0; 8]), BEGIN]).contains("nothing after the end mark"));
    assert!(error(&[(0x7f, &[])]).contains("127: a newer isolario may know it"));
}

#[test]
fn optional_records_of_later_versions_are_counted() {
    let loaded = load(&file(&[(0x80, b"?"), (0xff, b""), (frame::FINISH, &[0; 8])])).unwrap();
    assert_eq!(loaded.ignored[0].count, 2);
    assert!(loaded.warnings.is_empty());
}

#[test]
fn blocks_that_make_no_sense_are_refused() {
    let one_txn = |change: fn(&mut Block)| {
        let content = block(|block| {
            block.sessions = Names::of([ValueRef::Int(7)].into_iter());
            block.outcomes = vec![0];
            block.facts = vec![0];
            block.txn_sessions = vec![0];
            block.txn_ops = vec![0];
            change(block);
        });
        load(&file(&[(frame::BLOCK, &content), (frame::FINISH, &1u64.to_le_bytes())]))
            .map(|loaded| loaded.history.txn_count())
            .map_err(|error| error.to_string())
    };
    assert_eq!(one_txn(|_| ()), Ok(1));
    let refused = |change, why: &str| {
        let error = one_txn(change).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused(|block| block.txn_sessions = vec![1], "the index of one of 1 sessions, found 1");
    refused(|block| block.txn_sessions = vec![-1], "the index of one of 1 sessions, found -1");
    refused(|block| block.txn_ops = vec![1 << 60], "a number of operations, at most 0");
    refused(|block| block.facts = vec![1], "more values in a block");
    refused(|block| block.outcomes = vec![9], "an outcome, 0 to 2");
    refused(|block| block.outcomes = vec![], "1 more than its transactions have use for");
    refused(|block| block.heads = vec![0], "an end of the operations");
    refused(
        |block| (block.txn_ops, block.heads) = (vec![1], vec![0x3f]),
        "a kind of operation, 0 to 11",
    );
    refused(
        |block| {
            block.keys = Names::of([ValueRef::Int(7)].into_iter());
            (block.txn_ops, block.heads, block.op_keys) = (vec![1], vec![5], vec![0]);
            block.counts = vec![3, 1];
        },
        "a list that begins or continues one of 0 elements",
    );
}

#[test]
fn a_block_that_claims_too_much_is_refused_before_it_is_unpacked() {
    let mut content = block(|_| ());
    content[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let message = error(&[(frame::BLOCK, &content), (frame::FINISH, &[0; 8])]);
    assert!(message.contains("bytes of columns in"), "{message}");
}

#[test]
fn the_writer_wants_calls_in_order() {
    let mut writer = Writer::new(Vec::new(), BlockSize::default());
    let start = TxnStart { session: ValueRef::Int(1), id: None, line: None };
    assert!(writer.op(&write(1, 1)).is_err());
    assert!(writer.end(&TxnEnd::new(Outcome::Committed)).is_err());
    tell(&mut writer, 1, &[], Outcome::Committed).unwrap();
    assert!(writer.meta(&Meta::default()).is_err());
    writer.begin(&start).unwrap();
    assert!(writer.begin(&start).is_err());
    assert!(writer.complete().is_err());
}
