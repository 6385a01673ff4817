//! A serial order, looked for before anything else.
//!
//! Most histories say by their times, stamps or places in the file in which order their transactions
//! ran, and most databases keep that order but for transactions that ran at the same time. So the
//! order is tried: transactions run one after the other on a [store](store) that holds a value per key, and
//! each read must return what the store holds. Where one does not, somebody stands in the wrong place,
//! and the [stretch](stretch) between the two that contradict each other is sorted anew. If in the end every
//! read returns what the client saw, and every session is in order, the history is serializable by
//! definition, and satisfies every level that serializability implies.
//!
//! Nothing here has to find an order whenever there is one. Where none is found soon, the engines decide:
//! they resolve every read, which takes several times the memory and the time. Here a read is compared
//! with one cell of a store that fits the cache.

mod outcomes;
mod store;
mod stretch;
#[cfg(test)]
mod tests;

use std::ops::Range;

use isolario_model::{History, Initial, Level, TxnId};

use crate::CheckOptions;
use crate::graph::agrees;
use crate::plan::Conclusion;
use crate::resolved::suggested_order;
use outcomes::Outcomes;
use store::Sweep;
use stretch::mend;

/// Histories with fewer operations are decided before anybody notices, by engines that know more about
/// them.
const LEAST_OPERATIONS: usize = 1 << 16;

/// How often an order is tried. If mending does not help soon, it does not help.
const ROUNDS: usize = 5;

/// How many transactions are tried before all of them are.
const BEGINNING: usize = 1 << 16;

/// Of the stretches that are contradicted at first, one in so many may be left to a second look, and some in any case.
const FEW: usize = 256;
const SOME: usize = 4;

/// An order in which the committed transactions of a history may have run one after the other.
pub(crate) struct Serial {
    order: Vec<u32>,
    /// Whether all values were written once, so that it is clear whose write each read saw.
    is_unique: bool,
}

impl Serial {
    /// Looks for an order, however small the history. Only one of registers that [fits] has one.
    pub(crate) fn find(history: &History, options: &CheckOptions) -> Option<Serial> {
        let outcomes = Outcomes::of(history)?;
        let order = outcomes.put_in_place(suggested_order(history)?, history)?;
        let replay =
            ReplayInput { history, outcomes: &outcomes, session_order: options.session_order };
        // Where a history is not serializable, that mostly shows soon.
        if order.len() > BEGINNING {
            mended(order[..BEGINNING].to_vec(), replay)?;
        }
        let (mut order, sweep) = mended(order, replay)?;
        order.retain(|txn| outcomes.has_committed(history, TxnId(*txn)));
        let Sweep { is_explained, is_unique, .. } = sweep;
        // Whose write a read saw says which unknown outcomes are commits.
        let is_certain = is_unique || outcomes.are_known();
        (is_explained && is_certain).then_some(Serial { order, is_unique })
    }

    /// Decides a level, if the order shows that it holds.
    pub(crate) fn check(
        &self,
        history: &History,
        level: Level,
        options: &CheckOptions,
    ) -> Conclusion {
        let is_shown = Level::by_order().contains(&level)
            && (self.is_unique || !Level::Causal.implies(level))
            && (!level.shape().real_time || agrees(history, options.clock_skew, &self.order));
        if is_shown {
            Conclusion::serial(level, self.order.iter().map(|txn| TxnId(*txn)))
        } else {
            Conclusion::Pass
        }
    }
}

/// Whether it pays to look for an order: in large histories of transactions that read and write registers.
pub(crate) fn may_find(history: &History, options: &CheckOptions) -> bool {
    history.op_count() >= LEAST_OPERATIONS && fits(history, options)
}

/// What is executed.
#[derive(Clone, Copy)]
struct ReplayInput<'a> {
    history: &'a History,
    outcomes: &'a Outcomes,
    session_order: bool,
}

impl ReplayInput<'_> {
    fn has_committed(&self, txn: TxnId) -> bool {
        self.outcomes.has_committed(self.history, txn)
    }
}

/// An order of transactions, mended until nothing contradicts it, and what came of replaying it.
fn mended(mut order: Vec<u32>, replay: ReplayInput<'_>) -> Option<(Vec<u32>, Sweep)> {
    let mut stubborn: Option<Vec<Range<usize>>> = None;
    for _ in 0..ROUNDS {
        let places = stubborn.as_deref().unwrap_or_default();
        let sweep = Sweep::along(&order, replay, places)?;
        if sweep.spans.is_empty() {
            return Some((order, sweep));
        }
        // Where there is no serial order, much is left at first, or as much each time.
        let most = match &stubborn {
            None => SOME.max(sweep.spans.len() / FEW),
            Some(before) => before.len().saturating_sub(1),
        };
        let left = mend(&mut order, sweep, replay)?;
        if left.len() > most {
            return None;
        }
        stubborn = Some(left);
    }
    None
}

/// Whether a replay says all there is to say about a history. Versions with names of their own say more than their values; and
/// orders of versions that are part of the question need not be those of the replay.
fn fits(history: &History, options: &CheckOptions) -> bool {
    let initial = history.initial();
    !matches!(initial, Initial::Unwritten | Initial::Marked)
        && !history.names_versions()
        && !options.asks_for_orders()
        && options.promised_order.is_none()
        && options.committed.is_empty()
}
