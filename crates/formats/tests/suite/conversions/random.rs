//! Random histories within what two formats have in common.

use isolario_model::{
    Batch, History, Initial, Meta, Op, OpInput, Outcome, Predicate, RowInput, Stamp, TxnEnd,
    TxnSink, TxnStart, ValueRef,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::capabilities::{Common, Kinds, Times};

/// Choices from which an operation is made, whatever the formats can express.
#[derive(Clone, Debug)]
struct OpPlan {
    kind: u8,
    key: i64,
    /// Which of the things there are to read.
    pick: Index,
}

#[derive(Clone, Debug)]
struct TxnPlan {
    session: i64,
    outcome: Index,
    is_long: bool,
    ops: Vec<OpPlan>,
}

fn txn_plan() -> impl Strategy<Value = TxnPlan> {
    let op =
        (0..12u8, 0..3i64, any::<Index>()).prop_map(|(kind, key, pick)| OpPlan { kind, key, pick });
    (0..3i64, any::<Index>(), any::<bool>(), vec(op, 1..5))
        .prop_map(|(session, outcome, is_long, ops)| TxnPlan { session, outcome, is_long, ops })
}

/// A history that both formats should take.
pub fn history(common: Common) -> impl Strategy<Value = History> {
    vec(txn_plan(), 1..8).prop_map(move |mut txns| {
        txns.sort_by_key(|txn| txn.session);
        if common.single_register {
            txns.iter_mut().for_each(|txn| txn.ops.truncate(1));
        }
        Recipe { common: &common, txns: &txns }.history()
    })
}

/// The kinds of operation that histories are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Append,
    ReadList,
    Delete,
    Compare,
    Select,
}

struct Recipe<'a> {
    common: &'a Common,
    txns: &'a [TxnPlan],
}

impl Recipe<'_> {
    fn history(&self) -> History {
        let Common { initial, clock, .. } = self.common;
        let mut batch = Batch::new();
        batch.meta(&Meta { initial: initial.clone(), clock: *clock }).unwrap();
        let mut before = None;
        for (number, txn) in self.txns.iter().enumerate() {
            let mut outcome = *txn.outcome.get(&self.common.outcomes);
            if before == Some((txn.session, Outcome::Aborted)) && !self.common.aborted_stay_apart {
                outcome = Outcome::Committed;
            }
            if self.send_txn(number, outcome, &mut batch) {
                before = Some((txn.session, outcome));
            }
        }
        batch.build().unwrap()
    }

    /// Leaves out reads for which there is nothing to read, and transactions of nothing else.
    fn send_txn(&self, number: usize, outcome: Outcome, batch: &mut Batch) -> bool {
        let txn = &self.txns[number];
        let has_answer = |op| self.kind(op) != Kind::Read || self.answer(op, outcome).is_some();
        let ops = txn.ops.iter().enumerate().filter(|(_, op)| has_answer(op));
        let ops: Vec<_> = ops.collect();
        if ops.is_empty() {
            return false;
        }
        let id = self.common.has_txn_names.then_some(ValueRef::Int(100 + number as i64));
        batch.begin(&TxnStart { session: txn.session.into(), id, line: None }).unwrap();
        for (position, op) in ops {
            let (own, answer) = (value_at(number, position), self.answer(op, outcome));
            self.with_op(op, own, answer, |op| batch.op(op).unwrap());
        }
        batch.end(&self.end(number, outcome)).unwrap();
        true
    }

    fn end(&self, number: usize, outcome: Outcome) -> TxnEnd<'static> {
        let txn = &self.txns[number];
        let start = number as i64 * 10 + 1;
        let finish = start + if txn.is_long { 9 } else { 4 };
        // Sessions run at the same time, each in its own order, and no two moments are the same:
        // all times of a session leave the same remainder.
        let shift = |time: i64| time * 8 + txn.session - txn.session * 400;
        let (start, finish) = (shift(start), shift(finish));
        let is_timed = self.common.times != Times::None;
        let stamp = |time: i64| Stamp { physical: time.unsigned_abs(), logical: 1 };
        TxnEnd {
            start: is_timed.then_some(start),
            finish: is_timed.then_some(finish),
            db_start: self.common.has_stamps.then(|| stamp(start)),
            db_commit: self.common.has_stamps.then(|| stamp(finish)),
            ..TxnEnd::new(outcome)
        }
    }

    fn kind(&self, op: &OpPlan) -> Kind {
        match (self.common.kinds, op.kind) {
            (Kinds::Registers, kind) if kind % 2 == 0 => Kind::Read,
            (Kinds::Registers, _) => Kind::Write,
            (_, 0..=2) => Kind::Read,
            (_, 3..=5) => Kind::Write,
            (_, 6..=7) => Kind::Append,
            (Kinds::AndLists, _) | (_, 8) => Kind::ReadList,
            (_, 9) => Kind::Delete,
            (_, 10) => Kind::Compare,
            (_, _) => Kind::Select,
        }
    }

    fn key(&self, op: &OpPlan) -> ValueRef<'static> {
        match self.kind(op) {
            _ if self.common.single_register => ValueRef::Keyword("register"),
            // Lists are other keys than registers.
            Kind::Append | Kind::ReadList => ValueRef::Int(10 + op.key),
            _ => ValueRef::Int(op.key),
        }
    }

    /// The values that operations of a kind write to a key.
    fn written(&self, kind: Kind, key: ValueRef<'_>) -> Vec<ValueRef<'static>> {
        let ops = (0..).zip(self.txns).flat_map(|(number, txn)| {
            txn.ops.iter().enumerate().map(move |(position, op)| (op, value_at(number, position)))
        });
        ops.filter(|(op, _)| self.kind(op) == kind && self.key(op) == key)
            .map(|(_, value)| value)
            .collect()
    }

    /// What a read returns: one of the values written anywhere, or the initial one.
    fn answer(&self, op: &OpPlan, outcome: Outcome) -> Option<ValueRef<'_>> {
        let written = self.written(Kind::Write, self.key(op));
        let is_heard = outcome == Outcome::Committed || self.common.failed_initial_reads;
        let initial = match &self.common.initial {
            Initial::Value(value) if self.common.initial_reads && is_heard => Some(value.as_ref()),
            _ => None,
        };
        let choices: Vec<_> = written.into_iter().chain(initial).collect();
        (!choices.is_empty()).then(|| *op.pick.get(&choices))
    }

    fn with_op(
        &self,
        op: &OpPlan,
        own: ValueRef<'_>,
        answer: Option<ValueRef<'_>>,
        send: impl FnOnce(&OpInput<'_>),
    ) {
        let key = self.key(op);
        match self.kind(op) {
            Kind::Read => send(&Op::Read { key, value: answer }),
            Kind::Write => send(&Op::Write { key, value: own }),
            Kind::Append => send(&Op::Append { key, element: own }),
            Kind::ReadList => {
                let mut elements = self.written(Kind::Append, key);
                elements.truncate(op.pick.index(elements.len() + 1));
                send(&Op::ReadList { key, elements: Some(&elements) });
            }
            Kind::Delete => send(&Op::Delete { key }),
            Kind::Compare => {
                let (expected, applied) = (ValueRef::Int(0), Some(op.key == 0));
                send(&Op::CompareAndSet { key, expected, new: own, applied, seen: None });
            }
            Kind::Select => {
                let (predicate, row) = (&Predicate::from_sql("v > 0"), RowInput::new(key, own));
                send(&Op::PredicateRead { predicate, rows: Some(&[row]) });
            }
        }
    }
}

/// Every write has a value of its own, which says where it stands; none has 0.
fn value_at(txn: usize, position: usize) -> ValueRef<'static> {
    ValueRef::Int((txn * 10 + position + 1) as i64)
}
