//! Plume text there and back; each direction alone is in a file of its own.

mod reading;
mod writing;

use isolario_model::{History, KeyId, Op, SinkError, TxnId, TxnSink};
use proptest::prelude::*;

use super::*;
use crate::Meter;

/// One chunk, unless a test says otherwise.
fn parse(text: &str) -> Result<History, Fault> {
    read(text.as_bytes(), usize::MAX, &Meter::default())
}

/// A transaction on one line: session, name, outcome, operations.
fn show(history: &History, txn: TxnId) -> String {
    let mut line = format!(
        "{} {} {:?}",
        history.session_name(history.session_of(txn)),
        history.txn_name(txn).map_or("-".to_owned(), |name| name.to_string()),
        history.outcome(txn)
    );
    for op in history.txn_ops(txn) {
        history.with_op_input(op, |op| match op {
            Op::Read { key, value: Some(value) } => line += &format!(" r{key}={value}"),
            Op::Write { key, value } => line += &format!(" w{key}={value}"),
            other => panic!("{other:?}"),
        });
    }
    line
}

fn write_with(
    tell: impl FnOnce(&mut dyn TxnSink) -> Result<(), SinkError>,
) -> Result<String, SinkError> {
    let file = tempfile::NamedTempFile::new()?;
    let mut writer = Plume.writer(OutputTarget::Path(file.path().to_owned()))?;
    tell(&mut *writer)?;
    writer.finish()?;
    Ok(std::fs::read_to_string(file.path())?)
}

/// All transactions; aborted ones that follow one another in a session as the one that Plume text
/// makes of them.
fn show_joined(history: &History) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for txn in history.txns() {
        let line = show(history, txn);
        let joined = shown.last_mut().and_then(|last| {
            let (owner, ops) = line.split_once(" - Aborted")?;
            last.starts_with(&format!("{owner} - Aborted")).then(|| last.push_str(ops))
        });
        if joined.is_none() {
            shown.push(line);
        }
    }
    shown
}

/// Text of few sessions, transactions and keys, which then meet often. A transaction's session
/// follows from its name, so that the text is consistent.
fn texts() -> impl Strategy<Value = String> {
    let number = prop_oneof![0..4u64, Just(u64::MAX), Just(1 << 62)];
    let line = (any::<bool>(), number.clone(), number, -3..12i64, 0..9u8);
    prop::collection::vec(line, 0..40).prop_map(|lines| {
        let mut text = String::new();
        for (is_write, key, value, txn, decoration) in lines {
            let kind = if is_write { 'w' } else { 'r' };
            let session = txn.rem_euclid(3);
            let txn = txn.max(-1);
            let end = match decoration {
                0 => "\r\n",
                1 => "\n\n",
                2 => " \n \n",
                _ => "\n",
            };
            text += &format!("{kind}({key},{value},{session},{txn}){end}");
        }
        text
    })
}

#[test]
fn threads_do_not_show() {
    // Large numbers and interleaved transactions among small ones, in every session.
    let lines = (0..3000u64).map(|i| {
        let (session, txn) = (i % 7, i % 7 + 7 * (i / 40));
        let txn = if txn % 11 == 0 { u64::MAX - txn } else { txn };
        format!("w({},{},{session},{txn})\n", i * i % 1201, i << (i % 60))
    });
    let text: String = lines.collect();
    let whole = parse(&text).unwrap();
    for threads in [1, 2, 3, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let history = pool.install(|| read(text.as_bytes(), 1000, &Meter::default())).unwrap();
        assert_eq!(history, whole);
        assert_eq!(history.op_keys(), whole.op_keys());
        assert_eq!(history.encoded_values(), whole.encoded_values());
    }
}

/// Text of transactions that stand in one piece each, in sessions by turns, with names and keys in any
/// order; now and then something stands between operations that means nothing. Rarely there is something
/// that only batches hold: a value that is too large, a transaction that goes on later or has no name.
fn plain_texts() -> impl Strategy<Value = String> {
    let op = (any::<bool>(), prop_oneof![0..5u64, 0..3000u64, Just(u64::MAX)], 0..200u64);
    let txn = (0..4u64, prop::collection::vec(op, 1..6), 0..30u8, 0..60u8);
    let txns = prop::collection::vec(txn, 0..30);
    (txns, any::<bool>(), any::<u64>()).prop_map(|(txns, shuffled, base)| {
        let mut text = String::new();
        let base = if base % 3 == 0 { base >> 2 } else { base % 3 };
        for (at, (session, ops, decoration, oddity)) in (0u64..).zip(txns) {
            // Sessions of a transaction that goes on later are the same.
            let name = base + if shuffled { at ^ 5 } else { at };
            let (session, txn) = match oddity {
                0 => (session, "-1".to_owned()),
                1 => (7, base.to_string()),
                _ => (if name == base { 7 } else { session }, name.to_string()),
            };
            for (place, (is_write, key, value)) in ops.into_iter().enumerate() {
                let kind = if is_write { 'w' } else { 'r' };
                let value = if oddity == 2 { u64::MAX - value } else { value };
                text += &format!("{kind}({key},{value},{session},{txn})");
                text += match (decoration, place) {
                    (0, 0) => "\n\n",
                    (1, 1) => " \r\n",
                    _ => "\n",
                };
            }
        }
        text
    })
}

/// Asserts that two histories are the same, to the last number.
fn assert_same(one: &History, other: &History) {
    assert_eq!(one, other);
    assert_eq!((one.op_keys(), one.encoded_values()), (other.op_keys(), other.encoded_values()));
    for txn in one.txns() {
        assert_eq!(one.line(txn), other.line(txn));
        assert_eq!(one.txn_name(txn), other.txn_name(txn));
    }
    for session in one.sessions() {
        assert!(one.session_txns(session).eq(other.session_txns(session)));
        assert_eq!(one.session_name(session), other.session_name(session));
    }
    assert_eq!(one.key_count(), other.key_count());
    assert!(
        (0..one.key_count()).map(KeyId::at).all(|key| one.key_name(key) == other.key_name(key))
    );
}

fn placed(text: &str, size: usize) -> Option<History> {
    in_place::read(text.as_bytes(), size, &Meter::default())
}

fn in_batches(text: &str, size: usize) -> Result<History, Fault> {
    read_in_batches(text.as_bytes(), size, &Meter::default())
}

#[test]
fn plain_text_goes_straight_to_its_place_and_other_text_does_not() {
    // The number of a line counts blank ones, also those inside of a transaction.
    let plain = "w(1,1,0,1)\n\nw(2,1,0,1)\nw(2,2,0,1)\n\nr(1,1,1,0)\nr(7,0,0,9)\n";
    for size in [1, 12, 25, usize::MAX] {
        assert_same(&placed(plain, size).unwrap(), &in_batches(plain, size).unwrap());
        for odd in [
            "w(1,1,0,-1)\n",
            "w(1,1,0,1)\n",
            "w(1,9223372036854775807,0,2)\n",
            "w(1,1,0,9223372036854775807)\n",
            "w(1,1,0,2)\nw(1,1,0,3)\nw(1,1,0,2)\n",
            "w(1,1,0,2)\nw(1,x,0,2)\nw(1,1,0,2)\n",
            "x\n",
        ] {
            assert!(placed(&format!("{plain}{odd}"), size).is_none(), "{odd}");
        }
    }
    assert!(placed("", 1).is_none());
}

#[test]
fn keys_that_come_up_late_have_their_numbers() {
    // Far more text than what is looked at first for keys, which are small numbers and large ones.
    let line =
        |i: u64| format!("w({},{i},{},{})\n", (i * i % 997) << (i % 40), i % 3, i / 2 * 3 + i % 3);
    let text: String = (0..6000).map(line).collect();
    for size in [500, 5000, usize::MAX] {
        assert_same(&placed(&text, size).unwrap(), &in_batches(&text, 777).unwrap());
    }
}

proptest! {
    #[test]
    fn in_place_is_as_in_batches(text in plain_texts(), size in 1..300usize) {
        let expected = in_batches(&text, usize::MAX).unwrap();
        if let Some(history) = placed(&text, size) {
            assert_same(&history, &expected);
        }
        assert_same(&read(text.as_bytes(), size, &Meter::default()).unwrap(), &expected);
    }

    #[test]
    fn any_text_in_place_is_as_in_batches(text in texts(), size in 1..200usize) {
        if let Some(history) = placed(&text, size) {
            assert_same(&history, &in_batches(&text, usize::MAX).unwrap());
        }
    }

    #[test]
    fn chunks_do_not_show(text in texts(), size in 1..200usize) {
        let whole = parse(&text).unwrap();
        let chunked = read(text.as_bytes(), size, &Meter::default()).unwrap();
        prop_assert_eq!(&chunked, &whole);
        prop_assert_eq!(chunked.op_keys(), whole.op_keys());
        prop_assert_eq!(chunked.encoded_values(), whole.encoded_values());
    }

    #[test]
    fn what_is_written_reads_back(text in texts()) {
        let history = parse(&text).unwrap();
        let written = write_with(|sink| history.replay(sink)).unwrap();
        let again = parse(&written).unwrap();
        prop_assert_eq!(show_joined(&again), show_joined(&history));
        prop_assert_eq!(write_with(|sink| again.replay(sink)).unwrap(), written);
    }

    #[test]
    fn no_input_makes_it_panic(text in "[rw(),0-9 \\r\\n-]{0,60}", size in 1..40usize) {
        let whole = parse(&text).map_err(|fault| fault.at);
        let chunked = read(text.as_bytes(), size, &Meter::default()).map_err(|fault| fault.at);
        prop_assert_eq!(&chunked, &whole);
        let in_batches = in_batches(&text, usize::MAX).map_err(|fault| fault.at);
        prop_assert_eq!(in_batches, whole);
    }
}
