//! The invocations that are open at some place of a file.

use isolario_model::{NameTable, ValueRef};

use super::survey::Times;

/// An invocation that waits for its completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) at: usize,
    pub(super) line: u64,
    pub(super) time: Option<i64>,
    pub(super) index: Option<i64>,
    /// Its number among the entries of clients.
    pub(super) entry: i64,
}

impl Open {
    /// When it was, by the times a file has.
    pub(super) fn moment(&self, times: Times) -> Option<i64> {
        match times {
            Times::Nanoseconds => self.time,
            Times::Index => self.index,
            Times::Position => Some(self.entry),
            Times::None => None,
        }
    }
}

/// What is open, by process.
#[derive(Clone, Debug, Default)]
pub(super) struct Opens {
    pub(super) processes: NameTable,
    /// Where processes are not named, one slot serves all: then a completion follows its invocation
    /// directly.
    pub(super) slots: Vec<Option<Open>>,
    /// How many entries of clients there were.
    pub(super) entries: i64,
}

impl Opens {
    /// The number of the process of an entry of a client; none is stated where processes have no
    /// names.
    pub(super) fn process(&mut self, name: Option<ValueRef<'_>>) -> usize {
        let process = name.map_or(0, |name| self.processes.intern(name) as usize);
        if self.slots.len() <= process {
            self.slots.resize(process + 1, None);
        }
        process
    }

    /// What is open after a part of a file, given what is after it alone.
    pub(super) fn then(&self, part: &Opens) -> Opens {
        let mut after = self.clone();
        for (number, slot) in (0..).zip(&part.slots) {
            let named = (number as usize) < part.processes.len();
            let process = after.process(named.then(|| part.processes.get(number)));
            let shifted = |open: Open| Open { entry: open.entry + self.entries, ..open };
            after.slots[process] = slot.map(shifted);
        }
        after.entries += part.entries;
        after
    }
}
