//! Levels over a known order of versions.
//!
//! Once the order of each key's versions is known, the dependencies between transactions are: reads
//! (wr), overwrites (ww), anti-dependencies (rw), session order, and real time where it counts. A
//! level forbids some of their cycles, and nothing is left to search for (Adya 1999; Elle, VLDB
//! 2020). Only the neighbours in an order of versions make edges: the others follow.
//!
//! The order is known where every write follows a read of its key ([`replaced`]), or from lists,
//! statements and assumptions ([`ordered`]). The levels without anti-dependencies know another order
//! ([`uncommitted`], [`committed`]).

mod committed;
mod evidence;
mod ordered;
mod parallel;
mod replaced;
mod snapshots;
mod uncommitted;

use std::sync::Arc;

use isolario_model::{Level, Witness};

use crate::cycles::Explain;
use crate::graph::{Moments, points};
use crate::plan::Conclusion;
use crate::resolved::{Inferred, Resolved, Saturated};

pub(crate) use committed::check as check_committed;
pub(crate) use ordered::Ordered;
pub(crate) use replaced::ReadModifyWrites;
pub(crate) use uncommitted::Uncommitted;

/// An order of versions, and what it takes to decide a level by it.
trait KnownVersions<'h>: Explain {
    fn resolved(&self) -> &Resolved<'h>;

    /// An order in which the transactions may have run one after the other, if there is one.
    fn serial_order(&self) -> Option<&[u32]>;

    /// Overwrites and anti-dependencies.
    fn inferred(&self) -> Arc<Inferred>;

    /// The conclusion where a graph has a cycle, or an update is lost.
    fn violated<G: Moments>(&self, level: Level, graph: &G) -> Conclusion;

    /// Decides a level that a serial order satisfies; passes if there is none, or none that agrees with real
    /// time where that counts. One that begins with a guess by finish time nearly always does if any does.
    fn by_serial_order(&self, level: Level) -> Conclusion {
        let resolved = self.resolved();
        let holds = |order: &&[u32]| !level.shape().real_time || resolved.agrees(order);
        match self.serial_order().filter(holds) {
            Some(order) => Conclusion::serial(level, resolved.kept(order)),
            None => Conclusion::Pass,
        }
    }

    /// Dependencies and anti-dependencies, acyclic.
    fn serializable(&self, level: Level) -> Conclusion {
        self.by_serial_order(level).or(|| {
            let (resolved, inferred) = (self.resolved(), self.inferred());
            let graph = Saturated { dependencies: &resolved.dependencies, inferred: &inferred };
            let guess = &resolved.guess.commits;
            // Without real time, there is a cycle if there is no serial order.
            let order = self.serial_order().and_then(|_| resolved.order_of(&graph, guess, true));
            match order {
                Some(order) => Conclusion::serial(level, resolved.kept(&order)),
                None => self.violated(level, &graph),
            }
        })
    }

    /// The level holds, with the starts and commits of this order.
    fn holds_in(&self, order: &[u32]) -> Conclusion {
        let is_kept = |txn| self.resolved().dependencies.reads.is_kept(txn);
        Conclusion::Holds(Witness::Points(points(order, is_kept)))
    }
}
