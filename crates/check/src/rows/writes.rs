//! What operations leave of a row.

use isolario_model::{History, ItemView, KeyId, Op, OpId, RowView, TxnId, ValueId, ValueRef};

/// The keys that an operation may have written.
pub(crate) fn written_keys(history: &History, op: OpId) -> impl Iterator<Item = KeyId> {
    let (key, rows): (_, &[RowView]) = match history.op(op) {
        Op::Write { key, .. } | Op::Delete { key } | Op::Append { key, .. } => (Some(key), &[]),
        Op::InsertIfAbsent { key, applied, .. } | Op::CompareAndSet { key, applied, .. } => {
            (Some(key).filter(|_| applied != Some(false)), &[])
        }
        Op::PredicateWrite { rows: Some(rows), .. } => (None, rows),
        _ => (None, &[]),
    };
    key.into_iter().chain(rows.iter().map(|row| row.key))
}

/// The value that an operation left of a row, and the encoded value that a read of it returns; none if the
/// operation did not write the row.
pub(crate) fn left_by(history: &History, op: OpId, row: KeyId) -> Option<(ValueRef<'_>, u64)> {
    match history.op(op) {
        Op::Write { key, value } if key == row => {
            Some((history.value(value), history.encoded_version(op)))
        }
        Op::Delete { key } if key == row => Some((ValueRef::Nil, history.encoded_version(op))),
        Op::PredicateWrite { rows: Some(rows), .. } => {
            let row = rows.iter().rfind(|written| written.key == row)?;
            Some((history.value(row.value), history.encoded_row_version(row)))
        }
        _ => None,
    }
}

/// The rows that a transaction wrote before one of its operations, each with its last write.
pub(crate) struct OwnWrites(Vec<(KeyId, OpId)>);

impl OwnWrites {
    pub(crate) fn before(history: &History, txn: TxnId, op: OpId) -> OwnWrites {
        let mut own: Vec<(KeyId, OpId)> = Vec::new();
        for earlier in history.txn_ops(txn).take_while(|earlier| *earlier < op) {
            for key in written_keys(history, earlier) {
                match own.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, write)) => *write = earlier,
                    None => own.push((key, earlier)),
                }
            }
        }
        OwnWrites(own)
    }

    /// The last write of a row.
    pub(crate) fn of(&self, key: KeyId) -> Option<OpId> {
        self.iter().find(|(written, _)| *written == key).map(|(_, write)| write)
    }

    pub(crate) fn has(&self, key: KeyId) -> bool {
        self.of(key).is_some()
    }

    /// The rows, each with its last write.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (KeyId, OpId)> {
        self.0.iter().copied()
    }
}

/// The last write of a row by a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastWrite {
    pub(crate) key: KeyId,
    pub(crate) writer: TxnId,
    pub(crate) write: OpId,
    pub(crate) value: ValueId,
    /// The encoded value that reads of the row return.
    pub(crate) encoded: u64,
    /// The first write of the row by that transaction.
    pub(crate) first: OpId,
}

/// The last writes of each row by the transactions that count: by transaction, and then by row.
pub(crate) fn last_writes(view: &ItemView, counts: impl Fn(TxnId) -> bool) -> Vec<LastWrite> {
    let history = view.history();
    // Nil is a value of every history that deletes.
    let nil = history.find_value(ValueRef::Nil);
    let mut found: Vec<LastWrite> = Vec::new();
    let mut of_txn: Vec<(KeyId, OpId, ValueId)> = Vec::new();
    for writer in history.txns().filter(|txn| counts(*txn)) {
        of_txn.clear();
        for item in history.txn_ops(writer) {
            match history.op(item) {
                Op::Write { key, value } => of_txn.push((key, item, value)),
                Op::Delete { key } => of_txn.extend(nil.map(|nil| (key, item, nil))),
                _ => {}
            }
        }
        of_txn.sort_unstable_by_key(|(key, item, _)| (*key, *item));
        for of_key in of_txn.chunk_by(|a, b| a.0 == b.0) {
            if let (Some((key, first, _)), Some((_, last, value))) = (of_key.first(), of_key.last())
            {
                let (first, write) = (view.origin(*first), view.origin(*last));
                let encoded = history.encoded_version(*last);
                found.push(LastWrite { key: *key, writer, write, value: *value, encoded, first });
            }
        }
    }
    found
}
