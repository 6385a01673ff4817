//! Levels over a known order of versions.
//!
//! Once the order of each key's versions is known, the dependencies between transactions are: reads
//! (wr), overwrites (ww), anti-dependencies (rw), session order, and real time where it counts. A
//! level forbids some of their cycles, and nothing is left to search for (Adya 1999; Elle, VLDB
//! 2020). Only the neighbours in an order of versions make edges: the others follow.
//!
//! The order is known from one of two sources.
//!
//! *Reads*, if every write follows a read of its register ([`Overwrites`]; MTC, Section IV). The reads say which
//! version each write replaced, so that this takes linear time. An overwrite needs no edge of its own, since
//! the transaction that replaced a version had read it. Versions further down are left out, too (Section IV-C):
//! a reader comes before the next writer, which comes before the one after it by a read. Two
//! transactions that replaced the same version are a *divergence*: whichever came first, the other one had
//! read an old version when it wrote. That refutes snapshot isolation and all above it (Lemma 1). It does not
//! refute prefix consistency, where it leaves a choice.
//!
//! *All that lists, statements, assumptions and reads before writes show together* ([`VersionOrders`]). What no
//! read returned of a list is in no known order. Serializability does not mind: everything before the tail
//! comes before all of it, and any topological order of the rest is one. At the other levels the order of a
//! tail is a choice: a guess is tried first ([`parallel`], [`Ordered::snapshots`]).

mod evidence;
mod parallel;
mod uncommitted;

use std::sync::{Arc, LazyLock, OnceLock};

use isolario_model::{
    Anomaly, AnomalyKind, Inapplicable, KeyId, Level, OpFamily, TxnId, VisibilityRule, Witness,
};

use crate::CheckOptions;
use crate::cycles::{cycles, with_lost_updates};
use crate::graph::{InEdges, Moments, Split, commit_of, places, points};
use crate::order::{Demand, OrderOrCycle, Patience};
use crate::plan::Conclusion;
use crate::resolved::{
    Dependencies, Divergence, Inferred, Overwrites, Resolved, Saturated, TailRule, VersionOrders,
    first_outside,
};

pub(crate) use uncommitted::Uncommitted;

/// What is worked out when it is first asked for.
type Lazy<'h, T> = LazyLock<T, Box<dyn FnOnce() -> T + Send + 'h>>;

/// A history whose order of versions is known, but for the tails of its lists.
pub(crate) struct Ordered<'h> {
    resolved: Arc<Resolved<'h>>,
    options: CheckOptions,
    /// What shows the order of versions, together.
    orders: Lazy<'h, VersionOrders>,
    /// What reads show alone, if every write follows a read of its register.
    overwrites: Lazy<'h, Option<Overwrites<'h>>>,
    has_lists: bool,
    led: OnceLock<Led>,
    serial: OnceLock<OrderOrCycle<Inferred>>,
}

/// What the rule for tails makes of the orders: for the levels that a serial order does not settle.
struct Led {
    overwrites: Vec<Demand>,
    /// Session order, reads and overwrites, beyond what `dependencies` has.
    depending: Inferred,
}

impl<'h> Ordered<'h> {
    /// Works nothing out yet. To decide a level, the reads of the history must be right and agree with each
    /// other.
    pub(crate) fn new(resolved: &Arc<Resolved<'h>>, options: &CheckOptions) -> Self {
        let history = resolved.dependencies.history;
        let has_lists = first_outside(history, &[OpFamily::Registers]).is_some();
        let (by_all, by_reads) = (Arc::clone(resolved), Arc::clone(resolved));
        let orders = move || VersionOrders::new(&by_all.dependencies, by_all.versions());
        let overwrites = move || if has_lists { None } else { Overwrites::new(by_reads) };
        Ordered {
            resolved: Arc::clone(resolved),
            options: options.clone(),
            orders: Lazy::new(Box::new(orders)),
            overwrites: Lazy::new(Box::new(overwrites)),
            has_lists,
            led: OnceLock::new(),
            serial: OnceLock::new(),
        }
    }

    fn led(&self) -> &Led {
        self.led.get_or_init(|| {
            let overwrites = self.orders.overwrites(TailRule::With);
            let depending = self.inferred(std::slice::from_ref(&overwrites));
            Led { overwrites, depending }
        })
    }

    fn dependencies(&self) -> &Dependencies<'h> {
        &self.resolved.dependencies
    }

    fn inferred(&self, demands: &[Vec<Demand>]) -> Inferred {
        Inferred::new(self.dependencies().node_count(), demands)
    }

    /// Whether a level is decided over an order of versions that is asked for, or that lists show.
    pub(crate) fn is_over_versions(&self, level: Level) -> bool {
        level.needs().version_order || self.has_lists
    }

    /// What reads show alone, if that is all there is to know.
    fn by_reads(&self) -> Option<&Overwrites<'h>> {
        if self.options.asks_for_orders() { None } else { self.overwrites.as_ref() }
    }

    /// Decides a level; passes where that takes a choice that is not made here.
    pub(crate) fn check(&self, level: Level) -> Conclusion {
        let shape = level.shape();
        if self.is_over_versions(level) {
            if self.orders.incomplete().is_some() {
                return if level.needs().version_order {
                    self.without_order()
                } else {
                    Conclusion::Pass
                };
            }
        } else if self.by_reads().is_none() {
            return Conclusion::Pass;
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

    /// An order in which the transactions may have run one after the other, if there is one.
    fn serial_order(&self) -> Option<&[u32]> {
        match self.serial() {
            OrderOrCycle::Order(order) => Some(order),
            OrderOrCycle::Cycle(_) => None,
        }
    }

    /// A serial order, or a graph of the overwrites and anti-dependencies that have a cycle.
    ///
    /// The order in which transactions depend on each other often denies only few anti-dependencies,
    /// between transactions that ran at about the same time. Then no graph of all of them has to be built.
    fn serial(&self) -> &OrderOrCycle<Inferred> {
        self.serial.get_or_init(|| {
            if let Some(overwrites) = self.by_reads() {
                let guess = self.resolved.order.clone().filter(|_| !overwrites.diverge());
                let find =
                    |guess| self.dependencies().order(guess, &[overwrites], Patience::ENDLESS).ok();
                let found = guess.and_then(find);
                return found.unwrap_or_else(|| OrderOrCycle::Cycle(self.all_edges()));
            }
            let inferred = self.all_edges();
            let graph = Saturated { dependencies: self.dependencies(), inferred: &inferred };
            match self.resolved.guessed_order(&graph) {
                None => OrderOrCycle::Cycle(inferred),
                Some(mut order) => {
                    order.retain(|node| (*node as usize) < self.dependencies().node_count());
                    OrderOrCycle::Order(order)
                }
            }
        })
    }

    /// Overwrites and anti-dependencies, as far as they are seen.
    fn all_edges(&self) -> Inferred {
        if let Some(overwrites) = self.by_reads() {
            return self.inferred(&[overwrites.anti_dependencies(|_| true)]);
        }
        let (txns, rule) = (self.dependencies().node_count() as u32, TailRule::Without);
        let (missed, nodes) = self.orders.bundled_anti_dependencies(rule, txns);
        Inferred::new(nodes as usize, &[self.orders.overwrites(rule), missed])
    }

    /// Decides a level that a serial order satisfies; passes if there is none, or none that agrees with real
    /// time where that counts. One that begins with a guess by finish time nearly always does if any does.
    fn by_serial_order(&self, level: Level) -> Conclusion {
        let holds = |order: &&[u32]| !level.shape().real_time || self.resolved.agrees(order);
        match self.serial_order().filter(holds) {
            Some(order) => Conclusion::serial(level, self.resolved.kept(order)),
            None => Conclusion::Pass,
        }
    }

    /// Dependencies and anti-dependencies, acyclic.
    fn serializable(&self, level: Level) -> Conclusion {
        self.by_serial_order(level).or(|| {
            let in_time = level.shape().real_time;
            let inferred = match self.serial() {
                OrderOrCycle::Cycle(inferred) if !in_time => inferred,
                // Real time may close cycles elsewhere.
                _ => &self.all_edges(),
            };
            let graph = Saturated { dependencies: self.dependencies(), inferred };
            let guess = &self.resolved.guess.commits;
            // Without real time, there is a cycle if there is no serial order.
            let order =
                self.serial_order().and_then(|_| self.resolved.order_of(&graph, guess, true));
            match order {
                Some(order) => Conclusion::serial(level, self.resolved.kept(&order)),
                None => self.violated(level, &graph),
            }
        })
    }

    /// Decides snapshot isolation, plain or strong; prefix only where a serial order satisfies it, or where no
    /// two transactions replaced the same version.
    ///
    /// Each transaction is its start and its commit. Session order, reads and, at snapshot isolation,
    /// overwrites have the one commit before the other starts; who read what another overwrote started
    /// before that one committed. At prefix, where writers may overlap, an overwrite orders the commits.
    /// If these moments have no cycle, any topological order of them is an answer.
    ///
    /// The order of a tail is a choice. A serial order makes it, and whatever is serializable is fine
    /// here. Else the tails are tried in the order in which the other edges let them commit. If that does
    /// not do, the general solver decides.
    fn snapshots(&self, level: Level) -> Conclusion {
        self.by_serial_order(level).or(|| {
            let by_reads = self.by_reads().filter(|_| !self.is_over_versions(level));
            let leaves_choice = by_reads.is_none_or(Overwrites::diverge);
            if !level.shape().exclusive_writers && leaves_choice {
                return Conclusion::Pass;
            }
            let missed = match by_reads {
                Some(overwrites) => overwrites.anti_dependencies(|_| true),
                None => self.orders.anti_dependencies(TailRule::With).collect(),
            };
            let overtaken = self.inferred(&[missed]);
            let inferred =
                if by_reads.is_some() { &self.inferred(&[]) } else { &self.led().depending };
            let waits = Saturated { dependencies: self.dependencies(), inferred };
            let graph = Split { waits: &waits, overtaken: &overtaken };
            let in_time = level.shape().real_time;
            match self.resolved.order_of(&graph, &self.resolved.guessed_moments(), in_time) {
                Some(order) if by_reads.is_none() && self.orders.has_tails() => {
                    let order = self.with_tails(&order, &overtaken, in_time);
                    order.map_or(Conclusion::Pass, |order| self.holds_in(&order))
                }
                Some(order) if by_reads.is_none_or(|overwrites| !overwrites.diverge()) => {
                    self.holds_in(&order)
                }
                _ => self.violated(level, &graph),
            }
        })
    }

    /// With the tails in the order of their commits, if that leaves no cycle.
    fn with_tails(&self, order: &[u32], overtaken: &Inferred, in_time: bool) -> Option<Vec<u32>> {
        let places = places(order);
        let mut edges = self.led().overwrites.clone();
        let place = |txn: TxnId| places[commit_of(txn.0) as usize];
        self.order_tails(place, |_, (before, after)| edges.push((before.0, after.0)));
        let inferred = self.inferred(&[edges]);
        let waits = Saturated { dependencies: self.dependencies(), inferred: &inferred };
        let graph = Split { waits: &waits, overtaken };
        self.resolved.order_of(&graph, &self.resolved.guessed_moments(), in_time)
    }

    /// Tells the neighbours in an order of each tail.
    fn order_tails(
        &self,
        place: impl Fn(TxnId) -> u32,
        mut tell: impl FnMut(KeyId, (TxnId, TxnId)),
    ) {
        let mut tail: Vec<TxnId> = Vec::new();
        for key in self.orders.keys() {
            tail.clear();
            tail.extend(self.orders.tail(key).iter().map(|v| self.orders.versions.writer(*v)));
            tail.sort_unstable_by_key(|txn| place(*txn));
            tail.windows(2).for_each(|pair| tell(key, (pair[0], pair[1])));
        }
    }

    /// The level holds, with the starts and commits of this order.
    fn holds_in(&self, order: &[u32]) -> Conclusion {
        let is_kept = |txn| self.dependencies().reads.is_kept(txn);
        Conclusion::Holds(Witness::Points(points(order, is_kept)))
    }

    /// What is wrong with overwrites, whatever else is.
    pub(crate) fn lost(&self, level: Level) -> Vec<Anomaly> {
        let is_forbidden = AnomalyKind::LostUpdate.forbidden_at(level);
        let is_known = || self.is_over_versions(level) || self.overwrites.is_some();
        if is_forbidden && is_known() { self.lost_updates() } else { Vec::new() }
    }

    /// Versions that several transactions overwrote which had all read it.
    fn divergences(&self) -> Vec<Divergence> {
        match &*self.overwrites {
            Some(overwrites) if !overwrites.diverge() => Vec::new(),
            _ => self.orders.divergences(),
        }
    }

    /// The conclusion where a graph has a cycle, or an update is lost.
    fn violated<G: Moments>(&self, level: Level, graph: &G) -> Conclusion {
        self.violated_by(cycles(&self.resolved, level, graph, self))
    }

    /// Lost updates, and these cycles.
    fn violated_by(&self, cycles: Vec<Anomaly>) -> Conclusion {
        let divergences = self.divergences();
        // Of several overwrites of a version, reads alone know one: the graph lacks other readers of the version.
        let alone = divergences.iter().all(|divergence| match self.by_reads() {
            Some(_) => self.orders.readers(divergence.key, divergence.version).len() == 2,
            None => self.orders.is_overwritten_twice(divergence),
        });
        Conclusion::Refuted(with_lost_updates(self.lost_updates(), alone, cycles))
    }
}
