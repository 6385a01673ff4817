//! Writes that depend on what is there, of both kinds alike.

use crate::{History, KeyId, Op, OpId, ValueId, ValueRef};

/// A compare-and-set. An insert is one from *absent*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionalWrite {
    /// The register.
    pub key: KeyId,
    /// What it asked for; none for *absent*, where no operation has that value.
    pub expected: Option<ValueId>,
    /// What it wrote if it found that.
    pub new: ValueId,
    /// How it ended.
    pub ended: ConditionalOutcome,
}

/// How a conditional write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalOutcome {
    /// It found what it asked for, and took effect.
    Applied,
    /// It failed and found this.
    Found(ValueId),
    /// It failed and does not tell what it found. It was something else than it asked for.
    FoundAnother,
    /// The client cannot tell.
    Unknown,
    /// It contradicts itself: it failed on the very value it asked for.
    Contradiction,
}

impl History {
    /// Whether any operation is a conditional write.
    pub fn has_conditionals(&self) -> bool {
        !self.ops.conditionals.is_empty()
    }

    /// A conditional write, if the operation is one.
    pub fn conditional(&self, op: OpId) -> Option<ConditionalWrite> {
        let (key, expected, new, applied, seen) = match self.op(op) {
            Op::InsertIfAbsent { key, value, applied, seen } => {
                (key, self.find_value(ValueRef::Nil), value, applied, seen)
            }
            Op::CompareAndSet { key, expected, new, applied, seen } => {
                (key, Some(expected), new, applied, seen)
            }
            _ => return None,
        };
        let is_expected = |seen: ValueId| Some(seen) == expected;
        let ended = match (applied, seen) {
            (Some(true), _) => ConditionalOutcome::Applied,
            (None, Some(seen)) if is_expected(seen) => ConditionalOutcome::Applied,
            (Some(false), Some(seen)) if is_expected(seen) => ConditionalOutcome::Contradiction,
            (_, Some(seen)) => ConditionalOutcome::Found(seen),
            (Some(false), None) => ConditionalOutcome::FoundAnother,
            (None, None) => ConditionalOutcome::Unknown,
        };
        Some(ConditionalWrite { key, expected, new, ended })
    }
}
