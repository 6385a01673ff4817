//! Strong levels of read-modify-write histories, in linear time (MTC, Section IV).
//!
//! Where every write follows a read of the same key, the reads say which version each write
//! replaced. Then nothing is left to guess: the dependencies are session order, reads, and
//! anti-dependencies from each reader to whoever replaced what it read. An overwrite needs no edge
//! of its own, since whoever replaced a version had read it. Versions further down are left out,
//! too (Section IV-C): a reader comes before the next writer, who comes before the one after it by
//! a read.
//!
//! Two transactions that replaced the same version are a *divergence*: whichever came first, the
//! other one had read an old version when it wrote. That refutes snapshot isolation and all above
//! it at once (Lemma 1). It does not refute prefix consistency, where it leaves a choice.

mod evidence;

use std::sync::{Arc, OnceLock};

use isolario_model::{Level, TxnId, Witness};

use crate::CheckOptions;
use crate::cycles::with_lost_updates;
use crate::graph::{
    InTime, Moments, Order, Split, agrees, commit_of, points, start_of, topological_order,
};
use crate::plan::Conclusion;
use crate::resolved::{BlindWrite, Dependencies, Inferred, Overwrites, Resolved, Saturated};

/// A read-modify-write history on which strong levels are decided.
pub(crate) struct Mini<'h> {
    resolved: Arc<Resolved<'h>>,
    clock_skew: u64,
    overwrites: Overwrites<'h>,
    anti_dependencies: OnceLock<Inferred>,
    /// An order in which transactions may have run one after the other, if there is one.
    serial: OnceLock<Option<Vec<u32>>>,
}

impl<'h> Mini<'h> {
    /// Finds out who overwrote what, or which write does not fit the pattern. To decide a level, the
    /// reads of the history must be right and agree with each other.
    pub(crate) fn new(
        resolved: Arc<Resolved<'h>>,
        options: &CheckOptions,
    ) -> Result<Self, BlindWrite> {
        Ok(Mini {
            overwrites: Overwrites::new(Arc::clone(&resolved))?,
            resolved,
            clock_skew: options.clock_skew,
            anti_dependencies: OnceLock::new(),
            serial: OnceLock::new(),
        })
    }

    fn dependencies(&self) -> &Dependencies<'h> {
        &self.resolved.dependencies
    }

    /// Decides a level; passes where that takes a choice.
    pub(crate) fn check(&self, level: Level) -> Conclusion {
        match level {
            Level::Serializable | Level::StrictSerializable => self.serializable(level),
            Level::Prefix if self.overwrites.diverge() => Conclusion::Pass,
            Level::Prefix | Level::SnapshotIsolation | Level::StrongSnapshotIsolation => {
                self.snapshot(level)
            }
            _ => Conclusion::Pass,
        }
    }

    /// Session order ∪ write-read ∪ anti-dependencies, acyclic.
    fn serializable(&self, level: Level) -> Conclusion {
        let in_time = level.shape().real_time;
        let Some(order) = self.serial_order() else {
            return self.violated(level, &self.graph());
        };
        if self.holds(order, in_time) {
            return Conclusion::serial(level, self.kept(order));
        }
        match self.order_in_time(&self.graph(), self.resolved.guess.commits.clone()) {
            Some(order) => Conclusion::serial(level, self.kept(&order)),
            None => self.violated(level, &self.graph()),
        }
    }

    /// The same as moments, in which starts overtake commits.
    fn snapshot(&self, level: Level) -> Conclusion {
        let in_time = level.shape().real_time;
        // Transactions that ran one after the other did so on snapshots.
        if let Some(order) = self.serial_order().filter(|order| self.holds(order, in_time)) {
            return Conclusion::serial(level, self.kept(order));
        }
        let graph = Split { waits: self.dependencies(), overtaken: self.anti_dependencies() };
        let moments =
            self.resolved.guess.commits.iter().flat_map(|txn| [start_of(*txn), commit_of(*txn)]);
        let guess: Vec<u32> = moments.collect();
        let order = match in_time {
            true => self.order_in_time(&graph, guess),
            false => topological_order(&graph, &guess),
        };
        match order {
            Some(order) if !self.overwrites.diverge() => {
                Conclusion::Holds(Witness::Points(points(&order, |txn| {
                    self.dependencies().reads.is_kept(txn)
                })))
            }
            _ => self.violated(level, &graph),
        }
    }

    fn graph(&self) -> Saturated<'_> {
        Saturated { dependencies: self.dependencies(), inferred: self.anti_dependencies() }
    }

    /// An order in which the transactions may have run one after the other.
    fn serial_order(&self) -> Option<&[u32]> {
        self.serial.get_or_init(|| self.find_serial_order()).as_deref()
    }

    /// The order in which transactions depend on each other often denies only few
    /// anti-dependencies, between transactions that ran at about the same time. Then no graph of
    /// all of them has to be built.
    fn find_serial_order(&self) -> Option<Vec<u32>> {
        let depending = self.resolved.order.as_ref().filter(|_| !self.overwrites.diverge())?;
        let mut order = Order::new(depending.clone());
        let denied = self.overwrites.denied_by(&order);
        if denied.is_empty() {
            return Some(order.into_nodes());
        }
        let mut is_mended = vec![false; depending.len()];
        for stretch in order.stretches(&denied) {
            order.nodes()[stretch].iter().for_each(|txn| is_mended[*txn as usize] = true);
        }
        let within =
            |reader: TxnId, writer: TxnId| is_mended[reader.index()] && is_mended[writer.index()];
        let edges = self.overwrites.anti_dependencies_that(within);
        let inferred = Inferred::new(depending.len(), &edges);
        let graph = Saturated { dependencies: self.dependencies(), inferred: &inferred };
        order.mend(&graph, &denied)?;
        Some(order.into_nodes())
    }

    /// Whether an order agrees with real time, if that counts. One that begins with a guess by
    /// finish time nearly always does if there is any that does.
    fn holds(&self, order: &[u32], in_time: bool) -> bool {
        !in_time || agrees(self.dependencies().history, self.clock_skew, order)
    }

    /// An order of a graph's nodes that agrees with real time.
    fn order_in_time<G: Moments>(&self, graph: &G, guess: Vec<u32>) -> Option<Vec<u32>> {
        let timed = InTime { graph, time: self.resolved.real_time() };
        let mut order = topological_order(&timed, &timed.and_helpers(guess))?;
        order.retain(|node| (*node as usize) < graph.node_count());
        Some(order)
    }

    fn violated<G: Moments>(&self, level: Level, graph: &G) -> Conclusion {
        let lost = self.lost_updates();
        // Of several overwrites, the graph has one: of those who read the version, others are not in it.
        let alone = lost.is_empty() || self.overwrites.readers_of_divergences() == 2 * lost.len();
        Conclusion::Refuted(with_lost_updates(lost, alone, self.cycles(level, graph)))
    }

    fn anti_dependencies(&self) -> &Inferred {
        self.anti_dependencies.get_or_init(|| {
            let txns = self.dependencies().history.txn_count();
            Inferred::new(txns, &self.overwrites.anti_dependencies())
        })
    }

    fn kept(&self, order: &[u32]) -> impl Iterator<Item = TxnId> {
        let reads = &self.dependencies().reads;
        order.iter().map(|txn| TxnId(*txn)).filter(|txn| reads.is_kept(*txn))
    }
}
