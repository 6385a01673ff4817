//! Writers of formats that cannot express every history: what they take, and a collector for those
//! that need the whole history before they can write its first byte.

use isolario_model::{
    Batch, History, Meta, Op, OpInput, OpNotes, Outcome, SinkError, TxnEnd, TxnSink, TxnStart,
    ValueRef,
};
use rustc_hash::FxHashSet;

use crate::{HistoryWriter, OutputTarget};

/// What such a format says about writing.
pub(crate) trait NarrowFormat {
    /// Refuses what holds for the whole history, where it cannot be expressed.
    fn admit_meta(&self, _: &Meta) -> Result<(), SinkError> {
        Ok(())
    }

    /// Refuses operations that it cannot express. Called as they come, so that nothing is
    /// collected for nothing.
    fn admit_op(&self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError>;

    /// Refuses ends that it cannot express.
    fn admit_end(&self, end: &TxnEnd<'_>) -> Result<(), SinkError>;

    /// Writes everything, or nothing if the history as a whole cannot be expressed.
    fn write(&self, history: &History, target: OutputTarget) -> Result<(), SinkError>;
}

/// Collects a history and writes it when it is complete.
pub(crate) struct Collector<L> {
    layout: L,
    batch: Batch,
    target: OutputTarget,
    is_open: bool,
}

impl<L: NarrowFormat + 'static> Collector<L> {
    /// A writer to this target. Nothing is created before `finish`.
    pub(crate) fn boxed(layout: L, target: OutputTarget) -> Box<dyn HistoryWriter> {
        Box::new(Collector { layout, batch: Batch::new(), target, is_open: false })
    }
}

impl<L: NarrowFormat> TxnSink for Collector<L> {
    fn meta(&mut self, meta: &Meta) -> Result<(), SinkError> {
        self.layout.admit_meta(meta)?;
        self.batch.meta(meta)
    }

    fn begin(&mut self, start: &TxnStart<'_>) -> Result<(), SinkError> {
        self.is_open = true;
        self.batch.begin(start)
    }

    fn op_with(&mut self, op: &OpInput<'_>, notes: &OpNotes<'_>) -> Result<(), SinkError> {
        self.layout.admit_op(op, notes)?;
        // The statement is a mere annotation, and none of these formats has a place for it.
        self.batch.op_with(op, &OpNotes { version: notes.version, sql: None })
    }

    fn end(&mut self, end: &TxnEnd<'_>) -> Result<(), SinkError> {
        self.layout.admit_end(end)?;
        self.is_open = false;
        self.batch.end(end)
    }
}

impl<L: NarrowFormat> HistoryWriter for Collector<L> {
    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        if self.is_open {
            return Err(SinkError::Sequence("the history ends inside a transaction"));
        }
        self.layout.write(&self.batch.build()?, self.target)
    }
}

/// An operation on a register of which everything is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access<T> {
    /// Whether it wrote.
    pub(crate) is_write: bool,
    /// The register.
    pub(crate) key: T,
    /// What it read or wrote.
    pub(crate) value: T,
}

/// The error of a writer that cannot write something.
pub(crate) fn inexpressible(format: &'static str, what: impl Into<String>) -> SinkError {
    SinkError::Inexpressible { format, what: what.into() }
}

/// Takes reads with a value and writes; refuses everything else.
pub(crate) fn register_access<'a>(
    format: &'static str,
    op: &OpInput<'a>,
) -> Result<Access<ValueRef<'a>>, SinkError> {
    match *op {
        Op::Read { key, value: Some(value) } => Ok(Access { is_write: false, key, value }),
        Op::Write { key, value } => Ok(Access { is_write: true, key, value }),
        _ => Err(inexpressible(format, describe(op))),
    }
}

/// An operation in words, for the message that it cannot be written.
pub(crate) fn describe(op: &OpInput<'_>) -> String {
    let (what, key) = match op {
        Op::Read { key, value: Some(_) } => ("a read of", key),
        Op::Read { key, value: None } => ("an unobserved read of", key),
        Op::Write { key, .. } => ("a write of", key),
        Op::Delete { key } => ("a delete of", key),
        Op::Append { key, .. } => ("an append to", key),
        Op::ReadList { key, elements: Some(_) } => ("a read of the list", key),
        Op::ReadList { key, elements: None } => ("an unobserved read of the list", key),
        Op::InsertIfAbsent { key, .. } => ("an insert-if-absent of", key),
        Op::CompareAndSet { key, .. } => ("a compare-and-set of", key),
        Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. } => {
            return "predicate operations".to_owned();
        }
        _ => return "operations of this kind".to_owned(),
    };
    format!("{what} {key}")
}

/// The number, if it is a whole one that is not negative.
pub(crate) fn as_unsigned(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(i) => u64::try_from(i).ok(),
        ValueRef::Uint(u) => Some(u),
        _ => None,
    }
}

/// As [`register_access`], of a key and a value that are whole numbers and not negative.
pub(crate) fn unsigned_access(
    format: &'static str,
    op: &OpInput<'_>,
) -> Result<Access<u64>, SinkError> {
    let Access { is_write, key, value } = register_access(format, op)?;
    let (key, value) = (unsigned(format, "the key", key)?, unsigned(format, "the value", value)?);
    Ok(Access { is_write, key, value })
}

/// As [`as_unsigned`], or the refusal. `role` says what the value is: "the key".
pub(crate) fn unsigned(
    format: &'static str,
    role: &str,
    value: ValueRef<'_>,
) -> Result<u64, SinkError> {
    as_unsigned(value).ok_or_else(|| {
        inexpressible(format, format!("{role} {value}: it takes whole numbers from 0 to 2^64-1"))
    })
}

/// Refuses all outcomes but the ones given.
pub(crate) fn require_outcome(
    format: &'static str,
    outcome: Outcome,
    takes: &[Outcome],
) -> Result<(), SinkError> {
    if takes.contains(&outcome) {
        return Ok(());
    }
    let what = match outcome {
        Outcome::Committed => "committed transactions",
        Outcome::Aborted => "aborted transactions",
        Outcome::Unknown => "transactions of unknown outcome",
    };
    Err(inexpressible(format, what))
}

/// The names as numbers if all of them are different numbers that `may_be` allows; else positions
/// counted from `first`. Half of each could give two things one number.
pub(crate) fn numbers_or_positions<'a>(
    names: impl ExactSizeIterator<Item = Option<ValueRef<'a>>>,
    may_be: impl Fn(u64) -> bool,
    first: u64,
) -> Vec<u64> {
    let count = names.len() as u64;
    let numbers: Option<Vec<u64>> =
        names.map(|name| name.and_then(as_unsigned).filter(|n| may_be(*n))).collect();
    let is_distinct = |numbers: &Vec<u64>| {
        let mut seen = FxHashSet::default();
        numbers.iter().all(|number| seen.insert(*number))
    };
    numbers.filter(is_distinct).unwrap_or_else(|| (first..first + count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_only_if_all_are_different_numbers() {
        let numbers = |names: &[Option<ValueRef<'_>>]| {
            numbers_or_positions(names.iter().copied(), |n| n != 9, 1)
        };
        let int = |i| Some(ValueRef::Int(i));
        assert_eq!(numbers(&[int(7), int(3)]), [7, 3]);
        assert_eq!(numbers(&[int(7), int(7)]), [1, 2], "the same name twice");
        assert_eq!(numbers(&[int(7), None]), [1, 2], "one without a name");
        assert_eq!(numbers(&[int(7), int(9)]), [1, 2], "a name that is reserved");
        assert_eq!(numbers(&[int(-1)]), [1], "no number the format has");
        assert_eq!(numbers(&[Some(ValueRef::from(u64::MAX))]), [u64::MAX]);
    }
}
