//! Tells a sink what the clients saw.

use isolario_model::{
    Clock, Initial, Meta, Op, OpInput, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value,
    ValueRef,
};
use isolario_workload::{Chance, Kind, PlannedOp, Rng};

use crate::config::Summary;
use crate::flight::Flight;
use crate::store::Store;

/// Passes transactions on to a sink, and counts them.
pub(crate) struct Reporter<'s> {
    sink: &'s mut dyn TxnSink,
    /// What registers hold at first.
    initial: ValueRef<'static>,
    pub(crate) summary: Summary,
    /// Whether to tell the store's own timestamps.
    stamps: bool,
    /// How many transactions there are so far: the number of the last one.
    pub(crate) txns: u64,
    elements: Vec<i64>,
    /// Which reads of a transaction of unknown outcome got no answer.
    unanswered: Chance,
}

impl<'s> Reporter<'s> {
    /// Begins a history of this kind of workload. Registers hold 0 at first, which most formats can
    /// express; where it matters whether anything is there, nothing is. Formats for lists know
    /// registers only with nothing in them, and a history of lists has no registers to speak of.
    pub(crate) fn new(
        sink: &'s mut dyn TxnSink,
        kind: Kind,
        stamps: bool,
    ) -> Result<Self, SinkError> {
        let is_empty = matches!(kind, Kind::Append | Kind::Lwt);
        let initial = if is_empty { ValueRef::Nil } else { ValueRef::Int(0) };
        let value: Value = initial.to_owned();
        sink.meta(&Meta { initial: Initial::Value(value), clock: Clock::Nanoseconds })?;
        Ok(Reporter {
            sink,
            initial,
            summary: Summary::default(),
            stamps,
            txns: 0,
            elements: Vec::new(),
            unanswered: Chance::new(0.25),
        })
    }

    /// Begins a transaction of a session.
    pub(crate) fn begin(&mut self, session: u64) -> Result<(), SinkError> {
        self.txns += 1;
        let id = Some(self.txns.into());
        self.sink.begin(&TxnStart { session: session.into(), id, line: None })
    }

    /// Tells an operation.
    #[inline]
    pub(crate) fn op(&mut self, op: &OpInput<'_>) -> Result<(), SinkError> {
        self.summary.operations += 1;
        self.sink.op(op)
    }

    /// Ends a transaction.
    pub(crate) fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.sink.end(end)
    }

    /// The value of a register as the client sees it.
    pub(crate) fn shown(&self, value: Option<i64>) -> ValueRef<'static> {
        value.map_or(self.initial, ValueRef::Int)
    }

    /// Tells a transaction that has ended.
    pub(crate) fn flight(
        &mut self,
        session: u32,
        flight: &Flight,
        outcome: Outcome,
        finish: i64,
        store: &Store,
        rng: &mut Rng,
    ) -> Result<(), SinkError> {
        self.begin(session.into())?;
        for at in 0..flight.plan.len() {
            let answered = outcome != Outcome::Unknown || !rng.happens(self.unanswered);
            self.planned_op(flight, at, outcome, answered, store)?;
        }
        let (db_start, db_commit) = if self.stamps { flight.stamps } else { (None, None) };
        self.end(&TxnEnd {
            start: Some(flight.start),
            // As far as its client knows, one of unknown outcome never finishes.
            finish: (outcome != Outcome::Unknown).then_some(finish),
            db_start,
            db_commit,
            ..TxnEnd::new(outcome)
        })?;
        self.summary.reruns += u64::from(flight.reran);
        match outcome {
            Outcome::Committed => self.summary.committed += 1,
            Outcome::Aborted => self.summary.aborted += 1,
            Outcome::Unknown => self.summary.unknown += 1,
        }
        Ok(())
    }

    fn planned_op(
        &mut self,
        flight: &Flight,
        at: usize,
        outcome: Outcome,
        answered: bool,
        store: &Store,
    ) -> Result<(), SinkError> {
        let op = flight.plan[at];
        let Some(number) = op.key() else { return Ok(()) };
        let key = ValueRef::from(number);
        let found = flight.answers[at].register();
        match op {
            PlannedOp::ReadList { key } => self.list(flight, at, key, answered, store),
            PlannedOp::Read { .. } => {
                self.op(&Op::Read { key, value: answered.then(|| self.shown(found)) })
            }
            PlannedOp::Write { value, .. } => self.op(&Op::Write { key, value: value.into() }),
            PlannedOp::Append { element, .. } => {
                self.op(&Op::Append { key, element: element.into() })
            }
            PlannedOp::InsertIfAbsent { value, .. } => {
                let (applied, seen) = self.conditional(found, None, outcome);
                self.op(&Op::InsertIfAbsent { key, value: value.into(), applied, seen })
            }
            PlannedOp::CompareAndSet { new, .. } => {
                let expected = flight.expected(number);
                let (applied, seen) = self.conditional(found, expected, outcome);
                let (expected, new) = (self.shown(expected), new.into());
                self.op(&Op::CompareAndSet { key, expected, new, applied, seen })
            }
            PlannedOp::Table(_) => Ok(()),
        }
    }

    /// Whether a conditional write took effect, and what a failed one found. Only whoever knows
    /// the outcome knows that.
    fn conditional(
        &self,
        found: Option<i64>,
        expected: Option<i64>,
        outcome: Outcome,
    ) -> (Option<bool>, Option<ValueRef<'static>>) {
        if outcome != Outcome::Committed {
            return (None, None);
        }
        let applied = found == expected;
        (Some(applied), (!applied).then(|| self.shown(found)))
    }

    /// A read of a list: what was there, and then the transaction's own appends so far.
    fn list(
        &mut self,
        flight: &Flight,
        at: usize,
        list: u64,
        answered: bool,
        store: &Store,
    ) -> Result<(), SinkError> {
        let mut elements = std::mem::take(&mut self.elements);
        elements.clear();
        elements.extend(store.elements(list).iter().take(flight.answers[at].prefix()));
        elements.extend(flight.plan[..at].iter().filter_map(|op| match *op {
            PlannedOp::Append { key, element } if key == list => Some(element),
            _ => None,
        }));
        let told = self.elements_read(list, answered.then_some(&elements[..]));
        self.elements = elements;
        told
    }

    /// Tells a read of a list.
    pub(crate) fn elements_read(
        &mut self,
        list: u64,
        elements: Option<&[i64]>,
    ) -> Result<(), SinkError> {
        let shown: Option<Vec<ValueRef<'_>>> =
            elements.map(|elements| elements.iter().map(|e| ValueRef::Int(*e)).collect());
        self.op(&Op::ReadList { key: list.into(), elements: shown.as_deref() })
    }
}
