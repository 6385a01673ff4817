//! Whether a history fits the format as a whole: kinds of operation and uses of keys.

use isolario_model::{History, KeyId, Op, OpId, SinkError, ValueRef};

use crate::narrow::inexpressible;

/// What the history is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    /// Transactions of micro-operations.
    Transactions,
    /// Single operations on registers, some of which compare and set.
    CasRegister,
}

/// The workload of a history.
pub(super) fn workload(history: &History) -> Workload {
    let is_register_op = |op: OpId| {
        matches!(history.op(op), Op::Read { .. } | Op::Write { .. } | Op::CompareAndSet { .. })
    };
    let single = history
        .txns()
        .all(|txn| history.txn_ops(txn).len() == 1 && history.txn_ops(txn).all(is_register_op));
    let compares = all_ops(history).any(|op| matches!(op, Op::CompareAndSet { .. }));
    if single && compares { Workload::CasRegister } else { Workload::Transactions }
}

fn all_ops(history: &History) -> impl Iterator<Item = isolario_model::OpView<'_>> {
    (0..history.op_count()).map(|op| history.op(OpId::at(op)))
}

/// How a key is used.
#[derive(Clone, Copy, Default)]
struct Uses {
    as_register: bool,
    as_list: bool,
    written: bool,
    /// Something shows that it is a list: an append, or a read with a result.
    shown_as_list: bool,
    /// A register was read that holds a sequence.
    read_as_sequence: bool,
}

/// Checks that a reader will tell registers from lists as the history does.
pub(super) fn check_keys(history: &History, format: &'static str) -> Result<(), SinkError> {
    let mut uses = vec![Uses::default(); history.key_count()];
    for op in all_ops(history) {
        if let Some(uses) = op.key().and_then(|key| uses.get_mut(key.index())) {
            note(history, &op, uses);
        }
    }
    for (at, uses) in uses.iter().enumerate() {
        let key = history.key_name(KeyId::at(at));
        if uses.as_register && uses.as_list {
            return Err(inexpressible(format, format!("key {key} as both register and list")));
        }
        if uses.as_list && !uses.shown_as_list {
            return Err(inexpressible(format, format!("list {key}, which no operation observed")));
        }
        if uses.read_as_sequence && !uses.written {
            let what = format!("sequences in register {key}, which no transaction writes");
            return Err(inexpressible(format, what));
        }
    }
    Ok(())
}

fn note(history: &History, op: &isolario_model::OpView<'_>, uses: &mut Uses) {
    match op {
        Op::Append { .. } => {
            uses.as_list = true;
            uses.shown_as_list = true;
        }
        Op::ReadList { elements, .. } => {
            uses.as_list = true;
            uses.shown_as_list |= elements.is_some();
        }
        Op::Read { value, .. } => {
            uses.as_register = true;
            let value = value.map(|value| history.value(value));
            uses.read_as_sequence |=
                matches!(value, Some(ValueRef::Other(text)) if text.starts_with(['[', '(', '#']));
        }
        _ => {
            uses.as_register = true;
            uses.written = true;
        }
    }
}
