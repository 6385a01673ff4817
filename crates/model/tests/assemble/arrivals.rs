//! Random transactions of every kind of operation, whole and in pieces.

use isolario_model::{
    Aggregate, Decimal, Op, OpInput, OpNotes, Outcome, Predicate, PredicateRow, RowInput, Stamp,
    Tuple, TxnEnd, TxnSink, TxnStart, Value, ValueRef, VersionRef,
};
use isolario_predicate::{Comparison, Expr, Literal};
use proptest::prelude::*;

/// An operation that owns its names.
#[derive(Clone, Debug)]
pub enum TestOp {
    Read(Value, Option<Value>),
    Write(Value, Value),
    Delete(Value),
    Append(Value, Value),
    ReadList(Value, Option<Vec<Value>>),
    Insert(Value, Value, Option<bool>, Option<Value>),
    Cas(Value, Value, Value, Option<bool>, Option<Value>),
    PredicateRead(Predicate, Option<Vec<TestRow>>),
    PredicateWrite(Predicate, Option<Vec<TestRow>>),
    Aggregate(Aggregate, Predicate, Option<Value>),
}

/// A row that owns its names.
pub type TestRow = PredicateRow<Value, Value, Option<VersionRef>>;

impl TestOp {
    /// Hands over the operation as a sink takes it.
    pub fn with_input<R>(&self, take: impl FnOnce(&OpInput<'_>) -> R) -> R {
        fn rows(rows: &[TestRow]) -> Vec<RowInput<'_>> {
            let borrow = |row| {
                let PredicateRow { key, value, version }: &TestRow = row;
                PredicateRow { key: key.as_ref(), value: value.as_ref(), version: *version }
            };
            rows.iter().map(borrow).collect()
        }
        match self {
            TestOp::Read(key, value) => take(&Op::Read { key: key.as_ref(), value: known(value) }),
            TestOp::Write(key, value) => {
                take(&Op::Write { key: key.as_ref(), value: value.as_ref() })
            }
            TestOp::Delete(key) => take(&Op::Delete { key: key.as_ref() }),
            TestOp::Append(key, element) => {
                take(&Op::Append { key: key.as_ref(), element: element.as_ref() })
            }
            TestOp::ReadList(key, elements) => {
                let elements: Option<Vec<_>> =
                    elements.as_ref().map(|all| all.iter().map(Value::as_ref).collect());
                take(&Op::ReadList { key: key.as_ref(), elements: elements.as_deref() })
            }
            TestOp::Insert(key, value, applied, found) => take(&Op::InsertIfAbsent {
                key: key.as_ref(),
                value: value.as_ref(),
                applied: *applied,
                seen: known(found),
            }),
            TestOp::Cas(key, expected, new, applied, found) => take(&Op::CompareAndSet {
                key: key.as_ref(),
                expected: expected.as_ref(),
                new: new.as_ref(),
                applied: *applied,
                seen: known(found),
            }),
            TestOp::PredicateRead(predicate, found) => {
                take(&Op::PredicateRead { predicate, rows: found.as_deref().map(rows).as_deref() })
            }
            TestOp::PredicateWrite(predicate, found) => {
                take(&Op::PredicateWrite { predicate, rows: found.as_deref().map(rows).as_deref() })
            }
            TestOp::Aggregate(function, predicate, result) => {
                take(&Op::Aggregate { function, predicate, result: known(result) })
            }
        }
    }
}

fn known(value: &Option<Value>) -> Option<ValueRef<'_>> {
    value.as_ref().map(Value::as_ref)
}

/// What else is known of an operation.
#[derive(Clone, Debug, Default)]
pub struct TestNotes {
    pub version: Option<VersionRef>,
    pub sql: Option<String>,
}

/// A transaction, or a piece of one, that owns its names.
#[derive(Clone, Debug)]
pub struct TestTxn {
    pub session: Value,
    pub id: Option<Value>,
    pub line: Option<u64>,
    pub ops: Vec<(TestOp, TestNotes)>,
    pub outcome: Outcome,
    pub times: [Option<i64>; 2],
    pub stamps: [Option<Stamp>; 2],
    pub snapshot: Option<String>,
    pub error: Option<String>,
}

impl TestTxn {
    /// A committed transaction without operations.
    pub fn named(session: Value, id: Value) -> TestTxn {
        TestTxn {
            session,
            id: Some(id),
            line: None,
            ops: Vec::new(),
            outcome: Outcome::Committed,
            times: [None; 2],
            stamps: [None; 2],
            snapshot: None,
            error: None,
        }
    }

    pub fn end(&self) -> TxnEnd<'_> {
        TxnEnd {
            outcome: self.outcome,
            start: self.times[0],
            finish: self.times[1],
            db_start: self.stamps[0],
            db_commit: self.stamps[1],
            snapshot: self.snapshot.as_deref(),
            error: self.error.as_deref(),
        }
    }
}

pub fn owned_key(i: i64) -> Value {
    Value::Int(i)
}

/// Writes a transaction into a sink.
pub fn feed(txn: &TestTxn, sink: &mut dyn TxnSink) {
    let (session, id) = (txn.session.as_ref(), known(&txn.id));
    sink.begin(&TxnStart { session, id, line: txn.line }).unwrap();
    for (op, notes) in &txn.ops {
        let notes = OpNotes { version: notes.version, sql: notes.sql.as_deref() };
        op.with_input(|input| sink.op_with(input, &notes)).unwrap();
    }
    sink.end(&txn.end()).unwrap();
}

/// Values of all types, few enough to meet again, some alike but for their type.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (-2..6i64).prop_map(Value::Int),
        1 => prop::sample::select(vec![
            Value::Nil,
            Value::Bool(true),
            Value::Int(i64::MAX),
            Value::Int(i64::MIN),
            Value::Uint(u64::MAX),
            Value::Text("1".into()),
            Value::Keyword("1".into()),
            Value::Other("[1]".into()),
            Value::Text("".into()),
            Value::Decimal(Decimal::parse("1").unwrap()),
            Tuple::new("t", [("a", 1)]).into(),
            Tuple::new("t", [("a", Value::from(1)), ("b", "text".into())]).into(),
            Tuple::new("", [("a", "1")]).into(),
        ]),
    ]
}

fn rows() -> impl Strategy<Value = Option<Vec<TestRow>>> {
    let row = (value(), value(), prop::option::weighted(0.3, version()));
    let row = row.prop_map(|(key, value, version)| PredicateRow { key, value, version });
    prop::option::of(prop::collection::vec(row, 0..4))
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let text = "[a-c]".prop_map(|text| Predicate::unparsed(&text));
    let structured = ("[a-c]", 0..3i64).prop_map(|(column, bound)| {
        let bound = Expr::literal(Literal::Int(bound));
        let condition = Expr::column(&column).compare(Comparison::Less, bound).unwrap();
        Predicate::rows("t", condition).unwrap()
    });
    prop_oneof![text, structured]
}

fn function() -> impl Strategy<Value = Aggregate> {
    prop_oneof![
        Just(Aggregate::Count),
        "[a-c]".prop_map(|name| Aggregate::Max(Expr::column(&name)))
    ]
}

/// Mostly prefixes of one list, as reads of an append-only list are; some diverge.
fn elements() -> impl Strategy<Value = Vec<Value>> {
    let prefix = (0..6i64).prop_map(|len| (0..len).map(Value::Int).collect());
    prop_oneof![3 => prefix, 1 => prop::collection::vec(value(), 0..4)]
}

fn op() -> impl Strategy<Value = TestOp> {
    let maybe = || prop::option::of(value());
    let applied = any::<Option<bool>>;
    prop_oneof![
        (value(), maybe()).prop_map(|(key, value)| TestOp::Read(key, value)),
        (value(), value()).prop_map(|(key, value)| TestOp::Write(key, value)),
        value().prop_map(TestOp::Delete),
        (value(), value()).prop_map(|(key, element)| TestOp::Append(key, element)),
        (value(), prop::option::of(elements())).prop_map(|(key, list)| TestOp::ReadList(key, list)),
        (value(), value(), applied(), maybe())
            .prop_map(|(key, value, applied, seen)| TestOp::Insert(key, value, applied, seen)),
        (value(), value(), value(), applied(), maybe()).prop_map(
            |(key, expected, new, applied, seen)| TestOp::Cas(key, expected, new, applied, seen)
        ),
        (predicate(), rows()).prop_map(|(predicate, rows)| TestOp::PredicateRead(predicate, rows)),
        (predicate(), rows()).prop_map(|(predicate, rows)| TestOp::PredicateWrite(predicate, rows)),
        (function(), predicate(), maybe())
            .prop_map(|(f, p, result)| TestOp::Aggregate(f, p, result)),
    ]
}

fn version() -> impl Strategy<Value = VersionRef> {
    prop_oneof![
        Just(VersionRef::Initial),
        (0..3u64, 0..3u64).prop_map(|(txn, write)| VersionRef::ByWriter { txn, write }),
        (0..3u64, 0..3u64).prop_map(|(write, value)| VersionRef::ByWrite { write, value }),
    ]
}

fn notes() -> impl Strategy<Value = TestNotes> {
    let rare = (prop::option::of(version()), prop::option::of("[a-z]{0,3}"));
    prop_oneof![
        4 => Just(TestNotes::default()),
        1 => rare.prop_map(|(version, sql)| TestNotes { version, sql }),
    ]
}

fn txn() -> impl Strategy<Value = TestTxn> {
    let outcome =
        prop::sample::select(vec![Outcome::Committed, Outcome::Aborted, Outcome::Unknown]);
    let time = || prop::option::of(-3..9i64);
    let stamp = || {
        let stamp = (0..9u64, 0..2u64);
        prop::option::of(stamp.prop_map(|(physical, logical)| Stamp { physical, logical }))
    };
    let text = || prop::option::weighted(0.2, "[a-z]{0,3}");
    let ops = prop::collection::vec((op(), notes()), 0..6);
    let head = (0..4i64, prop::option::of(value()), prop::option::of(1..99u64), ops);
    (head, outcome, [time(), time()], [stamp(), stamp()], text(), text()).prop_map(
        |((session, id, line, ops), outcome, times, stamps, snapshot, error)| TestTxn {
            session: Value::Int(session),
            id,
            line,
            ops,
            outcome,
            times,
            stamps,
            snapshot,
            error,
        },
    )
}

/// Transactions of up to four sessions in the order they arrive.
pub fn txns() -> impl Strategy<Value = Vec<TestTxn>> {
    prop::collection::vec(txn(), 0..20)
}

/// Transactions, and the same in pieces. Transactions begin in the same order; what follows of
/// each is mixed at random, except for nameless ones, whose pieces stay together.
pub fn pieces() -> impl Strategy<Value = (Vec<TestTxn>, Vec<TestTxn>)> {
    let choices = prop::collection::vec(any::<prop::sample::Index>(), 0..200);
    (txns(), choices).prop_map(|(mut txns, choices)| {
        name_uniquely(&mut txns);
        let mut choices = choices.into_iter();
        let mut choose = move |bound: usize| choices.next().map_or(0, |choice| choice.index(bound));
        let mut waiting: Vec<Vec<TestTxn>> = Vec::new();
        let mut arrivals = Vec::new();
        for txn in &txns {
            let mut parts = split(txn, &mut choose);
            if txn.id.is_none() {
                arrivals.append(&mut parts);
            } else {
                arrivals.push(parts.remove(0));
                waiting.push(parts);
            }
            for _ in 0..choose(4) {
                let one = choose(waiting.len().max(1));
                arrivals.extend(waiting.get_mut(one).and_then(take_first));
            }
        }
        arrivals.extend(waiting.into_iter().flatten());
        (txns, arrivals)
    })
}

fn take_first(parts: &mut Vec<TestTxn>) -> Option<TestTxn> {
    (!parts.is_empty()).then(|| parts.remove(0))
}

/// Gives every named transaction a name of its own, and a name to each that would follow a
/// nameless one in its session.
fn name_uniquely(txns: &mut [TestTxn]) {
    let mut after_nameless: Vec<Value> = Vec::new();
    for (i, txn) in txns.iter_mut().enumerate() {
        let follows = after_nameless.contains(&txn.session);
        after_nameless.retain(|session| *session != txn.session);
        if txn.id.is_none() && !follows {
            after_nameless.push(txn.session.clone());
        } else if i % 2 == 0 {
            txn.id = Some(Value::Int(i as i64));
        } else {
            txn.id = Some(Value::Text(i.to_string().into()));
        }
    }
}

/// Cuts a transaction into pieces. What is known at its start stands on the first, what is known
/// at its end on the last; what the others say does not matter.
fn split(txn: &TestTxn, choose: &mut impl FnMut(usize) -> usize) -> Vec<TestTxn> {
    let count = 1 + choose(3);
    let mut rest = txn.ops.clone();
    let mut parts = Vec::new();
    for part in 0..count {
        let last = part + 1 == count;
        let take = if last { rest.len() } else { choose(rest.len() + 1) };
        let mut piece = TestTxn::named(txn.session.clone(), Value::Nil);
        piece.id = txn.id.clone();
        piece.ops = rest.drain(..take).collect();
        piece.outcome = if last { txn.outcome } else { Outcome::Unknown };
        if part == 0 {
            (piece.line, piece.times[0], piece.stamps[0]) = (txn.line, txn.times[0], txn.stamps[0]);
        } else {
            (piece.line, piece.times[0]) = (Some(1000), Some(1000));
        }
        if last {
            (piece.times[1], piece.stamps[1]) = (txn.times[1], txn.stamps[1]);
            (piece.snapshot, piece.error) = (txn.snapshot.clone(), txn.error.clone());
        } else {
            (piece.times[1], piece.error) = (Some(2000), Some("cut short".to_owned()));
        }
        parts.push(piece);
    }
    parts
}
