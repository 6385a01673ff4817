//! Why there is no answer for a level, or none without search.

use isolario_model::{
    Inapplicable, Limit, Op, OpId, SearchParts, SearchProgress, Undecided, Verdict,
};

use crate::names::{Names, counted, grouped};

/// Why a verdict is no answer: a limit was reached, or the level does not apply.
pub fn why_no_answer(names: Names<'_>, verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Undecided(undecided) => Some(why_undecided(names, undecided)),
        Verdict::NotApplicable(why) => Some(why_not_applicable(names, why)),
        _ => None,
    }
}

/// Which limit was reached, and what was known by then.
fn why_undecided(names: Names<'_>, undecided: &Undecided) -> String {
    let limit = match undecided.limit {
        Limit::Time(time) => format!("the time limit of {} s was reached", time.as_secs_f64()),
        Limit::Memory(bytes) => format!("the memory limit of {bytes} bytes was reached"),
        Limit::Argument(bytes) => {
            format!("no order was found, but the argument for that takes over {bytes} bytes")
        }
        Limit::Steps => "nothing was found within the steps that the search may take".to_owned(),
        Limit::NotSearched => {
            "deciding it takes a search that is not made for a history of this kind".to_owned()
        }
        Limit::Interrupted => "the check was interrupted".to_owned(),
        Limit::NotBegun => "the check was interrupted before its turn came".to_owned(),
        Limit::UnobservedWrite(op) => format!(
            "nobody observed which rows `{}` of {} wrote, and they may be the reason for what others \
             saw",
            names.op(op),
            names.txn_of(op)
        ),
        _ => "a limit was reached".to_owned(),
    };
    match undecided.progress {
        Some(SearchProgress::Writes { pairs, decided, parts, conflicts }) => {
            limit + &searched_writes(pairs, decided, parts, conflicts)
        }
        Some(SearchProgress::Keys { first, operations, ordered, others, linearizable }) => {
            let key = names.key(first);
            let more = match others {
                0 => String::new(),
                others => format!("; {} not decided either", are(others, "other key")),
            };
            format!(
                "{limit} with {ordered} of the {operations} operations on {key} in order{more}; {} \
                 linearizable",
                are(linearizable, "key")
            )
        }
        _ => limit,
    }
}

/// How far the search for an order of writes had come.
fn searched_writes(
    pairs: u64,
    decided: Option<u64>,
    parts: Option<SearchParts>,
    conflicts: Option<u64>,
) -> String {
    let mut text = conflicts.map_or_else(String::new, |count| format!(" after {count} conflicts"));
    text += &match decided {
        Some(decided) => {
            let left = pairs.saturating_sub(decided);
            format!("; of {pairs} pairs of writes, {decided} are in an order, {left} are left")
        }
        None => format!("; there are {pairs} pairs of writes"),
    };
    if let Some(SearchParts { total, unsolved, largest }) = parts {
        text += &format!(
            "; {unsolved} of {total} independent parts are unsolved, the largest of {largest} \
             transactions"
        );
    }
    text
}

/// "1 key is", "3 keys are".
fn are(count: u64, thing: &str) -> String {
    format!("{} {}", counted(count, thing), if count == 1 { "is" } else { "are" })
}

/// Why a level does not apply.
pub fn why_not_applicable(names: Names<'_>, why: &Inapplicable) -> String {
    match why {
        Inapplicable::AmbiguousRead { read, first, second, total } => {
            ambiguous(names, *read, *first, *second, *total)
        }
        Inapplicable::Operation { op } => format!(
            "{} cannot be decided yet: {} has `{}`",
            kind(names, *op),
            names.txn_of(*op),
            names.op(*op)
        ),
        Inapplicable::SeveralOperations { txn } => {
            format!(
                "{} has several operations, and only single ones are linearizable",
                names.txn(*txn)
            )
        }
        Inapplicable::NoTimes => "the history has no times".to_owned(),
        Inapplicable::NoVersionOrder => "the history shows no version order".to_owned(),
        Inapplicable::NoChecker => "there is no checker yet".to_owned(),
        Inapplicable::CyclicDependencies => {
            "transactions depend on each other in a cycle (CyclicCO), so there is no causal order"
                .to_owned()
        }
        Inapplicable::SkewOfEventOrder => {
            "its times are only an order of events, which no clock skew can widen".to_owned()
        }
        Inapplicable::NotByPromisedOrder => {
            "an order of transactions does not decide this level".to_owned()
        }
        Inapplicable::NotByCertificate => {
            "a version certificate has no rule for it; without one, it is judged by what clients saw"
                .to_owned()
        }
        Inapplicable::NotInPromisedOrder { txn } => {
            format!("{} has no place in the promised order", names.txn(*txn))
        }
        Inapplicable::TiedInPromisedOrder { first, second } => format!(
            "the promised order leaves open which of {} and {} comes first, and that matters",
            names.txn(*first),
            names.txn(*second)
        ),
        Inapplicable::OpenVersionOrder { key } => format!(
            "the stated order does not say in full how the versions of {} follow each other",
            names.key(*key)
        ),
        Inapplicable::NoVersionSet { op, total } => {
            let others = match total {
                0 | 1 => String::new(),
                total => format!(" (of {} such operations the first)", grouped(*total)),
            };
            format!(
                "nothing says which versions `{}` of {} met{others}, and no order was found that \
                 explains what was returned",
                names.op(*op),
                names.txn_of(*op)
            )
        }
        Inapplicable::UnreturnedRows { op } => format!(
            "single rows satisfy it, but predicates such as `{}` of {} say something about rows that \
             they did not return, too; only prefix and the levels above it are decided by that",
            names.op(*op),
            names.txn_of(*op)
        ),
        Inapplicable::OpenConditional { op } => format!(
            "{} does not tell enough about a conditional write to decide it: `{}`",
            names.txn_of(*op),
            names.op(*op)
        ),
        Inapplicable::RowTwice { op } => format!(
            "`{}` of {} has two rows of one key, one of them deleted and the other inserted in its place, and \
             nothing says which is which; a version certificate would",
            names.op(*op),
            names.txn_of(*op)
        ),
        Inapplicable::BareAggregate { op } => format!(
            "{} has `{}` without the rows that it was taken over, and no order was found that explains \
             it",
            names.txn_of(*op),
            names.op(*op)
        ),
        Inapplicable::Predicate { op } => format!(
            "{} asked for something that cannot be evaluated: {}",
            names.txn_of(*op),
            names.op(*op)
        ),
        _ => "the history is of another kind".to_owned(),
    }
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
