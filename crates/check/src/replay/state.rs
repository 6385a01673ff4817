//! What all keys hold at some point of a replay.

use isolario_model::{History, KeyId, OpId, ValueId, ValueRef};
use rustc_hash::FxHashMap;

use super::rows::IndexedRows;
use crate::resolved::{InitialContent, InitialContents};
use crate::rows::{Contents, WrittenRow};

/// The state of a replay. Whatever is done to it can be taken back.
pub(super) struct ReplayState<'h> {
    pub(super) history: &'h History,
    initial: InitialContents<'h>,
    /// Per key, the version it holds; none for the initial one.
    held: Vec<Option<WrittenRow>>,
    /// Per key, the elements of its list.
    pub(super) lists: Vec<Vec<ValueId>>,
    pub(super) rows: IndexedRows<'h>,
    changes: Vec<(KeyId, Undo)>,
    /// Per conditional write of unknown effect, whether it took effect when it was last performed.
    pub(super) effects: FxHashMap<OpId, bool>,
}

/// How to take a write of a key back.
enum Undo {
    Restore(Option<WrittenRow>),
    RemoveElement,
}

impl<'h> Contents<'h> for ReplayState<'h> {
    fn history(&self) -> &'h History {
        self.history
    }

    fn value(&self, key: KeyId) -> ValueRef<'h> {
        match self.content(key) {
            InitialContent::Value(value) => value,
            InitialContent::Nothing | InitialContent::Unknown => ValueRef::Nil,
        }
    }

    fn write(&self, key: KeyId) -> Option<OpId> {
        self.held[key.index()].map(|held| held.write)
    }

    fn shows(&self, key: KeyId, encoded: u64) -> bool {
        match self.held[key.index()] {
            Some(held) => held.encoded == encoded,
            None => self.initial.is(key, encoded),
        }
    }
}

impl<'h> ReplayState<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        let keys = history.key_count();
        let initial = InitialContents::new(history);
        let rows = IndexedRows::new(history, |key| initial.of(key));
        ReplayState {
            history,
            initial,
            held: vec![None; keys],
            lists: vec![Vec::new(); keys],
            rows,
            changes: Vec::new(),
            effects: FxHashMap::default(),
        }
    }

    /// The value that the key holds.
    pub(super) fn content(&self, key: KeyId) -> InitialContent<'h> {
        match self.held[key.index()] {
            Some(held) => InitialContent::Value(self.history.value(held.value)),
            None => self.initial.of(key),
        }
    }

    pub(super) fn put(&mut self, row: WrittenRow) {
        let before = self.replace(row.key, Some(row));
        self.changes.push((row.key, Undo::Restore(before)));
    }

    pub(super) fn append(&mut self, key: KeyId, element: ValueId) {
        self.lists[key.index()].push(element);
        self.changes.push((key, Undo::RemoveElement));
    }

    /// Forgets how to take back what was done so far.
    pub(super) fn keep(&mut self) {
        self.changes.clear();
    }

    /// How much could be taken back.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// The keys that were written since then, some perhaps repeatedly.
    pub(super) fn changed_since(&self, mark: usize) -> impl Iterator<Item = KeyId> {
        self.changes[mark..].iter().map(|(key, _)| *key)
    }

    /// Takes back what was done since then.
    pub(super) fn take_back(&mut self, mark: usize) {
        while self.changes.len() > mark
            && let Some((key, undo)) = self.changes.pop()
        {
            match undo {
                Undo::Restore(before) => {
                    self.replace(key, before);
                }
                Undo::RemoveElement => {
                    self.lists[key.index()].pop();
                }
            }
        }
    }

    fn replace(&mut self, key: KeyId, held: Option<WrittenRow>) -> Option<WrittenRow> {
        // What a key holds is looked up for indexes alone: it is anywhere in a large table.
        let from = self.rows.has_indexes.then(|| self.value(key));
        let before = std::mem::replace(&mut self.held[key.index()], held);
        if let Some(from) = from {
            let to = self.value(key);
            self.rows.update(key, from, to);
        }
        before
    }
}
