//! Snapshot isolation and prefix over a known order of versions.
//!
//! Each transaction is its start and its commit. Session order, reads and, at snapshot isolation,
//! overwrites have the one commit before the other starts; who read what another overwrote started
//! before that one committed. At prefix, where writers may overlap, an overwrite orders the commits.
//! If these moments have no cycle, any topological order of them is an answer.
//!
//! The order of a tail is a choice. A serial order makes it, and whatever is serializable is fine
//! here. Else the tails are tried in the order in which the other edges let them commit. If that does
//! not do, the general solver decides.

use isolario_model::{KeyId, Level, TxnId};

use super::{KnownVersions, Ordered};
use crate::graph::{Split, commit_of, places};
use crate::plan::Conclusion;
use crate::resolved::{Inferred, Saturated, TailRule};

impl Ordered<'_> {
    /// Decides snapshot isolation, plain or strong; prefix only where a serial order satisfies it.
    pub(super) fn snapshots(&self, level: Level) -> Conclusion {
        self.by_serial_order(level).or(|| match level.shape().exclusive_writers {
            true => self.on_snapshots(level),
            false => Conclusion::Pass,
        })
    }

    fn on_snapshots(&self, level: Level) -> Conclusion {
        let in_time = level.shape().real_time;
        let waits =
            Saturated { dependencies: self.dependencies(), inferred: &self.led().depending };
        let txns = self.dependencies().history.txn_count();
        let missed = self.orders.anti_dependencies(TailRule::With).collect();
        let overtaken = Inferred::new(txns, &[missed]);
        let graph = Split { waits: &waits, overtaken: &overtaken };
        let guess = self.resolved.guessed_moments();
        match self.resolved.order_of(&graph, &guess, in_time) {
            None => self.violated(level, &graph),
            Some(order) if !self.orders.has_tails() => self.holds_in(&order),
            Some(order) => {
                let order = self.with_tails(&order, &overtaken, in_time);
                order.map_or(Conclusion::Pass, |order| self.holds_in(&order))
            }
        }
    }

    /// With the tails in the order of their commits, if that leaves no cycle.
    fn with_tails(&self, order: &[u32], overtaken: &Inferred, in_time: bool) -> Option<Vec<u32>> {
        let places = places(order);
        let mut edges = self.led().overwrites.clone();
        self.order_tails(
            |txn| places[commit_of(txn.0) as usize],
            |_, (before, after)| edges.push((before.0, after.0)),
        );
        let txns = self.dependencies().history.txn_count();
        let inferred = Inferred::new(txns, &[edges]);
        let waits = Saturated { dependencies: self.dependencies(), inferred: &inferred };
        let graph = Split { waits: &waits, overtaken };
        self.resolved.order_of(&graph, &self.resolved.guessed_moments(), in_time)
    }

    /// Tells the neighbours in an order of each tail.
    pub(super) fn order_tails(
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
}
