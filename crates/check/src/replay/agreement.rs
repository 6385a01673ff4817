//! Whether the promised order agrees with the order of sessions and with real time.

use isolario_model::{Edge, Evidence, History, Outcome, Point, Reason, TxnId};

use super::Contradictions;
use super::schedule::{ReplaySchedule, txn_of};
use crate::CheckOptions;
use crate::cycles;
use crate::graph::precedes;

/// Checks the points, in their promised order.
pub(super) fn check(
    schedule: &ReplaySchedule<'_>,
    points: &[Point],
    options: &CheckOptions,
    found: &mut Contradictions,
) {
    if options.session_order {
        sessions(schedule, points, found);
    }
    if found.level.shape().real_time {
        real_time(schedule, points, options.clock_skew, found);
    }
}

/// Whether one transaction ends before another one begins, wherever that has an order: by session, and by
/// real time if that counts.
pub(crate) fn ends_before(
    history: &History,
    options: &CheckOptions,
    in_time: bool,
    first: TxnId,
    second: TxnId,
) -> bool {
    let in_session = options.session_order
        && first < second
        && history.session_of(first) == history.session_of(second);
    let in_time = in_time && precedes(history, options.clock_skew, first, second);
    history.outcome(first) == Outcome::Committed && (in_session || in_time)
}

/// A transaction of a session starts after the one before it has committed. Nothing follows a transaction of
/// unknown outcome.
fn sessions(schedule: &ReplaySchedule<'_>, points: &[Point], found: &mut Contradictions) {
    let history = schedule.history;
    // Per transaction, the positions of its start and of its commit.
    let mut positions: Vec<Option<(usize, usize)>> = vec![None; history.txn_count()];
    for (at, point) in points.iter().enumerate() {
        positions[txn_of(*point).index()].get_or_insert((at, at)).1 = at;
    }
    for session in history.sessions() {
        let mut before: Option<(TxnId, usize)> = None;
        for to in history.session_txns(session) {
            let Some((start, commit)) = positions[to.index()] else { continue };
            if let Some((from, committed)) = before
                && committed > start
            {
                contradict(schedule, Edge { from, to, reason: Reason::Session }, start, found);
            }
            if history.outcome(to) == Outcome::Committed {
                before = Some((to, commit));
            }
        }
    }
}

/// A transaction that had finished before another started commits before that one starts.
fn real_time(
    schedule: &ReplaySchedule<'_>,
    points: &[Point],
    skew: u64,
    found: &mut Contradictions,
) {
    let history = schedule.history;
    // The transaction that started last by the clock, of those that have started in the promised order.
    let mut latest: Option<(i64, TxnId)> = None;
    for (at, point) in points.iter().enumerate() {
        let txn = txn_of(*point);
        if matches!(point, Point::Commit(_))
            && let Some((_, other)) = latest
            && precedes(history, skew, txn, other)
            && let Some(known) = cycles::real_time(history, txn, other)
        {
            contradict(schedule, known, at, found);
        }
        if let Some(start) = history.start(txn) {
            latest = latest.max(Some((start, txn)));
        }
    }
}

/// Adds that two transactions are the other way round at a position of the promised order. That is about the
/// commit of the first one: if its position depends on whether the transaction wrote anything, it depends on
/// the results of its reads.
fn contradict(schedule: &ReplaySchedule<'_>, known: Edge, at: usize, found: &mut Contradictions) {
    let (first, second) = (known.from, known.to);
    let stated = Edge { from: second, to: first, reason: Reason::Stated { at: at as u64 } };
    let evidence = Evidence::Cycle { edges: vec![known, stated] };
    if schedule.has_open_effects(first) {
        found.add_result(evidence);
    } else {
        found.add(evidence);
    }
}
