//! What a key holds at first.

use isolario_model::{History, Initial, KeyId, Op, OpId, ValueId, ValueRef};
use rustc_hash::{FxHashMap, FxHashSet};

/// What the keys of a history hold before anybody writes.
pub(crate) struct InitialContents<'h> {
    history: &'h History,
    /// The word of a read that saw the initial version of any key, where one word says so.
    word: Option<u64>,
    rule: Rule,
}

enum Rule {
    /// The value that the history states; not on these keys.
    Stated { except: FxHashSet<KeyId> },
    /// What reads say; of other keys nothing is known.
    Observed(FxHashMap<KeyId, ValueId>),
    /// There is nothing at first, and a read of nothing is wrong, too.
    Nothing,
}

/// What a key holds at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InitialContent<'h> {
    Value(ValueRef<'h>),
    Nothing,
    Unknown,
}

impl<'h> InitialContents<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        let word = history.encoded_initial_version();
        let rule = match history.initial() {
            Initial::Value(_) => Rule::Stated { except: FxHashSet::default() },
            Initial::UnlessWritten(_) => Rule::Stated { except: keys_written(history, word) },
            Initial::Unwritten => Rule::Observed(unwritten(history)),
            Initial::Marked => Rule::Observed(marked(history)),
            _ => Rule::Nothing,
        };
        InitialContents { history, word, rule }
    }

    pub(crate) fn of(&self, key: KeyId) -> InitialContent<'h> {
        match &self.rule {
            Rule::Stated { except } if except.contains(&key) => InitialContent::Nothing,
            Rule::Stated { .. } => match self.history.initial_value() {
                Some(value) => InitialContent::Value(value.as_ref()),
                None => InitialContent::Nothing,
            },
            Rule::Observed(values) => match values.get(&key) {
                Some(value) => InitialContent::Value(self.history.value(*value)),
                None => InitialContent::Unknown,
            },
            Rule::Nothing => InitialContent::Nothing,
        }
    }

    /// Whether a read of this word saw what the key holds at first.
    pub(crate) fn is(&self, key: KeyId, word: u64) -> bool {
        match &self.rule {
            Rule::Stated { except } => self.word == Some(word) && !except.contains(&key),
            Rule::Observed(_) if self.word.is_some() => self.word == Some(word),
            Rule::Observed(values) => values.get(&key).is_some_and(|value| value.to_bits() == word),
            Rule::Nothing => false,
        }
    }
}

/// The keys on which somebody writes this version.
fn keys_written(history: &History, word: Option<u64>) -> FxHashSet<KeyId> {
    let mut keys = FxHashSet::default();
    for op in ops(history) {
        each_version(history, op, |key, of_write, _, is_write| {
            if is_write && Some(of_write) == word {
                keys.insert(key);
            }
        });
    }
    keys
}

/// Per key, a value that was read and that nobody wrote. A key has one initial value: where reads
/// differ, the others are wrong.
fn unwritten(history: &History) -> FxHashMap<KeyId, ValueId> {
    let mut written = FxHashSet::default();
    for op in ops(history) {
        each_version(history, op, |key, word, _, is_write| {
            if is_write {
                written.insert((key, word));
            }
        });
    }
    let mut values = FxHashMap::default();
    for op in ops(history) {
        each_version(history, op, |key, word, value, is_write| {
            if !is_write && !written.contains(&(key, word)) {
                values.entry(key).or_insert(value);
            }
        });
    }
    values
}

/// Per key, the value of a read that is marked as one of the initial version.
fn marked(history: &History) -> FxHashMap<KeyId, ValueId> {
    let initial = history.encoded_initial_version();
    let mut values = FxHashMap::default();
    for op in ops(history) {
        each_version(history, op, |key, word, value, is_write| {
            if !is_write && Some(word) == initial {
                values.entry(key).or_insert(value);
            }
        });
    }
    values
}

fn ops(history: &History) -> impl Iterator<Item = OpId> + use<> {
    (0..history.op_count()).map(OpId::at)
}

/// Tells the versions that an operation read and wrote: the key, the word and the value, and whether
/// it was written.
fn each_version(history: &History, op: OpId, mut tell: impl FnMut(KeyId, u64, ValueId, bool)) {
    match history.op(op) {
        Op::Read { key, value: Some(value) } => {
            tell(key, history.encoded_version(op), value, false);
        }
        Op::Write { key, value } => tell(key, history.encoded_version(op), value, true),
        Op::PredicateRead { rows: Some(rows), .. } => {
            rows.iter()
                .for_each(|row| tell(row.key, history.encoded_row_version(row), row.value, false));
        }
        Op::PredicateWrite { rows: Some(rows), .. } => {
            rows.iter()
                .for_each(|row| tell(row.key, history.encoded_row_version(row), row.value, true));
        }
        Op::InsertIfAbsent { key, value: new, seen, .. }
        | Op::CompareAndSet { key, new, seen, .. } => {
            tell(key, new.to_bits(), new, true);
            seen.into_iter().for_each(|seen| tell(key, seen.to_bits(), seen, false));
        }
        _ => {}
    }
}
