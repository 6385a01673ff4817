//! What single operations must have found, and what they left behind.

use std::cell::OnceCell;
use std::collections::HashSet;

use isolario_model::{History, Initial, KeyId, Op, OpId, Outcome, ValueId, ValueRef};
use rustc_hash::FxBuildHasher;

use crate::times::Times;
use crate::{Refusal, VerifyOptions};

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// Nobody has written it.
    Initial,
    /// A version, by its word; none for *absent* where no operation carries that value.
    Holds(Option<u64>),
}

/// What an operation did, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// Nothing that can be told from anything else.
    Nothing,
    /// It found this.
    Found(Option<u64>),
    /// It did not find this.
    Missed(Option<u64>),
    /// It wrote this.
    Wrote(Option<u64>),
    /// It found the one and wrote the other.
    Replaced(Option<u64>, Option<u64>),
    /// One or the other: it replaced the one by the other, or missed the one.
    ReplacedOrMissed(Option<u64>, Option<u64>),
    /// What cannot be: it missed what it found.
    Nonsense,
}

impl Did {
    /// What it wrote, or may have.
    pub(super) fn written(self) -> Option<Option<u64>> {
        match self {
            Did::Wrote(new) | Did::Replaced(_, new) | Did::ReplacedOrMissed(_, new) => Some(new),
            _ => None,
        }
    }

    /// What it found, or may have, or says that it did not.
    fn found(self) -> Option<Option<u64>> {
        match self {
            Did::Found(old)
            | Did::Missed(old)
            | Did::Replaced(old, _)
            | Did::ReplacedOrMissed(old, _) => Some(old),
            Did::Nothing | Did::Wrote(_) | Did::Nonsense => None,
        }
    }
}

/// A history of single operations.
pub(super) struct Singles<'h> {
    pub(super) history: &'h History,
    pub(super) times: Times<'h>,
    absent: Option<u64>,
    /// What anyone wrote, where the initial state depends on that.
    written: HashSet<(KeyId, Option<u64>), FxBuildHasher>,
    /// What somebody found, or may have found, of a key, and nobody wrote to it, where that may be
    /// the initial state: sorted.
    unwritten: Vec<(KeyId, Option<u64>)>,
    /// The operations on each key that may have taken effect, when first asked for.
    by_key: OnceCell<Vec<Vec<OpId>>>,
}

impl<'h> Singles<'h> {
    /// Refuses histories of which linearizability says nothing.
    pub(super) fn new(history: &'h History, options: VerifyOptions) -> Result<Self, Refusal> {
        let absent = history.find_value(ValueRef::Nil).map(ValueId::to_bits);
        let mut singles = Singles {
            history,
            times: Times::new(history, options.clock_skew),
            absent,
            written: HashSet::default(),
            unwritten: Vec::new(),
            by_key: OnceCell::new(),
        };
        for txn in history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted) {
            if history.txn_ops(txn).len() > 1 {
                return Err(Refusal::Unsupported("the order of a transaction's operations"));
            }
            if let Some(op) = history.txn_ops(txn).find(|op| !is_known(history, *op)) {
                return Err(Refusal::UnsupportedOperation(op));
            }
        }
        if matches!(history.initial(), Initial::Unwritten | Initial::UnlessWritten(_)) {
            let ops = history.txns().flat_map(|txn| history.txn_ops(txn));
            let writes = ops.filter_map(|op| Some((singles.key(op), singles.did(op).written()?)));
            singles.written = writes.collect();
        }
        if *history.initial() == Initial::Unwritten {
            let ops = history.txns().flat_map(|txn| history.txn_ops(txn));
            let found = ops.filter_map(|op| Some((singles.key(op), singles.did(op).found()?)));
            let mut unwritten: Vec<_> =
                found.filter(|found| !singles.written.contains(found)).collect();
            unwritten.sort_unstable();
            unwritten.dedup();
            singles.unwritten = unwritten;
        }
        Ok(singles)
    }

    pub(super) fn key(&self, op: OpId) -> KeyId {
        self.history.op_keys()[op.index()]
    }

    /// The operations on a key that may have taken effect.
    pub(super) fn on_key(&self, key: KeyId) -> &[OpId] {
        let by_key = self.by_key.get_or_init(|| {
            let history = self.history;
            let mut by_key = vec![Vec::new(); history.key_count()];
            let kept = history.txns().filter(|txn| history.outcome(*txn) != Outcome::Aborted);
            for op in kept.flat_map(|txn| history.txn_ops(txn)) {
                by_key[self.key(op).index()].push(op);
            }
            by_key
        });
        by_key.get(key.index()).map_or(&[], Vec::as_slice)
    }

    /// The operations that may have written a version.
    pub(super) fn writers(&self, key: KeyId, word: Option<u64>) -> impl Iterator<Item = OpId> {
        self.on_key(key).iter().copied().filter(move |op| self.did(*op).written() == Some(word))
    }

    /// What an operation did if it took effect.
    pub(super) fn did(&self, op: OpId) -> Did {
        let version = || Some(self.history.encoded_version(op));
        match self.history.op(op) {
            Op::Read { value: Some(_), .. } => Did::Found(version()),
            Op::Write { .. } | Op::Delete { .. } => Did::Wrote(version()),
            Op::InsertIfAbsent { value, applied, seen, .. } => {
                compared(self.absent, value, applied, seen)
            }
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                compared(Some(expected.to_bits()), new, applied, seen)
            }
            _ => Did::Nothing,
        }
    }

    /// Every state in which a key may be at first. Where any value that nobody wrote may be the
    /// initial one, it is one of those that somebody asked for, or another.
    pub(super) fn initial_states(&self, key: KeyId) -> Vec<State> {
        let begin = self.unwritten.partition_point(|(other, _)| *other < key);
        let of_key = self.unwritten[begin..].iter().take_while(|(other, _)| *other == key);
        of_key.map(|(_, word)| State::Holds(*word)).chain([State::Initial]).collect()
    }

    /// The same, without those that someone contradicts: who found for certain what nobody wrote says
    /// what was there at first, whenever that was.
    pub(super) fn possible_initial_states(&self, key: KeyId) -> Vec<State> {
        let is_certain =
            |op: &OpId| self.history.outcome(self.history.op_txn(*op)) == Outcome::Committed;
        let found = |op: &OpId| match self.did(*op) {
            Did::Found(old) | Did::Replaced(old, _) => Some(State::Holds(old)),
            _ => None,
        };
        let mut states = self.initial_states(key);
        for first in self.on_key(key).iter().filter(|op| is_certain(op)).filter_map(found) {
            let is_unwritten = matches!(first, State::Holds(word) if self.unwritten.binary_search(&(key, word)).is_ok());
            states.retain(|state| !is_unwritten || *state == first);
        }
        states
    }

    /// Every state in which an operation may leave its key.
    pub(super) fn after(&self, key: KeyId, did: Did, state: State) -> impl Iterator<Item = State> {
        let is = |word| self.is(key, state, word);
        let misses = |word| !self.is(key, state, word);
        let (wrote, stayed) = match did {
            Did::Nothing => (None, true),
            Did::Found(old) => (None, is(old)),
            Did::Missed(old) => (None, misses(old)),
            Did::Wrote(new) => (Some(new), false),
            Did::Replaced(old, new) => (Some(new).filter(|_| is(old)), false),
            Did::ReplacedOrMissed(old, new) => (Some(new).filter(|_| is(old)), misses(old)),
            Did::Nonsense => (None, false),
        };
        wrote.map(State::Holds).into_iter().chain(stayed.then_some(state))
    }

    /// Whether a key holds a version. Where the initial value may be any that nobody wrote, those
    /// that matter are states of their own.
    fn is(&self, key: KeyId, state: State, word: Option<u64>) -> bool {
        match state {
            State::Holds(held) => held == word,
            State::Initial if *self.history.initial() == Initial::Unwritten => false,
            State::Initial => self.may_be_initial(key, word),
        }
    }

    /// Whether a version may be the initial one of a key. Without an initial state it is absent.
    pub(super) fn may_be_initial(&self, key: KeyId, word: Option<u64>) -> bool {
        let is_absent = word == self.absent;
        let nobody_wrote_it = || !self.written.contains(&(key, word));
        match self.history.initial() {
            Initial::None => is_absent,
            Initial::Value(value) => self.is_value(value.as_ref(), word),
            Initial::UnlessWritten(value) => {
                self.is_value(value.as_ref(), word) && nobody_wrote_it()
            }
            Initial::Unwritten => nobody_wrote_it(),
            _ => word.is_some() && self.history.encoded_initial_version() == word,
        }
    }

    fn is_value(&self, value: ValueRef<'_>, word: Option<u64>) -> bool {
        match value {
            ValueRef::Nil => word == self.absent,
            _ => word.is_some() && self.history.encoded_initial_version() == word,
        }
    }
}

fn compared(
    expected: Option<u64>,
    new: ValueId,
    applied: Option<bool>,
    seen: Option<ValueId>,
) -> Did {
    let (new, seen) = (Some(new.to_bits()), seen.map(|seen| Some(seen.to_bits())));
    match (applied, seen) {
        (Some(true), _) => Did::Replaced(expected, new),
        (None, None) => Did::ReplacedOrMissed(expected, new),
        (Some(false), None) => Did::Missed(expected),
        (None, Some(seen)) if seen == expected => Did::Replaced(expected, new),
        (Some(false), Some(seen)) if seen == expected => Did::Nonsense,
        (_, Some(seen)) => Did::Found(seen),
    }
}

/// Whether it is an operation on a register, and compares values only where they are what versions
/// are told apart by.
pub(crate) fn is_known(history: &History, op: OpId) -> bool {
    match history.op(op) {
        Op::Read { .. } | Op::Write { .. } | Op::Delete { .. } => true,
        Op::InsertIfAbsent { .. } | Op::CompareAndSet { .. } => !history.names_versions(),
        _ => false,
    }
}
