//! Files of version 1 that must load for ever: one with blocks and row records and every kind of
//! operation, value, fact and note, and one whose recorder died.
//!
//! They were written once, by `mixed_file` and by a `Recorder`, for the histories below, and are
//! never written again: a test that wrote them again would prove nothing about old files.

use std::sync::LazyLock;

use isolario_model::{
    Aggregate, Clock, History, Initial, Meta, Op, OpInput, OpNotes, Outcome, Predicate,
    PredicateRow, RowInput, SinkError, Stamp, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
    VersionRef,
};

use super::{history, load, read, write};

const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/small.iso");

const UNFINISHED: &[u8] = include_bytes!("../../../tests/golden/unfinished.iso");

const KEY: ValueRef<'_> = ValueRef::Text("x");

fn ops() -> Vec<OpInput<'static>> {
    const ROWS: &[RowInput<'_>] = &[
        PredicateRow { key: KEY, value: ValueRef::Nil, version: None },
        PredicateRow { key: ValueRef::Int(2), value: ValueRef::Bool(true), version: None },
    ];
    static PREDICATES: LazyLock<[Predicate; 3]> =
        LazyLock::new(|| ["v > 1", "v < 1", "true"].map(Predicate::from_sql));
    let [above, below, all] = &*PREDICATES;
    const SHORT: &[ValueRef<'_>] = &[ValueRef::Int(1), ValueRef::Int(2)];
    const LONG: &[ValueRef<'_>] = &[ValueRef::Int(1), ValueRef::Int(2), ValueRef::Other("1.5")];
    const OTHER: &[ValueRef<'_>] = &[ValueRef::Int(2)];
    let (key, new, seen) = (KEY, ValueRef::Keyword("new"), Some(ValueRef::Bool(false)));
    vec![
        Op::Read { key, value: Some(ValueRef::Int(-5)) },
        Op::Read { key, value: None },
        Op::Write { key, value: ValueRef::from(u64::MAX) },
        Op::Delete { key: ValueRef::Int(i64::MIN) },
        Op::Append { key, element: ValueRef::Int(1 << 40) },
        Op::ReadList { key, elements: Some(SHORT) },
        Op::ReadList { key, elements: Some(LONG) },
        Op::ReadList { key, elements: Some(OTHER) },
        Op::ReadList { key, elements: None },
        Op::InsertIfAbsent { key, value: new, applied: Some(false), seen },
        Op::CompareAndSet { key, expected: KEY, new, applied: Some(true), seen: None },
        Op::CompareAndSet { key, expected: KEY, new, applied: None, seen: None },
        Op::PredicateRead { predicate: above, rows: Some(ROWS) },
        Op::PredicateWrite { predicate: below, rows: None },
        Op::Aggregate { function: &Aggregate::Count, predicate: all, result: Some(KEY) },
    ]
}

fn tell_golden(sink: &mut dyn TxnSink) -> Result<(), SinkError> {
    sink.meta(&Meta { initial: Initial::UnlessWritten(Value::Int(0)), clock: Clock::EventOrder })?;
    let versions = [
        None,
        Some(VersionRef::Initial),
        Some(VersionRef::ByWriter { txn: 1, write: u64::MAX }),
        Some(VersionRef::ByWrite { write: 2, value: 3 }),
    ];
    let outcomes = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown, Outcome::Committed];
    for (txn, outcome) in outcomes.into_iter().enumerate() {
        let at = txn as i64;
        let id = [None, Some(ValueRef::Int(at)), Some(ValueRef::Text("t"))][txn % 3];
        let line = Some(10 + txn as u64);
        sink.begin(&TxnStart { session: (at / 2).into(), id, line })?;
        for (at, op) in ops().iter().enumerate() {
            let sql = (at % 5 == 0).then_some("select 1");
            sink.op_with(op, &OpNotes { version: versions[(txn + at) % 4], sql })?;
        }
        let stamp = |physical| Some(Stamp { physical, logical: 9 });
        sink.end(&TxnEnd {
            outcome,
            start: Some(at * 100),
            finish: (txn != 2).then_some(at * 100 + 50),
            db_start: if txn == 0 { None } else { stamp(u64::MAX - 1) },
            db_commit: if txn == 1 { None } else { stamp(77) },
            snapshot: (txn == 3).then_some("10:20:"),
            error: (txn == 1).then_some("40001: could not serialize"),
        })?;
    }
    Ok(())
}

#[test]
fn the_golden_file_of_version_1_loads_as_ever() {
    let loaded = load(GOLDEN).unwrap();
    let expected: History = history(tell_golden);
    assert!(loaded.history == expected);
    assert!(loaded.warnings.is_empty() && loaded.ignored.is_empty());
}

#[test]
fn the_golden_file_is_recognised() {
    let source = crate::Source::from_bytes("small", GOLDEN.to_vec()).unwrap();
    assert_eq!(crate::sniff(&source).map(crate::HistoryFormat::name), Some("isolario"));
}

#[test]
fn the_golden_recording_of_version_1_loads_as_ever() {
    let loaded = load(UNFINISHED).unwrap();
    let expected = history(|sink| {
        // Session 2 ended; session 1 had done one of the three things it meant to do.
        sink.begin(&TxnStart { session: ValueRef::Int(2), id: None, line: None })?;
        sink.op(&read(1, 5))?;
        sink.end(&TxnEnd { finish: Some(40), ..TxnEnd::new(Outcome::Committed) })?;
        sink.begin(&TxnStart { session: ValueRef::Int(1), id: Some(KEY), line: Some(3) })?;
        sink.op(&write(1, 5))?;
        sink.op(&write(2, 6))?;
        sink.op(&Op::Read { key: KEY, value: None })?;
        sink.end(&TxnEnd { start: Some(30), ..TxnEnd::new(Outcome::Unknown) })
    });
    assert!(loaded.history == expected);
    let warnings: Vec<_> = loaded.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "the file is truncated: its last 5 bytes are an incomplete record and are ignored",
            "1 transaction began and did not end: its outcome is unknown"
        ]
    );
}
