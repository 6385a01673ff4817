//! Small histories by hand, for tests.

use isolario_model::{
    Batch, Edge, Initial, Meta, Op, OpInput, Outcome, Reason, TxnEnd, TxnId, TxnSink, TxnStart,
    Value, ValueRef,
};

pub(crate) fn int(i: i64) -> ValueRef<'static> {
    ValueRef::Int(i)
}

pub(crate) fn text(s: &str) -> ValueRef<'_> {
    ValueRef::Text(s)
}

pub(crate) fn r(key: &str, value: i64) -> OpInput<'_> {
    Op::Read { key: text(key), value: Some(int(value)) }
}

pub(crate) fn w(key: &str, value: i64) -> OpInput<'_> {
    Op::Write { key: text(key), value: int(value) }
}

pub(crate) fn edge(from: u32, to: u32, reason: Reason) -> Edge {
    Edge { from: TxnId(from), to: TxnId(to), reason }
}

/// A history in the making. Transactions are numbered from 1 unless they are named, so that
/// `TxnId(0)` is called T1.
pub(crate) struct History {
    batch: Batch,
    session: i64,
    next: i64,
}

impl History {
    pub(crate) fn new() -> Self {
        let mut batch = Batch::new();
        let meta = Meta { initial: Initial::Value(Value::Int(0)), ..Meta::default() };
        batch.meta(&meta).unwrap();
        History { batch, session: 0, next: 1 }
    }

    /// Puts what follows into the next session.
    pub(crate) fn session(mut self) -> Self {
        self.session += 1;
        self
    }

    pub(crate) fn txn(self, ops: &[OpInput<'_>]) -> Self {
        self.ended(ops, Outcome::Committed)
    }

    pub(crate) fn ended(self, ops: &[OpInput<'_>], outcome: Outcome) -> Self {
        let id = int(self.next);
        self.add(Some(id), ops, outcome)
    }

    pub(crate) fn named(self, id: ValueRef<'_>, ops: &[OpInput<'_>]) -> Self {
        self.add(Some(id), ops, Outcome::Committed)
    }

    pub(crate) fn nameless(self, ops: &[OpInput<'_>]) -> Self {
        self.add(None, ops, Outcome::Committed)
    }

    /// A transaction that ran from one moment to another; nobody knows when one without an end did.
    pub(crate) fn timed(mut self, ops: &[OpInput<'_>], start: i64, finish: Option<i64>) -> Self {
        let id = Some(int(self.next));
        self.batch.begin(&TxnStart { session: int(self.session), id, line: None }).unwrap();
        for op in ops {
            self.batch.op(op).unwrap();
        }
        let outcome = if finish.is_some() { Outcome::Committed } else { Outcome::Unknown };
        let end = TxnEnd { start: Some(start), finish, ..TxnEnd::new(outcome) };
        self.batch.end(&end).unwrap();
        self.next += 1;
        self
    }

    fn add(mut self, id: Option<ValueRef<'_>>, ops: &[OpInput<'_>], outcome: Outcome) -> Self {
        let line = u64::try_from(self.next).ok();
        self.batch.begin(&TxnStart { session: int(self.session), id, line }).unwrap();
        for op in ops {
            self.batch.op(op).unwrap();
        }
        self.batch.end(&TxnEnd::new(outcome)).unwrap();
        self.next += 1;
        self
    }

    pub(crate) fn build(self) -> isolario_model::History {
        self.batch.build().unwrap()
    }
}
