//! Plume text there and back; each direction alone is in a file of its own.

mod reading;
mod writing;

use isolario_model::{History, Op, SinkError, TxnId, TxnSink};
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
    let mut writer = Plume.writer(Target::Path(file.path().to_owned()))?;
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
        assert_eq!(history.op_words(), whole.op_words());
    }
}

proptest! {
    #[test]
    fn chunks_do_not_show(text in texts(), size in 1..200usize) {
        let whole = parse(&text).unwrap();
        let chunked = read(text.as_bytes(), size, &Meter::default()).unwrap();
        prop_assert_eq!(&chunked, &whole);
        prop_assert_eq!(chunked.op_keys(), whole.op_keys());
        prop_assert_eq!(chunked.op_words(), whole.op_words());
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
        prop_assert_eq!(chunked, whole);
    }
}
