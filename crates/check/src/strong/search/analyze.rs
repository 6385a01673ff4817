//! What a conflict teaches.

use super::proof::Inference;
use super::propagate::Conflict;
use super::{Chosen, Lemma, Literal, Refutation, Search};

impl Search<'_, '_> {
    /// Learns from a conflict and goes back to where the lemma says something new. If the conflict
    /// depends on no decision, what shows that.
    pub(super) fn resolve(&mut self, conflict: Conflict) -> Option<Refutation<Chosen>> {
        let level = self.highest_level(&conflict.literals);
        if level == 0 {
            return Some(self.refutation(&conflict));
        }
        self.back_to(level);
        let (mut literals, step) = self.learn(conflict);
        let span = self.span(&literals);
        self.heap.decay();
        // The second literal is of the level to go back to, so that both may be watched.
        if literals.len() > 1 {
            let level = |at: &usize| self.states[literals[*at].var()].level;
            let second = (1..literals.len()).max_by_key(level).unwrap_or(1);
            literals.swap(1, second);
            let target = self.states[literals[1].var()].level;
            self.back_to(target as usize);
        } else {
            self.back_to(0);
        }
        let first = literals[0];
        let number = self.lemmas.len() as u32;
        if literals.len() > 1 {
            self.watches[literals[0].index()].push(number);
            self.watches[literals[1].index()].push(number);
        }
        self.lemmas.push(Lemma { literals, step, span });
        self.set(first, Some(number));
        None
    }

    fn highest_level(&self, literals: &[Literal]) -> usize {
        literals.iter().map(|l| self.states[l.var()].level).max().unwrap_or(0) as usize
    }

    /// How many decisions literals depend on.
    fn span(&self, literals: &[Literal]) -> u32 {
        let mut levels: Vec<u32> = literals.iter().map(|l| self.states[l.var()].level).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.len() as u32
    }

    /// Resolves a conflict with the reasons of its literals until only one of the last decision's
    /// is left: the first unique implication point. That literal comes first in the lemma.
    fn learn(&mut self, conflict: Conflict) -> (Vec<Literal>, u32) {
        let level = self.levels.len() as u32;
        let (mut from, mut certain) = (vec![conflict.step], Vec::new());
        let mut lemma: Vec<Literal> = Vec::new();
        let mut marked: Vec<usize> = Vec::new();
        let (mut open, mut at) = (0usize, self.trail.len());
        let mut literals = conflict.literals;
        let asserted = loop {
            for literal in literals {
                let (var, state) = (literal.var(), self.states[literal.var()]);
                if std::mem::replace(&mut self.seen[var], true) {
                    continue;
                }
                marked.push(var);
                self.heap.bump(var as u32);
                match state.level {
                    0 => certain.push(var as u32),
                    other if other == level => open += 1,
                    _ => lemma.push(literal),
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
            let reason = self.states[next.var()].reason;
            match reason {
                Some(reason) if open > 0 => {
                    let reason = &self.lemmas[reason as usize];
                    from.push(reason.step);
                    literals = reason.literals.clone();
                }
                _ => break !next,
            }
        };
        marked.into_iter().for_each(|var| self.seen[var] = false);
        lemma.insert(0, asserted);
        let step = Inference::Learned { from: from.into(), certain: certain.into() };
        (lemma, self.proof.add(step))
    }

    /// What a conflict without decisions rests on; nothing if that is not on record any more.
    fn refutation(&self, conflict: &Conflict) -> Refutation<Chosen> {
        if self.proof.is_lost() {
            return Refutation { cycles: Vec::new(), reads: Vec::new() };
        }
        let reason = |var: usize| {
            let lemma = &self.lemmas[self.states[var].reason? as usize];
            Some((lemma.step, lemma.literals.as_slice()))
        };
        self.proof.refutation(conflict.step, &conflict.literals, reason)
    }
}
