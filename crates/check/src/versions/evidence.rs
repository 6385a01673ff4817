//! What is wrong, as cycles with reasons.

use isolario_model::{Anomaly, Edge, KeyId, OpId, Reason, TxnId, VersionOrder};

use super::Ordered;
use crate::cycles::{self, Explain, real_time};
use crate::order::OrderRule;
use crate::resolved::{Divergence, Reader, Source, Version};

impl Ordered<'_> {
    /// One lost update per version that several transactions overwrote which had read it.
    pub(super) fn lost_updates(&self) -> Vec<Anomaly> {
        self.divergences().iter().map(|divergence| self.lost_update(divergence)).collect()
    }

    fn lost_update(&self, divergence: &Divergence) -> Anomaly {
        let Divergence { key, version, first, second } = *divergence;
        let writer = version.map_or(TxnId::INIT, |version| self.orders.versions.writer(version));
        let edge = |from: Reader, to: Reader| {
            let known = match version {
                Some(_) => VersionOrder::ReadModifyWrite { read: to.read },
                None => VersionOrder::Initial,
            };
            let reason = Reason::AntiDependency { key, read: from.read, writer, known };
            Edge { from: from.txn, to: to.txn, reason }
        };
        cycles::of_clients(vec![edge(first, second), edge(second, first)])
    }

    /// The versions that a transaction wrote; may name one more than once.
    fn written(&self, txn: TxnId) -> impl Iterator<Item = (KeyId, Version)> + '_ {
        let keys = self.orders.versions.accessed(txn).iter();
        keys.filter_map(move |key| Some((*key, self.orders.versions.version(*key, txn)?)))
    }

    /// The version of a key that a transaction read from another one; none is the initial one.
    fn read_of(&self, txn: TxnId, key: KeyId) -> Option<(OpId, Option<Version>)> {
        let Self { resolved, orders, .. } = self;
        let (history, reads) = (resolved.dependencies.history, &resolved.dependencies.reads);
        let of_key = history.txn_ops(txn).filter(|op| history.op_keys()[op.index()] == key);
        of_key.into_iter().find_map(|op| match reads.source(op) {
            Source::Txn(writer) => Some((op, orders.versions.version(key, writer))),
            _ => None,
        })
    }

    /// How lists or statements show that a version comes before another.
    fn shown(&self, key: KeyId, before: TxnId, after: TxnId) -> Option<VersionOrder> {
        let mut edges = self.dependencies().reads.order_of(before, after);
        edges.find(|edge| edge.key == key).map(|edge| edge.known.told())
    }

    /// How it is known that a version is the next one; none if it is not.
    fn known(&self, key: KeyId, before: Option<Version>, after: Version) -> Option<VersionOrder> {
        let versions = &self.orders.versions;
        let (Some(earlier), to) = (before, versions.writer(after)) else {
            return self.orders.is_next(key, before, after).then_some(VersionOrder::Initial);
        };
        let from = versions.writer(earlier);
        let shown = self.shown(key, from, to);
        if !self.orders.is_next(key, before, after) {
            // Of a tail, an order may be stated.
            return shown;
        }
        if self.orders.leader(key) == before && before.is_some() {
            return Some(VersionOrder::Refuted { cycle: self.not_the_leader(key, from, to) });
        }
        if shown.is_some() {
            return shown;
        }
        let reader = versions.readers(earlier).iter().find(|reader| reader.txn == to)?;
        Some(VersionOrder::ReadModifyWrite { read: reader.read })
    }

    /// The cycle that there would be if another one of a tail came before the one that read what
    /// comes before the tail.
    fn not_the_leader(&self, key: KeyId, leader: TxnId, other: TxnId) -> Vec<Edge> {
        let assumed = Reason::Overwrite { key, known: VersionOrder::Assumed };
        let missed = self.read_of(leader, key).map(|(read, version)| {
            let (writer, known) = match version {
                None => (TxnId::INIT, VersionOrder::Initial),
                Some(version) => {
                    let writer = self.orders.versions.writer(version);
                    let shown = self.shown(key, writer, other);
                    (writer, shown.unwrap_or(VersionOrder::Assumed))
                }
            };
            Reason::AntiDependency { key, read, writer, known }
        });
        let back = Edge { from: other, to: leader, reason: assumed };
        let missed = missed.map(|reason| Edge { from: leader, to: other, reason });
        std::iter::once(back).chain(missed).collect()
    }
}

impl Explain for Ordered<'_> {
    fn dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        self.dependencies().edge(from, to).or_else(|| {
            let (key, known) = self.written(to).find_map(|(key, after)| {
                let before = self.orders.versions.version(key, from)?;
                Some((key, self.known(key, Some(before), after)?))
            })?;
            Some(Edge { from, to, reason: Reason::Overwrite { key, known } })
        })
    }

    fn anti_dependency(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        if let Some(overwrites) = self.by_reads() {
            return overwrites.explain(from, to);
        }
        self.written(to).find_map(|(key, after)| {
            let (read, version) = self.read_of(from, key)?;
            let known = self.known(key, version, after)?;
            let writer = version.map_or(TxnId::INIT, |v| self.orders.versions.writer(v));
            let reason = Reason::AntiDependency { key, read, writer, known };
            Some(Edge { from, to, reason })
        })
    }

    fn by_clock(&self, from: TxnId, to: TxnId) -> Option<Edge> {
        real_time(self.dependencies().history, from, to)
    }
}
