//! What each case of an argument supposes.

use std::collections::BTreeMap;

use isolario_model::{Edge, KeyId, OpId, Reason, TxnId, VersionOrder};

use crate::names::{Names, listed};

/// Per case, what it supposes: who wrote a key later than whom, and whose write a read saw where
/// different cases have it see different ones. Empty where a case supposes nothing.
pub(crate) fn supposed(names: Names<'_>, cycles: &[Vec<Edge>]) -> Vec<String> {
    let mut sources: BTreeMap<OpId, TxnId> = BTreeMap::new();
    let mut is_open: BTreeMap<OpId, bool> = BTreeMap::new();
    for (read, writer) in cycles.iter().flatten().filter_map(source) {
        let differs = *sources.entry(read).or_insert(writer) != writer;
        *is_open.entry(read).or_default() |= differs;
    }
    let is_open = |read: OpId| is_open.get(&read).copied().unwrap_or_default();
    cycles.iter().map(|cycle| of_case(names, cycle, is_open)).collect()
}

/// The heading of a case.
pub(crate) fn case(number: usize, cases: usize, supposed: &str) -> String {
    match supposed {
        "" => format!("Case {number} of {cases}"),
        _ => format!("Case {number} of {cases}, if {supposed}"),
    }
}

fn of_case(names: Names<'_>, cycle: &[Edge], is_open: impl Fn(OpId) -> bool) -> String {
    let mut said: Vec<String> = Vec::new();
    for edge in cycle {
        let saw = source(edge).filter(|(read, _)| is_open(*read));
        said.extend(saw.map(|(read, writer)| whose(names, read, writer)));
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

/// A read and whose write it is said to have seen.
fn source(edge: &Edge) -> Option<(OpId, TxnId)> {
    match &edge.reason {
        Reason::Read { read, .. } => Some((*read, edge.from)),
        Reason::AntiDependency { read, writer, .. } => Some((*read, *writer)),
        _ => None,
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

fn whose(names: Names<'_>, read: OpId, writer: TxnId) -> String {
    let (reader, version) = (names.txn_of(read), names.version(read));
    match writer.is_init() {
        true => format!("{reader} read {version} as the initial value"),
        false => format!("{reader} read {version} from {}", names.txn(writer)),
    }
}
