//! A transaction in progress.

use super::clock::Clock;

/// A transaction in progress. Its buffers are used again when it begins anew.
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
