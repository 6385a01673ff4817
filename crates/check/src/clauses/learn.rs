//! What a conflict teaches.

use rustc_hash::FxHashSet;

use super::proof::Inference;
use super::{Clause, Clauses, Conflict, Given, Literal};

/// A clause that follows from a conflict, not yet kept.
pub(crate) struct Lesson {
    /// The first is false by the last decision that the conflict depends on alone.
    pub(super) literals: Vec<Literal>,
    pub(super) step: u32,
    span: u32,
    /// The number of decisions by which all but the first literal are false.
    pub(crate) level: usize,
    /// The variables that were involved.
    pub(crate) involved: Vec<u32>,
}

impl<G: Given> Clauses<G> {
    /// Learns from a conflict, unless it depends on no decision. The client takes back decisions to the level of the
    /// lesson, and then keeps it.
    ///
    /// The conflict is resolved with the reasons of its literals until only one of the last decision's is left: the
    /// first unique implication point. That literal comes first in the clause.
    pub(crate) fn learn(&mut self, conflict: &Conflict) -> Option<Lesson> {
        let level_of = |literal: &Literal| self.states[literal.var()].level;
        let level = conflict.literals.iter().map(level_of).max().filter(|level| *level > 0)?;
        let (mut from, mut certain) = (vec![conflict.step], Vec::new());
        let (mut learned, mut involved) = (Vec::new(), Vec::new());
        let (mut open, mut at) = (0usize, self.trail.len());
        let mut literals = conflict.literals.clone();
        let asserted = loop {
            for literal in literals {
                let (var, state) = (literal.var(), self.states[literal.var()]);
                if std::mem::replace(&mut self.seen[var], true) {
                    continue;
                }
                involved.push(var as u32);
                match state.level {
                    0 => certain.push(var as u32),
                    other if other == level => open += 1,
                    _ => learned.push(literal),
                }
            }
            let next = loop {
                at -= 1;
                let literal = self.trail[at];
                if self.seen[literal.var()] {
                    break literal;
                }
            };
            open -= 1;
            match self.states[next.var()].reason {
                Some(reason) if open > 0 => {
                    let reason = &self.clauses[reason as usize];
                    from.push(reason.step);
                    literals = reason.literals.clone();
                }
                _ => break !next,
            }
        };
        involved.iter().for_each(|var| self.seen[*var as usize] = false);
        learned.insert(0, asserted);
        let step = Inference::Learned { from: from.into(), certain: certain.into() };
        let step = self.proof.add(step);
        Some(self.lesson(learned, step, involved))
    }

    fn lesson(&self, mut literals: Vec<Literal>, step: u32, involved: Vec<u32>) -> Lesson {
        let level_of = |literal: &Literal| self.states[literal.var()].level;
        let mut levels: Vec<u32> = literals.iter().map(level_of).collect();
        levels.sort_unstable();
        levels.dedup();
        let span = levels.len() as u32;
        // The second literal is of the level to go back to, so that both may be watched.
        let mut level = 0;
        if let Some(second) = (1..literals.len()).max_by_key(|at| level_of(&literals[*at])) {
            literals.swap(1, second);
            level = level_of(&literals[1]) as usize;
        }
        Lesson { literals, step, span, level, involved }
    }

    /// Keeps what was learned, from which a literal follows.
    pub(crate) fn keep(&mut self, lesson: Lesson) {
        let Lesson { literals, step, span, .. } = lesson;
        let first = literals[0];
        let number = self.push(Clause { literals, step, span });
        self.set(first, Some(number));
    }

    /// Whether the proof grew too large and is not on record any more.
    pub(crate) fn is_proof_lost(&self) -> bool {
        self.proof.is_lost()
    }

    /// The reasons of the given clauses on which a conflict without decisions rests, in the order in which they were
    /// given. Empty if the proof was dropped.
    pub(crate) fn grounds(&self, conflict: &Conflict) -> Vec<&G> {
        if self.proof.is_lost() {
            return Vec::new();
        }
        let mut is_used = vec![false; self.proof.steps.len()];
        let mut steps = vec![conflict.step];
        let mut vars: Vec<usize> = conflict.literals.iter().map(|literal| literal.var()).collect();
        let mut seen = FxHashSet::default();
        loop {
            if let Some(var) = vars.pop() {
                if let Some(reason) = self.states[var].reason.filter(|_| seen.insert(var)) {
                    let reason = &self.clauses[reason as usize];
                    steps.push(reason.step);
                    vars.extend(reason.literals.iter().map(|literal| literal.var()));
                }
            } else if let Some(step) = steps.pop() {
                if std::mem::replace(&mut is_used[step as usize], true) {
                    continue;
                }
                if let Inference::Learned { from, certain } = &self.proof.steps[step as usize] {
                    steps.extend(from);
                    vars.extend(certain.iter().map(|var| *var as usize));
                }
            } else {
                break;
            }
        }
        let steps = is_used.into_iter().zip(&self.proof.steps).filter(|(is_used, _)| *is_used);
        let given = steps.filter_map(|(_, step)| match step {
            Inference::Given(given) => Some(given),
            Inference::Learned { .. } => None,
        });
        given.collect()
    }
}
