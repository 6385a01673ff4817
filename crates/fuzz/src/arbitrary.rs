//! Random histories with everything the model can hold.

use std::collections::BTreeSet;
use std::ops::Range;

use isolario_model::{
    Aggregate, Batch, Clock, Decimal, History, Initial, Meta, Op, OpInput, OpNotes, Outcome,
    Predicate, RowInput, SinkError, Stamp, Tuple, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
    VersionRef,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// How much of the model a history uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facts {
    /// All of it.
    All,
    /// All but the lines that transactions stood on, which most formats assign again.
    WithoutLines,
    /// Neither lines nor versions nor statements, nor marked reads, which need versions.
    WithoutNotes,
}

/// An operation in owned parts: a kind, and more of everything than any kind needs.
#[derive(Clone, Debug)]
struct OpParts {
    kind: usize,
    key: Value,
    values: [Value; 2],
    answer: Option<Value>,
    list: Option<Vec<Value>>,
    rows: Option<Vec<(Value, Value, Option<VersionRef>)>>,
    applied: Option<bool>,
    predicate: Predicate,
    function: Aggregate,
    version: Option<VersionRef>,
    sql: Option<String>,
}

#[derive(Clone, Debug)]
struct TxnParts {
    session: Value,
    /// Used unless another transaction has it.
    name: Option<Value>,
    line: Option<u64>,
    outcome: Outcome,
    times: [Option<i64>; 2],
    stamps: [Option<Stamp>; 2],
    texts: [Option<String>; 2],
    ops: Vec<OpParts>,
}

/// Texts that look like something else, next to plain and to wild ones.
fn text() -> impl Strategy<Value = String> {
    let tricky = [
        "",
        "nil",
        "null",
        "true",
        "_",
        "-1",
        "1.5",
        "session",
        "initial",
        "clock",
        "unobserved",
        "a b",
        "a-",
        "\"",
        "`",
        "\\",
        "\n\r\t\u{7}",
        "# x",
        "//",
        "é",
        "[1,2]",
        "{\"keyword\":1}",
    ];
    prop_oneof![
        3 => "[a-z][a-z0-9_./-]{0,6}",
        2 => prop::sample::select(tricky.to_vec()).prop_map(str::to_owned),
        1 => vec(any::<char>(), 0..6).prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let columns = prop::collection::btree_map(text(), scalar(), 0..3);
    let tuple = (prop_oneof![2 => Just(String::new()), 1 => text()], columns)
        .prop_map(|(table, columns)| Value::from(Tuple::new(&table, columns)));
    prop_oneof![12 => scalar(), 1 => tuple]
}

/// A value that is not a tuple.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0i64..5).prop_map(Value::Int),
        1 => any::<i64>().prop_map(Value::Int),
        1 => any::<u64>().prop_map(|u| ValueRef::from(u).to_owned()),
        1 => Just(Value::Nil),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => text().prop_map(|text| Value::Text(text.into())),
        1 => text().prop_map(|text| Value::Keyword(text.into())),
        1 => text().prop_map(|text| Value::Other(text.into())),
        1 => "-?[0-9]{1,4}\\.[0-9]{1,3}".prop_filter_map("a decimal", |text| {
            Decimal::parse(&text).map(Value::Decimal)
        }),
    ]
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let known = [
        "balance > 10",
        "from accounts where balance > 10 and owner = 'it''s -> \"x\"'",
        "from \"odd table\" where \"->\" between 1 and 2.5 or name is null",
        "from t where name like 'a%' and not v in (1, 2)",
        "from t where name = 'line\nend'",
        "no predicate at all {",
    ];
    let text = prop_oneof![
        3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => text(),
    ];
    text.prop_map(|text| Predicate::from_sql(&text))
}

fn function() -> impl Strategy<Value = Aggregate> {
    let known = ["count(*)", "exists(*)", "sum(balance - 1)", "max(name)", "median(v)"];
    let text = prop_oneof![
        3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => text(),
    ];
    text.prop_map(|text| Aggregate::from_sql(&text))
}

fn version() -> impl Strategy<Value = VersionRef> {
    prop_oneof![
        Just(VersionRef::Initial),
        any::<(u64, u64)>().prop_map(|(txn, write)| VersionRef::ByWriter { txn, write }),
        any::<(u64, u64)>().prop_map(|(write, value)| VersionRef::ByWrite { write, value }),
    ]
}

fn op() -> impl Strategy<Value = OpParts> {
    let answers = (option::of(value()), option::of(vec(value(), 0..4)), option::of(rows()));
    let notes = (option::of(version()), option::of(text()));
    (
        0..9usize,
        value(),
        [value(), value()],
        answers,
        any::<Option<bool>>(),
        (predicate(), function()),
        notes,
    )
        .prop_map(
            |(
                kind,
                key,
                values,
                (answer, list, rows),
                applied,
                (predicate, function),
                (version, sql),
            )| OpParts {
                kind,
                key,
                values,
                answer,
                list,
                rows,
                applied,
                predicate,
                function,
                version,
                sql,
            },
        )
}

fn rows() -> impl Strategy<Value = Vec<(Value, Value, Option<VersionRef>)>> {
    vec((value(), value(), option::of(version())), 0..3)
}

fn txn() -> impl Strategy<Value = TxnParts> {
    let outcome =
        prop::sample::select(vec![Outcome::Committed, Outcome::Aborted, Outcome::Unknown]);
    let stamp = || {
        option::of((any::<u64>(), 0u64..3))
            .prop_map(|stamp| stamp.map(|(physical, logical)| Stamp { physical, logical }))
    };
    let texts = [option::of(text()), option::of(text())];
    let session = prop_oneof![3 => (0i64..3).prop_map(Value::Int), 1 => value()];
    (
        session,
        (option::of(value()), any::<Option<u64>>()),
        outcome,
        any::<[Option<i64>; 2]>(),
        [stamp(), stamp()],
        texts,
        vec(op(), 0..4),
    )
        .prop_map(|(session, (name, line), outcome, times, stamps, texts, ops)| TxnParts {
            session,
            name,
            line,
            outcome,
            times,
            stamps,
            texts,
            ops,
        })
}

fn meta(facts: Facts) -> impl Strategy<Value = Meta> {
    let initial = prop_oneof![
        value().prop_map(Initial::Value),
        value().prop_map(Initial::UnlessWritten),
        Just(Initial::Unwritten),
        Just(if facts == Facts::WithoutNotes { Initial::None } else { Initial::Marked }),
        Just(Initial::None),
    ];
    let clock = prop::sample::select(vec![Clock::Nanoseconds, Clock::EventOrder]);
    (initial, clock).prop_map(|(initial, clock)| Meta { initial, clock })
}

/// A history of a few transactions, interleaved over a few sessions.
pub fn history(facts: Facts) -> impl Strategy<Value = History> {
    history_of(facts, 0..6)
}

/// A history of so many transactions.
pub fn history_of(facts: Facts, txns: Range<usize>) -> impl Strategy<Value = History> {
    (meta(facts), vec(txn(), txns))
        .prop_map(move |(meta, txns)| build(facts, &meta, &txns))
        .prop_filter_map("a history", Result::ok)
}

/// A history of so many transactions, the same at every call.
pub fn sample(facts: Facts, txns: usize) -> Option<History> {
    let strategy = history_of(facts, txns..txns + 1);
    strategy.new_tree(&mut TestRunner::deterministic()).ok().map(|tree| tree.current())
}

fn build(facts: Facts, meta: &Meta, txns: &[TxnParts]) -> Result<History, SinkError> {
    let mut batch = Batch::new();
    batch.meta(meta)?;
    let mut names = BTreeSet::from([&Value::Nil]);
    for txn in txns {
        let name = txn.name.as_ref().filter(|name| names.insert(name));
        send_txn(txn, name, facts, &mut batch)?;
    }
    batch.build()
}

fn send_txn(
    txn: &TxnParts,
    name: Option<&Value>,
    facts: Facts,
    batch: &mut Batch,
) -> Result<(), SinkError> {
    let id = name.map(Value::as_ref);
    let line = txn.line.filter(|_| facts == Facts::All);
    batch.begin(&TxnStart { session: txn.session.as_ref(), id, line })?;
    for op in &txn.ops {
        let notes = match facts {
            Facts::WithoutNotes => OpNotes::default(),
            _ => OpNotes { version: op.version, sql: op.sql.as_deref() },
        };
        with_op(op, |op| batch.op_with(op, &notes))?;
    }
    batch.end(&TxnEnd {
        outcome: txn.outcome,
        start: txn.times[0],
        finish: txn.times[1],
        db_start: txn.stamps[0],
        db_commit: txn.stamps[1],
        snapshot: txn.texts[0].as_deref(),
        error: txn.texts[1].as_deref(),
    })
}

fn with_op<T>(op: &OpParts, send: impl FnOnce(&OpInput<'_>) -> T) -> T {
    let key = op.key.as_ref();
    let [first, second] = op.values.each_ref().map(Value::as_ref);
    let answer = op.answer.as_ref().map(Value::as_ref);
    let list: Option<Vec<_>> =
        op.list.as_ref().map(|list| list.iter().map(Value::as_ref).collect());
    let rows: Option<Vec<_>> = op.rows.as_ref().map(|rows| rows.iter().map(row_input).collect());
    let (applied, predicate) = (op.applied, &op.predicate);
    send(&match op.kind {
        0 => Op::Read { key, value: answer },
        1 => Op::Write { key, value: first },
        2 => Op::Delete { key },
        3 => Op::Append { key, element: first },
        4 => Op::ReadList { key, elements: list.as_deref() },
        5 => Op::InsertIfAbsent { key, value: first, applied, seen: answer },
        6 => Op::CompareAndSet { key, expected: first, new: second, applied, seen: answer },
        7 if applied.is_some() => Op::PredicateRead { predicate, rows: rows.as_deref() },
        7 => Op::PredicateWrite { predicate, rows: rows.as_deref() },
        _ => Op::Aggregate { function: &op.function, predicate, result: answer },
    })
}

fn row_input((key, value, version): &(Value, Value, Option<VersionRef>)) -> RowInput<'_> {
    RowInput { version: *version, ..RowInput::new(key, value) }
}
