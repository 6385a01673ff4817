//! Random histories with everything a history can have.

use isolario_model::{
    Clock, Initial, Meta, Op, OpNotes, Outcome, SinkError, Stamp, TxnEnd, TxnSink, TxnStart, Value,
    ValueRef, VersionRef,
};

/// A small generator of random numbers: the same seed tells every sink the same history.
pub(super) struct Dice(u64);

const TEXTS: [&str; 5] = ["", "x", "naïve ✓", "nil", "line one\nline two"];

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed | 1)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn text(&mut self) -> &'static str {
        TEXTS[self.below(5) as usize]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        if self.below(2) == 0 { None } else { Some(make(self)) }
    }

    fn number(&mut self) -> i64 {
        match self.below(8) {
            0 => i64::MIN,
            1 => i64::MAX,
            2 => -1,
            _ => self.below(1000) as i64,
        }
    }

    fn value(&mut self) -> ValueRef<'static> {
        match self.below(12) {
            0 => ValueRef::Nil,
            1 => ValueRef::Bool(false),
            2 => ValueRef::Bool(true),
            3 => ValueRef::from(u64::MAX - self.below(3)),
            4 => ValueRef::Text(self.text()),
            5 => ValueRef::Keyword(self.text()),
            6 => ValueRef::Other(self.text()),
            _ => ValueRef::Int(self.number()),
        }
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { physical: self.number() as u64, logical: self.below(3) }
    }

    fn version(&mut self) -> VersionRef {
        match self.below(3) {
            0 => VersionRef::Initial,
            1 => VersionRef::ByWriter { txn: self.number() as u64, write: self.below(9) },
            _ => VersionRef::ByWrite { write: self.below(9), value: u64::MAX - self.below(9) },
        }
    }

    pub(super) fn meta(&mut self) -> Meta {
        let initial = match self.below(5) {
            0 => Initial::Value(Value::from(self.value())),
            1 => Initial::UnlessWritten(Value::from(self.value())),
            2 => Initial::Unwritten,
            3 => Initial::Marked,
            _ => Initial::None,
        };
        let clock = if self.below(2) == 0 { Clock::Nanoseconds } else { Clock::EventOrder };
        Meta { initial, clock }
    }

    /// Tells a sink a random history.
    pub(super) fn tell(&mut self, txns: usize, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        sink.meta(&self.meta())?;
        (0..txns).try_for_each(|_| self.tell_txn(sink))
    }

    fn tell_txn(&mut self, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        let sessions = [ValueRef::Int(0), ValueRef::Text("0"), ValueRef::Keyword("s")];
        sink.begin(&TxnStart {
            session: sessions[self.below(3) as usize],
            id: self.maybe(Dice::value),
            line: self.maybe(|dice| dice.number() as u64),
        })?;
        for _ in 0..self.below(6) {
            let version = if self.below(4) == 0 { Some(self.version()) } else { None };
            let sql = if self.below(4) == 0 { Some(self.text()) } else { None };
            self.tell_op(&OpNotes { version, sql }, sink)?;
        }
        let outcomes = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];
        sink.end(&TxnEnd {
            outcome: outcomes[self.below(3) as usize],
            start: self.maybe(Dice::number),
            finish: self.maybe(Dice::number),
            db_start: self.maybe(Dice::stamp),
            db_commit: self.maybe(Dice::stamp),
            snapshot: self.maybe(Dice::text),
            error: self.maybe(Dice::text),
        })
    }

    fn tell_op(&mut self, notes: &OpNotes<'_>, sink: &mut dyn TxnSink) -> Result<(), SinkError> {
        let key = if self.below(3) == 0 { self.value() } else { ValueRef::Int(7) };
        // Two elements only, so that lists agree often and diverge often.
        let elements: Vec<ValueRef<'_>> = (0..self.below(6))
            .map(|_| if self.below(8) == 0 { self.value() } else { ValueRef::Int(1) })
            .collect();
        let rows: Vec<_> = (0..self.below(3)).map(|_| (self.value(), self.value())).collect();
        let op = match self.below(10) {
            0 => Op::Read { key, value: self.maybe(Dice::value) },
            1 => Op::Write { key, value: self.value() },
            2 => Op::Delete { key },
            3 => Op::Append { key, element: self.value() },
            4 => Op::ReadList { key, elements: self.maybe(|_| &elements[..]) },
            5 => Op::InsertIfAbsent {
                key,
                value: self.value(),
                applied: self.maybe(|dice| dice.below(2) == 0),
                seen: self.maybe(Dice::value),
            },
            6 => Op::CompareAndSet {
                key,
                expected: self.value(),
                new: self.value(),
                applied: self.maybe(|dice| dice.below(2) == 0),
                seen: self.maybe(Dice::value),
            },
            7 => Op::PredicateRead { predicate: self.text(), rows: self.maybe(|_| &rows[..]) },
            8 => Op::PredicateWrite { predicate: self.text(), rows: self.maybe(|_| &rows[..]) },
            _ => Op::Aggregate {
                function: self.text(),
                predicate: self.text(),
                result: self.maybe(Dice::value),
            },
        };
        sink.op_with(&op, notes)
    }
}
