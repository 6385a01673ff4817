//! The order of versions that follows from what is assumed of every register.
//!
//! *Sequential keys*: a session that accessed one version of a key and then another one accessed the
//! earlier one first. *Linearizable keys*: the same of two transactions of which the first had
//! finished before the other started. To access a version is to write it or to read it from another
//! transaction.
//!
//! Either may order as many pairs as there are pairs of accesses, but an order of versions is
//! transitive, and few of them say it all. Of a session, those of neighbouring accesses to a key do:
//! where both see one version, the next pair goes on from there. In real time, those of neighbouring
//! transactions do, that is, without a third one between the two that accessed the key: whatever version
//! that one accessed comes between theirs, or is one of theirs.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, Evidence, History, KeyAssumption, KeyAssumptions, KeyId, OpId,
    OpKind, Outcome, TxnId,
};
use rayon::prelude::*;

use super::version_orders::known_pairs;
use super::versions::{KnownBy, VersionEdge};
use super::{Dependencies, Version, Versions};
use crate::graph::{Rows, components, interval, shortest_cycle};

/// That an operation wrote or read a version of a register.
#[derive(Clone, Copy, Default)]
struct Access {
    txn: TxnId,
    op: OpId,
    /// Who wrote the version.
    version: TxnId,
}

/// The edges that assumptions make. `saw` says whose version a read of a transaction that counts saw, if
/// it is another one that counts, and known.
pub(crate) fn guaranteed(
    history: &History,
    assumptions: KeyAssumptions,
    clock_skew: u64,
    is_kept: impl Fn(TxnId) -> bool,
    saw: impl Fn(OpId) -> Option<TxnId>,
) -> Vec<VersionEdge> {
    if !assumptions.order_versions() {
        return Vec::new();
    }
    let accesses = accesses(history, is_kept, saw);
    let keys = (0..history.key_count()).into_par_iter();
    let edges = keys.flat_map_iter(|key| {
        let (key, accesses) = (KeyId::at(key), accesses.get(key));
        let mut edges = Edges { key, found: Vec::new() };
        if assumptions.contains(KeyAssumption::SequentialKeys) {
            edges.of_sessions(history, accesses);
        }
        if assumptions.contains(KeyAssumption::LinearizableKeys) {
            edges.of_real_time(history, clock_skew, accesses);
        }
        edges.found.sort_by_key(|edge| (edge.before, edge.after));
        edges.found.dedup_by_key(|edge| (edge.before, edge.after));
        edges.found
    });
    edges.collect()
}

/// The accesses to each register, session by session in program order.
fn accesses(
    history: &History,
    is_kept: impl Fn(TxnId) -> bool,
    saw: impl Fn(OpId) -> Option<TxnId>,
) -> Rows<Access> {
    let mut all: Vec<(u32, Access)> = Vec::new();
    for txn in history.txns().filter(|txn| is_kept(*txn)) {
        for op in history.txn_ops(txn) {
            let version = match history.op_kinds()[op.index()] {
                OpKind::Write | OpKind::Delete => Some(txn),
                OpKind::Read => saw(op),
                _ => None,
            };
            let key = history.op_keys()[op.index()];
            all.extend(version.map(|version| (key.0, Access { txn, op, version })));
        }
    }
    Rows::group(history.key_count(), all.iter().copied())
}

/// The edges of one key.
struct Edges {
    key: KeyId,
    found: Vec<VersionEdge>,
}

impl Edges {
    fn add(&mut self, by: KeyAssumption, first: &Access, second: &Access) {
        let (before, after) = (first.version, second.version);
        // The initial version comes first anyway.
        if before != after && !before.is_init() {
            let known = KnownBy::Guaranteed { by, first: first.op, second: second.op };
            self.found.push(VersionEdge { before, after, key: self.key, known });
        }
    }

    /// Nothing follows a transaction of unknown outcome in its session, but its own operations follow
    /// each other.
    fn of_sessions(&mut self, history: &History, accesses: &[Access]) {
        let session = |access: &Access| history.session_of(access.txn);
        for of_session in accesses.chunk_by(|a, b| session(a) == session(b)) {
            let mut last: Option<&Access> = None;
            for of_txn in of_session.chunk_by(|a, b| a.txn == b.txn) {
                let mut before = last;
                for access in of_txn {
                    if let Some(before) = before {
                        self.add(KeyAssumption::SequentialKeys, before, access);
                    }
                    before = Some(access);
                }
                if history.outcome(of_txn[0].txn) == Outcome::Committed {
                    last = before;
                }
            }
        }
    }

    fn of_real_time(&mut self, history: &History, clock_skew: u64, accesses: &[Access]) {
        let of_txns: Vec<Timed<'_>> = accesses
            .chunk_by(|a, b| a.txn == b.txn)
            .map(|accesses| {
                let (start, finish) = interval(history, clock_skew, accesses[0].txn);
                Timed { start, finish, accesses }
            })
            .collect();
        let mut finished: Vec<(i64, &Timed<'_>)> =
            of_txns.iter().filter_map(|timed| Some((timed.finish?, timed))).collect();
        finished.sort_by_key(|(finish, _)| *finish);
        // Of those that have finished so far, who started last?
        let mut latest_start: Vec<Option<i64>> = Vec::with_capacity(finished.len());
        for (_, timed) in &finished {
            latest_start.push(latest_start.last().copied().flatten().max(timed.start));
        }
        for later in &of_txns {
            let Some(start) = later.start else { continue };
            let before = finished.partition_point(|(finish, _)| *finish < start);
            let Some(latest) = before.checked_sub(1).map(|last| latest_start[last]) else {
                continue;
            };
            // Who had finished before that one started is not a neighbour.
            let is_further = |(finish, _): &(i64, _)| latest.is_some_and(|start| *finish < start);
            let neighbours = finished[..before].partition_point(is_further);
            for (_, earlier) in &finished[neighbours..before] {
                for first in earlier.accesses {
                    for second in later.accesses {
                        self.add(KeyAssumption::LinearizableKeys, first, second);
                    }
                }
            }
        }
    }
}

/// The accesses of a transaction to one key, and when it ran.
struct Timed<'a> {
    start: Option<i64>,
    finish: Option<i64>,
    accesses: &'a [Access],
}

/// Cycles among the versions of a key that assumptions lead to: one for each set of versions that all
/// come before each other.
pub(crate) fn cyclic_versions(
    dependencies: &Dependencies<'_>,
    versions: &Versions,
) -> Vec<Anomaly> {
    let pairs = known_pairs(dependencies, versions);
    let into = pairs.iter().map(|(before, after)| (after.0, before.0));
    let graph = Rows::group(versions.len(), into);
    let anomaly = |component: &Vec<u32>| {
        let cycle = shortest_cycle(&graph, component);
        let next = cycle.iter().cycle().skip(1);
        let edge = |(before, after): (&u32, &u32)| {
            edge(dependencies, versions, Version(*before), Version(*after))
        };
        let edges = cycle.iter().zip(next).filter_map(edge).collect();
        Anomaly::new(AnomalyKind::CyclicVersions, Evidence::Cycle { edges })
    };
    let mut found: Vec<Anomaly> = components(&graph).iter().map(anomaly).collect();
    found.retain(|anomaly| anomaly.evidence.rests_on_assumptions());
    found
}

/// How it is known that one version comes before another.
fn edge(
    dependencies: &Dependencies<'_>,
    versions: &Versions,
    before: Version,
    after: Version,
) -> Option<Edge> {
    let (from, to, key) = (versions.writer(before), versions.writer(after), versions.key(before));
    let mut shown = dependencies.reads.order_of(from, to);
    shown.find(|edge| edge.key == key).map(VersionEdge::edge).or_else(|| {
        let reader = versions.readers(before).iter().find(|reader| reader.txn == to)?;
        let known = KnownBy::ReadModifyWrite { read: reader.read };
        Some(VersionEdge { before: from, after: to, key, known }.edge())
    })
}
