//! A transaction as it waits for its turn in an order: what it wants to find and what it leaves behind.

use isolario_model::{History, Op, Outcome, TxnId, Value};
use rustc_hash::FxHashMap;

use crate::own::LastWrites;
use crate::times::Interval;

/// A transaction that may have committed.
#[derive(Debug)]
pub(super) struct Txn {
    pub(super) position: u64,
    /// The number of its session.
    pub(super) session: u32,
    /// The position of whoever comes before it by session order.
    pub(super) before: Option<u64>,
    pub(super) interval: Interval,
    /// What it saw of others, in the order in which it asked.
    pub(super) reads: Box<[Read]>,
    /// What it wrote last to each key.
    pub(super) writes: Box<[Write]>,
    /// A read, by its index, that should have returned what the transaction itself had written.
    pub(super) not_own: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Read {
    /// The index of the operation.
    pub(super) index: u32,
    pub(super) key: u32,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) struct Write {
    pub(super) key: u32,
    pub(super) value: Value,
}

impl Txn {
    /// How much memory it takes, in operations.
    pub(super) fn size(&self) -> usize {
        1 + self.reads.len() + self.writes.len()
    }

    pub(super) fn is_committed(&self) -> bool {
        self.interval.outcome == Outcome::Committed
    }
}

/// The keys of a history that is told in pieces, by numbers in the order in which they first come.
#[derive(Default)]
pub(super) struct Keys {
    numbers: FxHashMap<Value, u32>,
}

impl Keys {
    pub(super) fn number(&mut self, key: Value) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }

    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The name of a key, looked for among all.
    pub(super) fn name(&self, number: u32) -> Option<&Value> {
        self.numbers.iter().find_map(|(name, other)| (*other == number).then_some(name))
    }

    /// Takes apart the transactions of a piece.
    pub(super) fn of_piece<'p>(&mut self, piece: &'p History) -> Pieced<'p> {
        let keys = (0..piece.key_count()).map(isolario_model::KeyId::at);
        let keys = keys.map(|key| self.number(piece.key_name(key).to_owned())).collect();
        Pieced { piece, keys, last: LastWrites::default() }
    }
}

/// A piece whose transactions are taken apart.
pub(super) struct Pieced<'p> {
    piece: &'p History,
    /// By key of the piece, its number.
    keys: Vec<u32>,
    last: LastWrites,
}

impl Pieced<'_> {
    /// The transaction that stands at a position, in a session with this number, after another one.
    pub(super) fn txn(
        &mut self,
        txn: TxnId,
        position: u64,
        session: u32,
        before: Option<u64>,
    ) -> Txn {
        let (reads, not_own) = self.reads(txn);
        let (writes, interval) = (self.writes(txn), Interval::of(self.piece, txn));
        Txn { position, session, before, interval, reads, writes, not_own }
    }

    /// The reads that others have to explain, and one that the transaction itself should have explained. The
    /// last write of each key is known then.
    fn reads(&mut self, txn: TxnId) -> (Box<[Read]>, Option<u32>) {
        self.last.clear();
        let (piece, mut reads, mut not_own) = (self.piece, Vec::new(), None);
        for (index, op) in (0..).zip(piece.txn_ops(txn)) {
            match piece.op(op) {
                Op::Write { key, .. } => _ = self.last.replace(key, op),
                Op::Read { key, value: Some(value) } => match self.last.get(key) {
                    Some(own) if piece.encoded_version(own) == piece.encoded_version(op) => {}
                    Some(_) => not_own = not_own.or(Some(index)),
                    None => {
                        let (key, value) = (self.keys[key.index()], piece.value(value).to_owned());
                        reads.push(Read { index, key, value });
                    }
                },
                _ => {}
            }
        }
        (reads.into_boxed_slice(), not_own)
    }

    fn writes(&self, txn: TxnId) -> Box<[Write]> {
        let last_write = |op| match self.piece.op(op) {
            Op::Write { key, value } if self.last.get(key) == Some(op) => {
                let (key, value) = (self.keys[key.index()], self.piece.value(value).to_owned());
                Some(Write { key, value })
            }
            _ => None,
        };
        self.piece.txn_ops(txn).filter_map(last_write).collect()
    }
}
