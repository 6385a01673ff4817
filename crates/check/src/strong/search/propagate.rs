//! What follows from the literals that hold: edges, and clauses with one literal left.

use super::refutation::Ground;
use super::{Label, Search};
use crate::clauses::{Conflict, Literal};
use crate::strong::problem::{Alternative, Arc, Precedes};
use crate::strong::sources::Candidate;

impl Search<'_, '_> {
    /// Follows up all literals that were set.
    pub(super) fn follow_up(&mut self) -> Option<Conflict> {
        while let Some(literal) = self.clauses.next_set() {
            let conflict = self.add_edges(literal);
            if let Some(conflict) = conflict.or_else(|| self.clauses.visit_watches(literal)) {
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
            if let Some(source) = source.filter(|source| self.clauses.is_true(*source))
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
            if self.clauses.is_true(order)
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
        self.clauses.conflict(literals, Ground::Cycle(cycle.into()))
    }
}
