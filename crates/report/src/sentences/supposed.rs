//! What each case of an argument supposes.

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::{Edge, KeyId, OpId, Reason, TxnId, VersionOrder};

use super::alike::Alike;
use super::observed::{is_met, met, saw};
use crate::names::{Names, counted, listed};

/// What helps with an argument by cases.
pub(crate) const HOW_TO_READ_CASES: &str = "Together, the cases cover every possibility. Take what \
                                            a case supposes for a fact, and follow its steps: each \
                                            ends in a contradiction.";

/// Per case, what it supposes: who wrote a key later than whom, and whose write a read saw where
/// different cases have it see different ones. Empty where a case supposes nothing.
pub(crate) fn supposed(names: Names<'_>, cycles: &[Vec<Edge>]) -> Vec<String> {
    let open = open_reads(cycles);
    cycles.iter().map(|cycle| of_case(names, cycle, |read| open.contains(&read))).collect()
}

/// What the cases of an argument come to, in a sentence.
pub(super) fn summary(cycles: &[Vec<Edge>]) -> String {
    let cases = counted(cycles.len() as u64, "case");
    let is_by_order = cycles.iter().flatten().any(|edge| assumed(edge).is_some());
    match (open_reads(cycles).is_empty(), is_by_order) {
        (true, _) => format!("every way to order the writes leads to a cycle ({cases} in all)"),
        (false, false) => {
            format!("whichever of several writes was read, there is a cycle ({cases} in all)")
        }
        (false, true) => format!(
            "whichever of several writes was read, every way to order the writes leads to a cycle \
             ({cases} in all)"
        ),
    }
}

/// The reads that different cases have see different writes.
fn open_reads(cycles: &[Vec<Edge>]) -> BTreeSet<OpId> {
    let mut saw: BTreeMap<OpId, TxnId> = BTreeMap::new();
    let read = cycles.iter().flatten().flat_map(sources);
    read.filter(|(read, writer)| saw.entry(*read).or_insert(*writer) != writer)
        .map(|(read, _)| read)
        .collect()
}

/// The heading of a case that stands for some that are alike, from a number on.
pub(crate) fn case(number: usize, alike: &Alike, cases: usize, supposed: &str) -> String {
    let which = match alike.count() {
        1 => format!("Case {number} of {cases}"),
        2 => format!("Cases {number} and {} of {cases}", number + 1),
        count => format!("Cases {number} to {} of {cases}", number + count - 1),
    };
    match supposed {
        "" => which,
        _ => format!("{which}, if {supposed}"),
    }
}

fn of_case(names: Names<'_>, cycle: &[Edge], is_open: impl Fn(OpId) -> bool) -> String {
    let mut said: Vec<String> = Vec::new();
    for edge in cycle {
        let saw = sources(edge).into_iter().filter(|(read, _)| is_open(*read));
        let key = edge.reason.key();
        said.extend(saw.map(|(read, writer)| whose(names, read, key, writer)));
        said.extend(assumed(edge).map(|(key, first, second)| {
            format!("{} wrote {} after {}", names.txn(second), names.key(key), names.txn(first))
        }));
    }
    let mut seen: Vec<String> = Vec::new();
    said.into_iter().for_each(|phrase| {
        if !seen.contains(&phrase) {
            seen.push(phrase);
        }
    });
    listed(&seen)
}

/// The reads that an edge is about, each with whose write it is said to have seen. What is visible to a
/// reader is so by way of reads, too.
fn sources(edge: &Edge) -> Vec<(OpId, TxnId)> {
    match &edge.reason {
        Reason::Read { read, .. } => vec![(*read, edge.from)],
        Reason::AntiDependency { read, writer, .. } => vec![(*read, *writer)],
        Reason::Visible { read, path, .. } => {
            let seen = path.iter().filter_map(|step| match &step.reason {
                Reason::Read { read, .. } => Some((*read, step.from)),
                _ => None,
            });
            std::iter::once((*read, edge.to)).chain(seen).collect()
        }
        _ => Vec::new(),
    }
}

/// The order of two writers that an edge supposes.
fn assumed(edge: &Edge) -> Option<(KeyId, TxnId, TxnId)> {
    match &edge.reason {
        Reason::Overwrite { key, known: VersionOrder::Assumed } => Some((*key, edge.from, edge.to)),
        Reason::AntiDependency { key, writer, known: VersionOrder::Assumed, .. } => {
            Some((*key, *writer, edge.to))
        }
        _ => None,
    }
}

fn whose(names: Names<'_>, read: OpId, key: Option<KeyId>, writer: TxnId) -> String {
    let reader = names.txn_of(read);
    if let Some(key) = key.filter(|key| is_met(names.history(), read, *key)) {
        return format!("{reader} met {}", met(names, key, writer));
    }
    let saw = match key {
        Some(key) => saw(names, read, key),
        None => format!("read {}", names.version(read)),
    };
    match writer.is_init() {
        true => format!("{reader} {saw} as the initial value"),
        false => format!("{reader} {saw} from {}", names.txn(writer)),
    }
}
