//! What operations write to rows.

use isolario_model::{History, ItemView, KeyId, Op, OpId, RowView, TxnId, ValueId, ValueRef};

/// A version of a row, as an operation wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenRow {
    pub(crate) key: KeyId,
    pub(crate) write: OpId,
    pub(crate) value: ValueId,
    /// The encoded value that reads of the version return.
    pub(crate) encoded: u64,
}

/// The rows that an operation wrote, or may have written: a conditional write of unknown effect is taken to
/// have had one. Of an append, the value is the element.
pub(crate) fn written_rows(history: &History, write: OpId) -> impl Iterator<Item = WrittenRow> {
    let (row, rows): (_, &[RowView]) = match history.op(write) {
        Op::Write { key, value } => (Some((key, value, history.encoded_version(write))), &[]),
        // Nil is a value of every history that deletes.
        Op::Delete { key } => {
            let nil = history.find_value(ValueRef::Nil);
            (nil.map(|nil| (key, nil, history.encoded_version(write))), &[])
        }
        Op::InsertIfAbsent { applied: Some(false), .. }
        | Op::CompareAndSet { applied: Some(false), .. } => (None, &[]),
        Op::Append { key, element: value }
        | Op::InsertIfAbsent { key, value, .. }
        | Op::CompareAndSet { key, new: value, .. } => (Some((key, value, value.to_bits())), &[]),
        Op::PredicateWrite { rows: Some(rows), .. } => (None, rows),
        _ => (None, &[]),
    };
    let many = rows.iter().map(|row| (row.key, row.value, history.encoded_row_version(row)));
    let written = move |(key, value, encoded)| WrittenRow { key, write, value, encoded };
    row.into_iter().chain(many).map(written)
}

/// The rows that a transaction wrote before one of its operations, as it left them.
pub(crate) struct OwnWrites(Vec<WrittenRow>);

impl OwnWrites {
    pub(crate) fn before(history: &History, txn: TxnId, op: OpId) -> OwnWrites {
        let mut own: Vec<WrittenRow> = Vec::new();
        for earlier in history.txn_ops(txn).take_while(|earlier| *earlier < op) {
            for row in written_rows(history, earlier) {
                match own.iter_mut().find(|known| known.key == row.key) {
                    Some(known) => *known = row,
                    None => own.push(row),
                }
            }
        }
        OwnWrites(own)
    }

    pub(crate) fn of(&self, key: KeyId) -> Option<&WrittenRow> {
        self.rows().iter().find(|row| row.key == key)
    }

    pub(crate) fn rows(&self) -> &[WrittenRow] {
        &self.0
    }
}

/// The last write of a row by a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastWrite {
    pub(crate) row: WrittenRow,
    pub(crate) writer: TxnId,
    /// The first write of the row by that transaction.
    pub(crate) first: OpId,
}

/// The last writes of each row by the transactions that count: by row, and of a row by transaction.
pub(crate) struct RowVersions(Vec<LastWrite>);

impl RowVersions {
    /// The last writes in a view of single rows, as operations of the history that it is a view of.
    pub(crate) fn new(view: &ItemView, counts: impl Fn(TxnId) -> bool) -> RowVersions {
        let items = view.history();
        let mut found: Vec<LastWrite> = Vec::new();
        let mut of_txn: Vec<WrittenRow> = Vec::new();
        for writer in items.txns().filter(|txn| counts(*txn)) {
            of_txn.clear();
            of_txn.extend(items.txn_ops(writer).flat_map(|item| written_rows(items, item)));
            of_txn.sort_by_key(|row| row.key);
            for of_key in of_txn.chunk_by(|a, b| a.key == b.key) {
                if let (Some(first), Some(last)) = (of_key.first(), of_key.last()) {
                    let row = WrittenRow { write: view.origin(last.write), ..*last };
                    found.push(LastWrite { row, writer, first: view.origin(first.write) });
                }
            }
        }
        found.sort_by_key(|version| version.row.key);
        RowVersions(found)
    }

    /// The versions of all rows.
    pub(crate) fn all(&self) -> &[LastWrite] {
        &self.0
    }

    /// The versions of a row, by transaction.
    pub(crate) fn of(&self, key: KeyId) -> &[LastWrite] {
        let begin = self.0.partition_point(|version| version.row.key < key);
        let rest = &self.0[begin..];
        &rest[..rest.partition_point(|version| version.row.key == key)]
    }
}
