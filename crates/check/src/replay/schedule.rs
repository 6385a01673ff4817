//! Who takes part in a replay, and in which order.

use isolario_model::{History, Inapplicable, Outcome, Point, PromisedOrder, PromisedPoints, TxnId};

use super::Moments;
use super::operation::{has_open_effect, is_unobserved_write};
use crate::rows::written_keys;

/// The events of a replay, moment by moment, and who has no place among them.
pub(super) struct Schedule<'h> {
    pub(super) history: &'h History,
    pub(super) moments: Moments,
    /// By moment; within one, in the order of the transactions, which is that of their sessions.
    events: Vec<(u32, Event)>,
    /// Who only read and has no place.
    pub(super) unplaced: Vec<TxnId>,
    /// The first transaction of unknown outcome that may have written and has no place. Without it nothing
    /// was missed, unless something does not come out right.
    pub(super) left_out: Option<TxnId>,
}

/// A transaction starts or commits. Where it has one moment, that is its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event(pub(super) Point);

impl Event {
    pub(super) fn txn(self) -> TxnId {
        match self.0 {
            Point::Start(txn) | Point::Commit(txn) => txn,
        }
    }
}

impl<'h> Schedule<'h> {
    /// Fails where a transaction has no place that needs one: it wrote, or real time counts.
    pub(super) fn new(
        history: &'h History,
        order: &PromisedOrder,
        moments: Moments,
        real_time: bool,
    ) -> Result<Self, Inapplicable> {
        let (mut events, mut unplaced, mut left_out) = (Vec::new(), Vec::new(), None);
        for txn in history.txns() {
            match (history.outcome(txn), order.points(txn)) {
                (Outcome::Aborted, _) => {}
                (_, Some(place)) => {
                    // Who wrote nothing leaves nothing behind: all of it happens at its start.
                    let commit = match moments == Moments::One || writes(history, txn) {
                        true => place.commit,
                        false => place.start,
                    };
                    push_events(&mut events, moments, txn, PromisedPoints { commit, ..place });
                }
                (Outcome::Committed, None) if !real_time && !writes(history, txn) => {
                    unplaced.push(txn);
                }
                (Outcome::Committed, None) => return Err(Inapplicable::NotInPromisedOrder { txn }),
                (Outcome::Unknown, None) if left_out.is_none() && writes(history, txn) => {
                    left_out = Some(txn);
                }
                (Outcome::Unknown, None) => {}
            }
        }
        events.sort_unstable_by_key(|(moment, Event(point))| match *point {
            Point::Start(txn) => (*moment, txn, 0),
            Point::Commit(txn) => (*moment, txn, 1),
        });
        Ok(Schedule { history, moments, events, unplaced, left_out })
    }

    /// The events of one moment after the other.
    pub(super) fn by_moment(&self) -> impl Iterator<Item = &[(u32, Event)]> {
        self.events.chunk_by(|a, b| a.0 == b.0)
    }

    /// Whether what a transaction wrote depends on the state as of its start.
    pub(super) fn has_open_effects(&self, txn: TxnId) -> bool {
        self.moments != Moments::One
            && self.history.has_conditionals()
            && self.history.txn_ops(txn).any(|op| has_open_effect(self.history, op))
    }

    pub(super) fn event_count(&self) -> usize {
        self.events.len()
    }
}

fn push_events(
    events: &mut Vec<(u32, Event)>,
    moments: Moments,
    txn: TxnId,
    place: PromisedPoints,
) {
    if moments != Moments::One {
        events.push((place.start, Event(Point::Start(txn))));
    }
    events.push((place.commit, Event(Point::Commit(txn))));
}

/// Whether a transaction may have written something.
fn writes(history: &History, txn: TxnId) -> bool {
    let mut ops = history.txn_ops(txn);
    ops.any(|op| is_unobserved_write(history, op) || written_keys(history, op).next().is_some())
}
