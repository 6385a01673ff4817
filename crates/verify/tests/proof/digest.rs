//! What the digest depends on, and what not.

use isolario_model::{
    Aggregate, Batch, Clock, Decimal, History, Initial, Meta, Op, OpInput, OpNotes, Outcome,
    Predicate, PredicateRow, Stamp, TupleParts, TxnEnd, TxnSink, TxnStart, Value, ValueRef,
    VersionRef,
};
use isolario_verify::proof::Digest;

const X: ValueRef<'static> = ValueRef::Text("x");
const ONE: ValueRef<'static> = ValueRef::Int(1);

/// A history of one transaction.
struct One<'a> {
    meta: Meta,
    start: TxnStart<'a>,
    op: OpInput<'a>,
    notes: OpNotes<'a>,
    end: TxnEnd<'a>,
}

impl Default for One<'_> {
    fn default() -> Self {
        One {
            meta: Meta::default(),
            start: TxnStart { session: X, id: Some(X), line: None },
            op: Op::Write { key: X, value: ONE },
            notes: OpNotes::default(),
            end: TxnEnd::new(Outcome::Committed),
        }
    }
}

impl One<'_> {
    fn digest(&self) -> String {
        let mut batch = Batch::new();
        batch.meta(&self.meta).expect("first");
        batch.begin(&self.start).expect("in order");
        batch.op_with(&self.op, &self.notes).expect("in order");
        batch.end(&self.end).expect("in order");
        digest(batch)
    }
}

fn digest(batch: Batch) -> String {
    Digest::of(&batch.build().expect("small")).to_string()
}

fn op(op: OpInput<'_>) -> One<'_> {
    One { op, ..One::default() }
}

fn meta(initial: Initial, clock: Clock) -> One<'static> {
    One { meta: Meta { initial, clock }, ..One::default() }
}

fn end(change: impl FnOnce(&mut TxnEnd<'static>)) -> One<'static> {
    let mut one = One::default();
    change(&mut one.end);
    one
}

fn note(version: VersionRef) -> One<'static> {
    One { notes: OpNotes { version: Some(version), sql: None }, ..One::default() }
}

#[test]
fn everything_that_can_matter_to_a_verdict_changes_the_digest() {
    let start = |session, id| One { start: TxnStart { session, id, line: None }, ..One::default() };
    let cas =
        |applied, seen| op(Op::CompareAndSet { key: X, expected: X, new: ONE, applied, seen });
    let stamp = Some(Stamp { physical: 1, logical: 2 });
    let one = Decimal::parse("1").unwrap();
    let tuples = [("", "a", ONE), ("t", "a", ONE), ("t", "b", ONE), ("t", "a", X)];
    let columns = tuples.map(|(_, name, value)| [(name, value)]);
    let tuples = [0, 1, 2, 3].map(|i| TupleParts { table: tuples[i].0, columns: &columns[i] });
    let (x, y) = (&Predicate::unparsed("x"), &Predicate::unparsed("y"));
    let (count, exists) = (&Aggregate::Count, &Aggregate::Exists);
    let versions =
        [None, Some(VersionRef::Initial), Some(VersionRef::ByWrite { write: 1, value: 2 })];
    let rows = versions.map(|version| PredicateRow { key: X, value: ONE, version });
    let variants = [
        One::default(),
        meta(Initial::Value(Value::Int(0)), Clock::Nanoseconds),
        meta(Initial::UnlessWritten(Value::Int(0)), Clock::Nanoseconds),
        meta(Initial::Unwritten, Clock::Nanoseconds),
        meta(Initial::Marked, Clock::Nanoseconds),
        meta(Initial::None, Clock::Nanoseconds),
        meta(Initial::Value(Value::Nil), Clock::EventOrder),
        start(ONE, Some(X)),
        start(X, Some(ONE)),
        start(X, Some(ValueRef::Keyword("x"))),
        start(X, None),
        op(Op::Write { key: ONE, value: ONE }),
        op(Op::Write { key: X, value: ValueRef::Text("1") }),
        op(Op::Write { key: X, value: ValueRef::Keyword("1") }),
        op(Op::Write { key: X, value: ValueRef::Other("1") }),
        op(Op::Write { key: X, value: ValueRef::Nil }),
        op(Op::Write { key: X, value: ValueRef::Bool(true) }),
        op(Op::Write { key: X, value: ValueRef::Bool(false) }),
        op(Op::Write { key: X, value: ValueRef::Uint(u64::MAX) }),
        op(Op::Write { key: X, value: ValueRef::Int(-1) }),
        op(Op::Read { key: X, value: Some(ONE) }),
        op(Op::Read { key: X, value: None }),
        op(Op::Delete { key: X }),
        op(Op::Append { key: X, element: ONE }),
        op(Op::ReadList { key: X, elements: None }),
        op(Op::ReadList { key: X, elements: Some(&[]) }),
        op(Op::ReadList { key: X, elements: Some(&[ONE]) }),
        op(Op::InsertIfAbsent { key: X, value: ONE, applied: None, seen: None }),
        cas(None, None),
        cas(Some(true), None),
        cas(Some(false), None),
        cas(Some(false), Some(ONE)),
        op(Op::Write { key: X, value: ValueRef::Decimal(one.as_ref()) }),
        op(Op::Write { key: X, value: ValueRef::from(&tuples[0]) }),
        op(Op::Write { key: X, value: ValueRef::from(&tuples[1]) }),
        op(Op::Write { key: X, value: ValueRef::from(&tuples[2]) }),
        op(Op::Write { key: X, value: ValueRef::from(&tuples[3]) }),
        op(Op::PredicateRead { predicate: x, rows: None }),
        op(Op::PredicateRead { predicate: y, rows: None }),
        op(Op::PredicateRead { predicate: x, rows: Some(&rows[..1]) }),
        op(Op::PredicateRead { predicate: x, rows: Some(&rows[1..2]) }),
        op(Op::PredicateRead { predicate: x, rows: Some(&rows[2..]) }),
        op(Op::PredicateWrite { predicate: x, rows: None }),
        op(Op::Aggregate { function: count, predicate: x, result: None }),
        op(Op::Aggregate { function: count, predicate: x, result: Some(ONE) }),
        op(Op::Aggregate { function: exists, predicate: x, result: None }),
        note(VersionRef::Initial),
        note(VersionRef::ByWriter { txn: 1, write: 2 }),
        note(VersionRef::ByWrite { write: 1, value: 2 }),
        end(|end| end.outcome = Outcome::Aborted),
        end(|end| end.outcome = Outcome::Unknown),
        end(|end| end.start = Some(1)),
        end(|end| end.finish = Some(1)),
        end(|end| end.db_start = stamp),
        end(|end| end.db_commit = stamp),
        end(|end| end.snapshot = Some("1:2:")),
    ];
    let mut digests: Vec<_> = variants.iter().map(One::digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), variants.len());
}

#[test]
fn lines_statements_and_errors_do_not_change_it() {
    let plain = One::default();
    let adorned = One {
        start: TxnStart { line: Some(7), ..plain.start },
        notes: OpNotes { version: None, sql: Some("update t") },
        end: TxnEnd { error: Some("ERROR"), ..plain.end },
        ..One::default()
    };
    assert_eq!(plain.digest(), adorned.digest());
}

/// Two sessions of two transactions, recorded one after the other or by turns.
fn sessions(turns: &[&'static str]) -> History {
    let mut batch = Batch::new();
    for session in turns {
        let start = TxnStart { session: (*session).into(), id: None, line: None };
        batch.begin(&start).expect("in order");
        batch.op(&Op::Delete { key: X }).expect("in order");
        batch.end(&TxnEnd::new(Outcome::Committed)).expect("in order");
    }
    batch.build().expect("small")
}

#[test]
fn the_order_in_which_sessions_took_turns_does_not_change_it_but_who_came_first_does() {
    let digest = |turns: &[&'static str]| Digest::of(&sessions(turns));
    assert_eq!(digest(&["a", "a", "b", "b"]), digest(&["a", "b", "a", "b"]));
    assert_ne!(digest(&["a", "a", "b", "b"]), digest(&["b", "b", "a", "a"]));
    assert_ne!(digest(&["a", "a", "b"]), digest(&["a", "b", "b"]));
}

/// The figure comes from another implementation of the definition in the book.
#[test]
fn the_definition_does_not_move() {
    let one = One {
        meta: Meta { initial: Initial::Value(Value::Int(0)), clock: Clock::EventOrder },
        start: TxnStart { session: "alice".into(), id: Some(7i64.into()), line: None },
        op: Op::Read { key: X, value: Some(ONE) },
        notes: OpNotes { version: Some(VersionRef::ByWriter { txn: 1, write: 2 }), sql: None },
        end: TxnEnd { start: Some(-5), ..TxnEnd::new(Outcome::Unknown) },
    };
    assert_eq!(
        one.digest(),
        "sha256:7371ff40ce18bd63887ab3f1605868f91166edc3ee1a07153fb1d7baccbeaa31"
    );
}
