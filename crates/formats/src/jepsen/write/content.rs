//! What an entry says: its kind, its function and its value.

use isolario_model::{History, Op, OpId, OpInput, Outcome, SinkError, TxnId, ValueRef};

use super::fitness::Workload;
use super::order::Entry;
use super::values::Values;
use crate::jepsen::survey::ONE_REGISTER;
use crate::narrow::inexpressible;
use crate::notation::Notation;

/// Renders the contents of entries.
pub(super) struct Contents<'h> {
    pub(super) history: &'h History,
    pub(super) values: Values,
    pub(super) workload: Workload,
    /// Whether single operations name their keys.
    keyed: bool,
}

impl<'h> Contents<'h> {
    pub(super) fn new(history: &'h History, workload: Workload, values: Values) -> Self {
        let one_register = match values.notation {
            Notation::Edn => ValueRef::Keyword(ONE_REGISTER),
            Notation::Json => ValueRef::Text(ONE_REGISTER),
        };
        let only_key = history.key_count() == 1 && history.find_key(one_register).is_some();
        let values = Values { scalars_only: workload == Workload::CasRegister, ..values };
        Contents { history, values, workload, keyed: !only_key }
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.keyed
    }

    /// The word for what the entry says. A compare-and-set that found another value than the
    /// expected one is a failure in Jepsen's words.
    pub(super) fn kind(&self, entry: Entry) -> &'static str {
        let Entry::Completion(txn) = entry else { return "invoke" };
        match self.history.outcome(txn) {
            Outcome::Committed if self.has_failed_compare(txn) => "fail",
            Outcome::Committed => "ok",
            Outcome::Aborted => "fail",
            Outcome::Unknown => "info",
        }
    }

    fn has_failed_compare(&self, txn: TxnId) -> bool {
        let failed = |op: OpId| {
            matches!(self.history.op(op), Op::CompareAndSet { applied: Some(false), .. })
        };
        self.workload == Workload::CasRegister && self.history.txn_ops(txn).any(failed)
    }

    /// Whether the entry must have an error even if none is known: without one, a failed
    /// compare-and-set is a comparison that failed, and not an abort.
    pub(super) fn wants_error(&self, entry: Entry) -> bool {
        let Entry::Completion(txn) = entry else { return false };
        let compares = |op: OpId| matches!(self.history.op(op), Op::CompareAndSet { .. });
        self.workload == Workload::CasRegister
            && self.history.outcome(txn) == Outcome::Aborted
            && self.history.txn_ops(txn).any(compares)
    }

    /// The function of an entry; writes its value.
    pub(super) fn push(&self, entry: Entry, out: &mut String) -> Result<&'static str, SinkError> {
        let (Entry::Invocation(txn) | Entry::Completion(txn)) = entry;
        let mut function = "txn";
        if self.workload == Workload::CasRegister {
            for op in self.history.txn_ops(txn) {
                function = self.history.with_op_input(op, |op| self.push_single(entry, op, out))?;
            }
            return Ok(function);
        }
        out.push('[');
        for (position, op) in self.history.txn_ops(txn).enumerate() {
            if position > 0 {
                out.push_str(self.values.separator());
            }
            self.history.with_op_input(op, |op| self.push_micro(entry, op, out))?;
        }
        out.push(']');
        Ok(function)
    }

    fn push_single(
        &self,
        entry: Entry,
        op: &OpInput<'_>,
        out: &mut String,
    ) -> Result<&'static str, SinkError> {
        if let (true, Some(key)) = (self.keyed, op.key()) {
            out.push('[');
            self.values.push(key, out)?;
            out.push_str(self.values.separator());
        }
        self.push_operand(entry, op, out)?;
        if self.keyed {
            out.push(']');
        }
        Ok(match op {
            Op::Read { .. } => "read",
            Op::Write { .. } => "write",
            _ => "cas",
        })
    }

    fn push_micro(
        &self,
        entry: Entry,
        op: &OpInput<'_>,
        out: &mut String,
    ) -> Result<(), SinkError> {
        let (function, key) = match *op {
            Op::Read { key, .. } | Op::ReadList { key, .. } => ("r", key),
            Op::Write { key, .. } => ("w", key),
            Op::Append { key, .. } => ("append", key),
            Op::CompareAndSet { key, .. } => ("cas", key),
            _ => return Err(self.refuse(name_of(op))),
        };
        out.push('[');
        out.push_str(&self.values.notation.word(function));
        out.push_str(self.values.separator());
        self.values.push(key, out)?;
        out.push_str(self.values.separator());
        self.push_operand(entry, op, out)?;
        out.push(']');
        Ok(())
    }

    /// The last part of an operation: what it wrote, or what it saw.
    fn push_operand(
        &self,
        entry: Entry,
        op: &OpInput<'_>,
        out: &mut String,
    ) -> Result<(), SinkError> {
        match *op {
            Op::Read { value, .. } => {
                let seen = self.seen(entry, value)?;
                self.values.push(seen, out)
            }
            Op::ReadList { elements, .. } => self.push_list(entry, elements, out),
            Op::Write { value, .. } => self.values.push(value, out),
            Op::Append { element, .. } => self.values.push(element, out),
            Op::CompareAndSet { expected, new, applied, seen, .. } => {
                self.check_compare(entry, applied, seen.is_some())?;
                self.push_sequence(&[expected, new], out)
            }
            _ => Err(self.refuse(name_of(op))),
        }
    }

    fn push_sequence(&self, values: &[ValueRef<'_>], out: &mut String) -> Result<(), SinkError> {
        out.push('[');
        for (position, value) in values.iter().enumerate() {
            if position > 0 {
                out.push_str(self.values.separator());
            }
            self.values.push(*value, out)?;
        }
        out.push(']');
        Ok(())
    }

    /// What a read of a register shows in an entry.
    fn seen<'v>(
        &self,
        entry: Entry,
        value: Option<ValueRef<'v>>,
    ) -> Result<ValueRef<'v>, SinkError> {
        let (Entry::Invocation(txn) | Entry::Completion(txn)) = entry;
        let committed = self.history.outcome(txn) == Outcome::Committed;
        match value {
            None if committed => Err(self.refuse("unobserved reads of committed transactions")),
            Some(ValueRef::Nil) if !committed => {
                Err(self.refuse("reads of nil in transactions that did not commit"))
            }
            Some(_) if !committed && self.workload == Workload::CasRegister => {
                Err(self.refuse("results of single reads that did not commit"))
            }
            Some(value) if matches!(entry, Entry::Completion(_)) => Ok(value),
            _ => Ok(ValueRef::Nil),
        }
    }

    /// As [`Contents::seen`], for a list. An empty list is written as such.
    fn push_list(
        &self,
        entry: Entry,
        elements: Option<&[ValueRef<'_>]>,
        out: &mut String,
    ) -> Result<(), SinkError> {
        match (entry, elements) {
            (Entry::Completion(_), Some(elements)) => self.push_sequence(elements, out),
            (Entry::Completion(txn), None) if self.history.outcome(txn) == Outcome::Committed => {
                Err(self.refuse("unobserved reads of committed transactions"))
            }
            _ => self.values.push(ValueRef::Nil, out),
        }
    }

    fn check_compare(
        &self,
        entry: Entry,
        applied: Option<bool>,
        has_seen: bool,
    ) -> Result<(), SinkError> {
        let (Entry::Invocation(txn) | Entry::Completion(txn)) = entry;
        if has_seen {
            return Err(self.refuse("the value a failed compare-and-set found"));
        }
        let committed = self.history.outcome(txn) == Outcome::Committed;
        match applied {
            Some(true) if committed => Ok(()),
            Some(false) if committed && self.workload == Workload::CasRegister => {
                match self.history.error(txn) {
                    Some(_) => Err(self.refuse("errors of compare-and-sets that were applied")),
                    None => Ok(()),
                }
            }
            None if !committed => Ok(()),
            _ => Err(self.refuse("whether this compare-and-set was applied")),
        }
    }

    pub(super) fn refuse(&self, what: impl Into<String>) -> SinkError {
        inexpressible(self.values.format, what)
    }
}

fn name_of(op: &OpInput<'_>) -> &'static str {
    match op {
        Op::Delete { .. } => "deletes",
        Op::InsertIfAbsent { .. } => "inserts that take effect only where nothing is there",
        Op::PredicateRead { .. } | Op::PredicateWrite { .. } | Op::Aggregate { .. } => {
            "predicate operations"
        }
        _ => "operations of this kind",
    }
}
