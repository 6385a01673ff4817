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
    /// Per key, who wrote that; empty where nobody asks.
    writers: Vec<TxnId>,
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
    Written { key: KeyId, before: Option<u64>, writer: Option<TxnId> },
    Appended { key: KeyId },
}

impl<'f, 'h> Store<'f, 'h> {
    /// The initial state.
    pub(crate) fn new(facts: &'f Facts<'h>) -> Self {
        let keys = facts.history.key_count();
        let lists = if facts.has_lists() { vec![List::default(); keys] } else { Vec::new() };
        let writers = if facts.met.is_empty() { Vec::new() } else { vec![TxnId::INIT; keys] };
        Store { facts, registers: vec![None; keys], writers, lists, changes: Vec::new() }
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
                Change::Written { key, before, writer } => {
                    self.registers[key.index()] = before;
                    self.set_writer(key, writer);
                }
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
            let word = Some(history.encoded_version(op));
            let before = std::mem::replace(&mut self.registers[key.index()], word);
            let writer = self.writers.get(key.index()).copied();
            self.set_writer(key, writer.map(|_| self.facts.txn(op)));
            self.changes.push(Change::Written { key, before, writer });
        }
    }

    fn set_writer(&mut self, key: KeyId, writer: Option<TxnId>) {
        if let (Some(last), Some(writer)) = (self.writers.get_mut(key.index()), writer) {
            *last = writer;
        }
    }

    fn explains(&self, read: OpId) -> bool {
        let (history, key) = (self.facts.history, self.facts.key(read));
        if let Some(writer) = self.writers.get(key.index())
            && let Some(may_be_met) = self.facts.met.get(&read)
        {
            return may_be_met.binary_search(writer).is_ok();
        }
        if let Op::ReadList { elements: Some(elements), .. } = history.op(read) {
            let list = &self.lists[key.index()];
            let is_pooled = std::ptr::eq(history.list_pool(key).as_ptr(), elements.as_ptr());
            return list.elements.len() == elements.len()
                && (is_pooled && list.as_pooled == elements.len() || list.elements == elements);
        }
        match self.registers[key.index()] {
            Some(word) => word == history.encoded_version(read),
            None => self.facts.may_be_initial(read),
        }
    }
}
