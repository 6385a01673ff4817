//! What a cycle is about, in a sentence: the part of it that a person would tell first.

use isolario_model::{AnomalyKind, Edge, EdgeKind, KeyId, Reason, TxnId, VersionOrder};

use super::edge::explain;
use super::observed::{deed, saw};
use crate::names::{Names, counted, listed};

/// How many transactions of a cycle are named.
const MOST_NAMES: usize = 6;
/// How many writes that were not seen are told.
const MOST_MISSED: usize = 3;

/// What happened, by kind where the cycle has the shape of its kind.
pub(super) fn summary(names: Names<'_>, kind: AnomalyKind, edges: &[Edge]) -> String {
    let by_predicate = Reason::is_missed_by_predicate;
    let telling = match kind {
        _ if edges.iter().any(|edge| by_predicate(&edge.reason)) => {
            first_sentence(names, edges, by_predicate)
        }
        AnomalyKind::LostUpdate => lost_update(names, edges),
        AnomalyKind::LongFork => long_fork(names, edges),
        AnomalyKind::StaleRead | AnomalyKind::RealTimeCycle => stale_read(names, edges),
        _ => first_sentence(names, edges, |reason| matches!(reason, Reason::Visible { .. })),
    };
    telling.unwrap_or_else(|| in_a_cycle(names, kind, edges))
}

/// The sentence of the first edge whose reason is telling.
fn first_sentence(
    names: Names<'_>,
    edges: &[Edge],
    telling: fn(&Reason) -> bool,
) -> Option<String> {
    edges.iter().find(|edge| telling(&edge.reason)).map(|edge| explain(names, edge).sentence)
}

fn lost_update(names: Names<'_>, edges: &[Edge]) -> Option<String> {
    edges.iter().find_map(|edge| match edge.reason {
        Reason::AntiDependency { key, read, .. } => {
            let (one, other) = (names.txn(edge.from), names.txn(edge.to));
            Some(format!("{one} and {other} both {} and then overwrote it", saw(names, read, key)))
        }
        _ => None,
    })
}

/// Two readers, each with an anti-dependency on the writer that the other one saw.
fn long_fork(names: Names<'_>, edges: &[Edge]) -> Option<String> {
    let missed: Vec<_> =
        edges.iter().filter(|edge| edge.reason.kind() == EdgeKind::ReadWrite).collect();
    let [one, other] = missed[..] else { return None };
    Some(format!(
        "{} saw what {} wrote but not what {} wrote, and {} the other way round",
        names.txn(one.from),
        names.txn(other.to),
        names.txn(one.to),
        names.txn(other.from)
    ))
}

/// An anti-dependency that real time turns round.
fn stale_read(names: Names<'_>, edges: &[Edge]) -> Option<String> {
    let [one, other] = edges else { return None };
    let (read, time) =
        if one.reason.kind() == EdgeKind::ReadWrite { (one, other) } else { (other, one) };
    let fits =
        (read.reason.kind(), time.reason.kind()) == (EdgeKind::ReadWrite, EdgeKind::RealTime);
    fits.then(|| {
        format!("{}, although {}", explain(names, read).sentence, explain(names, time).sentence)
    })
}

/// Short cycles are told in full; of longer ones, who is part of them.
fn in_a_cycle(names: Names<'_>, kind: AnomalyKind, edges: &[Edge]) -> String {
    match edges {
        [only] => explain(names, only).sentence,
        [one, other] if let (Some(key), Some(_)) = (refuted(one), refuted(other)) => format!(
            "{} and {} both wrote {}, and neither can have come first: either order closes a cycle",
            names.txn(one.from),
            names.txn(other.from),
            names.key(key)
        ),
        [one, other] => {
            format!("{}, and {}", explain(names, one).sentence, explain(names, other).sentence)
        }
        _ => {
            let how = match kind {
                AnomalyKind::DirtyWrite | AnomalyKind::CyclicVersions => "overwrote each other",
                AnomalyKind::CyclicCo => "depend on each other",
                _ => match unseen(names, edges) {
                    Some(unseen) => return unseen,
                    None => "come before each other",
                },
            };
            format!("{} {how} in a cycle", members(names, edges))
        }
    }
}

/// The key of an overwrite that is known because the other order is impossible.
fn refuted(edge: &Edge) -> Option<KeyId> {
    match &edge.reason {
        Reason::Overwrite { key, known: VersionOrder::Refuted { .. } } => Some(*key),
        _ => None,
    }
}

/// What the transactions of a cycle did not see of each other: the clients' own words for it.
fn unseen(names: Names<'_>, edges: &[Edge]) -> Option<String> {
    let missed = edges.iter().filter_map(|edge| match edge.reason {
        Reason::AntiDependency { key, .. } => {
            let (reader, writer) = (names.txn(edge.from), names.txn(edge.to));
            Some(format!("{reader} did not see that {writer} {}", deed(names, edge.to, key)))
        }
        _ => None,
    });
    let mut missed: Vec<String> = missed.collect();
    if missed.is_empty() {
        return None;
    }
    if missed.len() > MOST_MISSED {
        let more = counted((missed.len() - MOST_MISSED) as u64, "more write");
        missed.truncate(MOST_MISSED);
        missed.push(format!("{more} went unseen"));
    }
    let size = counted(edges.len() as u64, "transaction");
    Some(format!("{}: a cycle of {size}", listed(&missed)))
}

fn members(names: Names<'_>, edges: &[Edge]) -> String {
    let txns: Vec<TxnId> = edges.iter().map(|edge| edge.from).collect();
    let mut shown: Vec<_> = txns.iter().take(MOST_NAMES).map(|txn| names.txn(*txn)).collect();
    if txns.len() > MOST_NAMES {
        shown.push(counted((txns.len() - MOST_NAMES) as u64, "other"));
    }
    listed(&shown)
}
