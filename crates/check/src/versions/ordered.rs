//! Orders of versions that lists, statements, assumptions and reads before writes show together.
//!
//! What no read returned of a list is in no known order. Serializability does not mind: everything before
//! the tail comes before all of it, and any topological order of the rest is one. At the other
//! levels the order of a tail is a choice: a guess is tried first ([`parallel`](super::parallel),
//! [`snapshots`](super::snapshots)).

use std::sync::{Arc, OnceLock};

use isolario_model::{Anomaly, AnomalyKind, Inapplicable, Level, VisibilityRule};

use super::KnownVersions;
use crate::CheckOptions;
use crate::cycles::{cycles, with_lost_updates};
use crate::graph::{InEdges, Moments};
use crate::order::Demand;
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, Inferred, Resolved, Saturated, TailRule, VersionOrders};

/// A history whose order of versions is known, but for the tails of its lists.
pub(crate) struct Ordered<'h> {
    pub(super) resolved: Arc<Resolved<'h>>,
    pub(super) options: CheckOptions,
    pub(super) orders: VersionOrders,
    led: OnceLock<Led>,
    /// An order in which transactions may have run one after the other, if there is one.
    serial: OnceLock<Option<Vec<u32>>>,
}

/// What the rule for tails makes of the orders: for the levels that a serial order does not settle.
pub(super) struct Led {
    pub(super) overwrites: Vec<Demand>,
    /// Session order, reads and overwrites, beyond what `dependencies` has.
    pub(super) depending: Inferred,
}

impl<'h> Ordered<'h> {
    /// Puts the versions in order. To decide a level, the reads of the history must be right and
    /// agree with each other.
    pub(crate) fn new(resolved: Arc<Resolved<'h>>, options: &CheckOptions) -> Self {
        let orders = VersionOrders::new(&resolved.dependencies, resolved.versions());
        let options = options.clone();
        Ordered { resolved, options, orders, led: OnceLock::new(), serial: OnceLock::new() }
    }

    pub(super) fn led(&self) -> &Led {
        self.led.get_or_init(|| {
            let overwrites = self.orders.overwrites(TailRule::With);
            let txns = self.dependencies().history.txn_count();
            Led { depending: Inferred::new(txns, std::slice::from_ref(&overwrites)), overwrites }
        })
    }

    pub(super) fn dependencies(&self) -> &Dependencies<'h> {
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

    /// Whether right reads and what is known of versions agree with some serial order.
    pub(crate) fn is_serial(&self) -> bool {
        self.serial_order().is_some()
    }

    /// Overwrites and anti-dependencies, as far as they are seen.
    fn all_edges(&self) -> Inferred {
        let txns = self.dependencies().history.txn_count();
        let (orders, rule) = (&self.orders, TailRule::Without);
        let (missed, nodes) = orders.bundled_anti_dependencies(rule, txns as u32);
        Inferred::new(nodes as usize, &[orders.overwrites(rule), missed])
    }

    /// What is wrong with overwrites, whatever else is.
    pub(crate) fn lost(&self, level: Level) -> Vec<Anomaly> {
        let is_forbidden = AnomalyKind::LostUpdate.forbidden_at(level);
        if is_forbidden { self.lost_updates() } else { Vec::new() }
    }

    /// Lost updates, and these cycles.
    pub(super) fn violated_by(&self, cycles: Vec<Anomaly>) -> Conclusion {
        let divergences = self.orders.divergences();
        let alone =
            divergences.iter().all(|divergence| self.orders.is_overwritten_twice(divergence));
        Conclusion::Refuted(with_lost_updates(self.lost_updates(), alone, cycles))
    }
}

impl<'h> KnownVersions<'h> for Ordered<'h> {
    fn resolved(&self) -> &Resolved<'h> {
        &self.resolved
    }

    fn serial_order(&self) -> Option<&[u32]> {
        let find = || {
            let inferred = self.all_edges();
            let graph = Saturated { dependencies: self.dependencies(), inferred: &inferred };
            let mut order = self.resolved.guessed_order(&graph)?;
            order.retain(|node| (*node as usize) < self.dependencies().node_count());
            Some(order)
        };
        self.serial.get_or_init(find).as_deref()
    }

    fn inferred(&self) -> Arc<Inferred> {
        self.all_edges().into()
    }

    fn violated<G: Moments>(&self, level: Level, graph: &G) -> Conclusion {
        self.violated_by(cycles(&self.resolved, level, graph, self))
    }
}
