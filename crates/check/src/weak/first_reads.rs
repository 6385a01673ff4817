//! Which writers a transaction has read from already.

use isolario_model::TxnId;
use rustc_hash::FxHashSet;

/// Up to here a list is searched from end to end, which beats any hashing.
const SMALL: usize = 16;

/// A set of writers, cleared for each reader.
#[derive(Default)]
pub(crate) struct FirstReads {
    few: Vec<TxnId>,
    many: FxHashSet<TxnId>,
}

impl FirstReads {
    pub(crate) fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many.clear();
        }
    }

    /// Whether the writer is new.
    #[inline]
    pub(crate) fn insert(&mut self, writer: TxnId) -> bool {
        if self.few.contains(&writer) {
            return false;
        }
        if self.few.len() < SMALL {
            self.few.push(writer);
            return true;
        }
        self.many.insert(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_writer_is_new_once_beyond_the_small_list_too() {
        let mut seen = FirstReads::default();
        for _ in 0..2 {
            seen.clear();
            assert!((0..100).all(|txn| seen.insert(TxnId(txn))));
            assert!((0..100).all(|txn| !seen.insert(TxnId(txn))));
        }
    }
}
