//! The problem that a level makes of a history: nodes, edges that are known, and choices.
//!
//! The question is whether one alternative of every choice can be taken so that all edges together
//! have no cycle. Choices are of two kinds:
//!
//! - An order of two versions of a key: with the earlier one first, its writer comes before the
//!   other's, and so do all its readers. There are as many as pairs of versions, so they are not
//!   written down; whoever needs one makes it.
//! - Any other is written down ([`Choices`]), with as many alternatives as it has. Whatever can be
//!   said in this way needs no change in saturation or search.

use isolario_model::TxnId;

use super::choices::Choices;
use super::layout::Layout;
use crate::resolved::{SharedVersions, Version};

/// A directed edge between nodes.
pub(crate) type Arc = (u32, u32);

/// An order of two versions: one comes before another one of the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Precedes {
    pub(crate) first: Version,
    pub(crate) second: Version,
}

impl Precedes {
    /// The other order.
    pub(crate) fn opposite(self) -> Precedes {
        Precedes { first: self.second, second: self.first }
    }
}

/// One alternative of a choice of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alternative {
    /// An order of two versions.
    Order(Precedes),
    /// One that is written down, by its number.
    Listed(u32),
}

/// A history as a problem of acyclicity.
pub(crate) struct Problem {
    pub(crate) layout: Layout,
    pub(crate) nodes: usize,
    /// The edges that what clients saw leaves no choice about.
    pub(crate) known: Vec<Arc>,
    pub(crate) versions: SharedVersions,
    /// The transactions with a place in real time, by the time they finished. The node of each
    /// moment follows those of the transactions.
    pub(crate) moments: Vec<TxnId>,
    pub(crate) choices: Choices,
}

impl Problem {
    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let own = self.known.capacity() * size_of::<Arc>() + self.moments.len() * 4;
        (own + self.choices.bytes()) as u64 + self.versions.bytes()
    }

    /// The edges of an alternative.
    #[inline]
    pub(crate) fn edges(&self, alternative: Alternative) -> impl Iterator<Item = Arc> + '_ {
        let (order, listed) = match alternative {
            Alternative::Order(precedes) => (Some(precedes), &[][..]),
            Alternative::Listed(alternative) => (None, self.choices.arcs(alternative)),
        };
        order.into_iter().flat_map(|precedes| self.arcs(precedes)).chain(listed.iter().copied())
    }

    /// The edges of an order of two versions, the one between the writers first.
    #[inline]
    pub(crate) fn arcs(&self, precedes: Precedes) -> impl Iterator<Item = Arc> + '_ {
        let (layout, versions) = (self.layout, &self.versions);
        let (first, second) = (versions.writer(precedes.first), versions.writer(precedes.second));
        let readers = versions.readers(precedes.first).iter().filter(move |r| r.txn != second);
        let anti = readers.map(move |r| (layout.start(r.txn), layout.commit(second)));
        std::iter::once((layout.commit(first), layout.overwrite(second))).chain(anti)
    }
}
