//! Serializability of small histories of any operations, by trying every order.
//!
//! The axioms of the other brute force are about registers; here orders are replayed, which works
//! for lists and conditional writes as well.

use std::collections::BTreeMap;

use isolario_model::{History, KeyId, Level, Op, OpId, Outcome, TxnId, ValueId};
use isolario_oracle::volume;
use isolario_sim::Kind;

use crate::support::{history, random_config};

/// What every key holds: the elements of a list, or the one value of a register; absent keys have
/// their initial value.
pub type State = BTreeMap<KeyId, Vec<ValueId>>;

pub struct Replay<'h> {
    history: &'h History,
    /// Whether real time counts, too.
    strict: bool,
    initial: Option<ValueId>,
}

/// What registers hold at first, if any operation says so.
pub fn initial(history: &History) -> Option<ValueId> {
    history.initial_value().and_then(|value| history.find_value(value.as_ref()))
}

/// Whether some order of the transactions explains what each of them saw.
fn is_serializable(history: &History, strict: bool) -> bool {
    Replay::new(history, strict).extends(&[], &State::new())
}

impl<'h> Replay<'h> {
    pub fn new(history: &'h History, strict: bool) -> Self {
        Replay { history, strict, initial: initial(history) }
    }

    fn extends(&self, order: &[TxnId], state: &State) -> bool {
        let left = || self.history.txns().filter(|txn| !order.contains(txn));
        if left().all(|txn| self.history.outcome(txn) != Outcome::Committed) {
            return true;
        }
        left().filter(|txn| self.history.outcome(*txn) != Outcome::Aborted).any(|next| {
            let mut state = state.clone();
            left().all(|other| !self.precedes(other, next))
                && self.history.txn_ops(next).all(|op| self.replay(op, &mut state))
                && self.extends(&[order, &[next]].concat(), &state)
        })
    }

    /// Whether one transaction must come before another. Nothing follows an unknown one.
    pub fn precedes(&self, first: TxnId, second: TxnId) -> bool {
        let history = self.history;
        history.outcome(first) == Outcome::Committed
            && ((history.session_of(first) == history.session_of(second) && first < second)
                || (self.strict && history.finish(first) < history.start(second)))
    }

    /// Runs an operation; false if it did not see what is there.
    pub fn replay(&self, op: OpId, state: &mut State) -> bool {
        let register = |key| state.get(&key).map_or(self.initial, |held| held.last().copied());
        match self.history.op(op) {
            Op::Read { key, value } => value.is_none() || value == register(key),
            Op::ReadList { key, elements } => {
                elements.is_none_or(|seen| seen == state.get(&key).map_or(&[][..], Vec::as_slice))
            }
            Op::Write { key, value } => put(state, key, value),
            Op::Append { key, element } => {
                state.entry(key).or_default().push(element);
                true
            }
            Op::InsertIfAbsent { key, value, applied, seen } => {
                let fits = !state.contains_key(&key);
                let told = self.tells(register(key), fits, applied, seen);
                told && (!fits || put(state, key, value))
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => {
                let fits = register(key) == Some(expected);
                let told = self.tells(register(key), fits, applied, seen);
                told && (!fits || put(state, key, new))
            }
            _ => panic!("no such operation is generated"),
        }
    }

    /// Whether a conditional write answered what it should.
    fn tells(
        &self,
        held: Option<ValueId>,
        fits: bool,
        applied: Option<bool>,
        seen: Option<ValueId>,
    ) -> bool {
        applied.is_none_or(|applied| applied == fits) && (seen.is_none() || seen == held)
    }
}

fn put(state: &mut State, key: KeyId, value: ValueId) -> bool {
    state.insert(key, vec![value]);
    true
}

#[test]
fn every_kind_of_serializable_history_can_be_replayed() {
    for (level, strict) in [
        (Level::Serializable, false),
        (Level::StrictSerializable, true),
        (Level::Linearizable, true),
    ] {
        for kind in Kind::KEYED {
            for seed in 0..volume() / 100 {
                let config = random_config(level, kind, 3 + seed % 4, seed);
                let history = history(&config);
                assert!(is_serializable(&history, strict), "{config:?}\n{history:?}");
            }
        }
    }
}

/// Otherwise the test above would prove nothing.
#[test]
fn weaker_histories_of_every_kind_cannot_always_be_replayed() {
    for (level, strict) in [(Level::Serializable, true), (Level::Causal, false)] {
        for kind in Kind::KEYED {
            let replayed = |seed: &u64| {
                is_serializable(&history(&random_config(level, kind, 6, *seed)), strict)
            };
            let failed = 200 - (0..200).filter(replayed).count();
            assert!(failed > 0, "{level} {kind}");
        }
    }
}

#[test]
fn lightweight_transactions_fail_and_succeed() {
    let history = history(&random_config(Level::Linearizable, Kind::Lwt, 500, 3));
    let (mut applied, mut failed) = ([0, 0], [0, 0]);
    for op in (0..history.op_count()).map(OpId::at) {
        let (kind, told) = match history.op(op) {
            Op::InsertIfAbsent { applied, .. } => (0, applied),
            Op::CompareAndSet { applied, .. } => (1, applied),
            _ => continue,
        };
        applied[kind] += u32::from(told == Some(true));
        failed[kind] += u32::from(told == Some(false));
    }
    assert!(applied[1] > 0 && failed.iter().all(|count| *count > 0), "{applied:?} {failed:?}");
}
