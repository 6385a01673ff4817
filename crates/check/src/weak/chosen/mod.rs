//! Levels of histories in which reads may have seen the writes of several transactions.
//!
//! Whose write each of these reads saw is supposed, and the level is decided as if that were known. A
//! cycle that comes out rests on a few of the suppositions: these do not hold together. What was learned
//! this way rules out others, until the level holds of what is supposed, or nothing is left to suppose.
//! Then every cycle is a case of the argument, and `isolario verify` needs no more than these to see that
//! no case is left.
//!
//! This is for levels that take little time once every read is known. Whoever searches for an order
//! anyway makes the sources of reads part of that search (see `strong::sources`). Where many
//! suppositions turn out wrong, such a search may be faster, since it goes on from where it was: so after
//! some rounds it is asked whether it finds an order of everything.

mod clauses;
mod likely;
mod suppositions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use isolario_model::{Anomaly, Edge, Evidence, Findings, Level, Limit, OpId, Reason, Witness};

use crate::CheckOptions;
use crate::plan::Conclusion;
use crate::resolved::{OpenReads, Resolved, Source};
use suppositions::Suppositions;

/// A conflict of more reads than this is looked at once more.
const FEW: usize = 2;

/// After so many rounds, a stronger level is tried.
const PATIENCE: u32 = 32;

/// How long that may take where time has no limit.
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// What decides a level where nothing is open, and what may show within some time that a stronger level
/// is satisfied.
pub(crate) struct Decider<'d, 'h> {
    pub(crate) check: &'d dyn Fn(&Arc<Resolved<'h>>) -> Conclusion,
    pub(crate) stronger: &'d dyn Fn(Duration) -> Option<Witness>,
}

/// Decides a level.
pub(crate) fn decide<'h>(
    resolved: &Resolved<'h>,
    open: &OpenReads,
    level: Level,
    options: &CheckOptions,
    decider: &Decider<'_, 'h>,
) -> Conclusion {
    let began = Instant::now();
    // Nowhere else may a transaction that reads a key again see another version of it.
    let separate = level == Level::ReadCommitted;
    let is_over = || reached(options, began).is_some();
    let mut suppositions = Suppositions::new(resolved, open, separate, &is_over);
    for round in 1u32.. {
        if round == PATIENCE {
            let left = options.timeout.map(|timeout| timeout.saturating_sub(began.elapsed()) / 3);
            let stronger = (decider.stronger)(left.unwrap_or(LONGEST_TRY));
            if let Some(witness) = stronger {
                return Conclusion::Holds(witness);
            }
        }
        if let Some(limit) = reached(options, began) {
            return Conclusion::limit(limit);
        }
        let (saw, there) = suppositions.all();
        let chosen = Arc::new(resolved.choosing(&saw, &there));
        let findings = match (decider.check)(&chosen) {
            Conclusion::Holds(Witness::CommitOrder(order)) => {
                let sources = suppositions.sources();
                return Conclusion::Holds(Witness::Chosen { order, sources });
            }
            Conclusion::Refuted(findings) => findings,
            conclusion => return conclusion,
        };
        let is_plain = |anomaly: &&Arc<Anomaly>| match &anomaly.evidence {
            Evidence::Cycle { edges } => suppositions.behind(edges).is_empty(),
            _ => false,
        };
        if let Some(anomaly) = findings.anomalies.iter().find(is_plain) {
            return Conclusion::refuted(vec![Anomaly::clone(anomaly)]);
        }
        let learned = conflicts(&chosen, level, &findings, &suppositions);
        if learned.is_empty() {
            break; // Nothing is learned, so the next round would be this one.
        }
        for (mut reads, mut cycle) in learned {
            if reads.is_empty() {
                return Conclusion::by_cases(vec![cycle]);
            }
            // With nothing supposed but what led to it, a shorter way to a cycle may be seen.
            while reads.len() > FEW && !is_over() {
                let alone = Arc::new(resolved.choosing(&suppositions.some(&reads), &there));
                let Conclusion::Refuted(findings) = (decider.check)(&alone) else { break };
                let conflicts = conflicts(&alone, level, &findings, &suppositions);
                let fewest = conflicts.into_iter().min_by_key(|(reads, _)| reads.len());
                match fewest.filter(|(fewer, _)| fewer.len() < reads.len()) {
                    Some(fewer) => (reads, cycle) = fewer,
                    None => break,
                }
            }
            suppositions.exclude(&reads, cycle);
        }
        if let Err(cycles) = suppositions.reconsider(&is_over) {
            return Conclusion::by_cases(cycles);
        }
    }
    Conclusion::limit(Limit::Steps)
}

/// The cycles of findings, each with the reads that it rests on.
fn conflicts(
    chosen: &Resolved<'_>,
    level: Level,
    findings: &Findings,
    suppositions: &Suppositions<'_>,
) -> Vec<(Vec<u32>, Vec<Edge>)> {
    let cycles = findings.anomalies.iter().filter_map(|anomaly| cycle(chosen, level, anomaly));
    cycles.map(|cycle| (suppositions.behind(&cycle), cycle)).collect()
}

fn reached(options: &CheckOptions, began: Instant) -> Option<Limit> {
    if options.stop.is_asked() {
        return Some(Limit::Interrupted);
    }
    options.timeout.filter(|timeout| began.elapsed() >= *timeout).map(Limit::Time)
}

/// The cycle that shows an anomaly.
fn cycle(resolved: &Resolved<'_>, level: Level, anomaly: &Anomaly) -> Option<Vec<Edge>> {
    match &anomaly.evidence {
        Evidence::Cycle { edges } => Some(edges.clone()),
        Evidence::Reads { first, second, .. } => two_reads(resolved, level, *first, *second),
        _ => None,
    }
}

/// Two reads of a key by one transaction, from two others: each of these was visible when the other one
/// was read from.
fn two_reads(
    resolved: &Resolved<'_>,
    level: Level,
    first: OpId,
    second: OpId,
) -> Option<Vec<Edge>> {
    let dependencies = &resolved.dependencies;
    let history = dependencies.history;
    let reader = history.op_txn(first);
    let writer = |read: OpId| match dependencies.reads.source(read) {
        Source::Txn(writer) => Some(writer),
        _ => None,
    };
    let missed = |seen: OpId, read: OpId| {
        let (from, to) = (writer(seen)?, writer(read)?);
        if from.is_init() {
            return Some(Edge { from, to, reason: Reason::Initial });
        }
        let key = history.op_keys()[read.index()];
        let path = vec![dependencies.read_edge(from, reader, seen)];
        let reason = Reason::Visible { rule: level, key, reader, read, path };
        Some(Edge { from, to, reason })
    };
    Some(vec![missed(first, second)?, missed(second, first)?])
}
