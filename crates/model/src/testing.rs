//! Short ways to write histories in tests.

use std::sync::LazyLock;

use isolario_predicate::{Aggregate, Expr, Literal, Predicate};

use crate::{Batch, History, Op, OpInput, Outcome, RowInput, TxnEnd, TxnSink, TxnStart, ValueRef};

pub(crate) fn int(i: i64) -> ValueRef<'static> {
    ValueRef::Int(i)
}

pub(crate) fn read(key: i64, value: i64) -> OpInput<'static> {
    Op::Read { key: int(key), value: Some(int(value)) }
}

pub(crate) fn write(key: i64, value: i64) -> OpInput<'static> {
    Op::Write { key: int(key), value: int(value) }
}

/// Some predicate.
pub(crate) fn predicate() -> &'static Predicate {
    static PREDICATE: LazyLock<Predicate> = LazyLock::new(|| {
        let all = Expr::literal(Literal::Bool(true));
        Predicate::rows("", all).unwrap()
    });
    &PREDICATE
}

pub(crate) fn select<'a>(rows: Option<&'a [RowInput<'a>]>) -> OpInput<'a> {
    Op::PredicateRead { predicate: predicate(), rows }
}

pub(crate) fn update<'a>(rows: Option<&'a [RowInput<'a>]>) -> OpInput<'a> {
    Op::PredicateWrite { predicate: predicate(), rows }
}

pub(crate) fn count(result: Option<i64>) -> OpInput<'static> {
    let function = &Aggregate::Count;
    Op::Aggregate { function, predicate: predicate(), result: result.map(int) }
}

/// A transaction by name, on its own line of a file.
#[derive(Clone, Copy)]
pub(crate) struct Txn<'a> {
    pub(crate) session: &'a str,
    pub(crate) name: Option<i64>,
    pub(crate) ops: &'a [OpInput<'a>],
    pub(crate) outcome: Outcome,
    pub(crate) start: Option<i64>,
    pub(crate) finish: Option<i64>,
}

/// A committed transaction of session `s` without name and times.
pub(crate) fn txn<'a>(ops: &'a [OpInput<'a>]) -> Txn<'a> {
    Txn { session: "s", name: None, ops, outcome: Outcome::Committed, start: None, finish: None }
}

/// A transaction without operations that ran from one time to the other.
pub(crate) fn timed(session: &str, start: i64, finish: i64) -> Txn<'_> {
    Txn { session, start: Some(start), finish: Some(finish), ..txn(&[]) }
}

pub(crate) fn batch(txns: &[Txn<'_>]) -> Batch {
    let mut batch = Batch::new();
    for (line, txn) in txns.iter().enumerate() {
        let (session, id) = (txn.session.into(), txn.name.map(int));
        batch.begin(&TxnStart { session, id, line: Some(line as u64 + 1) }).unwrap();
        txn.ops.iter().for_each(|op| batch.op(op).unwrap());
        let end = TxnEnd::new(txn.outcome);
        batch.end(&TxnEnd { start: txn.start, finish: txn.finish, ..end }).unwrap();
    }
    batch
}

pub(crate) fn history(txns: &[Txn<'_>]) -> History {
    batch(txns).build().unwrap()
}

pub(crate) fn one_txn(ops: &[OpInput<'_>]) -> History {
    history(&[txn(ops)])
}
