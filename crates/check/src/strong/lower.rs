//! From a history whose reads are resolved to a problem.

use isolario_model::{KeyId, TxnId};

use super::incarnations::Incarnations;
use super::layout::Layout;
use super::problem::{Arc, Problem};
use super::sources::{Sources, first_writers};
use crate::graph::InEdges;
use crate::resolved::{Dependencies, Resolved, Versions};

/// The problem that a level makes of a history.
pub(crate) fn lower(resolved: &Resolved<'_>, layout: Layout, by_incarnation: bool) -> Problem {
    let dependencies = &resolved.dependencies;
    let open = dependencies.reads.choices.open.as_ref().filter(|open| !open.reads.is_empty());
    let maybe = open.map_or(&[][..], |open| &open.maybe);
    let versions = match maybe {
        [] => resolved.versions(),
        _ => Versions::with(dependencies, maybe).into(),
    };
    let mut known = Vec::new();
    within_txns(dependencies, layout, maybe, &mut known);
    between_txns(dependencies, layout, &mut known);
    initial_versions(dependencies, layout, &versions, &mut known);
    before_maybe(dependencies, layout, maybe, &mut known);
    let moments = match layout.real_time {
        true => real_time(resolved, layout, maybe, &mut known),
        false => Vec::new(),
    };
    let nodes = layout.txn_nodes() + moments.len();
    let sources = open.map(|open| Sources::new(dependencies, open, &versions)).unwrap_or_default();
    let incarnations = match by_incarnation && layout.is_exclusive() {
        true => Incarnations::new(dependencies.history, &versions),
        false => None,
    };
    Problem { layout, nodes, known, versions, moments, sources, incarnations }
}

/// A transaction starts before it commits.
fn within_txns(
    dependencies: &Dependencies<'_>,
    layout: Layout,
    maybe: &[TxnId],
    known: &mut Vec<Arc>,
) {
    if layout.is_split() {
        let kept = dependencies.history.txns().filter(|txn| dependencies.reads.is_kept(*txn));
        let all = kept.chain(maybe.iter().copied());
        known.extend(all.map(|txn| (layout.start(txn), layout.commit(txn))));
    }
}

/// Session order before those that only may be there. What they read is under a condition.
fn before_maybe(
    dependencies: &Dependencies<'_>,
    layout: Layout,
    maybe: &[TxnId],
    known: &mut Vec<Arc>,
) {
    for txn in maybe {
        let history = dependencies.history;
        let is_near = |other: &TxnId| history.session_of(*other) == history.session_of(*txn);
        let mut earlier = (0..txn.0).rev().map(TxnId).take_while(is_near);
        let last = earlier.find(|other| dependencies.precedes_in_session(*other, *txn));
        known.extend(last.map(|before| (layout.commit(before), layout.start(*txn))));
    }
}

/// Session order and reads: commit before start.
fn between_txns(dependencies: &Dependencies<'_>, layout: Layout, known: &mut Vec<Arc>) {
    for txn in dependencies.history.txns() {
        let before = dependencies.predecessors(txn.0);
        known.extend(before.map(|from| (layout.commit(TxnId(from)), layout.start(txn))));
    }
}

/// Whoever read the initial version of a key did so before anybody wrote the key. In each session
/// the first writer is enough: the others follow it.
fn initial_versions(
    dependencies: &Dependencies<'_>,
    layout: Layout,
    versions: &Versions,
    known: &mut Vec<Arc>,
) {
    for key in (0..versions.key_count()).map(KeyId::at) {
        let readers = versions.initial_readers(key);
        if readers.is_empty() {
            continue;
        }
        let firsts = first_writers(dependencies, versions, key);
        for reader in readers {
            let others = firsts.iter().filter(|writer| **writer != reader.txn);
            known.extend(others.map(|w| (layout.start(reader.txn), layout.commit(*w))));
        }
    }
}

/// Real time, as a chain of moments at which transactions had finished: each is after the commit
/// of its transaction, and before the start of those that started later.
fn real_time(
    resolved: &Resolved<'_>,
    layout: Layout,
    maybe: &[TxnId],
    known: &mut Vec<Arc>,
) -> Vec<TxnId> {
    let Dependencies { history, reads, .. } = &resolved.dependencies;
    let time = resolved.real_time();
    let moment = |at: usize| (layout.txn_nodes() + at) as u32;
    for (at, txn) in time.finished().iter().enumerate() {
        known.push((layout.commit(*txn), moment(at)));
        if at > 0 {
            known.push((moment(at - 1), moment(at)));
        }
    }
    let kept = history.txns().filter(|txn| reads.is_kept(*txn));
    for txn in kept.chain(maybe.iter().copied()) {
        if let Some(last) = time.finished_before(txn).checked_sub(1) {
            known.push((moment(last), layout.start(txn)));
        }
    }
    time.finished().to_vec()
}
