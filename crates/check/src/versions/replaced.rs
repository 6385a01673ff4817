//! Strong levels of read-modify-write histories, in linear time (MTC, Section IV).
//!
//! Where every write follows a read of the same key, the reads say which version each write
//! replaced. Then nothing is left to guess: the dependencies are session order, reads, and
//! anti-dependencies from each reader to the transaction that replaced what it read. An overwrite needs no edge
//! of its own, since the transaction that replaced a version had read it. Versions further down are left out,
//! too (Section IV-C): a reader comes before the next writer, which comes before the one after it by
//! a read.
//!
//! Two transactions that replaced the same version are a *divergence*: whichever came first, the
//! other one had read an old version when it wrote. That refutes snapshot isolation and all above
//! it (Lemma 1). It does not refute prefix consistency, where it leaves a choice.

use std::sync::{Arc, OnceLock};

use isolario_model::{Anomaly, AnomalyKind, Edge, Evidence, Level, TxnId};

use super::KnownVersions;
use crate::cycles::{Explain, cycles, real_time, with_lost_updates};
use crate::graph::{Moments, Split};
use crate::order::{Patience, Rule};
use crate::plan::Conclusion;
use crate::resolved::{Dependencies, Inferred, Overwrites, Replacement, Resolved};

/// A history in which every write follows a read of its key.
pub(crate) struct ReadModifyWrites<'h> {
    resolved: Arc<Resolved<'h>>,
    overwrites: Overwrites<'h>,
    anti_dependencies: OnceLock<Arc<Inferred>>,
    serial: OnceLock<Option<Vec<u32>>>,
}

impl<'h> ReadModifyWrites<'h> {
    /// Finds out which transactions overwrote which version; none if a write does not fit the pattern. To
    /// decide a level, the reads of the history must be right and agree with each other.
    pub(crate) fn new(resolved: Arc<Resolved<'h>>) -> Option<Self> {
        let overwrites = Overwrites::new(Arc::clone(&resolved))?;
        let (anti_dependencies, serial) = (OnceLock::new(), OnceLock::new());
        Some(ReadModifyWrites { resolved, overwrites, anti_dependencies, serial })
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

    /// The same as moments, in which starts overtake commits. Transactions that ran one after the other
    /// did so on snapshots.
    fn snapshot(&self, level: Level) -> Conclusion {
        self.by_serial_order(level).or(|| {
            let overtaken = self.inferred();
            let graph = Split { waits: self.dependencies(), overtaken: &*overtaken };
            let (guess, in_time) = (self.resolved.guessed_moments(), level.shape().real_time);
            match self.resolved.order_of(&graph, &guess, in_time) {
                Some(order) if !self.overwrites.diverge() => self.holds_in(&order),
                _ => self.violated(level, &graph),
            }
        })
    }

    /// The order in which transactions depend on each other often denies only few
    /// anti-dependencies, between transactions that ran at about the same time. Then no graph of
    /// all of them has to be built.
    fn find_serial_order(&self) -> Option<Vec<u32>> {
        let guess = self.resolved.order.clone().filter(|_| !self.overwrites.diverge())?;
        let found = self.dependencies().order(guess, &[&self.overwrites], Patience::ENDLESS);
        found.ok()?.order()
    }

    /// One lost update per version that several transactions overwrote: the first two of them.
    pub(crate) fn lost_updates(&self) -> Vec<Anomaly> {
        let replacements =
            if self.overwrites.diverge() { self.overwrites.divergences() } else { Vec::new() };
        let of_one_version = replacements.chunk_by(|one, next| one.version == next.version);
        let pairs = of_one_version.filter_map(|several| Some((several.first()?, several.get(1)?)));
        let lost_update = |(one, other): (&Replacement, &Replacement)| {
            let edge = |from: &Replacement, to: &Replacement| {
                self.overwrites.missed(from.read, to.version, (to.txn, Some(to.read)))
            };
            let edges = vec![edge(one, other), edge(other, one)];
            Anomaly::new(AnomalyKind::LostUpdate, Evidence::Cycle { edges })
        };
        pairs.map(lost_update).collect()
    }
}

impl Explain for ReadModifyWrites<'_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.dependencies().edge(from, to)
    }

    fn anti_dependency(&self, reader: TxnId, writer: TxnId) -> Option<Edge> {
        self.overwrites.explain(reader, writer)
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        real_time(self.dependencies().history, from, to)
    }
}

impl<'h> KnownVersions<'h> for ReadModifyWrites<'h> {
    fn resolved(&self) -> &Resolved<'h> {
        &self.resolved
    }

    fn serial_order(&self) -> Option<&[u32]> {
        self.serial.get_or_init(|| self.find_serial_order()).as_deref()
    }

    fn inferred(&self) -> Arc<Inferred> {
        let inferred = self.anti_dependencies.get_or_init(|| {
            let txns = self.dependencies().history.txn_count();
            Arc::new(Inferred::new(txns, &[self.overwrites.anti_dependencies(|_| true)]))
        });
        Arc::clone(inferred)
    }

    fn violated<G: Moments>(&self, level: Level, graph: &G) -> Conclusion {
        let lost = self.lost_updates();
        // Of several overwrites of a version, the graph has one: other readers of the version are not in it.
        let alone = lost.is_empty() || self.overwrites.readers_of_divergences() == 2 * lost.len();
        Conclusion::Refuted(with_lost_updates(
            lost,
            alone,
            cycles(&self.resolved, level, graph, self),
        ))
    }
}
