//! Why a search has no solution.

use super::Search;
use crate::clauses::{Conflict, Given};
use crate::strong::order::Chosen;

/// What a clause of a search is given for.
pub(super) enum Ground {
    /// Forced together, the opposites of its literals add these edges, which close a cycle with what is known.
    Cycle(Box<[Chosen]>),
    /// It has the alternatives of a choice; of a read those that are left, if it is the choice of one.
    Choice { read: Option<u32> },
}

impl Given for Ground {
    fn bytes(&self) -> usize {
        match self {
            Ground::Cycle(cycle) => size_of_val(&**cycle),
            Ground::Choice { .. } => 0,
        }
    }
}

/// What a final conflict rests on.
pub(crate) struct Refutation<Step> {
    /// Cycles that close every case, each given by the edges of choices on it.
    pub(crate) cycles: Vec<Vec<Step>>,
    /// The reads that must have seen one of the candidates that were left.
    pub(crate) reads: Vec<u32>,
}

impl<Step> Refutation<Step> {
    /// The same in other terms.
    pub(crate) fn told<Told>(
        self,
        step: impl Fn(Step) -> Option<Told>,
        read: impl Fn(u32) -> u32,
    ) -> Refutation<Told> {
        let cycle = |cycle: Vec<Step>| cycle.into_iter().filter_map(&step).collect();
        Refutation {
            cycles: self.cycles.into_iter().map(cycle).collect(),
            reads: self.reads.into_iter().map(read).collect(),
        }
    }
}

impl Search<'_, '_> {
    /// What a conflict without decisions rests on, shortest cycles first; nothing if that is not on record any more.
    pub(super) fn refutation(&self, conflict: &Conflict) -> Refutation<Chosen> {
        let mut refutation = Refutation { cycles: Vec::new(), reads: Vec::new() };
        for ground in self.clauses.grounds(conflict) {
            match ground {
                Ground::Cycle(cycle) => refutation.cycles.push(cycle.to_vec()),
                Ground::Choice { read } => refutation.reads.extend(read),
            }
        }
        refutation.cycles.sort_by_key(Vec::len);
        refutation
    }
}
