//! Linearizability of single operations (MTC, Definition 7): every order that real time allows is
//! tried, on all keys at once, with every choice of outcomes for the unknown ones.

use isolario_model::{History, Initial, KeyId, Op, OpView, Outcome, TxnId, ValueId, ValueRef};

use crate::small::{MAX_TXNS, Txns, bit, members};
use crate::worlds::some_choice;
use crate::{Answer, Options};

pub(crate) fn answer(history: &History, options: Options) -> Answer {
    let Some(singles) = Singles::new(history, options) else { return Answer::Unsupported };
    let initial: Vec<Vec<State>> =
        (0..history.key_count()).map(|key| singles.initial_states(key)).collect();
    let satisfied = some_choice(&initial, &mut Vec::new(), &|states| singles.goes_on(0, states));
    if satisfied { Answer::Satisfied } else { Answer::Violated }
}

/// What a key holds; none for a value that no operation mentions.
type State<'h> = Option<ValueRef<'h>>;

/// A history of single operations.
struct Singles<'h> {
    history: &'h History,
    /// Those that must take effect.
    committed: Txns,
    /// Those that may have.
    unknown: Txns,
    /// Per transaction, those that had finished before it started.
    before: [Txns; MAX_TXNS],
}

impl<'h> Singles<'h> {
    /// None where the level does not apply, or brute force does not know what to do.
    fn new(history: &'h History, options: Options) -> Option<Self> {
        if history.txn_count() > MAX_TXNS || !history.has_times() || history.names_versions() {
            return None;
        }
        let with = |outcome| {
            let txns = history.txns().filter(|txn| history.outcome(*txn) == outcome);
            // An empty transaction does nothing.
            let txns = txns.filter(|txn| history.txn_ops(*txn).len() > 0);
            txns.fold(0, |set: Txns, txn| set | bit(txn.index()))
        };
        let (committed, unknown) = (with(Outcome::Committed), with(Outcome::Unknown));
        let mut singles = Singles { history, committed, unknown, before: [0; MAX_TXNS] };
        let all = committed | unknown;
        if !members(all).all(|txn| singles.is_single(txn)) {
            return None;
        }
        for txn in members(all) {
            let earlier =
                members(committed).filter(|other| precedes(history, *other, txn, options));
            singles.before[txn] = earlier.fold(0, |set, other| set | bit(other));
        }
        Some(singles)
    }

    fn is_single(&self, txn: usize) -> bool {
        let mut ops = self.history.txn_ops(TxnId::at(txn));
        let (first, second) = (ops.next(), ops.next());
        let on_register = |op| {
            use Op::{CompareAndSet, Delete, InsertIfAbsent, Read, Write};
            matches!(
                self.history.op(op),
                Read { .. }
                    | Write { .. }
                    | Delete { .. }
                    | InsertIfAbsent { .. }
                    | CompareAndSet { .. }
            )
        };
        second.is_none() && first.is_some_and(on_register)
    }

    /// Whether what is left can be put in order after what has taken effect.
    fn goes_on(&self, done: Txns, state: &[State<'h>]) -> bool {
        if self.committed & !done == 0 {
            return true;
        }
        members((self.committed | self.unknown) & !done).any(|txn| {
            self.before[txn] & !done == 0
                && self.effects(txn, state).into_iter().any(|(key, after)| {
                    let mut state = state.to_vec();
                    state[key] = after;
                    self.goes_on(done | bit(txn), &state)
                })
        })
    }

    /// What an operation may leave behind if it takes effect now, with its key; nothing if it cannot
    /// have returned what it did.
    fn effects(&self, txn: usize, state: &[State<'h>]) -> Vec<(usize, State<'h>)> {
        let Some(op) = self.history.txn_ops(TxnId::at(txn)).next() else { return Vec::new() };
        let op = self.history.op(op);
        let Some(key) = op.key().map(KeyId::index) else { return Vec::new() };
        let now = state[key];
        let is = |value| now == Some(value);
        let mut after = Vec::new();
        match op {
            Op::Write { value, .. } => after.push(self.holds(value)),
            Op::Delete { .. } => after.push(Some(ValueRef::Nil)),
            Op::Read { value, .. } => {
                after
                    .extend(value.is_none_or(|value| is(self.history.value(value))).then_some(now));
            }
            Op::InsertIfAbsent { value: new, applied, seen, .. }
            | Op::CompareAndSet { new, applied, seen, .. } => {
                let seen = seen.map(|seen| self.history.value(seen));
                let expected = match op {
                    Op::CompareAndSet { expected, .. } => self.history.value(expected),
                    _ => ValueRef::Nil,
                };
                if applied == Some(true)
                    || (applied.is_none() && seen.is_none_or(|seen| seen == expected))
                {
                    after.extend(is(expected).then_some(self.holds(new)));
                }
                if applied != Some(true) {
                    let fails =
                        !is(expected) && seen.is_none_or(|seen| seen != expected && is(seen));
                    after.extend(fails.then_some(now));
                }
            }
            _ => {}
        }
        after.into_iter().map(|after| (key, after)).collect()
    }

    fn holds(&self, value: ValueId) -> State<'h> {
        Some(self.history.value(value))
    }

    /// What a key may hold at first. Without an initial state it is absent.
    fn initial_states(&self, key: usize) -> Vec<State<'h>> {
        match self.history.initial() {
            Initial::Value(initial) => vec![Some(initial.as_ref())],
            Initial::UnlessWritten(initial) => {
                let initial = initial.as_ref();
                vec![Some(initial).filter(|initial| !self.is_written(key, *initial))]
            }
            Initial::Unwritten => {
                let unwritten = self.found(key).filter(|value| !self.is_written(key, *value));
                unwritten.map(Some).chain([None]).collect()
            }
            _ => vec![Some(ValueRef::Nil)],
        }
    }

    /// Every value that an operation on a key found, or may have found.
    fn found(&self, key: usize) -> impl Iterator<Item = ValueRef<'h>> {
        self.ops(key).flat_map(|op| {
            let (expected, seen) = match op {
                Op::Read { value, .. } => (None, value),
                Op::CompareAndSet { expected, seen, .. } => (Some(expected), seen),
                Op::InsertIfAbsent { seen, .. } => (None, seen),
                _ => (None, None),
            };
            let absent = matches!(op, Op::InsertIfAbsent { .. }).then_some(ValueRef::Nil);
            let values = [expected, seen].into_iter().flatten().map(|v| self.history.value(v));
            values.chain(absent)
        })
    }

    /// The operations on a key, of transactions of any outcome.
    fn ops(&self, key: usize) -> impl Iterator<Item = OpView<'h>> {
        let ops = self.history.txns().flat_map(|txn| self.history.txn_ops(txn));
        let ops = ops.map(|op| self.history.op(op));
        ops.filter(move |op| op.key().map(KeyId::index) == Some(key))
    }

    /// Whether anyone wrote a value to a key, in a transaction of any outcome.
    fn is_written(&self, key: usize, value: ValueRef<'_>) -> bool {
        self.ops(key).any(|op| match op {
            Op::Write { value: new, .. } => self.history.value(new) == value,
            Op::Delete { .. } => value == ValueRef::Nil,
            Op::InsertIfAbsent { value: new, applied, .. }
            | Op::CompareAndSet { new, applied, .. } => {
                applied != Some(false) && self.history.value(new) == value
            }
            _ => false,
        })
    }
}

/// Whether one had finished before the other started.
fn precedes(history: &History, first: usize, second: usize, options: Options) -> bool {
    let (first, second) = (TxnId::at(first), TxnId::at(second));
    let skew = i128::from(options.clock_skew);
    let Some((finish, start)) = history.finish(first).zip(history.start(second)) else {
        return false;
    };
    i128::from(finish) + skew < i128::from(start) - skew
}
