//! Why what happened is wrong: the sentence that follows the summary of an anomaly.

use isolario_model::{
    Anomaly, AnomalyKind as A, Edge, EdgeKind, Evidence, History, KeyId, Op, OpId, Reason, TxnId,
};

use super::observed::{deed, left};
use super::{counting, lost};
use crate::explain::Topic;
use crate::names::Names;

/// Why it is wrong, in one sentence. It never begins with a name, so that renderers may begin it with a
/// capital.
pub fn consequence(names: Names<'_>, anomaly: &Anomaly) -> String {
    match &anomaly.evidence {
        Evidence::Read { read, saw, instead } => {
            let key = names.history().op(*read).key();
            of_a_read(names, anomaly.kind, key, [Some(*read), *saw, *instead])
        }
        Evidence::Row { key, read, saw, instead } => {
            of_a_read(names, anomaly.kind, Some(*key), [Some(*read), *saw, *instead])
        }
        Evidence::Reads { .. } => of_two_reads(anomaly.kind).to_owned(),
        Evidence::Cases { cycles } if cycles.len() == 1 => {
            of_a_cycle(names, anomaly.kind, &cycles[0])
        }
        Evidence::Cycle { edges } => match one_after_the_other(names.history(), anomaly) {
            Some((earlier, later)) => format!(
                "{} had committed before {} began, so this was no race: what the first one \
                 committed was lost, or the second one was not shown it",
                names.txn(earlier),
                names.txn(later)
            ),
            None => of_a_cycle(names, anomaly.kind, edges),
        },
        Evidence::Unexpected { .. } if anomaly.kind == A::ResultMismatch => {
            "that is wrong whatever the order of transactions: by the database's own account, these \
             versions were there"
                .to_owned()
        }
        Evidence::Unexpected { .. } | Evidence::Concurrent { .. } => {
            "so the order that the database promises is not the one in which things happened; \
             another order may explain what the clients saw"
                .to_owned()
        }
        Evidence::Lost { write, down, found, .. } => {
            lost::consequence(names, *write, *down, *found)
        }
        Evidence::Cases { .. } if counting::summary(names, anomaly).is_some() => {
            "so one of their updates is lost".to_owned()
        }
        _ => "so no order of these transactions explains what the clients saw".to_owned(),
    }
}

/// Two transactions that each missed the other's write although they did not overlap: a write that
/// was committed did not last, or was not read. Conflict detection has no part in that.
fn one_after_the_other(history: &History, anomaly: &Anomaly) -> Option<(TxnId, TxnId)> {
    if !matches!(anomaly.kind, A::LostUpdate | A::WriteSkew | A::ReadWriteSkew) {
        return None;
    }
    let edge = anomaly.evidence.edges().first()?;
    let precedes = |a: TxnId, b: TxnId| {
        !a.is_init()
            && !b.is_init()
            && history.finish(a).zip(history.start(b)).is_some_and(|(end, begin)| end < begin)
    };
    match (edge.from, edge.to) {
        (a, b) if precedes(a, b) => Some((a, b)),
        (a, b) if precedes(b, a) => Some((b, a)),
        _ => None,
    }
}

/// Which part of a database an anomaly points to, a paragraph each.
pub fn advice(history: &History, anomaly: &Anomaly) -> Vec<String> {
    match one_after_the_other(history, anomaly) {
        Some(_) => vec![
            "What becomes of a commit once it is acknowledged: whether the log is written before \
             the answer (asynchronous commit), what a restart or a failover brings back, whether a \
             new connection reads from a replica that lags behind."
                .to_owned(),
        ],
        None if counting::summary(Names::new(history), anomaly).is_some() => {
            Topic::Anomaly(A::LostUpdate).page().advice
        }
        None => Topic::Anomaly(anomaly.kind).page().advice,
    }
}

/// The operations are the read, the write that it saw, and the one that makes it wrong.
fn of_a_read(names: Names<'_>, kind: A, key: Option<KeyId>, ops: [Option<OpId>; 3]) -> String {
    let [read, saw, instead] = ops;
    let reader = read.map_or("the reader".to_owned(), |op| names.txn_of(op));
    let writer = saw.map_or("its writer".to_owned(), |op| names.txn_of(op));
    let other = match (instead, key) {
        (Some(op), Some(key)) => left(names, op, key),
        (Some(op), None) => names.version(op),
        (None, _) => "its own write".to_owned(),
    };
    let key = key.map_or("the key".to_owned(), |key| names.key(key));
    match kind {
        A::ThinAirRead => format!(
            "no order of transactions explains that: either the data was damaged, or the history \
             lacks a write to {key}"
        ),
        A::ResultMismatch => {
            "that is wrong whatever the order of transactions, and whatever was there".to_owned()
        }
        A::UnexplainedResult => format!(
            "no order of transactions explains that: either {reader} was given a wrong result, or the \
             history lacks a write to {key}"
        ),
        A::AbortedRead => {
            format!("what {writer} wrote should have vanished when it aborted, unseen by anyone")
        }
        A::FutureRead => {
            "statements of a transaction run one after the other, so the write was not there yet"
                .to_owned()
        }
        A::NotMyOwnWrite | A::NotMyLastWrite => {
            format!("from its own write until its end, {reader} has to see {other}")
        }
        A::IntermediateRead => format!(
            "the version that {reader} saw is half of the work of {writer}, and was never committed"
        ),
        A::DuplicateElements => "one append took effect two times".to_owned(),
        A::DirtyUpdate => format!("so the abort of {writer} did not take everything back"),
        _ => format!("so what {reader} saw is not what any order of transactions would show"),
    }
}

fn of_two_reads(kind: A) -> &'static str {
    match kind {
        A::Phantom | A::PredicateManyPreceders => {
            "what somebody else had done to the row became visible in the middle of it"
        }
        A::NonRepeatableRead => "what somebody else had written became visible in the middle of it",
        A::NonMonotonicRead => "for this transaction, the key went back in time",
        A::ThinAirRead => "a key has one initial value, so one of the two came out of thin air",
        A::IncompatibleOrder => {
            "a list only grows at its end, so one of the two saw a list that never was"
        }
        _ => "the two cannot both be right",
    }
}

fn of_a_cycle(names: Names<'_>, kind: A, edges: &[Edge]) -> String {
    if let Some(missed) = missed(names, kind, edges) {
        return missed;
    }
    match kind {
        A::CyclicCo => {
            "each has to be committed before the next can see it, so none can have been \
                        the first"
        }
        A::LongFork => "no single order of the two writes agrees with both readers",
        A::LostUpdate => {
            "whichever of the two wrote last did not know of the other's update, \
                          which is lost"
        }
        A::WriteSkew
        | A::ItemAntiDependencyCycle
        | A::PredicateWriteSkew
        | A::PredicateAntiDependencyCycle => {
            "had they run one after the other, the later one would have seen what the earlier one \
             wrote"
        }
        A::ReadWriteSkew
        | A::SingleAntiDependency
        | A::NonadjacentAntiDependencies
        | A::Phantom
        | A::PredicateManyPreceders
        | A::PredicateSingleAntiDependency => {
            "no snapshot is both old enough for what was missed and new enough for what was built \
             on"
        }
        A::DirtyWrite | A::CyclicVersions => {
            "their writes are mixed, and the final state belongs to none of them"
        }
        A::StaleRead => {
            "a commit that was acknowledged has to be visible to everybody who begins after it"
        }
        A::RealTimeCycle => {
            "the only orders that explain what they saw contradict the order in which they ran"
        }
        A::NotLinearizable => {
            "no moment between call and answer can be given to each of these operations"
        }
        A::OrderContradiction => of_a_statement(edges),
        _ => "so no order of these transactions explains what the clients saw",
    }
    .to_owned()
}

/// What follows from a cycle that rests on what the database states. It does not say which of the two is
/// wrong.
fn of_a_statement(edges: &[Edge]) -> &'static str {
    let is_before_init = |edge: &Edge| edge.to.is_init();
    let is_of_snapshot = |edge: &Edge| matches!(edge.reason, Reason::StartDependency { .. });
    if edges.iter().any(is_before_init) {
        "nothing comes before the initial version, so the stated order is wrong"
    } else if edges.iter().any(is_of_snapshot) {
        "either a snapshot does not hold what it is said to hold, or these transactions were not \
         isolated from each other"
    } else {
        "either versions were not written in the stated order, or these transactions were not \
         isolated from each other"
    }
}

/// What the reader of an inferred edge saw of a writer, and what it missed.
fn missed(names: Names<'_>, kind: A, edges: &[Edge]) -> Option<String> {
    let (edge, reader, key, path) = edges.iter().find_map(|edge| match &edge.reason {
        Reason::Visible { reader, key, path, .. } => Some((edge, *reader, *key, path)),
        _ => None,
    })?;
    let (reader, writer) = (names.txn(reader), names.txn(edge.from));
    let missed = deed(names, edge.from, key);
    Some(match (kind, &path[..]) {
        (A::SessionGuaranteeViolation, _) | (_, [Edge { reason: Reason::Session, .. }]) => {
            format!("a session has to see its own writes, here that {writer} {missed}")
        }
        (
            A::FracturedReadCo | A::FracturedReadCm | A::ReadSkew,
            [Edge { reason: Reason::Read { read, .. }, .. }],
        ) => format!(
            "it saw {} of {writer} and missed that {writer} {missed}: a commit was seen in parts",
            seen(names, *read)
        ),
        (A::NonMonoReadCo | A::NonMonoReadCm | A::NonMonotonicRead, _) => {
            format!("within {reader}, time went backwards to before {writer} {missed}")
        }
        (A::CoConflictCm | A::ConflictCm, _) => {
            format!("so {reader} saw an effect and missed its cause: {writer} {missed}")
        }
        _ if edge.reason.kind() == EdgeKind::CommitOrder => {
            format!("so {reader} should have seen that {writer} {missed}")
        }
        _ => return None,
    })
}

fn seen(names: Names<'_>, read: OpId) -> String {
    match names.history().op(read) {
        Op::Read { .. } | Op::ReadList { .. } => names.version(read),
        _ => "a write".to_owned(),
    }
}
