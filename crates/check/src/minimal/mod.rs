//! A smaller argument: the fewest transactions and operations that still have no order.
//!
//! What a search learned on its way names more transactions than the contradiction needs. So those that
//! take part are taken as a history of their own, and transactions are left out of it, in halves, then
//! in quarters, down to single ones, as long as the level stays violated; and then operations of those
//! that are left. [`HistoryPart`] takes care that no history looks worse for what is left out, so what rules
//! out an order of a part rules out one of the whole.
//!
//! How much is tried depends on the history alone, not on the clock: the same history gets the same
//! argument everywhere.

mod rests_on;
mod whole;

use std::collections::BTreeMap;
use std::time::Duration;

use isolario_model::{Anomaly, Findings, History, HistoryPart, Level, OpId, Verdict};

use crate::resolved::writes;
use crate::{CheckOptions, Checker};
use rests_on::{RestsOn, is_intricate};
pub(crate) use whole::Whole;

/// With more transactions than this, nothing is tried.
const MOST_TXNS: usize = 400;
/// How long one try may take. Few come near it.
const LONGEST_TRY: Duration = Duration::from_millis(500);
/// How many operations the parts that are tried may have in all.
const MOST_OPS: usize = 100_000;

/// The findings with arguments about as few transactions and operations as can be found, where
/// arguments take more than what clients saw. Nothing where no smaller one is found.
pub(crate) fn minimal(
    history: &History,
    level: Level,
    options: &CheckOptions,
    findings: &Findings,
) -> Option<Findings> {
    // Without a delete between them, writers exclude each other that did not.
    let may_come_back =
        options.by_incarnation && level.shape().exclusive_writers && history.may_reuse_rows();
    let is_about_all = options.promised_order.is_some()
        || !options.version_order.is_empty()
        || options.assume.order_versions()
        || may_come_back;
    if !options.minimize || is_about_all {
        return None;
    }
    let mut left = MOST_OPS;
    let mut smaller: Vec<Anomaly> = Vec::new();
    let mut is_smaller = false;
    for anomaly in &findings.anomalies {
        let found = is_intricate(anomaly)
            .then(|| of_one(history, level, options, anomaly, &mut left))
            .flatten();
        is_smaller |= found.is_some();
        for anomaly in found.unwrap_or_else(|| vec![Anomaly::clone(anomaly)]) {
            // Of two arguments, the same may be left.
            if smaller.iter().all(|other| other.evidence != anomaly.evidence) {
                smaller.push(anomaly);
            }
        }
    }
    is_smaller.then(|| Findings::new(smaller, findings.exact))
}

/// What is wrong with the fewest transactions and operations that refute a level, from those that an
/// argument rests on.
fn of_one(
    history: &History,
    level: Level,
    options: &CheckOptions,
    anomaly: &Anomaly,
    left: &mut usize,
) -> Option<Vec<Anomaly>> {
    let txns = RestsOn::new(history, anomaly).txns(history);
    if txns.len() > MOST_TXNS {
        return None;
    }
    // What is tried is taken from these alone: the history may be long.
    let (part, ids) = HistoryPart::of_txns(history, txns).build_with_ids(history).ok()?;
    let timeout = Some(options.timeout.map_or(LONGEST_TRY, |timeout| timeout.min(LONGEST_TRY)));
    let options = CheckOptions { minimize: false, timeout, ..options.clone() };
    let mut search =
        Minimal { history: &part, level, options, ops: Vec::new(), found: Vec::new(), left: *left };
    search.run();
    *left = search.left;
    let whole = Whole { history, part: &part, ops: &ids };
    let found: Result<Vec<Anomaly>, _> = search.found.iter().map(|a| a.map(&whole)).collect();
    found.ok().filter(|found| !found.is_empty())
}

/// What a transaction writes of a key is one: without its last write, an earlier one would be a version
/// that others may have seen, which it is not in the whole.
fn first_write(history: &History, op: OpId) -> usize {
    let is_write = |op: OpId| writes(history.op_kinds()[op.index()]);
    let key = history.op_keys()[op.index()];
    let same = |other: &OpId| is_write(*other) && history.op_keys()[other.index()] == key;
    let first = history.txn_ops(history.op_txn(op)).find(same);
    first.filter(|_| is_write(op)).unwrap_or(op).index()
}

struct Minimal<'h> {
    history: &'h History,
    level: Level,
    options: CheckOptions,
    /// The operations that are left, and what is wrong with them.
    ops: Vec<OpId>,
    found: Vec<Anomaly>,
    /// How many operations may be looked at before it ends.
    left: usize,
}

impl Minimal<'_> {
    fn run(&mut self) {
        if !self.keeps(&(0..self.history.op_count()).map(OpId::at).collect::<Vec<_>>()) {
            return;
        }
        self.leave_out(|history, op| history.op_txn(op).index());
        // What is not named is nearly always not needed.
        if let [only] = self.found.as_slice() {
            let argument = RestsOn::new(self.history, only);
            let is_named = |op: &OpId| argument.names(self.history, *op);
            let ops: Vec<OpId> = self.ops.iter().copied().filter(is_named).collect();
            self.keeps(&ops);
        }
        self.leave_out(first_write);
    }

    /// Leaves out operations as long as the level stays violated; those with the same number go
    /// together.
    fn leave_out(&mut self, number: fn(&History, OpId) -> usize) {
        let mut size = self.history.op_count();
        while self.left > 0 {
            let before = self.ops.len();
            size = size.min(self.groups(number).len()).div_ceil(2);
            let mut at = 0;
            while self.left > 0 {
                let groups = self.groups(number);
                let end = (at + size).min(groups.len());
                // Other groups may have gone together with one.
                if at >= end {
                    break;
                }
                if !self.keeps(&[groups[..at].concat(), groups[end..].concat()].concat()) {
                    at = end;
                }
            }
            // Once single ones were tried, they are tried again until none can go.
            if size <= 1 && self.ops.len() == before {
                return;
            }
        }
    }

    /// The operations that are left, those with the same number together.
    fn groups(&self, number: fn(&History, OpId) -> usize) -> Vec<Vec<OpId>> {
        let mut groups: BTreeMap<usize, Vec<OpId>> = BTreeMap::new();
        for op in &self.ops {
            groups.entry(number(self.history, *op)).or_default().push(*op);
        }
        groups.into_values().collect()
    }

    /// Whether the level is violated by these operations; then they are what is left, but for those
    /// that rest on what is not.
    fn keeps(&mut self, ops: &[OpId]) -> bool {
        self.left = self.left.saturating_sub(ops.len());
        let part = HistoryPart::of_ops(self.history, ops.iter().copied());
        let Ok((history, ids)) = part.build_with_ids(self.history) else { return false };
        let result = Checker::new(&history, self.options.clone()).check(self.level);
        let Verdict::Violated(findings) = result.verdict else { return false };
        let whole = Whole { history: self.history, ops: &ids, part: &history };
        let found = findings.anomalies.iter().map(|anomaly| anomaly.map(&whole)).collect();
        let Ok(found) = found else { return false };
        (self.ops, self.found) = (ids, found);
        true
    }
}
