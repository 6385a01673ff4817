//! What a transaction does with a key, without a table per transaction.

use isolario_model::{History, KeyId, OpId, OpKind, TxnId};
use rustc_hash::FxHashMap;

/// Whether operations of a kind write a version of their key.
#[inline]
pub(crate) fn writes(kind: OpKind) -> bool {
    matches!(kind, OpKind::Write | OpKind::Delete | OpKind::Append)
}

/// Up to this many a list is searched from end to end, which beats any hashing.
const SMALL: usize = 32;

/// What a transaction had done with a key before it wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing.
    New,
    /// Read this version of it.
    Read { version: u32 },
    /// Written it.
    Written,
}

/// What a transaction has done with its keys so far; cleared for each transaction.
#[derive(Default)]
pub(super) struct Accesses {
    few: Vec<(KeyId, Access)>,
    many: FxHashMap<KeyId, Access>,
}

impl Accesses {
    pub(super) fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many.clear();
        }
    }

    /// Notes a read from elsewhere; the first one of a key counts.
    #[inline]
    pub(super) fn read(&mut self, key: KeyId, version: u32) {
        if self.find(key).is_none() {
            self.insert(key, Access::Read { version });
        }
    }

    /// Notes a write, and says what had been done with the key before.
    #[inline]
    pub(super) fn write(&mut self, key: KeyId) -> Access {
        match self.find(key) {
            Some(access) => std::mem::replace(access, Access::Written),
            None => {
                self.insert(key, Access::Written);
                Access::New
            }
        }
    }

    #[inline]
    fn find(&mut self, key: KeyId) -> Option<&mut Access> {
        let few = self.few.iter_mut().find(|(of, _)| *of == key);
        match few {
            Some((_, access)) => Some(access),
            None if self.many.is_empty() => None,
            None => self.many.get_mut(&key),
        }
    }

    fn insert(&mut self, key: KeyId, access: Access) {
        if self.few.len() < SMALL {
            self.few.push((key, access));
        } else {
            self.many.insert(key, access);
        }
    }
}

/// The last write of a key by a transaction: found by walking through a small transaction, and by
/// one table for all large ones.
pub(super) struct LastWrites<'a> {
    history: &'a History,
    large: FxHashMap<(TxnId, KeyId), OpId>,
}

impl<'a> LastWrites<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut large = FxHashMap::default();
        for txn in history.txns().filter(|txn| history.op_range(*txn).len() > SMALL) {
            for op in history.txn_ops(txn).filter(|op| writes(history.op_kinds()[op.index()])) {
                large.insert((txn, history.op_keys()[op.index()]), op);
            }
        }
        LastWrites { history, large }
    }

    #[inline]
    pub(super) fn of(&self, txn: TxnId, key: KeyId) -> Option<OpId> {
        let ops = self.history.op_range(txn);
        if ops.len() > SMALL {
            return self.large.get(&(txn, key)).copied();
        }
        let (keys, kinds) = (self.history.op_keys(), self.history.op_kinds());
        ops.rev().find(|op| keys[*op] == key && writes(kinds[*op])).map(OpId::at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_of_a_key_and_any_write_are_remembered_however_many_keys() {
        let mut accesses = Accesses::default();
        for _ in 0..2 {
            accesses.clear();
            for key in (0..100).map(KeyId) {
                accesses.read(key, key.0);
                accesses.read(key, 999);
                assert_eq!(accesses.write(key), Access::Read { version: key.0 });
                assert_eq!(accesses.write(key), Access::Written);
                accesses.read(key, 999);
                assert_eq!(accesses.write(key), Access::Written);
            }
            assert_eq!(accesses.write(KeyId(100)), Access::New);
        }
    }
}
