//! Who wrote which version, and who is called what.

use std::cell::OnceCell;

use isolario_model::{History, KeyId, Op, OpId, TxnId, ValueRef};
use rustc_hash::FxHashMap;

/// Who goes by a name or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Nobody,
    /// The initial state.
    Init,
    Txn(TxnId),
    /// There are at least these two.
    Several(TxnId, TxnId),
}

/// A history's writers by value and by name. Each table is made when it is first needed.
pub(super) struct Names<'h> {
    pub(super) history: &'h History,
    by_value: OnceCell<FxHashMap<(KeyId, u64), Who>>,
    by_name: OnceCell<FxHashMap<ValueRef<'h>, Who>>,
}

impl<'h> Names<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        Names { history, by_value: OnceCell::new(), by_name: OnceCell::new() }
    }

    /// Who wrote a value to a key.
    pub(super) fn by_value(&self, key: KeyId, value: ValueRef<'_>) -> Who {
        let Some(value) = self.history.find_value(value) else { return Who::Nobody };
        let writers = self.by_value.get_or_init(|| self.written());
        let writer = writers.get(&(key, value.word())).copied();
        let is_initial = self.history.initial_word() == Some(value.word());
        match writer {
            None if is_initial => Who::Init,
            Some(Who::Txn(txn)) if is_initial => Who::Several(TxnId::INIT, txn),
            _ => writer.unwrap_or(Who::Nobody),
        }
    }

    /// Who goes by a name, if it wrote the key.
    pub(super) fn by_name(&self, key: KeyId, name: ValueRef<'_>) -> Who {
        let names = self.by_name.get_or_init(|| self.named());
        match names.get(&name).copied() {
            Some(Who::Txn(txn)) if !self.writes(txn, key) => Who::Nobody,
            who => who.unwrap_or(Who::Nobody),
        }
    }

    fn writes(&self, txn: TxnId, key: KeyId) -> bool {
        self.history.txn_ops(txn).any(|op| self.write(op).is_some_and(|(other, _)| other == key))
    }

    /// What an operation writes.
    fn write(&self, op: OpId) -> Option<(KeyId, u64)> {
        match self.history.op(op) {
            Op::Write { key, value }
            | Op::Append { key, element: value }
            | Op::InsertIfAbsent { key, value, .. }
            | Op::CompareAndSet { key, new: value, .. } => Some((key, value.word())),
            _ => None,
        }
    }

    fn written(&self) -> FxHashMap<(KeyId, u64), Who> {
        let history = self.history;
        let mut writers = FxHashMap::default();
        writers.reserve(history.op_count() / 2);
        for txn in history.txns() {
            for write in history.txn_ops(txn).filter_map(|op| self.write(op)) {
                also(writers.entry(write).or_insert(Who::Txn(txn)), txn);
            }
        }
        writers
    }

    fn named(&self) -> FxHashMap<ValueRef<'h>, Who> {
        let mut names = FxHashMap::default();
        for txn in self.history.txns() {
            if let Some(name) = self.history.txn_name(txn) {
                also(names.entry(name).or_insert(Who::Txn(txn)), txn);
            }
        }
        names
    }
}

/// One more goes by a name.
fn also(who: &mut Who, txn: TxnId) {
    match *who {
        Who::Txn(first) if first != txn => *who = Who::Several(first, txn),
        _ => {}
    }
}
