//! The store on which a serial order, or the points of snapshots, are replayed.

use isolario_model::Value;

use super::txn::{Txn, Write};
use super::wrong::Wrong;

/// What every key holds.
pub(super) struct Store {
    initial: Option<Value>,
    /// By key, its value; none if that is the initial one.
    registers: Vec<Option<Value>>,
}

impl Store {
    pub(super) fn new(initial: Option<Value>) -> Store {
        Store { initial, registers: Vec::new() }
    }

    /// There are so many keys by now.
    pub(super) fn grow(&mut self, keys: usize) {
        self.registers.resize(keys, None);
    }

    /// Refuses a transaction that found something else than what is there.
    pub(super) fn explains(&self, txn: &Txn) -> Result<(), Wrong> {
        let is_there = |key: u32, value: &Value| {
            let there = self.registers[key as usize].as_ref().or(self.initial.as_ref());
            there == Some(value)
        };
        let other = txn.reads.iter().find(|read| !is_there(read.key, &read.value));
        match txn.not_own.or(other.map(|read| read.index)) {
            Some(index) => {
                let why = "something else was there at its turn";
                Err(Wrong::Unexplained { reader: txn.position, index, why })
            }
            None => Ok(()),
        }
    }

    /// Makes what a transaction wrote part of the state.
    pub(super) fn take(&mut self, writes: Box<[Write]>) {
        for Write { key, value } in writes {
            self.registers[key as usize] = Some(value);
        }
    }
}
