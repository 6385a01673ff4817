//! Single operations as calls on registers: what each needs to find, and what it leaves behind.

use isolario_model::{
    History, Inapplicable, Initial, KeyId, Op, OpId, Outcome, TxnId, ValueId, ValueRef,
};

use crate::CheckOptions;
use crate::graph::Rows;

/// What a call needs to find in its register, and what it leaves there.
///
/// An insert is a compare-and-set from *absent*, a delete a write of it, and a failed conditional
/// that tells what it found a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Anything will do: an unobserved read, or a comparison with what nobody wrote that failed.
    Free,
    /// It found this.
    Read(u64),
    /// It found anything but this.
    Differs(u64),
    /// It wrote this.
    Write(u64),
    /// It found the one and wrote the other.
    Swap(u64, u64),
    /// If it found the one it wrote the other, else it did nothing; the client cannot tell.
    Maybe(u64, u64),
    /// It contradicts itself: a comparison failed on the very value it asked for.
    Never,
}

impl Action {
    /// What it may leave behind.
    pub(super) fn new_word(self) -> Option<u64> {
        match self {
            Action::Write(new) | Action::Swap(_, new) | Action::Maybe(_, new) => Some(new),
            Action::Free | Action::Read(_) | Action::Differs(_) | Action::Never => None,
        }
    }

    /// What its explanation depends on having been there, or not.
    pub(super) fn old_word(self) -> Option<u64> {
        match self {
            Action::Read(old) | Action::Differs(old) | Action::Swap(old, _) => Some(old),
            Action::Maybe(old, _) => Some(old),
            Action::Free | Action::Write(_) | Action::Never => None,
        }
    }
}

/// One operation on a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) op: OpId,
    /// When it may have taken effect at the earliest.
    pub(super) start: i64,
    /// And at the latest. Infinite times are the least and the greatest one.
    pub(super) finish: i64,
    pub(super) action: Action,
    /// Whether it did take effect; else it may have, at any time from its start on.
    pub(super) must: bool,
}

/// *Absent*, where no operation carries that value: the word of no value.
const ABSENT: u64 = u64::MAX;
/// What a register holds at first, where no word says it: the word of no value.
pub(super) const INITIAL: u64 = u64::MAX - 2;

/// All calls of a history, by register.
pub(super) struct Registers<'h> {
    pub(super) history: &'h History,
    clock_skew: u64,
    absent: u64,
    /// By key.
    calls: Rows<Call>,
    /// Writes of transactions that aborted, by key.
    aborted: Vec<(KeyId, u64, OpId)>,
}

/// One register with its calls.
pub(super) struct Register<'r> {
    pub(super) key: KeyId,
    pub(super) initial: u64,
    /// Where any value that nobody wrote may be the initial one: what the register may hold at first
    /// instead, as far as it makes a difference.
    pub(super) other_initials: Vec<u64>,
    /// The calls that found what nobody wrote, and so say what the register held at first: the first
    /// one, and the first one that says something else.
    pub(super) found_initial: [Option<u32>; 2],
    pub(super) calls: &'r mut [Call],
    /// What aborted calls would have written, sorted.
    pub(super) aborted: &'r [(KeyId, u64, OpId)],
}

impl<'h> Registers<'h> {
    /// Sorts the operations of a history by key, or says why the level does not apply.
    pub(super) fn new(history: &'h History, options: &CheckOptions) -> Result<Self, Inapplicable> {
        if let Some(reason) = misfit(history) {
            return Err(reason);
        }
        let nil = history.find_value(ValueRef::Nil);
        let mut registers = Registers {
            history,
            clock_skew: options.clock_skew,
            absent: nil.map_or(ABSENT, ValueId::to_bits),
            calls: Rows::default(),
            aborted: Vec::new(),
        };
        let is_aborted = |txn: &TxnId| history.outcome(*txn) == Outcome::Aborted;
        let txns = (0..history.txn_count()).map(TxnId::at);
        let kept = txns.filter(|txn| !is_aborted(txn));
        let single = kept.filter_map(|txn| Some((txn, history.txn_ops(txn).next()?)));
        let by_key = single.map(|(txn, op)| (history.op_keys()[op.index()].0, (txn, op)));
        let by_key = Rows::group(history.key_count(), by_key);
        registers.calls = by_key.map(|(txn, op)| registers.call(*txn, *op));
        for txn in history.txns().filter(is_aborted) {
            history.txn_ops(txn).for_each(|op| registers.add_aborted(op));
        }
        registers.aborted.sort_unstable();
        Ok(registers)
    }

    /// Each register, ready to be decided on its own: linearizability is a local property.
    pub(super) fn split(&mut self) -> Vec<Register<'_>> {
        let mut aborted = &self.aborted[..];
        let mut registers = Vec::with_capacity(self.calls.len());
        for (key, calls) in self.calls.iter_mut().enumerate() {
            let key = KeyId::at(key);
            let of_key = aborted.partition_point(|(other, ..)| *other == key);
            let own = aborted.split_off(..of_key).unwrap_or_default();
            let mut register = Register {
                key,
                initial: INITIAL,
                other_initials: Vec::new(),
                found_initial: [None; 2],
                calls,
                aborted: own,
            };
            register.settle_initial(self.history, self.absent);
            registers.push(register);
        }
        registers
    }

    fn add_aborted(&mut self, op: OpId) {
        let key = self.history.op_keys()[op.index()];
        if let Some(word) = self.action(op).new_word() {
            self.aborted.push((key, word, op));
        }
    }

    fn call(&self, txn: TxnId, op: OpId) -> Call {
        let (start, finish) = (self.history.start(txn), self.history.finish(txn));
        // Exact for `finish < start`: what lies beyond the first or the last time becomes that time, and no
        // finish is earlier than the first one, nor any start later than the last.
        let start = start.map_or(i64::MIN, |start| start.saturating_sub_unsigned(self.clock_skew));
        let finish =
            finish.map_or(i64::MAX, |finish| finish.saturating_add_unsigned(self.clock_skew));
        let action = self.action(op);
        if self.history.outcome(txn) == Outcome::Committed {
            return Call { op, start, finish, action, must: true };
        }
        // If it did nothing, that is as if it had never been.
        let action = match action {
            Action::Write(_) | Action::Swap(..) => action,
            Action::Maybe(old, new) => Action::Swap(old, new),
            _ => Action::Free,
        };
        Call { op, start, finish: i64::MAX, action, must: false }
    }

    fn action(&self, op: OpId) -> Action {
        let history = self.history;
        match history.op(op) {
            Op::Read { value: Some(_), .. } => Action::Read(history.encoded_version(op)),
            Op::Write { .. } | Op::Delete { .. } => Action::Write(history.encoded_version(op)),
            Op::InsertIfAbsent { value, applied, seen, .. } => {
                conditional(self.absent, value.to_bits(), applied, seen.map(ValueId::to_bits))
            }
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                conditional(expected.to_bits(), new.to_bits(), applied, seen.map(ValueId::to_bits))
            }
            _ => Action::Free,
        }
    }
}

fn conditional(expected: u64, new: u64, applied: Option<bool>, seen: Option<u64>) -> Action {
    match (applied, seen) {
        (Some(true), _) => Action::Swap(expected, new),
        (Some(false), Some(seen)) if seen == expected => Action::Never,
        (None, Some(seen)) if seen == expected => Action::Swap(expected, new),
        (_, Some(seen)) => Action::Read(seen),
        (Some(false), None) => Action::Differs(expected),
        (None, None) => Action::Maybe(expected, new),
    }
}

/// Why linearizability does not apply: it is about single operations on registers, with times.
fn misfit(history: &History) -> Option<Inapplicable> {
    for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
        let mut ops = history.txn_ops(txn);
        let Some(op) = ops.next() else { continue };
        if ops.len() > 0 {
            return Some(Inapplicable::SeveralOperations { txn });
        }
        let is_known = match history.op(op) {
            Op::Read { .. } | Op::Write { .. } | Op::Delete { .. } => true,
            // What they compare with is a value, and here versions are something else.
            Op::InsertIfAbsent { .. } | Op::CompareAndSet { .. } => !history.names_versions(),
            _ => false,
        };
        if !is_known {
            return Some(Inapplicable::Operation { op });
        }
    }
    (!history.has_times()).then_some(Inapplicable::NoTimes)
}

impl Register<'_> {
    /// Finds out what the register holds at first. Where there is no initial state it is absent:
    /// conditional inserts need one.
    fn settle_initial(&mut self, history: &History, absent: u64) {
        self.initial = match history.initial() {
            Initial::Value(value) if value.as_ref() == ValueRef::Nil => absent,
            Initial::None => absent,
            _ => history.encoded_initial_version().unwrap_or(INITIAL),
        };
        match history.initial() {
            Initial::UnlessWritten(_) if self.written().contains(&self.initial) => {
                self.initial = INITIAL;
            }
            Initial::Unwritten => self.find_unwritten(),
            _ => {}
        }
    }

    /// All words that anyone wrote, sorted.
    fn written(&self) -> Vec<u64> {
        let by_calls = self.calls.iter().filter_map(|call| call.action.new_word());
        let mut written: Vec<u64> =
            by_calls.chain(self.aborted.iter().map(|(_, word, _)| *word)).collect();
        written.sort_unstable();
        written
    }

    /// Where any value that nobody wrote may be the initial one, the register still has only one.
    /// Whoever found such a value for certain says which. If nobody did, it may be any that calls
    /// ask for, or another one.
    fn find_unwritten(&mut self) {
        let written = self.written();
        let is_unwritten = |word: &u64| written.binary_search(word).is_err();
        let mut asked_for = Vec::new();
        for (at, call) in (0..).zip(&*self.calls) {
            let Some(old) = call.action.old_word().filter(is_unwritten) else { continue };
            let is_certain = call.must && matches!(call.action, Action::Read(_) | Action::Swap(..));
            match self.found_initial {
                [None, _] if is_certain => {
                    self.found_initial[0] = Some(at);
                    self.initial = old;
                }
                [_, None] if is_certain && old != self.initial => self.found_initial[1] = Some(at),
                _ => asked_for.push(old),
            }
        }
        if self.found_initial[0].is_none() {
            asked_for.sort_unstable();
            asked_for.dedup();
            self.other_initials = asked_for;
        }
    }
}
