//! Why a level cannot be decided for a history, or not without search.

use isolario_model::{Engine, Inapplicable, Op, OpId};

use crate::names::{Names, counted};

/// Why a level does not apply.
pub fn why_not_applicable(names: Names<'_>, why: &Inapplicable) -> String {
    match why {
        Inapplicable::AmbiguousRead { read, first, second, total } => {
            ambiguous(names, *read, *first, *second, *total)
        }
        Inapplicable::Operation { op } => format!(
            "it cannot be decided with {} yet: {} has `{}`",
            kind(names, *op),
            names.txn_of(*op),
            names.op(*op)
        ),
        Inapplicable::SeveralOperations { txn } => {
            format!("it is about single operations, and {} has several", names.txn(*txn))
        }
        Inapplicable::NoTimes => "it needs times, and the history has none".to_owned(),
        Inapplicable::NoVersionOrder => {
            "it needs a version order, and the history shows none".to_owned()
        }
        Inapplicable::Other(words) => words.clone(),
        _ => "the history is of another kind".to_owned(),
    }
}

/// Why a level took search, where a single write is the reason.
pub fn why_searched(names: Names<'_>, engine: Engine) -> Option<String> {
    let Engine::Strong { blind: Some(write) } = engine else { return None };
    let key = names.key(names.history().op_keys()[write.index()]);
    let txn = names.txn_of(write);
    Some(format!(
        "{txn} wrote {key} without having read it, so nothing says which version it replaced"
    ))
}

fn ambiguous(
    names: Names<'_>,
    read: OpId,
    first: Option<OpId>,
    second: OpId,
    total: u64,
) -> String {
    let reader = names.txn_of(read);
    let seen = names.version(read);
    let first = first.map(|op| names.txn_of(op));
    let second = names.txn_of(second);
    let writers = match first {
        None => format!("which is the initial value and was written by {second}, too"),
        Some(first) if first == second => format!("which {first} wrote twice"),
        Some(first) => format!("which both {first} and {second} wrote"),
    };
    let more = match total {
        0 | 1 => String::new(),
        total => format!(" ({} in all)", counted(total, "ambiguous read")),
    };
    format!("{reader} read {seen}, {writers}{more}")
}

/// A kind of operation, in the plural.
fn kind(names: Names<'_>, op: OpId) -> &'static str {
    match names.history().op(op) {
        Op::Read { .. } | Op::Write { .. } => "registers",
        Op::Delete { .. } => "deletes",
        Op::Append { .. } | Op::ReadList { .. } => "lists",
        Op::InsertIfAbsent { .. } | Op::CompareAndSet { .. } => "conditional writes",
        Op::PredicateRead { .. } | Op::PredicateWrite { .. } => "predicates",
        Op::Aggregate { .. } => "aggregates",
        _ => "operations of this kind",
    }
}
