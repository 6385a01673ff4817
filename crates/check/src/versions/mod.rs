//! Levels over a known order of versions: Adya's, and those of lists.
//!
//! Once the order of each key's versions is known, the dependencies between transactions are: reads
//! (wr), overwrites (ww), anti-dependencies (rw), session order, and real time where it counts. A
//! level forbids some of their cycles, and nothing is left to search for (Adya 1999; Elle, VLDB
//! 2020). Only the neighbours in an order of versions make edges: the others follow.
//!
//! What nobody read of a list is in no known order. Serializability does not mind: everything before
//! the tail comes before all of it, and any topological order of the rest is one. At the other
//! levels the order of a tail is a choice: a guess is tried first ([`parallel`], [`snapshots`]).
//!
//! The order of versions that the levels without anti-dependencies know is another one
//! ([`uncommitted`]).

mod committed;
mod evidence;
mod parallel;
mod snapshots;
mod uncommitted;

use std::sync::{Arc, OnceLock};

use isolario_model::{Anomaly, AnomalyKind, Inapplicable, Level, TxnId, VisibilityRule};

use crate::CheckOptions;
use crate::cycles::with_lost_updates;
use crate::graph::{InEdges, InTime, Moments, agrees, precedes, topological_order};
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, Inferred, Resolved, Saturated, TailRule, VersionOrders};

pub(crate) use committed::check as check_committed;
pub(crate) use uncommitted::Uncommitted;

/// A history whose order of versions is known, but for the tails of its lists.
pub(crate) struct Ordered<'h> {
    resolved: Arc<Resolved<'h>>,
    options: CheckOptions,
    orders: VersionOrders,
    led: OnceLock<Led>,
    /// An order in which transactions may have run one after the other, if there is one.
    serial: OnceLock<Option<Vec<u32>>>,
}

/// What the rule for tails makes of the orders: for the levels that a serial order does not settle.
struct Led {
    overwrites: Vec<(TxnId, TxnId)>,
    /// Session order, reads and overwrites, beyond what `dependencies` has.
    depending: Inferred,
}

impl<'h> Ordered<'h> {
    /// Puts the versions in order. To decide a level, the reads of the history must be right and
    /// agree with each other.
    pub(crate) fn new(resolved: Arc<Resolved<'h>>, options: &CheckOptions) -> Self {
        let orders = VersionOrders::new(&resolved.dependencies, resolved.versions());
        let options = options.clone();
        Ordered { resolved, options, orders, led: OnceLock::new(), serial: OnceLock::new() }
    }

    fn led(&self) -> &Led {
        self.led.get_or_init(|| {
            let overwrites = self.orders.overwrites(TailRule::With);
            let txns = self.dependencies().history.txn_count();
            Led { depending: Inferred::new(txns, std::slice::from_ref(&overwrites)), overwrites }
        })
    }

    fn dependencies(&self) -> &Dependencies<'h> {
        &self.resolved.dependencies
    }

    /// Decides a level; passes where that takes a choice that is not made here.
    pub(crate) fn check(&self, level: Level) -> Conclusion {
        let shape = level.shape();
        if self.orders.incomplete().is_some() {
            return if level.needs().version_order {
                self.without_order()
            } else {
                Conclusion::Pass
            };
        }
        match shape.visible {
            VisibilityRule::Dependencies => self.parallel(),
            VisibilityRule::Prefix => self.snapshots(level),
            _ => self.serializable(level),
        }
    }

    /// Lost updates are wrong whatever the order.
    fn without_order(&self) -> Conclusion {
        match self.lost_updates() {
            none if none.is_empty() => Inapplicable::NoVersionOrder.into(),
            lost => Conclusion::refuted(lost),
        }
    }

    /// Dependencies and anti-dependencies, acyclic.
    fn serializable(&self, level: Level) -> Conclusion {
        let in_time = level.shape().real_time;
        if let Some(order) = self.serial_order().filter(|order| self.holds(order, in_time)) {
            return Conclusion::serial(level, self.kept(order));
        }
        let edges = self.all_edges();
        let graph = Saturated { dependencies: self.dependencies(), inferred: &edges };
        match in_time.then(|| self.order_in_time(&graph, self.resolved.guess.commits.clone())) {
            Some(Some(order)) => Conclusion::serial(level, self.kept(&order)),
            _ => self.violated(self.cycles(level, &graph)),
        }
    }

    /// An order in which the transactions may have run one after the other.
    pub(crate) fn serial_order(&self) -> Option<&[u32]> {
        let find = || {
            let edges = self.all_edges();
            let graph = Saturated { dependencies: self.dependencies(), inferred: &edges };
            let mut order = topological_order(&graph, &self.resolved.guess.commits)?;
            order.retain(|node| (*node as usize) < self.dependencies().node_count());
            Some(order)
        };
        self.serial.get_or_init(find).as_deref()
    }

    /// Overwrites and anti-dependencies, as far as they are seen.
    fn all_edges(&self) -> Inferred {
        let txns = self.dependencies().history.txn_count();
        let (orders, rule) = (&self.orders, TailRule::Without);
        let (missed, nodes) = orders.bundled_anti_dependencies(rule, txns as u32);
        Inferred::new(nodes as usize, &[orders.overwrites(rule), missed])
    }

    /// Whether an order agrees with real time, if that counts.
    fn holds(&self, order: &[u32], in_time: bool) -> bool {
        !in_time || agrees(self.dependencies().history, self.options.clock_skew, order)
    }

    /// An order of a graph's nodes that agrees with real time.
    fn order_in_time<G: Moments>(&self, graph: &G, guess: Vec<u32>) -> Option<Vec<u32>> {
        let timed = InTime { graph, time: self.resolved.real_time() };
        let mut order = topological_order(&timed, &timed.and_helpers(guess))?;
        // Helpers of real time, and nodes that edges are bundled in.
        order.retain(|node| (*node as usize) < graph.node_count());
        Some(order)
    }

    fn had_finished(&self, before: TxnId, after: TxnId) -> bool {
        precedes(self.dependencies().history, self.options.clock_skew, before, after)
    }

    /// The transactions of an order that are kept.
    fn kept(&self, order: &[u32]) -> impl Iterator<Item = TxnId> {
        let reads = &self.dependencies().reads;
        let nodes = self.dependencies().node_count();
        let txns = order.iter().filter(move |node| (**node as usize) < nodes);
        txns.map(|txn| TxnId(*txn)).filter(|txn| reads.is_kept(*txn))
    }

    /// What is wrong with overwrites, whatever else is.
    pub(crate) fn lost(&self, level: Level) -> Vec<Anomaly> {
        let is_forbidden = AnomalyKind::LostUpdate.forbidden_at(level);
        if is_forbidden { self.lost_updates() } else { Vec::new() }
    }

    fn violated(&self, cycles: Vec<Anomaly>) -> Conclusion {
        let divergences = self.orders.divergences();
        let alone =
            divergences.iter().all(|divergence| self.orders.is_overwritten_twice(divergence));
        Conclusion::Refuted(with_lost_updates(self.lost_updates(), alone, cycles))
    }
}
