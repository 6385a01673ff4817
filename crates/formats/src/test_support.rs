//! What the tests of several formats need: small histories, random ones, files.

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, OpNotes, Outcome, SinkError, Stamp, TxnEnd,
    TxnSink, TxnStart, ValueRef, VersionRef,
};
use proptest::prelude::*;

use crate::{HistoryFormat, OutputTarget, ParsedHistory, ReadError, Source};

/// An operation and its version, if it has one.
pub(crate) type TestOp = (OpInput<'static>, Option<VersionRef>);

/// A read of a register.
pub(crate) fn read(key: i64, value: i64) -> TestOp {
    (Op::Read { key: ValueRef::Int(key), value: Some(ValueRef::Int(value)) }, None)
}

/// A write of a register.
pub(crate) fn write(key: i64, value: i64) -> TestOp {
    (Op::Write { key: ValueRef::Int(key), value: ValueRef::Int(value) }, None)
}

/// An operation whose version has a name.
pub(crate) fn version((op, _): TestOp, version: VersionRef) -> TestOp {
    (op, Some(version))
}

/// A transaction of a test.
#[derive(Clone, Debug)]
pub(crate) struct TestTxn {
    pub(crate) session: i64,
    pub(crate) id: Option<i64>,
    pub(crate) ops: Vec<TestOp>,
    pub(crate) outcome: Outcome,
    pub(crate) stamps: Option<(u64, u64)>,
}

/// A committed transaction.
pub(crate) fn txn(session: i64, ops: &[TestOp]) -> TestTxn {
    let outcome = Outcome::Committed;
    TestTxn { session, id: None, ops: ops.to_vec(), outcome, stamps: None }
}

/// A history of these transactions.
pub(crate) fn history(initial: Initial, txns: &[TestTxn]) -> History {
    let mut batch = Batch::new();
    batch.meta(&Meta { initial, ..Meta::default() }).unwrap();
    for txn in txns {
        let id = txn.id.map(ValueRef::Int);
        batch.begin(&TxnStart { session: ValueRef::Int(txn.session), id, line: None }).unwrap();
        for (op, version) in &txn.ops {
            batch.op_with(op, &OpNotes { version: *version, sql: None }).unwrap();
        }
        let stamp = |physical| Stamp { physical, logical: 1 };
        let (db_start, db_commit) =
            (txn.stamps.map(|s| stamp(s.0)), txn.stamps.map(|s| stamp(s.1)));
        batch.end(&TxnEnd { db_start, db_commit, ..TxnEnd::new(txn.outcome) }).unwrap();
    }
    batch.build().unwrap()
}

/// A history of committed transactions, one per session.
pub(crate) fn history_of(initial: Initial, txns: &[&[TestOp]]) -> History {
    let txns: Vec<_> = (0..).zip(txns).map(|(session, ops)| txn(session, ops)).collect();
    history(initial, &txns)
}

/// The files a format makes of a history: one without a name, or those of a directory.
pub(crate) fn written(
    format: &dyn HistoryFormat,
    history: &History,
) -> Result<Vec<(String, Vec<u8>)>, SinkError> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("h");
    let mut writer = format.writer(OutputTarget::Path(path.clone()))?;
    let result = history.replay(&mut *writer).and_then(|()| writer.finish());
    if let Err(error) = result {
        assert!(!path.exists(), "nothing is left of what was refused");
        return Err(error);
    }
    let source = Source::open(&path).unwrap();
    Ok(match source.file() {
        Some(bytes) => vec![(String::new(), bytes.to_vec())],
        None => {
            let files = source.files().unwrap().iter();
            files.map(|(name, bytes)| (name.clone(), bytes.to_vec())).collect()
        }
    })
}

/// Why a format does not take a history.
pub(crate) fn refusal(format: &dyn HistoryFormat, history: &History) -> String {
    written(format, history).unwrap_err().to_string()
}

fn source_of(files: &[(String, Vec<u8>)]) -> Source {
    match files {
        [(name, bytes)] if name.is_empty() => Source::from_bytes("h", bytes.clone()).unwrap(),
        _ => Source::from_files("h", files.to_vec()),
    }
}

/// Reads files as [`written`] gives them, after asking the sniffers.
pub(crate) fn read_back(
    format: &dyn HistoryFormat,
    files: &[(String, Vec<u8>)],
) -> Result<ParsedHistory, ReadError> {
    let source = source_of(files);
    assert_eq!(crate::sniff(&source).map(HistoryFormat::name), Some(format.name()));
    format.read(&source)
}

/// The history without what most formats have no place for: lines, and names of transactions.
pub(crate) fn bare(history: &History) -> History {
    struct Bare(Batch);
    impl TxnSink for Bare {
        fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
            self.0.meta(meta)
        }
        fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
            self.0.begin(&TxnStart { session: start.session, id: None, line: None })
        }
        fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
            self.0.op_with(op, notes)
        }
        fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
            self.0.end(end)
        }
    }
    let mut bare = Bare(Batch::new());
    history.replay(&mut bare).unwrap();
    bare.0.build().unwrap()
}

/// The names of all formats whose sniffers claim these files.
pub(crate) fn claimed_by(files: &[(&str, &[u8])]) -> Vec<&'static str> {
    let source = source_of(&own(files));
    let claims = crate::FORMATS.iter().filter(|format| format.sniff(&source));
    claims.map(|format| format.name()).collect()
}

/// Files with names and bytes of their own.
pub(crate) fn own(files: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
}

/// The message a reader gives.
pub(crate) fn complaint(format: &dyn HistoryFormat, files: &[(&str, &[u8])]) -> String {
    format.read(&source_of(&own(files))).unwrap_err().to_string()
}

/// Damages every byte of every file in a few ways: whatever comes of it is not a panic.
pub(crate) fn survives_damage(format: &dyn HistoryFormat, files: &[(&str, &[u8])]) {
    let files = own(files);
    for file in 0..files.len() {
        for at in 0..files[file].1.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = files.clone();
                damaged[file].1[at] ^= change;
                let source = source_of(&damaged);
                let _ = (format.sniff(&source), format.read(&source));
            }
        }
    }
}

/// Cuts the last file after every byte but the last and gives what the reader makes of it.
pub(crate) fn cut_everywhere(
    format: &dyn HistoryFormat,
    files: &[(&str, &[u8])],
) -> Vec<Result<ParsedHistory, ReadError>> {
    let files = own(files);
    let len = files.last().unwrap().1.len();
    (0..len)
        .map(|len| {
            let mut cut = files.clone();
            cut.last_mut().unwrap().1.truncate(len);
            let source = source_of(&cut);
            let _ = format.sniff(&source);
            format.read(&source)
        })
        .collect()
}

/// Random transactions of up to three sessions, in order of session, with few keys and values.
pub(crate) fn random_txns(
    values: std::ops::Range<i64>,
    outcomes: &'static [Outcome],
) -> impl Strategy<Value = Vec<TestTxn>> {
    let op = (any::<bool>(), 0..4i64, values)
        .prop_map(|(writes, key, value)| if writes { write(key, value) } else { read(key, value) });
    let ops = prop::collection::vec(op, 0..5);
    let stamps = prop::option::of((any::<u64>(), any::<u64>()));
    let txn = (0..3i64, ops, prop::sample::select(outcomes), stamps).prop_map(
        |(session, ops, outcome, stamps)| TestTxn { session, id: None, ops, outcome, stamps },
    );
    prop::collection::vec(txn, 1..12).prop_map(|mut txns| {
        txns.sort_by_key(|txn| txn.session);
        txns
    })
}
