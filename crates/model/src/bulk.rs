//! A short cut into a batch for readers whose files number names themselves.
//!
//! Looking up the key of every operation is most of the cost of filling a batch. A file with a
//! dictionary needs one look-up per entry: it interns its dictionary once and then adds operations
//! by the ids it got.

use crate::KeyId;
use crate::batch::{Batch, MAX_ROWS};
use crate::op::OpKind;
use crate::sink::SinkError;
use crate::value::{ValueId, ValueRef};

impl Batch {
    /// The id of a key in this batch, for [`Batch::ops_by_id`].
    pub fn key_id(&mut self, name: ValueRef<'_>) -> KeyId {
        KeyId(self.keys.intern(name))
    }

    /// The id of a value in this batch, for [`Batch::ops_by_id`].
    #[inline]
    pub fn value_id(&mut self, value: ValueRef<'_>) -> ValueId {
        self.values.intern(value)
    }

    /// Adds reads, writes and appends, one row of each column per operation, by the ids this batch
    /// gave to their keys and values. The same as [`TxnSink::op`](crate::TxnSink::op) for each,
    /// without the look-ups. Either all are added or none.
    #[inline]
    pub fn ops_by_id(
        &mut self,
        kinds: &[OpKind],
        keys: &[KeyId],
        values: &[ValueId],
    ) -> Result<(), SinkError> {
        if !self.open {
            return Err(SinkError::Sequence("an operation outside of a transaction"));
        }
        if kinds.len() != keys.len() || kinds.len() != values.len() {
            return Err(SinkError::Sequence("columns of operations of different lengths"));
        }
        if !kinds.iter().all(|k| matches!(k, OpKind::Read | OpKind::Write | OpKind::Append)) {
            return Err(SinkError::Sequence("an operation by id that is no read, write or append"));
        }
        let (key_count, value_count) = (self.keys.len(), self.values.interned().len());
        let known = |v: &ValueId| v.table_index().is_none_or(|index| index < value_count);
        if !keys.iter().all(|key| key.index() < key_count) || !values.iter().all(known) {
            return Err(SinkError::Sequence("an id that its batch never gave"));
        }
        if self.ops.kinds.len() + kinds.len() > MAX_ROWS {
            return Err(SinkError::TooLarge { what: "operations", limit: MAX_ROWS as u64 });
        }
        self.ops.kinds.extend_from_slice(kinds);
        self.ops.keys.extend_from_slice(keys);
        self.ops.words.extend(values.iter().map(|value| value.word()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Outcome, TxnEnd, TxnSink, TxnStart};

    fn begin(batch: &mut Batch) {
        batch.begin(&TxnStart { session: ValueRef::Int(0), id: None, line: None }).unwrap();
    }

    #[test]
    fn operations_by_id_are_those_by_name() {
        let (x, nil) = (ValueRef::Text("x"), ValueRef::Nil);
        let mut by_id = Batch::new();
        begin(&mut by_id);
        let (key, value) = (by_id.key_id(x), by_id.value_id(nil));
        let kinds = [OpKind::Read, OpKind::Write, OpKind::Append];
        by_id.ops_by_id(&kinds, &[key; 3], &[value; 3]).unwrap();
        by_id.end(&TxnEnd::new(Outcome::Committed)).unwrap();

        let mut by_name = Batch::new();
        begin(&mut by_name);
        by_name.op(&Op::Read { key: x, value: Some(nil) }).unwrap();
        by_name.op(&Op::Write { key: x, value: nil }).unwrap();
        by_name.op(&Op::Append { key: x, element: nil }).unwrap();
        by_name.end(&TxnEnd::new(Outcome::Committed)).unwrap();
        assert_eq!(by_id.build().unwrap(), by_name.build().unwrap());
    }

    #[test]
    fn foreign_ids_other_kinds_and_no_transaction_are_refused() {
        let mut other = Batch::new();
        let foreign = other.value_id(ValueRef::Text("foreign"));
        let mut batch = Batch::new();
        let (key, value) = (batch.key_id(ValueRef::Int(1)), batch.value_id(ValueRef::Int(1)));
        let mut add = |kind, key, value| batch.ops_by_id(&[kind], &[key], &[value]);
        assert!(add(OpKind::Write, key, value).is_err());
        begin(&mut batch);
        let mut add = |kind, key, value| batch.ops_by_id(&[kind], &[key], &[value]);
        assert!(add(OpKind::Write, KeyId(1), value).is_err());
        assert!(add(OpKind::Write, key, foreign).is_err());
        assert!(add(OpKind::Delete, key, value).is_err());
        assert!(add(OpKind::Write, key, value).is_ok());
        assert!(batch.ops_by_id(&[OpKind::Write], &[key], &[]).is_err());
        assert_eq!(batch.ops.kinds.len(), 1);
    }
}
