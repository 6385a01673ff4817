//! The problem that a level makes of a history: nodes, edges that are known, and choices.
//!
//! The question is whether one alternative of every choice can be taken so that all edges together
//! have no cycle. Choices are of two kinds:
//!
//! - An order of two versions of a key: with the earlier one first, its writer comes before the
//!   other's, and so do all its readers. There are as many as pairs of versions, so they are not
//!   written down; whoever needs one makes it.
//! - The source of a read that may have seen one of several versions ([`Sources`]).

use isolario_model::TxnId;

use super::incarnations::Incarnations;
use super::layout::Layout;
use super::sources::{Candidate, Sources};
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

/// The alternatives that add an edge: an order of versions, the source of a read, or both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Under {
    pub(crate) order: Option<Precedes>,
    pub(crate) source: Option<Candidate>,
}

/// One alternative of a choice of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alternative {
    /// An order of two versions.
    Order(Precedes),
    /// A version that a read may have seen.
    Source(Candidate),
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
    pub(crate) sources: Sources,
    /// Where writers of one key may overlap, if rows come back after a delete.
    pub(crate) incarnations: Option<Incarnations>,
}

impl Problem {
    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let own = self.known.capacity() * size_of::<Arc>() + self.moments.len() * 4;
        (own + self.sources.bytes()) as u64 + self.versions.bytes()
    }

    /// The edges that the source of a read adds by itself.
    pub(crate) fn source_arcs(&self, candidate: Candidate) -> impl Iterator<Item = Arc> + '_ {
        self.sources.arcs(self.layout, &self.versions, candidate)
    }

    /// The edge that the source of a read and an order of versions add together; none if the source is
    /// not the earlier version, or the reader itself wrote the later one.
    #[inline]
    pub(crate) fn joint_arc(&self, candidate: Candidate, precedes: Precedes) -> Option<Arc> {
        let reader = self.sources.read(self.sources.read_of(candidate)).reader;
        let second = self.versions.writer(precedes.second);
        let is_overwritten = self.sources.version(candidate) == Some(precedes.first);
        (is_overwritten && reader != second)
            .then(|| (self.layout.start(reader), self.layout.commit(second)))
    }

    /// The edges of an order of two versions, the one between the writers first.
    #[inline]
    pub(crate) fn arcs(&self, precedes: Precedes) -> impl Iterator<Item = Arc> + '_ {
        let (layout, versions) = (self.layout, &self.versions);
        let (first, second) = (versions.writer(precedes.first), versions.writer(precedes.second));
        let readers = versions.readers(precedes.first).iter().filter(move |r| r.txn != second);
        let anti = readers.map(move |r| (layout.start(r.txn), layout.commit(second)));
        std::iter::once((layout.commit(first), self.overwrite(precedes))).chain(anti)
    }

    /// Where the later writer must come after the commit of the earlier one.
    #[inline]
    pub(crate) fn overwrite(&self, precedes: Precedes) -> u32 {
        let second = self.versions.writer(precedes.second);
        match self.exclude(precedes) {
            true => self.layout.start(second),
            false => self.layout.commit(second),
        }
    }

    /// Whether the later writer must start after the commit of the earlier one.
    #[inline]
    pub(crate) fn exclude(&self, precedes: Precedes) -> bool {
        let excludes = |incarnations: &Incarnations| incarnations.exclude(precedes);
        self.layout.is_exclusive() && self.incarnations.as_ref().is_none_or(excludes)
    }
}
