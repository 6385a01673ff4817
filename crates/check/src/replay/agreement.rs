//! Whether the promised order agrees with the order of sessions and with real time.

use isolario_model::{Edge, Evidence, Outcome, Point, Reason, TxnId};

use super::Found;
use super::schedule::{Event, Schedule};
use crate::CheckOptions;

/// Looks at the events in the order in which they happened.
pub(super) fn look(
    schedule: &Schedule<'_>,
    events: &[Event],
    options: &CheckOptions,
    found: &mut Found,
) {
    let places = Places::new(schedule, events);
    if options.session_order {
        sessions(schedule, &places, found);
    }
    if found.level.shape().real_time {
        real_time(schedule, events, options.clock_skew, found);
    }
}

/// Where among the events each transaction starts and commits.
struct Places(Vec<Option<(usize, usize)>>);

impl Places {
    fn new(schedule: &Schedule<'_>, events: &[Event]) -> Places {
        let mut places = vec![None; schedule.history.txn_count()];
        for (at, Event(point)) in events.iter().enumerate() {
            match *point {
                Point::Start(txn) => places[txn.index()] = Some((at, at)),
                Point::Commit(txn) => {
                    let start = places[txn.index()].map_or(at, |(start, _)| start);
                    places[txn.index()] = Some((start, at));
                }
            }
        }
        Places(places)
    }
}

/// Whoever comes later in a session starts after the one before it has committed. Nothing follows a
/// transaction of unknown outcome.
fn sessions(schedule: &Schedule<'_>, places: &Places, found: &mut Found) {
    let history = schedule.history;
    for session in history.sessions() {
        let mut before: Option<(TxnId, usize)> = None;
        for txn in history.session_txns(session) {
            let Some((start, commit)) = places.0[txn.index()] else { continue };
            if let Some((first, committed)) = before
                && committed > start
            {
                let evidence = contradiction((first, txn), Reason::Session, start);
                add(schedule, evidence, first, found);
            }
            if history.outcome(txn) == Outcome::Committed {
                before = Some((txn, commit));
            }
        }
    }
}

/// Whoever had finished before another started commits before that one starts.
fn real_time(schedule: &Schedule<'_>, events: &[Event], skew: u64, found: &mut Found) {
    let history = schedule.history;
    // The one that started last, of those that have started in the promised order.
    let mut latest: Option<(i64, TxnId)> = None;
    for (at, Event(point)) in events.iter().enumerate() {
        let (Point::Start(txn) | Point::Commit(txn)) = *point;
        let is_commit = matches!(point, Point::Commit(_));
        if is_commit
            && history.outcome(txn) == Outcome::Committed
            && let Some(finish) = history.finish(txn)
            && let Some((start, other)) = latest
            && i128::from(finish) + i128::from(skew) < i128::from(start) - i128::from(skew)
        {
            let evidence = contradiction((txn, other), Reason::RealTime { finish, start }, at);
            add(schedule, evidence, txn, found);
        }
        if let Some(start) = history.start(txn) {
            latest = latest.max(Some((start, txn)));
        }
    }
}

/// Adds a contradiction that is about the commit of a transaction: where that depends on whether it wrote
/// anything, on what it read.
fn add(schedule: &Schedule<'_>, evidence: Evidence, first: TxnId, found: &mut Found) {
    match schedule.has_open_effects(first) {
        true => found.add_result(evidence),
        false => found.add(evidence),
    }
}

/// One comes before another, and the database says otherwise, at some place of its order.
fn contradiction((first, second): (TxnId, TxnId), reason: Reason, at: usize) -> Evidence {
    let known = Edge { from: first, to: second, reason };
    let stated = Edge { from: second, to: first, reason: Reason::Stated { at: at as u64 } };
    Evidence::Cycle { edges: vec![known, stated] }
}
