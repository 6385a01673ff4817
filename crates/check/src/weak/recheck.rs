//! What mending an order broke.
//!
//! Only two transactions that changed places can deny a demand that was given before: one of them
//! was moved forward, over the other. So only reads from those that were moved are looked at again,
//! and only beside writers that they were moved over.

use std::ops::Range;

use isolario_model::{Level, OpId, TxnId};
use rayon::prelude::*;

use super::contradictions::{Examined, WriterRule};
use crate::blocks::{self, Block};
use crate::graph::Moved;
use crate::order::Demand;
use crate::resolved::{Dependencies, Source};

/// Searches do not go further back than so many places: what is further is taken to happen before,
/// as where causality is examined first.
const REACH: u32 = 1024;

/// Writers and dependencies per transaction that may be looked at before this is given up.
const STEPS_PER_TXN: usize = 64;

/// What the level demands of the order since these were moved and it does not give; none if that
/// takes too long to find out.
pub(super) fn recheck(examined: &Examined<'_>, moved: &[Moved]) -> Option<Vec<Demand>> {
    let Dependencies { history, reads, .. } = examined.rule.dependencies;
    // Per transaction, the end of the places that it was moved over; zero if it was not moved.
    let mut ends = vec![0u32; history.txn_count()];
    moved.iter().for_each(|moved| ends[moved.node as usize] = moved.end);
    let recheck_block = |block: &Block| {
        let txns = block.iter().map(ExactSizeIterator::len).sum::<usize>();
        let mut recheck = Recheck {
            examined: *examined,
            steps: STEPS_PER_TXN * txns,
            seen: Vec::new(),
            stack: Vec::new(),
        };
        let mut found = Vec::new();
        for reader in block.iter().flat_map(Clone::clone).map(TxnId::at) {
            if reads.is_kept(reader) {
                recheck.visit(reader, &ends, &mut found)?;
            }
        }
        Some(found)
    };
    let found: Option<Vec<Vec<Demand>>> =
        blocks::blocks(history).par_iter().map(recheck_block).collect();
    Some(found?.concat())
}

struct Recheck<'a> {
    examined: Examined<'a>,
    /// How many more may be looked at.
    steps: usize,
    /// Which of the places after the one searched for were met.
    seen: Vec<bool>,
    stack: Vec<TxnId>,
}

impl Recheck<'_> {
    #[inline]
    fn visit(&mut self, reader: TxnId, ends: &[u32], found: &mut Vec<Demand>) -> Option<()> {
        let Dependencies { history, reads, .. } = self.examined.rule.dependencies;
        let mut within_limit = Some(());
        reads.for_each_writer(history.op_range(reader), |op, after| {
            if ends.get(after.index()).is_some_and(|end| *end > 0) {
                let over = self.examined.rank(after)..ends[after.index()];
                within_limit =
                    within_limit.and_then(|()| self.compare(reader, op, after, over, found));
            }
        });
        within_limit
    }

    /// Looks for visible writers among those that whom the reader read from was moved over.
    fn compare(
        &mut self,
        reader: TxnId,
        op: usize,
        after: TxnId,
        over: Range<u32>,
        found: &mut Vec<Demand>,
    ) -> Option<()> {
        let key = self.examined.rule.dependencies.history.op_keys()[op];
        self.spend(over.len())?;
        for place in over {
            let before = TxnId(self.examined.order.nodes()[place as usize]);
            if before != reader
                && self.examined.rule.writes.contains(before, key)
                && self.is_visible(before, reader, op)?
            {
                found.push((before.0, after.0));
            }
        }
        Some(())
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(steps)?;
        Some(())
    }

    fn is_visible(&mut self, before: TxnId, reader: TxnId, op: usize) -> Option<bool> {
        let dependencies = self.examined.rule.dependencies;
        let range = dependencies.history.op_range(reader);
        let reads_from = |ops: Range<usize>| {
            let source = |op| dependencies.reads.source(OpId::at(op));
            { ops }.any(|op| source(op) == Source::Txn(before))
        };
        match self.examined.rule.level {
            Level::ReadCommitted => {
                self.spend(op - range.start)?;
                Some(reads_from(range.start..op))
            }
            Level::ReadAtomic => {
                self.spend(range.len())?;
                Some(dependencies.precedes_in_session(before, reader) || reads_from(range))
            }
            _ => self.happens_before(before, reader),
        }
    }

    /// Whether a reader depends on a transaction that comes before it in the order, or where it may
    /// because that is long ago.
    fn happens_before(&mut self, before: TxnId, reader: TxnId) -> Option<bool> {
        let Examined { rule: WriterRule { dependencies, .. }, order } = self.examined;
        let first = order.places()[before.index()];
        let Some(distance) = order.places()[reader.index()].checked_sub(first) else {
            return Some(false);
        };
        if distance > REACH {
            return Some(true);
        }
        self.seen.clear();
        self.seen.resize(distance as usize, false);
        self.stack.clear();
        self.stack.push(reader);
        while let Some(txn) = self.stack.pop() {
            let mut steps = 0;
            dependencies.for_each_before(txn, |next| {
                steps += 1;
                let offset = order.places()[next as usize].wrapping_sub(first) as usize;
                if offset < self.seen.len() && !std::mem::replace(&mut self.seen[offset], true) {
                    self.stack.push(TxnId(next));
                }
            });
            self.spend(steps)?;
            if self.seen.first() == Some(&true) {
                return Some(true);
            }
        }
        Some(false)
    }
}
