//! What operations do to keys, whatever their kind.

use crate::op::{Op, OpKind};
use crate::{History, KeyId, OpId};

/// What an operation did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The client learnt what the key held.
    Observed,
    /// The key may have got a new version; its word tells versions of one key apart.
    Wrote(u64),
}

impl History {
    /// Tells, in order, what an operation observed and what it wrote.
    ///
    /// A conditional write that took effect did both; one that is known to have failed wrote
    /// nothing. Unobserved reads and aggregates tell nothing about single keys.
    #[inline]
    pub(crate) fn effects(&self, op: OpId, mut tell: impl FnMut(KeyId, Effect)) {
        let key = self.op_keys()[op.index()];
        match self.op_kinds()[op.index()] {
            OpKind::Read | OpKind::ReadList => tell(key, Effect::Observed),
            OpKind::Write | OpKind::Delete | OpKind::Append => {
                tell(key, Effect::Wrote(self.encoded_version(op)));
            }
            OpKind::ReadUnobserved | OpKind::ReadListUnobserved | OpKind::Aggregate => {}
            OpKind::InsertIfAbsent
            | OpKind::CompareAndSet
            | OpKind::PredicateRead
            | OpKind::PredicateWrite => self.compound_effects(op, &mut tell),
        }
    }

    /// The effects of operations that have several, or none that their kind tells.
    fn compound_effects(&self, op: OpId, tell: &mut dyn FnMut(KeyId, Effect)) {
        match self.op(op) {
            Op::InsertIfAbsent { key, value: new, applied, seen }
            | Op::CompareAndSet { key, new, applied, seen, .. } => {
                if applied == Some(true) || seen.is_some() {
                    tell(key, Effect::Observed);
                }
                if applied != Some(false) {
                    // The column word of a conditional is no value: see `encoded_version`.
                    let named = self.op_version_id(op).is_some();
                    tell(
                        key,
                        Effect::Wrote(if named { self.encoded_version(op) } else { new.to_bits() }),
                    );
                }
            }
            Op::PredicateRead { rows, .. } => {
                rows.unwrap_or_default().iter().for_each(|row| tell(row.key, Effect::Observed));
            }
            Op::PredicateWrite { rows, .. } => {
                for row in rows.unwrap_or_default() {
                    tell(row.key, Effect::Wrote(self.encoded_row_version(row)));
                }
            }
            _ => {}
        }
    }

    /// Tells every key that an operation touches: its own, or those of its rows.
    #[inline]
    pub(crate) fn touches(&self, op: OpId, mut tell: impl FnMut(KeyId)) {
        let key = self.op_keys()[op.index()];
        if key != KeyId::NONE {
            return tell(key);
        }
        if let Op::PredicateRead { rows: Some(rows), .. }
        | Op::PredicateWrite { rows: Some(rows), .. } = self.op(op)
        {
            rows.iter().for_each(|row| tell(row.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{int, one_txn, select, update};
    use crate::{OpInput, RowInput, ValueId};

    fn effects(op: OpInput<'_>) -> Vec<(u32, Effect)> {
        let history = one_txn(&[op]);
        let mut told = Vec::new();
        history.effects(OpId(0), |key, effect| told.push((key.0, effect)));
        told
    }

    fn wrote(value: i64) -> Effect {
        Effect::Wrote(ValueId::inline(value).unwrap().to_bits())
    }

    #[test]
    fn conditionals_read_and_write_as_far_as_the_client_knows() {
        let cas = |applied, seen: Option<i64>| Op::CompareAndSet {
            key: int(9),
            expected: int(1),
            new: int(2),
            applied,
            seen: seen.map(int),
        };
        assert_eq!(effects(cas(Some(true), None)), [(0, Effect::Observed), (0, wrote(2))]);
        assert_eq!(effects(cas(Some(false), Some(7))), [(0, Effect::Observed)]);
        assert_eq!(effects(cas(Some(false), None)), []);
        assert_eq!(effects(cas(None, None)), [(0, wrote(2))]);
    }

    #[test]
    fn predicate_operations_act_on_their_rows() {
        let rows = [RowInput::new(1, 10), RowInput::new(2, 20)];
        let (read, write) = (select(Some(&rows)), update(Some(&rows)));
        assert_eq!(effects(read), [(0, Effect::Observed), (1, Effect::Observed)]);
        assert_eq!(effects(write), [(0, wrote(10)), (1, wrote(20))]);
        assert_eq!(effects(select(None)), []);
    }

    #[test]
    fn unobserved_reads_have_no_effect_but_touch_their_key() {
        let history = one_txn(&[Op::Read { key: int(5), value: None }]);
        history.effects(OpId(0), |_, _| panic!("nothing was seen"));
        let mut touched = Vec::new();
        history.touches(OpId(0), |key| touched.push(key));
        assert_eq!(touched, [KeyId(0)]);
    }
}
