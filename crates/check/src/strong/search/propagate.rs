//! What follows from the literals that hold: edges, and lemmas with one literal left.

use super::proof::Inference;
use super::{Label, Literal, Search};
use crate::strong::problem::{Alternative, Arc, Precedes};
use crate::strong::sources::Candidate;

/// A lemma none of whose literals holds.
pub(super) struct Conflict {
    pub(super) literals: Vec<Literal>,
    pub(super) step: u32,
}

impl Search<'_, '_> {
    /// Follows up all literals that were set.
    pub(super) fn follow_up(&mut self) -> Option<Conflict> {
        while let Some(literal) = self.trail.get(self.followed).copied() {
            self.followed += 1;
            if let Some(conflict) = self.add_edges(literal).or_else(|| self.visit_watches(literal))
            {
                return Some(conflict);
            }
        }
        None
    }

    /// Adds the edges of the alternative that a literal takes.
    fn add_edges(&mut self, literal: Literal) -> Option<Conflict> {
        // Not one iterator for both kinds: this is where the time goes.
        let problem = self.problem;
        match self.variables.alternative(literal)? {
            Alternative::Order(precedes) => {
                let conflict = self.insert_all(literal, problem.arcs(precedes));
                conflict.or_else(|| self.before_overwriter(literal, precedes))
            }
            Alternative::Source(candidate) => {
                let conflict = self.insert_all(literal, problem.source_arcs(candidate));
                conflict.or_else(|| self.before_overwriters(literal, candidate))
            }
        }
    }

    /// Adds the edges that an order of two versions adds together with reads that saw the first.
    fn before_overwriter(&mut self, literal: Literal, precedes: Precedes) -> Option<Conflict> {
        let problem = self.problem;
        for candidate in problem.sources.of_version(precedes.first) {
            let source = self.variables.of_candidate(*candidate);
            if let Some(source) = source.filter(|source| self.is_true(*source))
                && let Some(arc) = problem.joint_arc(*candidate, precedes)
                && let Some(conflict) = self.insert(arc, Label::both(literal, source))
            {
                return Some(conflict);
            }
        }
        None
    }

    /// Adds the edges that a source adds together with orders that put it before other versions.
    fn before_overwriters(&mut self, literal: Literal, candidate: Candidate) -> Option<Conflict> {
        let version = self.problem.sources.version(candidate)?;
        for at in 0..self.variables.before(version).len() {
            let order = self.variables.before(version)[at];
            if self.is_true(order)
                && let Some(precedes) = self.variables.precedes(order)
                && let Some(arc) = self.problem.joint_arc(candidate, precedes)
                && let Some(conflict) = self.insert(arc, Label::both(literal, order))
            {
                return Some(conflict);
            }
        }
        None
    }

    /// Adds edges for a literal. A cycle is a conflict of all literals on it.
    fn insert_all(
        &mut self,
        literal: Literal,
        edges: impl Iterator<Item = Arc>,
    ) -> Option<Conflict> {
        let label = Label::of(literal);
        for arc in edges {
            if !self.order.insert(arc, label) {
                return Some(self.closed_by(arc, label));
            }
        }
        None
    }

    fn insert(&mut self, arc: Arc, label: Label) -> Option<Conflict> {
        (!self.order.insert(arc, label)).then(|| self.closed_by(arc, label))
    }

    /// The conflict of all literals on the cycle that an edge closes.
    fn closed_by(&mut self, (from, to): Arc, label: Label) -> Conflict {
        let mut cycle = vec![((from, to), label)];
        cycle.extend(self.order.path(to, from));
        let mut literals: Vec<Literal> =
            cycle.iter().flat_map(|(_, label)| label.literals()).map(|literal| !literal).collect();
        literals.sort_unstable();
        literals.dedup();
        let step = self.proof.add(Inference::Cycle(cycle.into()));
        Conflict { literals, step }
    }

    /// Looks at the lemmas that hoped for the opposite of a literal.
    fn visit_watches(&mut self, literal: Literal) -> Option<Conflict> {
        let lost = !literal;
        let mut watching = std::mem::take(&mut self.watches[lost.index()]);
        let (mut at, mut conflict) = (0, None);
        while at < watching.len() && conflict.is_none() {
            let number = watching[at];
            if self.find_other(number, lost) {
                watching.swap_remove(at);
                continue;
            }
            at += 1;
            let first = self.lemmas[number as usize].literals[0];
            if self.is_false(first) {
                let lemma = &self.lemmas[number as usize];
                conflict = Some(Conflict { literals: lemma.literals.clone(), step: lemma.step });
            } else if !self.is_true(first) {
                self.set(first, Some(number));
            }
        }
        self.watches[lost.index()].append(&mut watching);
        conflict
    }

    /// Makes a lemma watch for another literal than one that was lost. False if it has no other to
    /// hope for than its first, or if that holds.
    fn find_other(&mut self, number: u32, lost: Literal) -> bool {
        let mut literals = std::mem::take(&mut self.lemmas[number as usize].literals);
        if literals[0] == lost {
            literals.swap(0, 1);
        }
        let other = match self.is_true(literals[0]) {
            true => None,
            false => (2..literals.len()).find(|at| !self.is_false(literals[*at])),
        };
        if let Some(at) = other {
            literals.swap(1, at);
            self.watches[literals[1].index()].push(number);
        }
        self.lemmas[number as usize].literals = literals;
        other.is_some()
    }
}
