//! A store of registers and lists that runs transactions and asks whether each read returned what
//! was there.
//!
//! Only contents matter here, so it is no trouble if several writes wrote the same value.

use isolario_model::{KeyId, Op, OpId, TxnId, ValueId};

use crate::Refusal;
use crate::facts::Facts;

/// What every key holds.
pub(crate) struct Store<'f, 'h> {
    facts: &'f Facts<'h>,
    /// Per key, the version its register holds; none if that is the initial one.
    registers: Vec<Option<u64>>,
    /// Per key, its list; empty where the history has no lists.
    lists: Vec<List>,
    /// What a transaction changed, to be taken back.
    changes: Vec<Change>,
}

/// A list, and how much of it, from the start, is as in the history's pool of the key. Most reads
/// are prefixes of that pool: these are compared by length.
#[derive(Clone, Default)]
struct List {
    elements: Vec<ValueId>,
    as_pooled: usize,
}

/// How to take a write back.
enum Change {
    Written { key: KeyId, before: Option<u64> },
    Appended { key: KeyId },
}

impl<'f, 'h> Store<'f, 'h> {
    /// The initial state.
    pub(crate) fn new(facts: &'f Facts<'h>) -> Self {
        let keys = facts.history.key_count();
        let lists = if facts.has_lists() { vec![List::default(); keys] } else { Vec::new() };
        Store { facts, registers: vec![None; keys], lists, changes: Vec::new() }
    }

    /// Runs a transaction. Refuses a read that returned something else than what is there.
    pub(crate) fn run(&mut self, txn: TxnId) -> Result<(), Refusal> {
        self.changes.clear();
        for op in self.facts.history.txn_ops(txn) {
            self.write(op);
            if self.facts.is_read(op) && !self.explains(op) {
                let why = "something else was there at its turn";
                return Err(Refusal::Unexplained { read: op, why });
            }
        }
        Ok(())
    }

    /// Runs a transaction and takes back what it wrote.
    pub(crate) fn run_on_snapshot(&mut self, txn: TxnId) -> Result<(), Refusal> {
        self.run(txn)?;
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Written { key, before } => self.registers[key.index()] = before,
                Change::Appended { key } => {
                    let list = &mut self.lists[key.index()];
                    list.elements.pop();
                    list.as_pooled = list.as_pooled.min(list.elements.len());
                }
            }
        }
        Ok(())
    }

    /// Makes what a transaction wrote part of the state.
    pub(crate) fn commit(&mut self, txn: TxnId) {
        self.changes.clear();
        self.facts.history.txn_ops(txn).for_each(|op| self.write(op));
    }

    fn write(&mut self, op: OpId) {
        if !self.facts.is_write(op) {
            return;
        }
        let (history, key) = (self.facts.history, self.facts.key(op));
        if let Op::Append { element, .. } = history.op(op) {
            let list = &mut self.lists[key.index()];
            if history.list_pool(key).get(list.as_pooled) == Some(&element)
                && list.as_pooled == list.elements.len()
            {
                list.as_pooled += 1;
            }
            list.elements.push(element);
            self.changes.push(Change::Appended { key });
        } else {
            let word = Some(history.version_word(op));
            let before = std::mem::replace(&mut self.registers[key.index()], word);
            self.changes.push(Change::Written { key, before });
        }
    }

    fn explains(&self, read: OpId) -> bool {
        let (history, key) = (self.facts.history, self.facts.key(read));
        if let Op::ReadList { elements: Some(elements), .. } = history.op(read) {
            let list = &self.lists[key.index()];
            let is_pooled = std::ptr::eq(history.list_pool(key).as_ptr(), elements.as_ptr());
            return list.elements.len() == elements.len()
                && (is_pooled && list.as_pooled == elements.len() || list.elements == elements);
        }
        match self.registers[key.index()] {
            Some(word) => word == history.version_word(read),
            None => self.facts.may_be_initial(read),
        }
    }
}
