//! A smaller argument: the fewest transactions that still have no order.
//!
//! What a search learned on its way names more transactions than the contradiction needs. So those that
//! take part are taken as a history of their own, and transactions are left out of it, in halves, then
//! in quarters, down to single ones, as long as the level stays violated. [`Part`] takes care that no
//! history looks worse for what is left out, so what rules out an order of a part rules out one of the
//! whole.
//!
//! How much is tried depends on the history alone, not on the clock: the same history gets the same
//! argument everywhere.

use std::time::Duration;

use isolario_model::{
    Anomaly, Edge, Evidence, Findings, History, KeyId, Level, OpId, Part, Reason, TxnId, Verdict,
    VersionOrder,
};
use rustc_hash::FxHashSet;

use crate::resolved::writes;
use crate::{Checker, Options};

/// With more transactions than this, nothing is tried.
const MOST_TXNS: usize = 400;
/// How long one try may take. Few come near it.
const LONGEST_TRY: Duration = Duration::from_millis(500);
/// How many operations the parts that are tried may have in all.
const MOST_OPS: usize = 100_000;

/// The findings of as few transactions as can be found that violate the level, from some that do.
pub(crate) fn minimal(
    history: &History,
    level: Level,
    options: &Options,
    findings: &Findings,
) -> Option<Findings> {
    let is_about_all = options.promised_order.is_some()
        || !options.version_order.is_empty()
        || options.assume.order_versions();
    if !options.minimize || is_about_all {
        return None;
    }
    let txns = taking_part(history, findings);
    if txns.len() > MOST_TXNS {
        return None;
    }
    // What is tried is taken from these alone: the history may be long.
    let (part, ops) = Part::of_txns(history, txns).build_with_ids(history).ok()?;
    let timeout = Some(options.timeout.map_or(LONGEST_TRY, |timeout| timeout.min(LONGEST_TRY)));
    let options = Options { minimize: false, timeout, ..options.clone() };
    let mut search =
        Minimal { history: &part, level, options, txns: Vec::new(), found: None, ops: 0 };
    search.run();
    Whole { history, part: &part, ops: &ops }.findings(&search.found?)
}

/// The transactions of an argument, and everyone who wrote what one of its reads saw.
fn taking_part(history: &History, findings: &Findings) -> Vec<TxnId> {
    let (mut txns, mut reads) = (FxHashSet::default(), Vec::new());
    for anomaly in &findings.anomalies {
        if let Evidence::Cases { cycles } = &anomaly.evidence {
            cycles.iter().for_each(|cycle| gather(cycle, &mut txns, &mut reads));
        }
    }
    let version = |op: OpId| (history.op_keys()[op.index()], history.version_word(op));
    let wanted: FxHashSet<(KeyId, u64)> = reads.into_iter().map(version).collect();
    for txn in history.txns() {
        let mut ops = history.txn_ops(txn);
        if ops.any(|op| writes(history.op_kinds()[op.index()]) && wanted.contains(&version(op))) {
            txns.insert(txn);
        }
    }
    let mut txns: Vec<TxnId> = txns.into_iter().filter(|txn| !txn.is_init()).collect();
    txns.sort_unstable();
    txns
}

/// The transactions and reads of edges, at any depth.
fn gather(edges: &[Edge], txns: &mut FxHashSet<TxnId>, reads: &mut Vec<OpId>) {
    let mut waiting = vec![edges];
    while let Some(edges) = waiting.pop() {
        for edge in edges {
            txns.extend([edge.from, edge.to]);
            match &edge.reason {
                Reason::Read { read, .. } => reads.push(*read),
                Reason::AntiDependency { read, writer, known, .. } => {
                    reads.push(*read);
                    txns.insert(*writer);
                    waiting.extend(rests_on(known));
                }
                Reason::Overwrite { known, .. } => waiting.extend(rests_on(known)),
                Reason::Visible { read, reader, path, .. } => {
                    reads.push(*read);
                    txns.insert(*reader);
                    waiting.push(path);
                }
                Reason::Refuted { cycle } => waiting.push(cycle),
                _ => {}
            }
        }
    }
}

fn rests_on(known: &VersionOrder) -> Option<&[Edge]> {
    match known {
        VersionOrder::Refuted { cycle: edges } | VersionOrder::Path { edges } => Some(edges),
        _ => None,
    }
}

struct Minimal<'h> {
    history: &'h History,
    level: Level,
    options: Options,
    /// The transactions that are left, and what is wrong with them.
    txns: Vec<TxnId>,
    found: Option<Findings>,
    ops: usize,
}

impl Minimal<'_> {
    fn run(&mut self) {
        if !self.keeps(self.history.txns().collect()) {
            return;
        }
        let mut size = self.txns.len().div_ceil(2);
        loop {
            let before = self.txns.len();
            self.leave_out(size);
            let is_done = size == 1 && self.txns.len() == before;
            if is_done || self.ops > MOST_OPS {
                return;
            }
            // Once single ones were tried, they are tried again until none can go.
            size = size.div_ceil(2);
        }
    }

    /// Tries to leave out so many transactions at a time.
    fn leave_out(&mut self, size: usize) {
        let mut at = 0;
        while at < self.txns.len() && self.ops <= MOST_OPS {
            let end = (at + size).min(self.txns.len());
            let rest = [&self.txns[..at], &self.txns[end..]].concat();
            if !self.keeps(rest) {
                at = end;
            }
        }
    }

    /// Whether the level is violated by these transactions; then they are what is left.
    fn keeps(&mut self, txns: Vec<TxnId>) -> bool {
        self.ops += txns.iter().map(|txn| self.history.op_range(*txn).len()).sum::<usize>();
        let part = Part::of_txns(self.history, txns.iter().copied());
        let Ok((history, ids)) = part.build_with_ids(self.history) else { return false };
        let result = Checker::new(&history, self.options.clone()).check(self.level);
        let Verdict::Violated(findings) = result.verdict else { return false };
        let whole = Whole { history: self.history, ops: &ids, part: &history };
        let Some(findings) = whole.findings(&findings) else { return false };
        self.txns = txns;
        self.found = Some(findings);
        true
    }
}

/// What is said of a part, in terms of the whole.
struct Whole<'a> {
    history: &'a History,
    part: &'a History,
    /// Per operation of the part, that of the whole.
    ops: &'a [OpId],
}

impl Whole<'_> {
    fn findings(&self, findings: &Findings) -> Option<Findings> {
        let anomalies: Option<Vec<Anomaly>> =
            findings.anomalies.iter().map(|anomaly| self.anomaly(anomaly)).collect();
        Some(Findings::new(anomalies?, false))
    }

    fn anomaly(&self, anomaly: &Anomaly) -> Option<Anomaly> {
        let evidence = match &anomaly.evidence {
            Evidence::Read { read, saw, instead } => Evidence::Read {
                read: self.op(*read)?,
                saw: self.maybe(*saw)?,
                instead: self.maybe(*instead)?,
            },
            Evidence::Reads { first, second, edges, .. } => Evidence::Reads {
                key: self.history.op_keys()[self.op(*first)?.index()],
                first: self.op(*first)?,
                second: self.op(*second)?,
                edges: self.edges(edges)?,
            },
            Evidence::Cycle { edges } => Evidence::Cycle { edges: self.edges(edges)? },
            Evidence::Cases { cycles } => {
                let cycles: Option<Vec<Vec<Edge>>> =
                    cycles.iter().map(|cycle| self.edges(cycle)).collect();
                Evidence::Cases { cycles: cycles? }
            }
            _ => return None,
        };
        let mut told = anomaly.clone();
        told.evidence = evidence;
        Some(told)
    }

    fn op(&self, op: OpId) -> Option<OpId> {
        self.ops.get(op.index()).copied()
    }

    fn maybe(&self, op: Option<OpId>) -> Option<Option<OpId>> {
        op.map_or(Some(None), |op| self.op(op).map(Some))
    }

    fn txn(&self, txn: TxnId) -> Option<TxnId> {
        if txn.is_init() {
            return Some(txn);
        }
        let first = self.part.txn_ops(txn).next()?;
        Some(self.history.op_txn(self.op(first)?))
    }

    /// The key of an operation of the part, in the whole.
    fn key(&self, op: OpId) -> Option<KeyId> {
        Some(self.history.op_keys()[self.op(op)?.index()])
    }

    fn edges(&self, edges: &[Edge]) -> Option<Vec<Edge>> {
        edges.iter().map(|edge| self.edge(edge)).collect()
    }

    fn edge(&self, edge: &Edge) -> Option<Edge> {
        let reason = match &edge.reason {
            Reason::Initial => Reason::Initial,
            Reason::Session => Reason::Session,
            Reason::RealTime { finish, start } => {
                Reason::RealTime { finish: *finish, start: *start }
            }
            Reason::Read { read, write, .. } => Reason::Read {
                key: self.key(*read)?,
                read: self.op(*read)?,
                write: self.maybe(*write)?,
            },
            Reason::Overwrite { key, known } => {
                let is_write = |op: &OpId| {
                    self.part.op_keys()[op.index()] == *key
                        && writes(self.part.op_kinds()[op.index()])
                };
                let write = self.part.txn_ops(edge.to).find(is_write)?;
                Reason::Overwrite { key: self.key(write)?, known: self.known(known)? }
            }
            Reason::AntiDependency { read, writer, known, .. } => Reason::AntiDependency {
                key: self.key(*read)?,
                read: self.op(*read)?,
                writer: self.txn(*writer)?,
                known: self.known(known)?,
            },
            Reason::Visible { rule, reader, read, path, .. } => Reason::Visible {
                rule: *rule,
                key: self.key(*read)?,
                reader: self.txn(*reader)?,
                read: self.op(*read)?,
                path: self.edges(path)?,
            },
            Reason::Refuted { cycle } => Reason::Refuted { cycle: self.edges(cycle)? },
            _ => return None,
        };
        Some(Edge { from: self.txn(edge.from)?, to: self.txn(edge.to)?, reason })
    }

    fn known(&self, known: &VersionOrder) -> Option<VersionOrder> {
        Some(match known {
            VersionOrder::Initial => VersionOrder::Initial,
            VersionOrder::Assumed => VersionOrder::Assumed,
            VersionOrder::ReadModifyWrite { read } => {
                VersionOrder::ReadModifyWrite { read: self.op(*read)? }
            }
            VersionOrder::Refuted { cycle } => VersionOrder::Refuted { cycle: self.edges(cycle)? },
            VersionOrder::Path { edges } => VersionOrder::Path { edges: self.edges(edges)? },
            _ => return None,
        })
    }
}
