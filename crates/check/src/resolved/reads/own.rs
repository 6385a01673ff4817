//! What a transaction's own writes say about its reads and about its other writes.

use std::ops::Range;

use isolario_model::{History, KeyId, OpId, OpKind};

/// What a read saw, compared with its transaction's last write before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// There is no such write.
    No,
    /// The read returned it.
    Seen,
    /// The read returned something else.
    Missed,
}

/// A write nobody made.
const NOBODY: u32 = u32::MAX;

/// Goes through the operations of transactions, one after the other. Nothing is cleared in between:
/// a write counts if it is among the operations at hand.
pub(super) struct OwnWrites<'h> {
    history: &'h History,
    named_versions: bool,
    /// Per key, the nearest write before the operation at hand, on the way forward.
    before: Vec<u32>,
    /// Per key, the nearest write after it, on the way back.
    after: Vec<u32>,
    /// Per key, the nearest write after it that is overwritten after that.
    overwritten: Vec<u32>,
}

impl<'h> OwnWrites<'h> {
    pub(super) fn new(history: &'h History) -> Self {
        OwnWrites {
            history,
            named_versions: history.names_versions(),
            before: vec![NOBODY; history.key_count()],
            after: vec![NOBODY; history.key_count()],
            overwritten: vec![NOBODY; history.key_count()],
        }
    }

    fn word(&self, op: usize) -> u64 {
        if self.named_versions {
            self.history.encoded_version(OpId::at(op))
        } else {
            self.history.encoded_values()[op]
        }
    }

    /// Forward: tells the reads of a transaction (operation, key, version). A read after an own
    /// write must return it.
    #[inline]
    pub(super) fn for_each_read(
        &mut self,
        ops: Range<usize>,
        mut tell: impl FnMut(usize, KeyId, u64, Own),
    ) {
        for op in ops.clone() {
            let key = self.history.op_keys()[op];
            match self.history.op_kinds()[op] {
                OpKind::Write | OpKind::Delete => self.before[key.index()] = op as u32,
                OpKind::Read => {
                    let (word, last) = (self.word(op), self.before[key.index()] as usize);
                    let own = match ops.contains(&last) {
                        false => Own::No,
                        true if self.word(last) == word => Own::Seen,
                        true => Own::Missed,
                    };
                    tell(op, key, word, own);
                }
                _ => {}
            }
        }
    }

    /// Backward: tells the writes of a transaction (key, version, whether it is overwritten). The
    /// first write of a key met is the one that others may see; a read met after its own write may
    /// have looked into the future, and becomes a suspect.
    #[inline]
    pub(super) fn for_each_write(
        &mut self,
        ops: Range<usize>,
        suspects: &mut Vec<OpId>,
        mut tell: impl FnMut(KeyId, u64, bool),
    ) {
        for op in ops.clone().rev() {
            let key = self.history.op_keys()[op];
            let next = self.after.get(key.index()).map_or(NOBODY, |next| *next);
            let is_own = ops.contains(&(next as usize));
            match self.history.op_kinds()[op] {
                OpKind::Write | OpKind::Delete => {
                    self.after[key.index()] = op as u32;
                    if is_own {
                        self.overwritten[key.index()] = op as u32;
                    }
                    tell(key, self.word(op), is_own);
                }
                OpKind::Read if is_own => {
                    let several = self.overwritten[key.index()] == next;
                    if several || self.word(next as usize) == self.word(op) {
                        suspects.push(OpId::at(op));
                    }
                }
                _ => {}
            }
        }
    }
}
