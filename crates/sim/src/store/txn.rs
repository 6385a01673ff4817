//! A transaction in progress.

use super::clock::Clock;

/// A transaction in progress. Its buffers are reused when it begins again.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    pub(super) session: usize,
    pub(super) replica: usize,
    pub(super) snapshot: Clock,
    /// The last value written to each register.
    pub(super) writes: Vec<(u64, i64)>,
    /// The appends, in order: list and element.
    pub(super) appends: Vec<(u64, i64)>,
    /// Keys of which the version that was read must still be the last one when it commits, with
    /// the number of that version.
    pub(super) pins: Vec<(u64, u64)>,
}

impl Txn {
    /// What it wrote to a register, last.
    pub(super) fn own(&self, key: u64) -> Option<i64> {
        self.writes.iter().rev().find(|(written, _)| *written == key).map(|(_, value)| *value)
    }

    /// Of each register that it wrote, the last value.
    pub(super) fn last_writes(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        let is_last = |at: usize| {
            let later = &self.writes[at + 1..];
            later.iter().all(|(key, _)| *key != self.writes[at].0)
        };
        let last = self.writes.iter().enumerate().filter(move |(at, _)| is_last(*at));
        last.map(|(_, write)| *write)
    }

    /// The versions that its commit makes: values of registers and elements of lists.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.last_writes().chain(self.appends.iter().copied())
    }

    pub(super) fn has_appended(&self, key: u64) -> bool {
        self.appends.iter().any(|(list, _)| *list == key)
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.writes.is_empty() && self.appends.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.appends.clear();
        self.pins.clear();
    }
}
